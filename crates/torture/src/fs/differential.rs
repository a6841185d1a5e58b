//! Differential testing: the same operations on a subject and on the model, and a reduction to the
//! fewest operations that still diverge.

use super::apply::{OpResult, ProgramSession};
use super::compare::{self, Tree, TreeNode};
use super::model::ModelFs;
use super::op::{Act, FsOp, OpTarget, Path, User};
use super::op_generator::OpGenerator;
use super::times::{TimesSnapshot, times_unspecified};
use crate::minimize::minimize_set;
use frit_fs::{Error, FileSystem, InodeType};
use std::fmt;
use std::time::{Duration, Instant};

/// Time limit for reducing one divergence.
const TIME: Duration = Duration::from_secs(20);

/// Result of an operation, or its error number.
pub type OpAnswer = Result<OpResult, i32>;

/// Properties that are compared, and deviations that a subject is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `true` if space may run out. Then ENOSPC and EDQUOT are allowed where the model succeeds,
    /// provided that nothing changed, and a write may be short.
    pub limited: bool,
    /// Interval, in operations, at which trees are compared; 0 for a comparison at the end only.
    pub trees: usize,
    /// Interval, in operations, at which changes of times are compared; 0 for never.
    pub times: usize,
    /// `true` if times can be set explicitly. Otherwise [`TimesSnapshot::new`] waits for the clock.
    pub age: bool,
    /// `true` if [`FileSystem::pieces`] is called.
    pub pieces: bool,
    /// `true` if offsets go up to the largest size of a file.
    pub limits: bool,
    /// `true` if each directory of the subject has a command file.
    pub command_files: bool,
    /// `true` if errors are compared. Otherwise all errors are equal, and operations that kernels
    /// refuse for every file system are left out.
    pub errors: bool,
    /// Returns `true` for an operation that is not applied.
    pub leave_out: fn(&FsOp) -> bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            limited: false,
            trees: 50,
            times: 7,
            age: true,
            pieces: true,
            limits: true,
            command_files: true,
            errors: true,
            leave_out: |_| false,
        }
    }
}

/// The first difference between a subject and the model. Its text is a list of operations, one per
/// line, which [`parse`](super::parse) reads when it is pasted into a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// Operations up to the one that shows the difference.
    pub ops: Vec<FsOp>,
    /// Description of the difference.
    pub what: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for op in &self.ops {
            writeln!(f, "{op}")?;
        }
        write!(f, "// {}", self.what)
    }
}

/// A subject and the model, with a session on each.
#[derive(Debug)]
pub(super) struct SideBySide<'a> {
    subject: ProgramSession<'a>,
    model: &'a ModelFs,
    known: ProgramSession<'a>,
    rules: Rules,
}

/// Formats an answer, shortened if it is long.
fn shown(answer: &OpAnswer) -> String {
    let text = match answer {
        Ok(outcome) => format!("{outcome:?}"),
        Err(errno) => std::io::Error::from_raw_os_error(*errno).to_string(),
    };
    if text.len() > 400 { format!("{}... ({} letters)", &text[..400], text.len()) } else { text }
}

/// Separator between the answers of the subject and the model in a divergence.
const ANSWER: &str = "; the model: ";

fn divergence_text(got: &OpAnswer, want: &OpAnswer) -> String {
    format!("{}{ANSWER}{}", shown(got), shown(want))
}

impl<'a> SideBySide<'a> {
    pub(super) fn new(
        subject: ProgramSession<'a>,
        model: &'a ModelFs,
        known: ProgramSession<'a>,
        rules: Rules,
    ) -> Self {
        Self { subject, model, known, rules }
    }

    /// Applies one operation to both. With `watched` it also compares the times that the operation
    /// changes.
    pub(super) fn step(&mut self, op: &FsOp, watched: bool) -> Result<(), String> {
        if !watched || times_unspecified(&op.act) {
            return self.answers(op);
        }
        let watch = |fs, age| TimesSnapshot::new(fs, age).map_err(|e| format!("times before: {e}"));
        let (subject, model) = (self.subject.fs(), self.known.fs());
        let before = (watch(subject, self.rules.age)?, watch(model, true)?);
        self.answers(op)?;
        let (got, want) = (before.0.changed(subject), before.1.changed(model));
        let differs = want.iter().find(|(path, c)| got.get(path) != Some(c));
        match differs {
            Some((path, c)) => Err(format!("times of {path}: {:?}, the model {c:?}", got.get(path))),
            None => Ok(()),
        }
    }

