//! Runs operations of the file system and cuts them.

use super::super::apply::ProgramSession;
use super::super::compare::Tree;
use super::super::model::ModelFs;
use super::super::op::{Act, FsOp, OpTarget};
use super::content_store::MemoryContentStore;
use super::images::{self, Density};
use super::oracle;
use super::recording_medium::{MediumEvent, RecordingMedium};
use super::stored_content::ContentSnapshot;
use foldhash::quality::FixedState;
use frit_fs::{
    AnyMedium, Caller, Clock, ContentStore, FileSystem, FormatOptions, Fs, FsOptions, InStorage, Ino, Mapped,
    Medium, NewInode, REGISTER_QUERIES, RegisterSet, RegisterStatus, Report, check, check_contents,
    check_pool,
};
use std::collections::HashSet;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

/// First time of a run's clock, in nanoseconds.
const EPOCH: i64 = 1_000_000_000_000;
/// UUID of each file system.
const UUID: u128 = 7;

/// Parameters of power cuts of the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsCuts {
    /// Size of the medium in bytes.
    pub bytes: u64,
    /// Number of cuts.
    pub density: Density,
    /// Interval, in images, at which the recovery of an image is cut as well and the file system is
    /// used afterwards.
    pub nested_one_in: usize,
    /// Seed of the cuts.
    pub seed: u64,
    /// `true` if contents have checksums.
    pub sums: bool,
    /// `true` if contents are in external content files, whose changes are durable at once.
    pub pool: bool,
    /// Largest number of inodes in the list of orphans.
    pub orphans: Option<u64>,
    /// `true` if each directory has a command file.
    pub command_files: bool,
    /// `true` if an instruction of in-storage processing is in the registers during each operation. At the
    /// end the file system is closed, and the next mount, which clears the registers, is cut as well.
    /// Contents cannot be in a pool.
    pub registers: bool,
}

impl Default for FsCuts {
    fn default() -> Self {
        let (density, seed) = (Density::COARSE, 1);
        Self {
            bytes: 512 << 10,
            density,
            nested_one_in: 16,
            seed,
            sums: false,
            pool: false,
            orphans: None,
            command_files: true,
            registers: false,
        }
    }
}

/// Result of runs.
#[derive(Clone, Default, Debug)]
pub struct CutReport {
    /// Number of distinct images that were opened.
    pub images: u64,
    /// Number of images of cut recoveries.
    pub nested: u64,
    /// Violations.
    pub violations: Vec<CutViolation>,
}

/// An image that breaks a promise, and the operations that led to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CutViolation {
    /// Operations up to the cut. The last one may have been interrupted.
    pub ops: Vec<FsOp>,
    /// Number of operations that had returned.
    pub returned: usize,
    /// Description of the violation.
    pub what: String,
}

impl fmt::Display for CutViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, op) in self.ops.iter().enumerate() {
            writeln!(f, "{} {op}", if i < self.returned { "returned:" } else { "cut off: " })?;
        }
        write!(f, "{}", self.what)
    }
}

/// An image that a cut left.
#[derive(Clone, Copy, Debug)]
struct CutImage<'a> {
    image: &'a [u8],
    store: &'a ContentSnapshot,
    /// Number of operations that had returned.
    done: usize,
}

/// A completed run, for comparison with the images of its cuts.
struct CompletedRun<'a> {
    cuts: FsCuts,
    ops: &'a [FsOp],
    /// Trees before each operation and after the last one.
    trees: Vec<Tree>,
    scratch: AnyMedium,
    seen: HashSet<u64>,
}

impl CutReport {
    /// Adds the result of another run.
    pub fn add(&mut self, other: Self) {
        self.images += other.images;
        self.nested += other.nested;
        self.violations.extend(other.violations);
    }
}

impl FsCuts {
    /// Formats a file system, runs `before`, then `ops`, and cuts the latter everywhere.
    #[must_use]
    pub fn run(&self, before: &[FsOp], ops: &[FsOp]) -> CutReport {
        let mut found = CutReport::default();
        if let Err(violation) = self.try_run(before, ops, &mut found) {
            found.violations.push(violation);
        }
        found
    }

    /// Returns the format of the file system, without content files.
    pub(super) fn format(&self) -> FormatOptions {
        FormatOptions {
            clock: Clock::counted(EPOCH),
            uuid: Some(UUID),
            inodes: Some(64),
            sums: self.sums,
            orphans: self.orphans,
            command_files: self.command_files,
            ..FormatOptions::default()
        }
    }

