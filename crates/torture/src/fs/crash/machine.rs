//! Power cuts of the machine under an image in an ordinary file: cut at every access to the disk, the image found is the
//! last one that was synced, or the one that was being synced, and nothing else.

use super::super::apply::Session;
use super::super::compare::Tree;
use super::super::op::Op;
use super::disk::{Event, Files, Platter, Simulated};
use super::oracle;
use super::run::{Found, Violation, open};
use frit_fs::{Clock, Disk, Format, Fs, Medium, Overlaid, check};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How the machine is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineCuts {
    /// Bytes of the image.
    pub bytes: u64,
    /// Most bytes of the overlay: where it is small, syncs come in the middle of operations.
    pub bound: u64,
    /// One operation in as many is followed by a sync; 0: none.
    pub sync_one_in: u32,
    /// Whether operations go on while a sync is at work.
    pub meanwhile: bool,
    /// Cuts at each access to the disk.
    pub cuts: usize,
    /// Of how many images one is also cut while it is opened.
    pub nested_one_in: u64,
    /// What cuts are drawn from.
    pub seed: u64,
}

impl Default for MachineCuts {
    fn default() -> Self {
        Self {
            bytes: 512 << 10,
            bound: 1 << 30,
            sync_one_in: 3,
            meanwhile: false,
            cuts: 3,
            nested_one_in: 8,
            seed: 1,
        }
    }
}

/// The image of a mapping behind the page cache, as a medium: what it is without an overlay.
#[derive(Debug)]
struct Direct(Arc<Simulated>);

impl Medium for Direct {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.0.read_image(at, into);
    }

    fn write(&self, at: u64, data: &[u8]) {
        let _ = self.0.write_image(at, data);
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        let _ = self.0.write_image(at, data);
    }

    fn zero(&self, at: u64, len: u64) {
        let _ = self.0.write_image(at, &vec![0; len as usize]);
    }

    fn fence(&self) {}

    fn sync(&self) -> frit_fs::Result<()> {
        self.0.took();
        self.0.sync_image()
    }
}

/// Makes a medium of a disk, as a start does.
type Maker<M> = fn(&Arc<Simulated>, u64) -> frit_fs::Result<M>;

/// Operations on their way, and the trees between them.
struct Steps {
    ops: Vec<Op>,
    trees: Vec<Tree>,
    wrong: Option<String>,
}

/// A file system whose operations may also be called from within a sync.
struct Live<M: Medium> {
    fs: Fs<M>,
    disk: Arc<Simulated>,
    steps: Mutex<Steps>,
}

impl<M: Medium> Live<M> {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the next operation. Returns whether there was one.
    fn step(&self) -> bool {
        let mut steps = self.steps();
        let Some(op) = steps.ops.get(steps.trees.len() - 1).cloned() else { return false };
        self.disk.begin();
        let _ = Session::new(&self.fs).apply(&op);
        self.disk.done();
        match Tree::of(&self.fs) {
            Ok(tree) => steps.trees.push(tree),
            Err(what) => steps.wrong = Some(what),
        }
        steps.wrong.is_none()
    }
}

/// What was done, to be compared with what a cut leaves.
struct Ran<M> {
    cuts: MachineCuts,
    maker: Maker<M>,
    ops: Vec<Op>,
    trees: Vec<Tree>,
    hasher: BuildHasherDefault<DefaultHasher>,
    seen: HashSet<u64>,
    rng: SmallRng,
}

/// States that may be found: as many operations had returned, and another one was under way or not.
type States = Vec<(usize, bool)>;

impl MachineCuts {
    /// Makes a file system with `before` in it, runs `ops`, and cuts these everywhere.
    #[must_use]
    pub fn run(&self, before: &[Op], ops: &[Op]) -> Found {
        self.run_on(|disk, bound| Overlaid::on(Arc::clone(disk), bound), before, ops)
    }

    /// The same for a mapping of the image behind the page cache, which is no such medium: what it is like without.
    #[must_use]
    pub fn run_mapped(&self, before: &[Op], ops: &[Op]) -> Found {
        self.run_on(|disk, _| Ok(Direct(Arc::clone(disk))), before, ops)
    }

