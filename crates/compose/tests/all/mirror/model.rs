//! A mirror beside a plain array, under random requests, crashes and failures of sides.

use super::{Bench, Layer, check, config, metric};
use crate::device::SECTOR;
use frit_compose::mirror::MirrorConfig;
use frit_core::{
    BlockLayer, CrashKind, Durable, Hints, Progress, Quiesce, ReadTarget, Sector, Severity, Sink, WriteData,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Sectors of the data.
const SECTORS: usize = 120;

/// Something that happens to a mirror.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Write(usize, usize),
    Zero(usize, usize),
    Read(usize, usize),
    Flush,
    Step,
    Halt,
    /// All background work.
    StepAll,
    /// Power is lost after this many more commands of the next write, or at once. The dead side
    /// comes back or not.
    Crash {
        within: Option<(u32, usize, usize)>,
        revive: bool,
        seed: u64,
    },
    /// A side is gone from now on.
    Kill(usize),
    /// The next write of a side fails.
    FailWrite(usize),
    /// The next flush of a side fails and loses the writes before it.
    FailFlush(usize),
    /// A sector of a side cannot be read.
    Unreadable(usize, usize),
}

pub(super) fn actions(most: usize) -> impl Strategy<Value = Vec<Action>> {
    let range = || (0..SECTORS, 1..20usize);
    let crash = (any::<u64>(), any::<bool>(), proptest::option::of((0..24u32, 0..SECTORS, 1..20usize)))
        .prop_map(|(seed, revive, within)| Action::Crash { within, revive, seed });
    let one = prop_oneof![
        12 => range().prop_map(|(a, n)| Action::Write(a, n)),
        2 => range().prop_map(|(a, n)| Action::Zero(a, n)),
        4 => range().prop_map(|(a, n)| Action::Read(a, n)),
        3 => Just(Action::Flush),
        4 => Just(Action::Step),
        1 => Just(Action::Halt),
        1 => Just(Action::StepAll),
        4 => crash,
        1 => (0..2usize).prop_map(Action::Kill),
        1 => (0..2usize).prop_map(Action::FailWrite),
        1 => (0..2usize).prop_map(Action::FailFlush),
        1 => (0..2usize, 0..SECTORS).prop_map(|(s, a)| Action::Unreadable(s, a)),
    ];
    proptest::collection::vec(one, 1..most)
}

/// A mirror of two sides and the contents that it may have.
pub(super) struct Model {
    bench: Bench,
    sink: Sink,
    layer: Layer,
    /// Contents, by version.
    now: Vec<u8>,
    /// Contents that a sector may have after a crash.
    possible: Vec<BTreeSet<u8>>,
    /// Sectors that a crash left different on the sides, perhaps.
    doubt: bool,
    version: u8,
    dead: Option<usize>,
}

type Outcome = Result<(), String>;

/// Small numbers from a seed.
fn random(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*seed >> 33) as usize
}

impl Model {
    pub(super) fn new(bench: Bench, mut sink: Sink) -> Model {
        let mut layer = bench.build(config());
        layer.format(&mut sink).unwrap();
        let possible = vec![BTreeSet::from([0]); SECTORS];
        Model { bench, sink, layer, now: vec![0; SECTORS], possible, doubt: false, version: 0, dead: None }
    }

    /// Runs actions, and compares all contents at the end.
    pub(super) fn run(&mut self, actions: &[Action]) -> Outcome {
        for action in actions {
            self.act(action).map_err(|why| format!("{action:?}: {why}"))?;
        }
        self.act(&Action::Crash { within: None, revive: true, seed: 1 })?;
        self.act(&Action::StepAll)?;
        self.compare(0, SECTORS)
    }

    fn ok<T>(done: frit_core::Result<T>) -> Result<T, String> {
        done.map_err(|e| format!("failed: {e}"))
    }

    fn act(&mut self, action: &Action) -> Outcome {
        match *action {
            Action::Write(at, n) => self.change(at, n, false),
            Action::Zero(at, n) => self.change(at, n, true),
            Action::Read(at, n) => self.compare(at, n.min(SECTORS - at)),
            Action::Flush => {
                Self::ok(self.layer.flush(&mut self.sink))?;
                self.certain();
                Ok(())
            }
            Action::Step => Self::ok(self.layer.step(&mut self.sink, 8)).map(|_| ()),
            Action::StepAll => self.step_all(),
            Action::Halt => {
                Self::ok(self.layer.halt(&mut self.sink))?;
                self.certain();
                Ok(())
            }
            Action::Crash { within, revive, seed } => self.crash(within, revive, seed),
            Action::Kill(side) => {
                if self.healthy() {
                    self.bench.devices[side].state().dead = true;
                    self.bench.devices[1 - side].state().unreadable.clear();
                    self.dead = Some(side);
                    // The other side may have what the dead one did not.
                    self.settle()?;
                }
                Ok(())
            }
            Action::FailWrite(side) => self.fail(side, |state| state.fail_write = true),
            Action::FailFlush(side) => self.fail(side, |state| state.fail_flush = true),
            Action::Unreadable(side, at) => {
                if self.healthy() && !self.doubt {
                    self.bench.devices[1 - side].state().unreadable.clear();
                    self.bench.devices[side].state().unreadable.insert(at as u64);
                }
                Ok(())
            }
        }
    }