    fn try_run(&self, before: &[FsOp], ops: &[FsOp], found: &mut CutReport) -> Result<(), CutViolation> {
        let wrong = |what: String| CutViolation { ops: ops.to_vec(), returned: ops.len(), what };
        let said = |error: frit_fs::Error| wrong(format!("without any cut: {error}"));
        let medium = Arc::new(RecordingMedium::new(vec![0; self.bytes as usize]));
        let content_store = self
            .pool
            .then(|| MemoryContentStore::new(UUID, &ContentSnapshot::new(), Some(Arc::clone(&medium))));
        let format = FormatOptions {
            content_store: content_store.clone().map(|content_store| content_store as Arc<dyn ContentStore>),
            ..self.format()
        };
        let fs = Fs::format(medium.clone() as AnyMedium, format).map_err(said)?;
        let model = ModelFs::of(self.command_files);
        let (mut session, mut expected) = (ProgramSession::new(&fs), ProgramSession::new(&model));
        for op in before {
            let _ = (session.apply(op), expected.apply(op));
        }
        if self.sums {
            // The sync adds the checksums of all contents.
            fs.sync().map_err(said)?;
        }
        let base =
            (medium.start(), content_store.map(|content_store| content_store.store()).unwrap_or_default());
        let mut trees = vec![Tree::of(&model).map_err(wrong)?];
        for (i, op) in ops.iter().enumerate() {
            let held = self.registers.then(|| fs.start_registers(&instruction(i)));
            let (answer, right) = (session.apply(op), expected.apply(op));
            // The model has no limit of space, so ENOSPC is the only difference that is allowed.
            if answer.is_ok() != right.is_ok() && answer != Err(no_space_errno()) {
                return Err(wrong(format!("operation {i} answers {answer:?}, and should {right:?}")));
            }
            if let (Act::Write { what, .. } | Act::Append { what, .. }, Ok(_)) = (&op.act, &answer) {
                sync(&mut session, op, what);
            }
            // Some instructions are still in progress at the end.
            if let Some(held) = held.filter(|_| i % 3 != 2) {
                fs.finish_registers(
                    held,
                    &RegisterSet { status: RegisterStatus::Complete, ..instruction(i) },
                );
            }
            medium.done();
            trees.push(Tree::of(&model).map_err(wrong)?);
        }
        let live = Tree::of(&fs).map_err(wrong)?;
        if let Some(difference) = trees.last().and_then(|tree| tree.difference(&live)) {
            return Err(wrong(format!("without any cut: {difference}")));
        }
        let log = medium.log();
        if self.registers {
            drop(fs.close().map_err(said)?);
        } else {
            drop(fs);
        }
        let scratch = Arc::new(Mapped::anonymous(self.bytes).map_err(said)?);
        let mut ran = CompletedRun { cuts: *self, ops, trees, scratch, seen: HashSet::new() };
        let log = until_last_done(&log);
        images::for_each_image(base, log, self.density, self.seed, |image, done, store| {
            ran.examine_cut(CutImage { image, store, done }, found);
        });
        if self.registers {
            ran.cut_mount(&medium.start(), found);
        }
        Ok(())
    }
}

/// Returns the registers of an instruction, with a value in each.
fn instruction(number: usize) -> RegisterSet {
    RegisterSet {
        command: 1,
        ino: number as u64 + 1,
        len: 4096,
        scanned: 4096,
        time_ns: 7,
        counts: [1, 2, 3, 4],
        firsts: [5, 6, 7, u64::MAX],
        queries: vec![b"a word of a query".to_vec(); REGISTER_QUERIES],
        ..RegisterSet::default()
    }
}

/// Returns the error number of a full medium.
fn no_space_errno() -> i32 {
    frit_fs::Error::NoSpace.errno()
}

/// Makes a write durable with a sync of its file. Both count as one operation.
fn sync(session: &mut ProgramSession<'_>, op: &FsOp, what: &OpTarget) {
    let act = Act::SyncFile { what: what.clone(), data_only: true };
    let _ = session.apply(&FsOp { who: op.who, act });
}

/// Returns the log without the events after the last operation, which dropping the sessions causes.
fn until_last_done(log: &[MediumEvent]) -> &[MediumEvent] {
    let end = log.iter().rposition(|event| *event == MediumEvent::Done).map_or(0, |i| i + 1);
    &log[..end]
}