    fn run_on<M: Medium + 'static>(&self, maker: Maker<M>, before: &[Op], ops: &[Op]) -> Found {
        let mut found = Found::default();
        if let Err(what) = self.try_run(maker, before, ops, &mut found) {
            found.violations.push(Violation { ops: ops.to_vec(), returned: ops.len(), what });
        }
        found
    }

    fn try_run<M: Medium + 'static>(
        &self,
        maker: Maker<M>,
        before: &[Op],
        ops: &[Op],
        found: &mut Found,
    ) -> Result<(), String> {
        let said = |error: frit_fs::Error| format!("without any cut: {error}");
        let disk = Arc::new(Simulated::new(Files { image: vec![0; self.bytes as usize], log: None }));
        let format =
            Format { clock: Clock::counted(1_000), uuid: Some(7), inodes: Some(64), ..Format::default() };
        let fs = Fs::format(maker(&disk, self.bound).map_err(said)?, format).map_err(said)?;
        for op in before {
            let _ = Session::new(&fs).apply(op);
        }
        drop(fs.close().map_err(said)?);
        let base = disk.start();
        let fs = open(maker(&disk, self.bound).map_err(said)?, None)?;
        let trees = vec![Tree::of(&fs)?];
        let steps = Mutex::new(Steps { ops: ops.to_vec(), trees, wrong: None });
        let live = Arc::new(Live { fs, disk: Arc::clone(&disk), steps });
        let mut rng = SmallRng::seed_from_u64(self.seed);
        if self.meanwhile {
            let (weak, mut rng): (Weak<Live<M>>, _) = (Arc::downgrade(&live), rng.clone());
            disk.during(Some(Box::new(move || {
                if rng.random_bool(0.3) {
                    let _ = weak.upgrade().map(|live| live.step());
                }
            })));
        }
        while live.step() {
            if self.sync_one_in > 0 && rng.random_ratio(1, self.sync_one_in) {
                let returned = disk.returned();
                frit_fs::Files::sync(&live.fs).map_err(said)?;
                disk.synced(returned);
            }
        }
        disk.during(None);
        let log = disk.log();
        let mut steps = live.steps();
        if let Some(what) = steps.wrong.take() {
            return Err(format!("without any cut: {what}"));
        }
        let trees = std::mem::take(&mut steps.trees);
        let (hasher, seen) = (BuildHasherDefault::default(), HashSet::new());
        let mut ran = Ran { cuts: *self, maker, ops: ops.to_vec(), trees, hasher, seen, rng };
        ran.cut_everywhere(base, &log, found);
        Ok(())
    }
}

impl<M: Medium> Ran<M> {
    fn cut_everywhere(&mut self, base: Files, log: &[Event], found: &mut Found) {
        let mut platter = Platter::new(base);
        let (mut last, mut now) = ((0, false), None);
        for event in log {
            for _ in 0..self.cuts.cuts {
                let left = platter.cut(&mut self.rng);
                self.look_at(&left, &[Some(last), now].into_iter().flatten().collect(), found);
            }
            platter.pass(event);
            match event {
                Event::Began(returned, more) => now = Some((*returned, *more)),
                Event::Ended => last = now.take().unwrap_or(last),
                // A sync that found nothing to do leaves a state like the one before.
                Event::Synced(returned) if *returned > last.0 => last = (*returned, false),
                _ => {}
            }
        }
    }

    fn look_at(&mut self, left: &Files, states: &States, found: &mut Found) {
        if !self.seen.insert(self.hasher.hash_one((&left.image, &left.log, states))) {
            return;
        }
        found.images += 1;
        let nested = found.images.is_multiple_of(self.cuts.nested_one_in.max(1));
        let what = match self.start(left, states) {
            Ok(log) if nested => self.cut_again(left, &log, states, found),
            Ok(_) => return,
            Err(what) => Err(what),
        };
        if let Err(what) = what {
            let (returned, _) = states[0];
            let ops = self.ops[..(returned + 1).min(self.ops.len())].to_vec();
            found.violations.push(Violation { ops, returned, what });
        }
    }

    /// Opens what a cut has left, and looks at all of it. Returns what the start did to the disk.
    fn start(&self, left: &Files, states: &States) -> Result<Vec<Event>, String> {
        let disk = Arc::new(Simulated::new(left.clone()));
        let medium =
            (self.maker)(&disk, self.cuts.bound).map_err(|error| format!("cannot be opened: {error}"))?;
        let log = disk.log();
        let report = check(&medium).map_err(|error| format!("check: {error}"))?;
        if !report.is_clean() {
            return Err(format!("check: {}", report.problems.join("; ")));
        }
        let fs = open(medium, None)?;
        let tree = Tree::of(&fs)?;
        let mut why = Vec::new();
        for (returned, more) in states {
            let after = self.trees.get(returned + 1).filter(|_| *more);
            let after = after.map(|after| (after, &self.ops[*returned].act));
            match oracle::allowed(&tree, &self.trees[*returned], after) {
                Ok(()) => return Ok(log),
                Err(what) => why.push(what),
            }
        }
        Err(format!("neither the last sync nor the one under way: {}", why.join("; ")))
    }

    /// Cuts the start.
    fn cut_again(
        &mut self,
        left: &Files,
        log: &[Event],
        states: &States,
        found: &mut Found,
    ) -> Result<(), String> {
        let mut platter = Platter::new(left.clone());
        for event in log {
            platter.pass(event);
            for _ in 0..self.cuts.cuts {
                found.nested += 1;
                let left = platter.cut(&mut self.rng);
                self.start(&left, states).map_err(|what| format!("cut off in a start: {what}"))?;
            }
        }
        Ok(())
    }
}