    /// Returns `true` if no fault is planned and no side is missing.
    fn healthy(&self) -> bool {
        let planned = |d: &crate::device::TestDevice| {
            let s = d.state();
            s.fail_write || s.fail_flush || !s.unreadable.is_empty()
        };
        self.dead.is_none() && metric(&self.layer, "degraded") == 0 && !self.bench.devices.iter().any(planned)
    }

    fn fail(&mut self, side: usize, plan: impl FnOnce(&mut crate::device::State)) -> Outcome {
        if self.healthy() && !self.doubt {
            plan(&mut self.bench.devices[side].state());
        }
        Ok(())
    }

    /// Everything that was written is durable now.
    fn certain(&mut self) {
        if !self.doubt {
            self.possible = self.now.iter().map(|&v| BTreeSet::from([v])).collect();
        }
    }

    fn change(&mut self, at: usize, n: usize, zero: bool) -> Outcome {
        let n = n.min(SECTORS - at);
        self.version = self.version % 250 + 1;
        let version = if zero { 0 } else { self.version };
        let first = Sector(at as u64);
        let done = if zero {
            self.layer.discard(&mut self.sink, first, n as u64)
        } else {
            let data = vec![version; n * SECTOR];
            self.layer.write(&mut self.sink, first, WriteData::Bytes(&data), Hints::NONE)
        };
        for s in at..at + n {
            self.now[s] = version;
            self.possible[s].insert(version);
        }
        Self::ok(done)
    }

    fn read(&mut self, at: usize, n: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; n * SECTOR];
        let into = ReadTarget::Bytes(&mut bytes);
        Self::ok(self.layer.read(&mut self.sink, Sector(at as u64), into, Hints::NONE))?;
        let whole = |s: &[u8]| s.iter().all(|&b| b == s[0]).then_some(s[0]).ok_or("a torn sector".to_owned());
        bytes.chunks_exact(SECTOR).map(whole).collect()
    }

    fn compare(&mut self, at: usize, n: usize) -> Outcome {
        let got = self.read(at, n)?;
        match (at..).zip(got).find(|&(s, v)| self.now[s] != v) {
            None => Ok(()),
            Some((s, v)) => Err(format!("sector {s} is {v} and not {}", self.now[s])),
        }
    }

    /// Takes contents that are possible.
    fn settle(&mut self) -> Outcome {
        let got = self.read(0, SECTORS)?;
        for (s, v) in got.into_iter().enumerate() {
            if !self.possible[s].contains(&v) {
                return Err(format!("sector {s} is {v}, possible: {:?}", self.possible[s]));
            }
            self.now[s] = v;
        }
        Ok(())
    }

    fn step_all(&mut self) -> Outcome {
        for _ in 0..1000 {
            if matches!(Self::ok(self.layer.step(&mut self.sink, 8))?, Progress::Idle) {
                if metric(&self.layer, "regions_to_copy") == 0 {
                    self.doubt = false;
                }
                return self.checked();
            }
        }
        Err("the background work has no end".into())
    }

    /// A check must find nothing but sides that are out.
    fn checked(&mut self) -> Outcome {
        let all = Self::ok(check(&mut self.layer, &mut self.sink, false))?;
        match all.iter().find(|f| f.severity > Severity::Minor) {
            None => Ok(()),
            Some(f) => Err(format!("check: {}", f.what)),
        }
    }

    fn crash(&mut self, within: Option<(u32, usize, usize)>, revive: bool, mut seed: u64) -> Outcome {
        if let Some((left, at, n)) = within {
            self.bench.power.lock().unwrap().left = Some(left);
            // It may fail after the power is off, and nobody sees the result.
            drop(self.change(at, n, false));
            self.bench.power.lock().unwrap().left = None;
        }
        for d in &self.bench.devices {
            // All, nothing, or a part of it.
            let way = random(&mut seed) % 3;
            d.crash(|writes| match way {
                0 => 0,
                1 => writes,
                _ => random(&mut seed) % (writes + 1),
            });
            let mut s = d.state();
            (s.fail_write, s.fail_flush) = (false, false);
        }
        if revive && let Some(side) = self.dead.take() {
            self.bench.devices[side].state().dead = false;
        }
        self.layer = self.bench.build(config());
        let mut started = self.layer.recover(&mut self.sink, CrashKind::PowerLoss);
        if let (Err(e), Some(side)) = (&started, self.dead.take()) {
            // Nobody had noticed that the side is gone.
            if !e.to_string().contains("prefer") {
                return Err(format!("start: {e}"));
            }
            self.bench.devices[side].state().dead = false;
            self.layer = self.bench.build(MirrorConfig { ..config() });
            started = self.layer.recover(&mut self.sink, CrashKind::PowerLoss);
        } else if self.dead.is_none() && !revive {
            self.dead = self.bench.devices.iter().position(|d| d.state().dead);
        }
        Self::ok(started)?;
        self.doubt = true;
        self.settle()?;
        self.checked()?;
        self.compare(0, SECTORS)
    }
}
