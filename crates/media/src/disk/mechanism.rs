//! Arm and platter: their positions, and the times at which sectors pass under the head.
//!
//! The platter turns continuously: its angle is a function of time. The arm stays where the last
//! access left it. Times are whole nanoseconds; angles are picoseconds of a revolution, so that the
//! phase remains exact over days of virtual time.

use super::layout::{BlockLocation, Layout};
use super::spec::{DiskSpec, Positioning};
use frit_core::{Nanos, Result};
use std::sync::Arc;

/// Position of the arm.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Arm {
    pub cylinder: u32,
    pub head: u32,
}

impl Arm {
    pub(super) fn of_location(location: &BlockLocation) -> Arm {
        Arm { cylinder: location.cylinder, head: location.head }
    }
}

/// A run of adjacent sectors that pass under the head one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pass {
    /// Number of sectors.
    pub sectors: u32,
    /// Time at which the first sector begins.
    pub begin: u64,
    /// Time at which the last sector ends.
    pub end: u64,
    /// Seek time before the pass.
    pub seek: u64,
    /// Rotational latency after the seek.
    pub rotation: u64,
}

/// A sector that passed less than this many picoseconds ago is not missed: this absorbs the
/// rounding to whole nanoseconds.
const JUST_PASSED_PS: u64 = 4_000;

#[derive(Clone, Debug)]
pub(super) struct Mechanism {
    pub layout: Layout,
    seeks: Arc<[u32]>,
    pub period_ps: u64,
    head_switch: u64,
    write_settle: i64,
    positioning: Positioning,
}

impl Mechanism {
    pub(super) fn new(spec: &DiskSpec) -> Result<Mechanism> {
        spec.check()?;
        let m = &spec.mechanics;
        let layout = Layout::new(&spec.geometry, m.revolution_ps)?;
        let last = spec.geometry.zones.iter().map(|z| z.last_cylinder + 1).max().unwrap_or(1);
        Ok(Mechanism {
            layout,
            seeks: m.seek.shared_table(last.max(spec.geometry.cylinders))?,
            period_ps: m.revolution_ps,
            head_switch: m.head_switch.0,
            write_settle: m.write_settle_ns,
            positioning: m.positioning,
        })
    }

    /// Duration of every access, if the mechanics are not modelled.
    pub(super) fn constant(&self) -> Option<Nanos> {
        match self.positioning {
            Positioning::Constant(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the angle of the platter at a time.
    #[inline]
    pub(super) fn angle(&self, t: u64) -> u64 {
        // The product overflows after 213 days of virtual time.
        match t.checked_mul(1000) {
            Some(ps) => ps % self.period_ps,
            None => (u128::from(t) * 1000 % u128::from(self.period_ps)) as u64,
        }
    }

    /// Returns the time from `t` until the platter is at an angle.
    #[inline]
    pub(super) fn wait(&self, t: u64, angle_ps: u64) -> u64 {
        if self.positioning == Positioning::AverageRotation {
            return self.period_ps / 2000;
        }
        let now = self.angle(t);
        let ps = if angle_ps >= now { angle_ps - now } else { angle_ps + self.period_ps - now };
        if ps + JUST_PASSED_PS > self.period_ps { 0 } else { ps.div_ceil(1000) }
    }

    /// Returns the time in which the arm moves from one track to another.
    #[inline]
    pub(super) fn position(&self, from: Arm, to: Arm, write: bool) -> u64 {
        if from == to {
            return 0;
        }
        let seek = u64::from(self.seeks[from.cylinder.abs_diff(to.cylinder) as usize]);
        // The seek and the head switch overlap.
        let t = if from.head == to.head { seek } else { seek.max(self.head_switch) };
        if write { t.saturating_add_signed(self.write_settle) } else { t }
    }

    /// Returns the time in which sectors of a zone pass under the head.
    #[inline]
    pub(super) fn transfer_time(&self, zone: u32, sectors: u32) -> u64 {
        (u64::from(sectors) * self.period_ps / u64::from(self.layout.sectors(zone))).div_ceil(1000)
    }

    /// Returns the pass of blocks that follow those of the last pass; see [`Mechanism::pass`]. On
    /// the same track they pass without rotational latency, also if rotation is modelled as an
    /// average.
    #[inline]
    pub(super) fn pass_on(&self, arm: &mut Arm, t: u64, block: u64, count: u32, write: bool) -> Pass {
        let from = *arm;
        let mut p = self.pass(arm, t, block, count, write);
        if self.positioning == Positioning::AverageRotation && from == *arm {
            (p.begin, p.end, p.rotation) = (p.begin - p.rotation, p.end - p.rotation, 0);
        }
        p
    }

    /// Returns the pass of the adjacent blocks that start at `block`, at most `count`, if the arm
    /// is free at `t`.
    #[inline]
    pub(super) fn pass(&self, arm: &mut Arm, t: u64, block: u64, count: u32, write: bool) -> Pass {
        let location = self.layout.locate(block);
        let to = Arm::of_location(&location);
        let seek = self.position(*arm, to, write);
        let rotation = self.wait(t + seek, location.angle_ps);
        let sectors = location.run.min(count);
        let begin = t + seek + rotation;
        *arm = to;
        Pass { sectors, begin, end: begin + self.transfer_time(location.zone, sectors), seek, rotation }
    }
}

impl DiskSpec {
    /// Checks, in addition, the properties that only the construction of a drive reveals: the
    /// layout of the sectors, and the seek curve over all cylinders.
    ///
    /// # Errors
    /// The errors of [`DiskSpec::check`], of the layout and of the seek curve. A drive whose
    /// parameters pass can be built.
    pub fn check_buildable(&self) -> Result<()> {
        Mechanism::new(self).map(drop)
    }
}