    fn answers(&mut self, op: &FsOp) -> Result<(), String> {
        if !self.rules.errors && self.is_never_asked(op) {
            return Ok(());
        }
        let got = self.subject.apply(op);
        // This comes first: the model must do only as much as the subject did.
        if self.rules.limited
            && let Some(wrong) = self.out_of_space(op, &got)
        {
            return wrong;
        }
        let want = self.known.apply(op);
        let both_fail = !self.rules.errors && got.is_err() && want.is_err();
        if got == want || both_fail || self.fits(op, &got)? {
            return Ok(());
        }
        Err(divergence_text(&got, &want))
    }

    /// Returns `true` if kernels refuse the operation without calling any file system: a change of
    /// a symbolic link's mode, and a listing of a removed directory.
    fn is_never_asked(&self, op: &FsOp) -> bool {
        let (Act::Chmod { what, .. } | Act::List(what)) = &op.act else { return false };
        let found = self.known.find(&User::Root.caller(), what).ok().flatten();
        let Some(attr) = found.and_then(|ino| self.model.attr(ino).ok()) else { return false };
        let mode = matches!(op.act, Act::Chmod { .. });
        if mode { attr.kind == InodeType::Symlink } else { attr.links == 0 }
    }

    /// Handles answers of a full file system: verifies that the model can complete the operation,
    /// and lets the model do as much as the subject did. Returns `None` for all other answers.
    fn out_of_space(&mut self, op: &FsOp, got: &OpAnswer) -> Option<Result<(), String>> {
        let full = [Error::NoSpace.errno(), Error::Quota.errno()];
        match (got, &op.act) {
            (Err(e), _) if full.contains(e) => {
                // The operation is tried on a copy: it failed on the subject, so it must not change
                // the model.
                let copy = self.model.clone();
                let want = self.known.on(&copy).apply(op);
                let excused = want.is_ok() || want == *got;
                Some(excused.then_some(()).ok_or_else(|| divergence_text(got, &want)))
            }
            (Ok(OpResult::Written(n)), Act::Write { what, at, len, stamp })
                if *n < *len as usize && *n > 0 =>
            {
                let act = Act::Write { what: what.clone(), at: *at, len: *n as u32, stamp: *stamp };
                Some(self.shorter(&FsOp { who: op.who, act }, got))
            }
            (Ok(OpResult::Appended(_, n)), Act::Append { what, len, stamp })
                if *n < *len as usize && *n > 0 =>
            {
                let act = Act::Append { what: what.clone(), len: *n as u32, stamp: *stamp };
                Some(self.shorter(&FsOp { who: op.who, act }, got))
            }
            _ => None,
        }
    }

    fn shorter(&mut self, op: &FsOp, got: &OpAnswer) -> Result<(), String> {
        let want = self.known.apply(op);
        if want == *got { Ok(()) } else { Err(divergence_text(got, &want)) }
    }

    /// Returns `true` if the answer is correct although it differs from the model's.
    fn fits(&self, op: &FsOp, got: &OpAnswer) -> Result<bool, String> {
        let Act::Seek { what, kind, at } = &op.act else { return Ok(false) };
        let answer = match got {
            Ok(OpResult::At(at)) => Some(*at),
            Err(e) if *e == Error::BeyondEnd.errno() => None,
            _ => return Ok(false),
        };
        match self.known.find(&User::Root.caller(), what) {
            Ok(Some(ino)) => Ok(self.model.may_seek(ino, *kind, *at, answer).unwrap_or(false)),
            _ => Ok(false),
        }
    }

    /// Compares the trees, and the open files, which may have no name.
    fn trees(&self) -> Result<(), String> {
        let (subject, model) = (self.subject.fs(), self.known.fs());
        compare::compare(subject, model)?;
        for (slot, (a, b)) in self.subject.open().iter().zip(self.known.open()).enumerate() {
            if let (Some(a), Some(b)) = (a, b) {
                let of = |fs, ino| TreeNode::of(fs, ino).map_err(|e| format!("#{slot}: {e}"));
                if let Some(difference) = of(subject, *a)?.difference(&of(model, *b)?) {
                    return Err(format!("#{slot}: {difference}"));
                }
            }
        }
        if self.rules.pieces { self.pieces() } else { Ok(()) }
    }

