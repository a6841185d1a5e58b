//! Power losses under an image in an ordinary file. The run is cut at every access to the disk.
//! After each cut the image must hold the state of the last completed sync or of the sync in
//! progress.

use super::super::apply::ProgramSession;
use super::super::compare::Tree;
use super::super::op::FsOp;
use super::oracle;
use super::run::{CutReport, CutViolation, open};
use super::simulated_disk::{DiskEvent, DiskFiles, DurableState, SimulatedDisk};
use foldhash::quality::FixedState;
use frit_fs::{AnyMedium, Clock, Disk, FormatOptions, Fs, Medium, Overlaid, check};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Parameters of power losses under an image file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerLossCuts {
    /// Size of the image in bytes.
    pub bytes: u64,
    /// Largest size of the overlay in bytes. A small overlay makes syncs begin within operations.
    pub bound: u64,
    /// Interval, in operations, between syncs; 0 for no syncs.
    pub sync_one_in: u32,
    /// `true` if operations continue during a sync.
    pub meanwhile: bool,
    /// Number of cuts at each access to the disk.
    pub cuts: usize,
    /// Interval, in images, at which the recovery of an image is cut as well.
    pub nested_one_in: u64,
    /// Seed of the cuts.
    pub seed: u64,
}

impl Default for PowerLossCuts {
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

/// A medium that maps the image through the page cache, without an overlay.
#[derive(Debug)]
struct Direct(Arc<SimulatedDisk>);

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

/// Creates a medium of a disk, as an open of the file system does.
type MediumFactory = fn(&Arc<SimulatedDisk>, u64) -> frit_fs::Result<AnyMedium>;

/// Operations to run, and the trees between those that have run.
struct Steps {
    ops: Vec<FsOp>,
    trees: Vec<Tree>,
    wrong: Option<String>,
}

/// A file system whose operations can also be called during a sync.
struct LiveFs {
    fs: Fs<AnyMedium>,
    disk: Arc<SimulatedDisk>,
    steps: Mutex<Steps>,
}

impl LiveFs {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the next operation. Returns `false` if there is none, or if the tree is
    /// inconsistent.
    fn step(&self) -> bool {
        let mut steps = self.steps();
        let Some(op) = steps.ops.get(steps.trees.len() - 1).cloned() else { return false };
        self.disk.begin();
        let _ = ProgramSession::new(&self.fs).apply(&op);
        self.disk.done();
        match Tree::of(&self.fs) {
            Ok(tree) => steps.trees.push(tree),
            Err(what) => steps.wrong = Some(what),
        }
        steps.wrong.is_none()
    }
}

/// A completed run, for comparison with the images of its cuts.
struct CompletedSyncRun {
    cuts: PowerLossCuts,
    maker: MediumFactory,
    ops: Vec<FsOp>,
    trees: Vec<Tree>,
    seen: HashSet<u64>,
    rng: SmallRng,
}

/// States that an image may have: number of operations that had returned, and `true` if another one
/// was in progress.
type States = Vec<(usize, bool)>;

impl PowerLossCuts {
    /// Formats a file system, runs `before`, then `ops`, and cuts the latter everywhere.
    #[must_use]
    pub fn run(&self, before: &[FsOp], ops: &[FsOp]) -> CutReport {
        self.run_on(|disk, bound| Ok(Arc::new(Overlaid::on(Arc::clone(disk), bound)?)), before, ops)
    }

    /// Runs the same with a direct mapping of the image, without an overlay. Such a medium does not
    /// survive power losses, so the run should find violations.
    #[must_use]
    pub fn run_mapped(&self, before: &[FsOp], ops: &[FsOp]) -> CutReport {
        self.run_on(|disk, _| Ok(Arc::new(Direct(Arc::clone(disk)))), before, ops)
    }

    fn run_on(&self, maker: MediumFactory, before: &[FsOp], ops: &[FsOp]) -> CutReport {
        let mut found = CutReport::default();
        if let Err(what) = self.try_run(maker, before, ops, &mut found) {
            found.violations.push(CutViolation { ops: ops.to_vec(), returned: ops.len(), what });
        }
        found
    }

