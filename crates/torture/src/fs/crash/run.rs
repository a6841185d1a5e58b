//! Runs operations of the file system and cuts them.

use super::super::apply::Session;
use super::super::compare::Tree;
use super::super::model::Model;
use super::super::op::{Act, Op, Target};
use super::bodies::{Memory, Store};
use super::images::{self, Density};
use super::oracle;
use super::recorded::{Event, Recorded};
use frit_fs::{
    Bodies, Caller, Clock, Files, Format, Fs, Ino, Mapped, Medium, New, Open, Report, check, check_contents,
    check_pool,
};
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// First time of a run's clock, in nanoseconds.
const EPOCH: i64 = 1_000_000_000_000;
/// UUID of each file system.
const UUID: u128 = 7;

/// Parameters of power cuts of the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cuts {
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
    /// `true` if contents are in external bodies, whose changes are durable at once.
    pub pool: bool,
    /// Largest number of inodes in the list of orphans.
    pub orphans: Option<u64>,
}

impl Default for Cuts {
    fn default() -> Self {
        let (density, seed) = (Density::COARSE, 1);
        let (sums, pool, orphans) = (false, false, None);
        Self { bytes: 512 << 10, density, nested_one_in: 16, seed, sums, pool, orphans }
    }
}

/// Result of runs.
#[derive(Clone, Default, Debug)]
pub struct Found {
    /// Number of distinct images that were opened.
    pub images: u64,
    /// Number of images of cut recoveries.
    pub nested: u64,
    /// Violations.
    pub violations: Vec<Violation>,
}

/// An image that breaks a promise, and the operations that led to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Operations up to the cut. The last one may have been interrupted.
    pub ops: Vec<Op>,
    /// Number of operations that had returned.
    pub returned: usize,
    /// Description of the violation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, op) in self.ops.iter().enumerate() {
            writeln!(f, "{} {op}", if i < self.returned { "returned:" } else { "cut off: " })?;
        }
        write!(f, "{}", self.what)
    }
}

/// An image that a cut left.
#[derive(Clone, Copy, Debug)]
struct Cut<'a> {
    image: &'a [u8],
    store: &'a Store,
    /// Number of operations that had returned.
    done: usize,
}

/// A completed run, for comparison with the images of its cuts.
struct Ran<'a> {
    cuts: Cuts,
    ops: &'a [Op],
    /// Trees before each operation and after the last one.
    trees: Vec<Tree>,
    scratch: Arc<Mapped>,
    hasher: BuildHasherDefault<DefaultHasher>,
    seen: HashSet<u64>,
}

impl Found {
    /// Adds the result of another run.
    pub fn add(&mut self, other: Self) {
        self.images += other.images;
        self.nested += other.nested;
        self.violations.extend(other.violations);
    }
}

impl Cuts {
    /// Formats a file system, runs `before`, then `ops`, and cuts the latter everywhere.
    #[must_use]
    pub fn run(&self, before: &[Op], ops: &[Op]) -> Found {
        let mut found = Found::default();
        if let Err(violation) = self.try_run(before, ops, &mut found) {
            found.violations.push(violation);
        }
        found
    }

    /// Returns the format of the file system, without bodies.
    pub(super) fn format(&self) -> Format {
        Format {
            clock: Clock::counted(EPOCH),
            uuid: Some(UUID),
            inodes: Some(64),
            sums: self.sums,
            orphans: self.orphans,
            ..Format::default()
        }
    }

