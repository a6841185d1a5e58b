//! Which of the waiting requests goes next.

use super::drive::{Drive, Request};
use frit_core::Nanos;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumString, IntoStaticStr};

/// The order in which a drive serves what waits for it.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Debug,
    Serialize,
    Deserialize,
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Scheduler {
    /// First come, first served.
    #[default]
    Fifo,
    /// Shortest seek time first: the nearest cylinder.
    Sstf,
    /// The elevator: the nearest cylinder ahead, turning where nothing is ahead (LOOK).
    Scan,
    /// Always upwards, then back to the lowest.
    CLook,
    /// Shortest positioning time first: seek and rotation together.
    Sptf,
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting<T> {
    request: Request,
    cylinder: u32,
    tag: T,
}

/// Requests that wait for a drive. Among equals the one that came first goes first.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    scheduler: Scheduler,
    waiting: Vec<Waiting<T>>,
    up: bool,
}

impl<T> Queue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(scheduler: Scheduler) -> Queue<T> {
        Queue { scheduler, waiting: Vec::new(), up: true }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a request; `tag` comes back with it.
    pub fn push(&mut self, drive: &Drive, request: Request, tag: T) {
        let cylinder = drive.cylinder(request.sector);
        self.waiting.push(Waiting { request, cylinder, tag });
    }

    /// Takes the request that goes next when service begins at `at`.
    pub fn pop(&mut self, drive: &Drive, at: Nanos) -> Option<(Request, T)> {
        if self.waiting.is_empty() {
            return None;
        }
        let here = drive.arm_cylinder();
        let ahead = |c: u32, up: bool| if up { c >= here } else { c <= here };
        if self.scheduler == Scheduler::Scan && !self.waiting.iter().any(|w| ahead(w.cylinder, self.up)) {
            self.up = !self.up;
        }
        let cost = |w: &Waiting<T>| -> u64 {
            let distance = u64::from(w.cylinder.abs_diff(here));
            match self.scheduler {
                Scheduler::Fifo => 0,
                Scheduler::Sstf => distance,
                Scheduler::Scan if ahead(w.cylinder, self.up) => distance,
                Scheduler::Scan => u64::MAX,
                Scheduler::CLook if w.cylinder >= here => distance,
                Scheduler::CLook => (1 << 32) + u64::from(w.cylinder),
                Scheduler::Sptf => drive.positioning(&w.request, at).0,
            }
        };
        let best = (0..self.waiting.len()).min_by_key(|&i| (cost(&self.waiting[i]), i))?;
        let w = self.waiting.remove(best);
        Some((w.request, w.tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::drive::Kind;
    use crate::disk::testing::simple;
    use frit_core::Sector;
    use strum::IntoEnumIterator;

    /// Blocks of a drive with 100 blocks a cylinder, the arm being at cylinder 50, in the order of service.
    fn order(scheduler: Scheduler, cylinders: &[u64]) -> Vec<u64> {
        let mut drive = Drive::new(&simple()).unwrap();
        let read = |c: u64| Request { kind: Kind::Read, sector: Sector(c * 100), sectors: 1 };
        let mut now = drive.service(&read(50), Nanos::ZERO).done;
        let mut queue = Queue::new(scheduler);
        for &c in cylinders {
            queue.push(&drive, read(c), c);
        }
        let mut out = Vec::new();
        while let Some((r, c)) = queue.pop(&drive, now) {
            now = drive.service(&r, now).done;
            out.push(c);
        }
        out
    }

    #[test]
    fn schedulers_keep_their_orders() {
        let waiting = [60, 10, 55, 80, 45, 20];
        assert_eq!(order(Scheduler::Fifo, &waiting), waiting);
        assert_eq!(order(Scheduler::Sstf, &waiting), [55, 60, 45, 20, 10, 80]);
        assert_eq!(order(Scheduler::Scan, &waiting), [55, 60, 80, 45, 20, 10]);
        assert_eq!(order(Scheduler::CLook, &waiting), [55, 60, 80, 10, 20, 45]);
    }

    #[test]
    fn nothing_is_lost_and_equals_keep_their_order() {
        for s in Scheduler::iter() {
            let mut served = order(s, &[3, 90, 3, 50, 7]);
            served.sort_unstable();
            assert_eq!(served, [3, 3, 7, 50, 90], "{s:?}");
            assert!(Queue::<()>::new(s).is_empty());
        }
    }

    #[test]
    fn positioning_time_is_what_service_takes() {
        let mut drive = Drive::new(&simple()).unwrap();
        let mut now = Nanos::ZERO;
        for block in [700, 12, 9_950, 4_401] {
            let r = Request { kind: Kind::Read, sector: Sector(block), sectors: 1 };
            let expected = drive.positioning(&r, now);
            let s = drive.service(&r, now);
            assert_eq!(s.seek + s.rotation, expected);
            now = s.done;
        }
    }
}
