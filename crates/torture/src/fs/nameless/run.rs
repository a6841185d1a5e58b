//! A recorded run of a file system on a nameless-write device, and its cuts.

use super::device::DeviceUnderTest;
use crate::block::access_log::AccessLog;
use crate::block::crash_image::{ImageBuilder, TearGranularity, first_uncertain};
use crate::block::cut::{Cut, CutOptions, choose_cuts};
use crate::block::graph::{CommandNode, Effect, Graph};
use crate::block::medium::SharedMedium;
use crate::block::recording_sink::{recorded, recording_sink, start_recording};
use crate::block::target::TortureTarget;
use crate::block::violation::{Oracle, Violation};
use crate::block::work_item::{copy, guarded};
use crate::fs::apply::ProgramSession;
use crate::fs::compare::Tree;
use crate::fs::differential::{Rules, SideBySide};
use crate::fs::op::{Act, FsOp, OpTarget, Path, User};
use crate::fs::op_generator::OpGenerator;
use crate::fs::{ModelFs, every};
use frit_core::split_mix::mix;
use frit_core::{Cause, CrashKind, Sink};
use frit_fs::{
    Clock, FileSystem, FormatOptions, Fs, FsOptions, Ino, InodeType, NewInode, PlacedContents, VirtualBlocks,
    check,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// A run and its cuts.
#[derive(Clone, Copy, Debug)]
pub struct NamelessCuts {
    /// Seed of the operations and cuts.
    pub seed: u64,
    /// Number of operations before the recording, which fill the device.
    pub before: usize,
    /// Number of recorded operations.
    pub recorded: usize,
    /// Maximum number of cuts.
    pub cuts: usize,
    /// The recovery of every n-th image is cut, too.
    pub nested_every: usize,
}

impl Default for NamelessCuts {
    fn default() -> Self {
        Self { seed: 1, before: 200, recorded: 40, cuts: 600, nested_every: 40 }
    }
}

/// Result of runs.
#[derive(Clone, Default, Debug)]
pub struct NamelessCutReport {
    /// Number of distinct images that were recovered.
    pub images: usize,
    /// Number of images of interrupted recoveries.
    pub nested: usize,
    /// Number of acknowledged syncs.
    pub syncs: usize,
    /// Number of recorded programs that moved blocks.
    pub moves: usize,
    /// Number of recorded erases.
    pub erases: usize,
    /// Violations, each with the seed and the cut.
    pub violations: Vec<String>,
}

impl NamelessCutReport {
    /// Adds another result.
    pub fn add(&mut self, other: Self) {
        self.images += other.images;
        self.nested += other.nested;
        self.syncs += other.syncs;
        self.moves += other.moves;
        self.erases += other.erases;
        self.violations.extend(other.violations);
    }
}

/// Share of the operations that overwrite parts of a large file.
const BULK_SHARE: f64 = 0.4;
/// Blocks of the large file in which writes begin.
const BULK_BLOCKS: u64 = 100;

type Nameless = Fs<Arc<VirtualBlocks>>;

/// A recorded run.
struct RecordedFs {
    graph: Graph,
    stores: Vec<SharedMedium>,
    /// States of the model: before the recorded operations, and after each.
    states: Vec<ModelFs>,
    /// Recorded operations that are syncs and succeeded.
    syncs: Vec<usize>,
}

fn clock() -> Clock {
    Clock::counted(1_000_000_000_000)
}

fn failed(what: &str, error: impl fmt::Display) -> Violation {
    Violation::new(Oracle::Recovers, format!("{what}: {error}"))
}

/// Returns `true` if an operation allocates space before it is written, which the device cannot do.
#[must_use]
pub fn allocates_ahead(op: &FsOp) -> bool {
    use frit_fs::Allocate::{Extend, Keep};
    matches!(op.act, Act::Allocate { how: Extend | Keep, .. })
}

fn is_left_out(op: &FsOp) -> bool {
    allocates_ahead(op) || matches!(op.act, Act::Gather(_))
}

fn rules() -> Rules {
    Rules {
        limited: true,
        trees: 0,
        times: 0,
        limits: false,
        pieces: false,
        leave_out: is_left_out,
        ..Rules::default()
    }
}

/// Opens the file system of a device that has recovered, after a check of its metadata.
fn open(placed: &Arc<PlacedContents>) -> Result<Nameless, Violation> {
    let report = check(&placed.medium()).map_err(|e| failed("check", e))?;
    if let Some(problem) = report.problems.first() {
        return Err(Violation::new(Oracle::Check, problem.clone()));
    }
    let options = FsOptions { placed: Some(Arc::clone(placed)), clock: clock(), ..FsOptions::default() };
    Fs::open(placed.medium(), options).map_err(|e| failed("open", e))
}

/// Returns a write that overwrites a part of a large file, so that the device has to collect garbage.
fn bulk_write(rng: &mut SmallRng, bulk: &Path) -> FsOp {
    let at = rng.random_range(0..BULK_BLOCKS) * 4096 + if rng.random_bool(0.2) { 100 } else { 0 };
    let act = Act::Write {
        what: OpTarget::Path(bulk.clone()),
        at,
        len: rng.random_range(1..12) * 4096,
        stamp: rng.random_range(1..=255),
    };
    FsOp { who: User::Root, act }
}

impl NamelessCuts {
    /// Runs the operations, and recovers the image of each cut.
    #[must_use]
    pub fn run(&self, target: &dyn TortureTarget) -> NamelessCutReport {
        let mut report = NamelessCutReport::default();
        match guarded(|| self.record(target)) {
            Ok(run) => self.cut(target, &run, &mut report),
            Err(v) => report.violations.push(self.describe("the run", &v)),
        }
        report
    }

    fn describe(&self, what: &str, v: &Violation) -> String {
        format!("seed {}, {what}: {:?}: {}", self.seed, v.oracle, v.what)
    }

    fn record(&self, target: &dyn TortureTarget) -> Result<RecordedFs, Violation> {
        let stores = target.blank_stores();
        let access_log = Arc::new(AccessLog::default());
        let mut sink = recording_sink(access_log.clone(), None, 0..0);
        let mut layer = target.build(&stores).map_err(|e| failed("build", e))?;
        layer.format(&mut sink).map_err(|e| failed("format", e))?;
        let device = DeviceUnderTest::new(layer, sink);
        let placed = device.load().map_err(|e| failed("load", e))?;
        let format =
            FormatOptions { placed: Some(Arc::clone(&placed)), clock: clock(), ..FormatOptions::default() };
        let fs = Fs::format(placed.medium(), format).map_err(|e| failed("mkfs", e))?;
        let model = ModelFs::with_command_files();
        let mut generator = OpGenerator::new(self.seed);
        generator.limits = false;
        generator.command_files = true;
        let sessions = (ProgramSession::new(&fs), ProgramSession::new(&model));
        let mut both = SideBySide::new(sessions.0, &model, sessions.1, rules());
        let wrong = |what: String| Violation::new(Oracle::Content, what);
        for op in every::base() {
            both.step(&op, false).map_err(wrong)?;
        }
        let bulk = Path::new("bulk");
        let create = Act::Create { path: bulk.clone(), kind: InodeType::File, mode: 0o600, rdev: 0 };
        both.step(&FsOp { who: User::Root, act: create }, false).map_err(wrong)?;
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let mut draw = |model: &ModelFs| loop {
            if rng.random_bool(BULK_SHARE) {
                return bulk_write(&mut rng, &bulk);
            }
            let op = generator.draw(&model.paths());
            if !is_left_out(&op) {
                return op;
            }
        };
        for _ in 0..self.before {
            both.step(&draw(&model), false).map_err(wrong)?;
        }
        fs.sync().map_err(|e| failed("sync", e))?;
        for s in &stores {
            let mut medium = s.lock();
            medium.commit();
            medium.access_log = Some(access_log.clone());
        }
        start_recording(&mut device.lock().sink);
        let (mut states, mut syncs) = (vec![model.clone()], Vec::new());
        for number in 0..self.recorded {
            let op = if number % 8 == 7 { FsOp { act: Act::Sync, ..draw(&model) } } else { draw(&model) };
            device.lock().sink.begin();
            both.step(&op, false).map_err(wrong)?;
            device.lock().sink.end();
            states.push(model.clone());
            if op.act == Act::Sync {
                syncs.push(number);
            }
        }
        drop((fs, placed));
        for s in &stores {
            s.lock().access_log = None;
        }
        let parts = device.into_parts().ok_or_else(|| failed("run", "the device is still in use"))?;
        drop(parts.layer);
        let graph = Graph::new(&recorded(parts.sink), access_log.take(), target.media());
        Ok(RecordedFs { graph, stores, states, syncs })
    }

    fn tearing(&self) -> TearGranularity {
        TearGranularity { paired_pages: false, ..TearGranularity::default() }
    }

    fn cut(&self, target: &dyn TortureTarget, run: &RecordedFs, report: &mut NamelessCutReport) {
        report.syncs += run.syncs.len();
        let is_move = |node: &&CommandNode| {
            node.effect == Effect::Program && matches!(node.cause, Cause::Gc | Cause::WearLevel)
        };
        report.moves += run.graph.nodes.iter().filter(is_move).count();
        report.erases += run.graph.nodes.iter().filter(|node| node.effect == Effect::Erase).count();
        let mut allowed = AllowedTrees::new(&run.states);
        let cutting = CutOptions { most: self.cuts, exhaustive: false };
        let cuts = choose_cuts(&run.graph, mix(self.seed), cutting);
        let mut order: Vec<_> =
            cuts.iter().enumerate().map(|(i, c)| (first_uncertain(&run.graph, c), i)).collect();
        order.sort_unstable();
        let mut builder = ImageBuilder::new(&run.graph, &run.stores, self.tearing());
        let mut seen = HashSet::new();
        for (open, i) in order {
            let cut = &cuts[i];
            let lasting = run.syncs.iter().rev().find(|&&r| run.graph.is_acknowledged(r, &cut.set));
            let from = lasting.map_or(0, |r| r + 1);
            let hash = builder.apply(cut, open);
            if !seen.insert(mix(hash ^ from as u64)) {
                continue;
            }
            report.images += 1;
            let nested = i % self.nested_every.max(1) == 0;
            let found = guarded(|| recover(target, &run.stores, i % 8 == 0)).and_then(|tree| {
                allowed.check(&tree, from)?;
                Ok(tree)
            });
            let result = found.and_then(|tree| match nested {
                true => {
                    builder.apply(cut, open);
                    report.nested += guarded(|| self.nested(target, &run.stores, &tree, i))?;
                    Ok(())
                }
                false => Ok(()),
            });
            if let Err(v) = result {
                report.violations.push(self.describe(&format!("cut {i}"), &v));
                if report.violations.len() >= 5 {
                    return;
                }
            }
        }
    }

    /// Cuts the recovery of an image, and recovers again. Returns the number of images.
    fn nested(
        &self,
        target: &dyn TortureTarget,
        stores: &[SharedMedium],
        tree: &Tree,
        number: usize,
    ) -> Result<usize, Violation> {
        let copies = copy(stores, target);
        let access_log = Arc::new(AccessLog::default());
        for s in &copies {
            let mut medium = s.lock();
            medium.commit();
            medium.access_log = Some(access_log.clone());
        }
        let mut sink = recording_sink(access_log.clone(), None, 0..0);
        start_recording(&mut sink);
        let mut layer = target.build(&copies).map_err(|e| failed("build", e))?;
        layer.recover(&mut sink, CrashKind::Process).map_err(|e| failed("recovery", e))?;
        let device = DeviceUnderTest::new(layer, sink);
        let placed = device.load().map_err(|e| failed("load", e))?;
        drop(open(&placed)?);
        drop(placed);
        for s in &copies {
            let mut medium = s.lock();
            medium.access_log = None;
            medium.undo();
        }
        let parts = device.into_parts().ok_or_else(|| failed("recovery", "the device is still in use"))?;
        drop(parts.layer);
        let graph = Graph::new(&recorded(parts.sink), access_log.take(), target.media());
        if graph.is_empty() {
            return Ok(0);
        }
        let cuts: Vec<Cut> =
            choose_cuts(&graph, mix(self.seed ^ number as u64), CutOptions { most: 12, exhaustive: false });
        for cut in &cuts {
            ImageBuilder::new(&graph, &copies, self.tearing()).apply(cut, 0);
            let again = recover(target, &copies, false)?;
            if let Some(difference) = again.difference(tree) {
                let what = format!("after an interrupted recovery: {difference}");
                return Err(Violation::new(Oracle::Converges, what));
            }
        }
        Ok(cuts.len())
    }
}

/// Recovers an image, and returns its tree. With `use_it` the file system is changed and synced, and
/// recovered again.
fn recover(target: &dyn TortureTarget, stores: &[SharedMedium], use_it: bool) -> Result<Tree, Violation> {
    let (fs, device) = start(target, stores)?;
    let tree = Tree::of(&fs).map_err(|e| Violation::new(Oracle::Reads, e))?;
    if !use_it {
        return Ok(tree);
    }
    let alive = |e: frit_fs::Error| Violation::new(Oracle::Alive, e.to_string());
    let caller = frit_fs::Caller::ROOT;
    let name = b"after-the-crash";
    let ino = fs.create(&caller, Ino::ROOT, name, NewInode::file(0o600)).map_err(alive)?.ino;
    let data = vec![0xA5; 20_000];
    fs.write(ino, 0, &data).map_err(alive)?;
    fs.sync().map_err(alive)?;
    drop((fs, device));
    let (fs, _device) = start(target, stores)?;
    let mut found = vec![0; data.len()];
    fs.read(ino, 0, &mut found).map_err(alive)?;
    if found != data {
        return Err(Violation::new(
            Oracle::Alive,
            "a file that was synced after the crash has other contents",
        ));
    }
    fs.unlink(&caller, Ino::ROOT, name).map_err(alive)?;
    let again = Tree::of(&fs).map_err(|e| Violation::new(Oracle::Reads, e))?;
    match again.difference(&tree) {
        Some(difference) => Err(Violation::new(Oracle::Again, difference)),
        None => Ok(tree),
    }
}

fn start(
    target: &dyn TortureTarget,
    stores: &[SharedMedium],
) -> Result<(Nameless, DeviceUnderTest), Violation> {
    let mut layer = target.build(stores).map_err(|e| failed("build", e))?;
    let mut sink = Sink::untimed();
    layer.recover(&mut sink, CrashKind::Process).map_err(|e| failed("recovery", e))?;
    let device = DeviceUnderTest::new(layer, sink);
    let placed = device.load().map_err(|e| failed("load", e))?;
    Ok((open(&placed)?, device))
}

/// Trees of the states of a model, which are computed when they are needed.
struct AllowedTrees<'a> {
    states: &'a [ModelFs],
    trees: Vec<Option<Tree>>,
}

impl<'a> AllowedTrees<'a> {
    fn new(states: &'a [ModelFs]) -> Self {
        Self { states, trees: vec![None; states.len()] }
    }

    /// Fails if a tree is none of the states from `from` on.
    fn check(&mut self, found: &Tree, from: usize) -> Result<(), Violation> {
        for (state, tree) in self.states[from..].iter().zip(&mut self.trees[from..]) {
            if tree.is_none() {
                *tree = Some(Tree::of(state).map_err(|e| Violation::new(Oracle::Content, e))?);
            }
            if tree.as_ref() == Some(found) {
                return Ok(());
            }
        }
        let oldest = self.trees[from].as_ref().and_then(|tree| found.difference(tree));
        let what =
            format!("no state from operation {from} on; the first differs: {}", oldest.unwrap_or_default());
        Err(Violation::new(Oracle::Content, what))
    }
}