    fn try_run(&self, before: &[Op], ops: &[Op], found: &mut Found) -> Result<(), Violation> {
        let wrong = |what: String| Violation { ops: ops.to_vec(), returned: ops.len(), what };
        let said = |error: frit_fs::Error| wrong(format!("without any cut: {error}"));
        let medium = Arc::new(Recorded::new(vec![0; self.bytes as usize]));
        let bodies = self.pool.then(|| Memory::new(UUID, &Store::new(), Some(Arc::clone(&medium))));
        let format =
            Format { bodies: bodies.clone().map(|bodies| bodies as Arc<dyn Bodies>), ..self.format() };
        let fs = Fs::format(Arc::clone(&medium), format).map_err(said)?;
        let model = Model::new();
        let (mut session, mut expected) = (Session::new(&fs), Session::new(&model));
        for op in before {
            let _ = (session.apply(op), expected.apply(op));
        }
        if self.sums {
            // The sync adds the checksums of all contents.
            fs.sync().map_err(said)?;
        }
        let base = (medium.start(), bodies.map(|bodies| bodies.store()).unwrap_or_default());
        let mut trees = vec![Tree::of(&model).map_err(wrong)?];
        for (i, op) in ops.iter().enumerate() {
            let (answer, right) = (session.apply(op), expected.apply(op));
            // The model has no limit of space, so ENOSPC is the only difference that is allowed.
            if answer.is_ok() != right.is_ok() && answer != Err(rustix_nospc()) {
                return Err(wrong(format!("operation {i} answers {answer:?}, and should {right:?}")));
            }
            if let (Act::Write { what, .. } | Act::Append { what, .. }, Ok(_)) = (&op.act, &answer) {
                sync(&mut session, op, what);
            }
            medium.done();
            trees.push(Tree::of(&model).map_err(wrong)?);
        }
        let live = Tree::of(&fs).map_err(wrong)?;
        if let Some(difference) = trees.last().and_then(|tree| tree.difference(&live)) {
            return Err(wrong(format!("without any cut: {difference}")));
        }
        let log = medium.log();
        drop(fs);
        let scratch = Arc::new(Mapped::anonymous(self.bytes).map_err(said)?);
        let mut ran = Ran {
            cuts: *self,
            ops,
            trees,
            scratch,
            hasher: BuildHasherDefault::default(),
            seen: HashSet::new(),
        };
        let log = until_last_done(&log);
        images::each(base, log, self.density, self.seed, |image, done, store| {
            ran.look_at(Cut { image, store, done }, found);
        });
        Ok(())
    }
}

/// Returns the error number of a full medium.
fn rustix_nospc() -> i32 {
    frit_fs::Error::NoSpace.errno()
}

/// Makes a write durable with a sync of its file. Both count as one operation.
fn sync(session: &mut Session<'_>, op: &Op, what: &Target) {
    let act = Act::SyncFile { what: what.clone(), data_only: true };
    let _ = session.apply(&Op { who: op.who, act });
}

/// Returns the log without the events after the last operation, which dropping the sessions causes.
fn until_last_done(log: &[Event]) -> &[Event] {
    let end = log.iter().rposition(|event| *event == Event::Done).map_or(0, |i| i + 1);
    &log[..end]
}