impl CompletedRun<'_> {
    fn examine_cut(&mut self, cut: CutImage<'_>, found: &mut CutReport) {
        // Equal images after the same operations are examined only once.
        if !self.seen.insert(FixedState::default().hash_one((cut.image, cut.done, cut.store))) {
            return;
        }
        found.images += 1;
        if let Err(what) = self.open(cut) {
            self.violation(found, cut.done, what);
            return;
        }
        if found.images.is_multiple_of(self.cuts.nested_one_in.max(1) as u64) {
            self.cut_again(cut, found);
        }
    }

    /// Returns the content files of a cut, if contents are in a pool.
    fn content_store(
        &self,
        store: &ContentSnapshot,
        log: Option<&Arc<RecordingMedium>>,
    ) -> Option<Arc<MemoryContentStore>> {
        self.cuts.pool.then(|| MemoryContentStore::new(UUID, store, log.cloned()))
    }

    fn violation(&self, found: &mut CutReport, done: usize, what: String) {
        let ops = self.ops[..(done + 1).min(self.ops.len())].to_vec();
        found.violations.push(CutViolation { ops, returned: done, what });
    }

    /// Opens an image and examines it.
    fn open(&self, cut: CutImage<'_>) -> Result<(), String> {
        let medium = &self.scratch;
        medium.write_data(0, cut.image);
        let content_store = self.content_store(cut.store, None);
        let checked = match &content_store {
            None if self.cuts.sums => check_contents(medium),
            content_store => look(medium, content_store.as_deref()),
        };
        let report = checked.map_err(|error| format!("check: {error}"))?;
        if !report.is_clean() {
            return Err(format!("check: {}", report.problems.join("; ")));
        }
        let fs = open(Arc::clone(medium), content_store.clone())?;
        self.compare(&fs, cut.done)?;
        let report = look(medium, content_store.as_deref())
            .map_err(|error| format!("check after recovery: {error}"))?;
        if !report.is_clean() || report.orphans > 0 || report.strays > 0 {
            let (orphans, strays) = (report.orphans, report.strays);
            let left = format!("{orphans} orphans, {strays} stray content files");
            return Err(format!("check after recovery: {left}; {:?}", report.problems));
        }
        Ok(())
    }

    fn compare(&self, fs: &dyn FileSystem, done: usize) -> Result<(), String> {
        let tree = Tree::of(fs)?;
        let after = self.trees.get(done + 1).map(|after| (after, &self.ops[done].act));
        let allowed = if self.cuts.pool { oracle::allowed_outside } else { oracle::allowed };
        allowed(&tree, &self.trees[done], after)
    }

    /// Examines the image of a file system that was closed, and cuts its next mount.
    fn cut_mount(&self, image: &[u8], found: &mut CutReport) {
        let cut = CutImage { image, store: &ContentSnapshot::new(), done: self.ops.len() };
        found.images += 1;
        match self.open(cut) {
            Ok(()) => self.cut_again(cut, found),
            Err(what) => self.violation(found, cut.done, format!("after a close: {what}")),
        }
    }

    /// Interrupts the recovery of an image by power cuts, and uses the recovered file system.
    fn cut_again(&self, cut: CutImage<'_>, found: &mut CutReport) {
        let done = cut.done;
        let recorded = Arc::new(RecordingMedium::new(cut.image.to_vec()));
        let base = (recorded.start(), cut.store.clone());
        let content_store = self.content_store(cut.store, Some(&recorded));
        if let Err(what) =
            open(recorded.clone(), content_store).and_then(|fs| self.exercise_recovered(&fs, done, &recorded))
        {
            self.violation(found, done, what);
            return;
        }
        let log = recorded.log();
        // The first `Done` marks the end of the recovery; the use of the file system after it is
        // not cut.
        let end = log.iter().position(|event| *event == MediumEvent::Done).unwrap_or(log.len());
        let mut wrong = None;
        images::for_each_image(base, &log[..end], Density::COARSE, self.cuts.seed, |image, _, store| {
            found.nested += 1;
            if let Err(what) = self.open(CutImage { image, store, done }) {
                wrong = Some(format!("recovery was cut: {what}"));
            }
        });
        if let Some(what) = wrong {
            self.violation(found, done, what);
        }
    }

    /// Creates, writes and reads a file after a recovery, and checks the medium.
    fn exercise_recovered(
        &self,
        fs: &Fs<AnyMedium>,
        done: usize,
        recorded: &Arc<RecordingMedium>,
    ) -> Result<(), String> {
        recorded.done();
        self.compare(fs, done)?;
        let text = [0x5A; 9000];
        let used = || -> frit_fs::Result<bool> {
            let file = fs.create(&Caller::ROOT, Ino::ROOT, b"used-again", NewInode::file(0o600))?.ino;
            let written = fs.write(file, 3, &text)?;
            let mut back = vec![1; written + 3];
            fs.read(file, 0, &mut back)?;
            Ok(back[..3] == [0; 3] && back[3..] == text[..written])
        };
        match used() {
            Ok(true) => {}
            Ok(false) => return Err("data written after a recovery reads back differently".to_string()),
            Err(error) if error.errno() == no_space_errno() => {}
            Err(error) => return Err(format!("used after recovery: {error}")),
        }
        let report = check(recorded).map_err(|error| format!("check after use: {error}"))?;
        if report.is_clean() { Ok(()) } else { Err(format!("check after use: {:?}", report.problems)) }
    }
}

fn look(medium: &dyn Medium, content_store: Option<&MemoryContentStore>) -> frit_fs::Result<Report> {
    content_store.map_or_else(|| check(medium), |content_store| check_pool(medium, content_store))
}

/// Opens the image that a cut left.
pub(super) fn open(
    medium: AnyMedium,
    content_store: Option<Arc<MemoryContentStore>>,
) -> Result<Fs<AnyMedium>, String> {
    let content_store = content_store.map(|content_store| content_store as Arc<dyn ContentStore>);
    let open = FsOptions { clock: Clock::counted(2 * EPOCH), content_store, ..FsOptions::default() };
    Fs::open(medium, open).map_err(|error| format!("cannot be opened: {error}"))
}