    fn pieces(&self) -> Result<(), String> {
        let subject = self.subject.fs();
        for (path, node) in Tree::of(subject)?.0 {
            if node.seen.kind == InodeType::File {
                let found = self.subject.find(&User::Root.caller(), &OpTarget::Path(path.clone()));
                let ino = found.map_err(|e| format!("{path}: {e}"))?;
                if let Some(ino) = ino {
                    compare::pieces(subject, ino, &node).map_err(|e| format!("{path}: {e}"))?;
                }
            }
        }
        Ok(())
    }

    /// Applies all operations that `next` returns. `next` receives the model, and so the existing
    /// paths.
    fn all(&mut self, next: &mut dyn FnMut(&ModelFs) -> Option<FsOp>) -> Result<(), Divergence> {
        let mut ops: Vec<FsOp> = Vec::new();
        while let Some(op) = next(self.model) {
            if (self.rules.leave_out)(&op) {
                continue;
            }
            let number = ops.len() + 1;
            let due = |every: usize| every > 0 && number.is_multiple_of(every);
            ops.push(op);
            let (watched, look) = (due(self.rules.times), due(self.rules.trees));
            let done =
                self.step(&ops[number - 1], watched).and_then(|()| if look { self.trees() } else { Ok(()) });
            if let Err(what) = done {
                return Err(Divergence { ops, what });
            }
        }
        self.trees().map_err(|what| Divergence { ops, what })
    }
}

fn side_by_side(
    subject: &dyn FileSystem,
    rules: &Rules,
    next: &mut dyn FnMut(&ModelFs) -> Option<FsOp>,
) -> Result<(), Divergence> {
    let model = ModelFs::of(rules.command_files);
    let (one, two) = (ProgramSession::new(subject), ProgramSession::new(&model));
    SideBySide::new(one, &model, two, *rules).all(next)
}

/// Applies `count` operations of a seed to a new subject and to the model. Compares all answers,
/// and trees and times as often as the rules say.
///
/// # Errors
/// The first divergence.
pub fn run(seed: u64, count: usize, subject: &dyn FileSystem, rules: &Rules) -> Result<(), Divergence> {
    let mut drawer = OpGenerator::new(seed);
    drawer.limits = rules.limits;
    drawer.command_files = rules.command_files;
    let (mut left, mut base) = (count, super::every::base().into_iter());
    side_by_side(subject, rules, &mut |model| {
        if let Some(op) = base.next() {
            return Some(op);
        }
        left = left.checked_sub(1)?;
        Some(drawer.draw(&model.paths()))
    })
}

/// Applies given operations to a new subject and to the model.
///
/// # Errors
/// The first divergence.
pub fn replay(ops: &[FsOp], subject: &dyn FileSystem, rules: &Rules) -> Result<(), Divergence> {
    let mut ops = ops.iter().cloned();
    side_by_side(subject, rules, &mut |_| ops.next())
}

/// Returns `true` if a divergence may replace another one: it has the same wrong answer, apart from
/// numbers, or it shows an earlier error in a tree.
fn stands_for(one: &Divergence, other: &Divergence) -> bool {
    let letters = |d: &Divergence| d.what.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    !one.what.contains(ANSWER) || letters(one) == letters(other)
}

/// Removes operations from a divergence while new subjects still diverge from the model in the same
/// way. Trees and times are compared after each operation.
#[must_use]
pub fn minimize(found: &Divergence, fresh: &dyn Fn() -> Box<dyn FileSystem>, rules: &Rules) -> Divergence {
    let mut best = found.clone();
    let careful = Rules { trees: 1, times: rules.times.min(1), ..*rules };
    let pick = |keep: &[u32]| keep.iter().filter_map(|&i| found.ops.get(i as usize)).cloned().collect();
    let keep = minimize_set(found.ops.len(), Instant::now() + TIME, &mut |keep| {
        let ops: Vec<FsOp> = pick(keep);
        match replay(&ops, fresh().as_ref(), &careful) {
            Ok(()) => false,
            Err(divergence) => {
                let same = stands_for(&divergence, found);
                if same {
                    best = divergence;
                }
                same
            }
        }
    });
    if keep.len() < found.ops.len() { best } else { found.clone() }
}

impl ModelFs {
    /// Returns the paths of all inodes, in the order of names.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        self.walked().into_iter().map(|names| Path(names.join("/"))).collect()
    }
}