impl Ran<'_> {
    fn look_at(&mut self, cut: Cut<'_>, found: &mut Found) {
        // Equal images after the same operations are examined only once.
        if !self.seen.insert(self.hasher.hash_one((cut.image, cut.done, cut.store))) {
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

    /// Returns the bodies of a cut, if contents are in a pool.
    fn bodies(&self, store: &Store, log: Option<&Arc<Recorded>>) -> Option<Arc<Memory>> {
        self.cuts.pool.then(|| Memory::new(UUID, store, log.cloned()))
    }

    fn violation(&self, found: &mut Found, done: usize, what: String) {
        let ops = self.ops[..(done + 1).min(self.ops.len())].to_vec();
        found.violations.push(Violation { ops, returned: done, what });
    }

    /// Opens an image and examines it.
    fn open(&self, cut: Cut<'_>) -> Result<(), String> {
        let medium = &self.scratch;
        medium.write_data(0, cut.image);
        let bodies = self.bodies(cut.store, None);
        let checked = match &bodies {
            None if self.cuts.sums => check_contents(medium),
            bodies => look(medium, bodies.as_deref()),
        };
        let report = checked.map_err(|error| format!("check: {error}"))?;
        if !report.is_clean() {
            return Err(format!("check: {}", report.problems.join("; ")));
        }
        let fs = open(Arc::clone(medium), bodies.clone())?;
        self.compare(&fs, cut.done)?;
        let report =
            look(medium, bodies.as_deref()).map_err(|error| format!("check after recovery: {error}"))?;
        if !report.is_clean() || report.orphans > 0 || report.strays > 0 {
            let (orphans, strays) = (report.orphans, report.strays);
            let left = format!("{orphans} orphans, {strays} stray bodies");
            return Err(format!("check after recovery: {left}; {:?}", report.problems));
        }
        Ok(())
    }

    fn compare(&self, fs: &dyn Files, done: usize) -> Result<(), String> {
        let tree = Tree::of(fs)?;
        let after = self.trees.get(done + 1).map(|after| (after, &self.ops[done].act));
        let allowed = if self.cuts.pool { oracle::allowed_outside } else { oracle::allowed };
        allowed(&tree, &self.trees[done], after)
    }

    /// Interrupts the recovery of an image by power cuts, and uses the recovered file system.
    fn cut_again(&self, cut: Cut<'_>, found: &mut Found) {
        let done = cut.done;
        let recorded = Arc::new(Recorded::new(cut.image.to_vec()));
        let base = (recorded.start(), cut.store.clone());
        let bodies = self.bodies(cut.store, Some(&recorded));
        if let Err(what) =
            open(Arc::clone(&recorded), bodies).and_then(|fs| self.use_it(&fs, done, &recorded))
        {
            self.violation(found, done, what);
            return;
        }
        let log = recorded.log();
        // The first `Done` marks the end of the recovery; the use of the file system after it is
        // not cut.
        let end = log.iter().position(|event| *event == Event::Done).unwrap_or(log.len());
        let mut wrong = None;
        images::each(base, &log[..end], Density::COARSE, self.cuts.seed, |image, _, store| {
            found.nested += 1;
            if let Err(what) = self.open(Cut { image, store, done }) {
                wrong = Some(format!("recovery was cut: {what}"));
            }
        });
        if let Some(what) = wrong {
            self.violation(found, done, what);
        }
    }

    /// Creates, writes and reads a file after a recovery, and checks the medium.
    fn use_it(&self, fs: &Fs<Arc<Recorded>>, done: usize, recorded: &Arc<Recorded>) -> Result<(), String> {
        recorded.done();
        self.compare(fs, done)?;
        let text = [0x5A; 9000];
        let used = || -> frit_fs::Result<bool> {
            let file = fs.create(&Caller::ROOT, Ino::ROOT, b"used-again", New::file(0o600))?.ino;
            let written = fs.write(file, 3, &text)?;
            let mut back = vec![1; written + 3];
            fs.read(file, 0, &mut back)?;
            Ok(back[..3] == [0; 3] && back[3..] == text[..written])
        };
        match used() {
            Ok(true) => {}
            Ok(false) => return Err("data written after a recovery reads back differently".to_string()),
            Err(error) if error.errno() == rustix_nospc() => {}
            Err(error) => return Err(format!("used after recovery: {error}")),
        }
        let report = check(recorded).map_err(|error| format!("check after use: {error}"))?;
        if report.is_clean() { Ok(()) } else { Err(format!("check after use: {:?}", report.problems)) }
    }
}

fn look<M: Medium>(medium: &M, bodies: Option<&Memory>) -> frit_fs::Result<Report> {
    bodies.map_or_else(|| check(medium), |bodies| check_pool(medium, bodies))
}

/// Opens the image that a cut left.
pub(super) fn open<M: Medium>(medium: M, bodies: Option<Arc<Memory>>) -> Result<Fs<M>, String> {
    let bodies = bodies.map(|bodies| bodies as Arc<dyn Bodies>);
    let open = Open { clock: Clock::counted(2 * EPOCH), bodies, ..Open::default() };
    Fs::open(medium, open).map_err(|error| format!("cannot be opened: {error}"))
}