    fn try_run(
        &self,
        maker: MediumFactory,
        before: &[FsOp],
        ops: &[FsOp],
        found: &mut CutReport,
    ) -> Result<(), String> {
        let said = |error: frit_fs::Error| format!("without any cut: {error}");
        let disk = Arc::new(SimulatedDisk::new(DiskFiles { image: vec![0; self.bytes as usize], log: None }));
        let format = FormatOptions {
            clock: Clock::counted(1_000),
            uuid: Some(7),
            inodes: Some(64),
            ..FormatOptions::default()
        };
        let fs = Fs::format(maker(&disk, self.bound).map_err(said)?, format).map_err(said)?;
        for op in before {
            let _ = ProgramSession::new(&fs).apply(op);
        }
        drop(fs.close().map_err(said)?);
        let base = disk.start();
        let fs = open(maker(&disk, self.bound).map_err(said)?, None)?;
        let trees = vec![Tree::of(&fs)?];
        let steps = Mutex::new(Steps { ops: ops.to_vec(), trees, wrong: None });
        let live = Arc::new(LiveFs { fs, disk: Arc::clone(&disk), steps });
        let mut rng = SmallRng::seed_from_u64(self.seed);
        if self.meanwhile {
            // The callback holds a weak reference: the disk belongs to the file system, and a
            // strong one would be a cycle.
            let (weak, mut rng): (Weak<LiveFs>, _) = (Arc::downgrade(&live), rng.clone());
            disk.during(Some(Box::new(move || {
                if rng.random_bool(0.3) {
                    let _ = weak.upgrade().map(|live| live.step());
                }
            })));
        }
        while live.step() {
            if self.sync_one_in > 0 && rng.random_ratio(1, self.sync_one_in) {
                let returned = disk.returned();
                frit_fs::FileSystem::sync(&live.fs).map_err(said)?;
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
        let seen = HashSet::new();
        let mut ran = CompletedSyncRun { cuts: *self, maker, ops: ops.to_vec(), trees, seen, rng };
        ran.cut_everywhere(base, &log, found);
        Ok(())
    }
}

impl CompletedSyncRun {
    fn cut_everywhere(&mut self, base: DiskFiles, log: &[DiskEvent], found: &mut CutReport) {
        let mut platter = DurableState::new(base);
        let (mut last, mut now) = ((0, false), None);
        // The last round cuts after the last event.
        for event in log.iter().map(Some).chain([None]) {
            for _ in 0..self.cuts.cuts {
                let left = platter.cut(&mut self.rng);
                // While a sync is in progress, an image may have the state of the previous sync or
                // of this one.
                self.examine_cut(&left, &[Some(last), now].into_iter().flatten().collect(), found);
            }
            let Some(event) = event else { break };
            platter.pass(event);
            match event {
                DiskEvent::Began(returned, more) => now = Some((*returned, *more)),
                DiskEvent::Ended => last = now.take().unwrap_or(last),
                // A sync without changes accesses no file, so it has no `Began` event.
                DiskEvent::Synced(returned) if *returned > last.0 => last = (*returned, false),
                _ => {}
            }
        }
    }

    fn examine_cut(&mut self, left: &DiskFiles, states: &States, found: &mut CutReport) {
        // Equal images with equal states are examined only once.
        if !self.seen.insert(FixedState::default().hash_one((&left.image, &left.log, states))) {
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
            found.violations.push(CutViolation { ops, returned, what });
        }
    }

    /// Opens an image and examines it. Returns the accesses of the recovery.
    fn start(&self, left: &DiskFiles, states: &States) -> Result<Vec<DiskEvent>, String> {
        let disk = Arc::new(SimulatedDisk::new(left.clone()));
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
        Err(format!("neither the last sync nor the one in progress: {}", why.join("; ")))
    }

    /// Cuts the recovery of an image.
    fn cut_again(
        &mut self,
        left: &DiskFiles,
        log: &[DiskEvent],
        states: &States,
        found: &mut CutReport,
    ) -> Result<(), String> {
        let mut platter = DurableState::new(left.clone());
        for event in log {
            platter.pass(event);
            for _ in 0..self.cuts.cuts {
                found.nested += 1;
                let left = platter.cut(&mut self.rng);
                self.start(&left, states).map_err(|what| format!("recovery was cut: {what}"))?;
            }
        }
        Ok(())
    }
}
