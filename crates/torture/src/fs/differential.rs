//! The same operations on a subject and on the model: where the two part, and with how few operations.

use super::apply::{Outcome, Session};
use super::compare::{self, Node, Tree};
use super::draw::Drawer;
use super::model::Model;
use super::op::{Act, Op, Path, Target, Who};
use super::times::{Watch, left_open};
use crate::shrink;
use frit_fs::{Error, Files, Kind};
use std::fmt;
use std::time::{Duration, Instant};

/// How long one divergence is worked on.
const TIME: Duration = Duration::from_secs(20);

/// What an operation answered: its outcome or its error number.
pub type Answer = Result<Outcome, i32>;

/// What is compared, and what a subject is excused from.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether space may run out: then ENOSPC and EDQUOT are right where the model has an answer, and nothing
    /// may have changed; and a write may stop early.
    pub limited: bool,
    /// Trees are compared after so many operations, and at the end; 0: at the end only.
    pub trees: usize,
    /// Changes of times are compared for one of so many operations; 0: never.
    pub times: usize,
    /// Whether times can be set at will, as [`Watch::new`] does; if not, it waits.
    pub age: bool,
    /// Whether [`Files::pieces`] is asked.
    pub pieces: bool,
    /// Whether offsets go up to the largest size of a file.
    pub limits: bool,
    /// Whether errors are compared. If not, any error is as good as another, and what kernels refuse for all
    /// file systems is left out.
    pub errors: bool,
    /// Operations that the subject is not asked for.
    pub leave_out: fn(&Op) -> bool,
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
            errors: true,
            leave_out: |_| false,
        }
    }
}

/// Where a subject and the model part. Displayed, it is a list of operations, one a line, which
/// [`parse`](super::parse) reads when it is pasted into a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The operations up to the one that shows it.
    pub ops: Vec<Op>,
    /// What is different.
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

/// A subject and the model side by side.
#[derive(Debug)]
struct Pair<'a> {
    subject: Session<'a>,
    model: &'a Model,
    known: Session<'a>,
    rules: Rules,
}

/// An answer, short enough to be read.
fn shown(answer: &Answer) -> String {
    let text = match answer {
        Ok(outcome) => format!("{outcome:?}"),
        Err(errno) => std::io::Error::from_raw_os_error(*errno).to_string(),
    };
    if text.len() > 400 { format!("{}... ({} letters)", &text[..400], text.len()) } else { text }
}

/// What stands between the two answers of a divergence.
const ANSWER: &str = "; the model: ";

fn parted(got: &Answer, want: &Answer) -> String {
    format!("{}{ANSWER}{}", shown(got), shown(want))
}

impl Pair<'_> {
    /// One operation on both; watched, the times that it changes too.
    fn step(&mut self, op: &Op, watched: bool) -> Result<(), String> {
        if !watched || left_open(&op.act) {
            return self.answers(op);
        }
        let watch = |fs, age| Watch::new(fs, age).map_err(|e| format!("times before: {e}"));
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

    fn answers(&mut self, op: &Op) -> Result<(), String> {
        if !self.rules.errors && self.is_never_asked(op) {
            return Ok(());
        }
        let got = self.subject.apply(op);
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
        Err(parted(&got, &want))
    }

    /// Whether kernels refuse it for all file systems and ask none: the mode of a symbolic link, and the names of
    /// a directory that was removed.
    fn is_never_asked(&self, op: &Op) -> bool {
        let (Act::Chmod { what, .. } | Act::List(what)) = &op.act else { return false };
        let found = self.known.find(&Who::Root.caller(), what).ok().flatten();
        let Some(attr) = found.and_then(|ino| self.model.attr(ino).ok()) else { return false };
        let mode = matches!(op.act, Act::Chmod { .. });
        if mode { attr.kind == Kind::Symlink } else { attr.links == 0 }
    }

    /// For answers that say that space ran out: whether the model could do all of it. The model does as much
    /// as the subject did. `None` for all other answers.
    fn out_of_space(&mut self, op: &Op, got: &Answer) -> Option<Result<(), String>> {
        let full = [Error::NoSpace.errno(), Error::Quota.errno()];
        match (got, &op.act) {
            (Err(e), _) if full.contains(e) => {
                let copy = self.model.clone();
                let want = self.known.on(&copy).apply(op);
                let excused = want.is_ok() || want == *got;
                Some(excused.then_some(()).ok_or_else(|| parted(got, &want)))
            }
            (Ok(Outcome::Written(n)), Act::Write { what, at, len, stamp })
                if *n < *len as usize && *n > 0 =>
            {
                let act = Act::Write { what: what.clone(), at: *at, len: *n as u32, stamp: *stamp };
                Some(self.shorter(&Op { who: op.who, act }, got))
            }
            (Ok(Outcome::Appended(_, n)), Act::Append { what, len, stamp })
                if *n < *len as usize && *n > 0 =>
            {
                let act = Act::Append { what: what.clone(), len: *n as u32, stamp: *stamp };
                Some(self.shorter(&Op { who: op.who, act }, got))
            }
            _ => None,
        }
    }

    fn shorter(&mut self, op: &Op, got: &Answer) -> Result<(), String> {
        let want = self.known.apply(op);
        if want == *got { Ok(()) } else { Err(parted(got, &want)) }
    }

    /// Whether another answer than the model's is right too.
    fn fits(&self, op: &Op, got: &Answer) -> Result<bool, String> {
        let Act::Seek { what, kind, at } = &op.act else { return Ok(false) };
        let answer = match got {
            Ok(Outcome::At(at)) => Some(*at),
            Err(e) if *e == Error::BeyondEnd.errno() => None,
            _ => return Ok(false),
        };
        match self.known.find(&Who::Root.caller(), what) {
            Ok(Some(ino)) => Ok(self.model.may_seek(ino, *kind, *at, answer).unwrap_or(false)),
            _ => Ok(false),
        }
    }

    /// Both trees, and what is open besides.
    fn trees(&self) -> Result<(), String> {
        let (subject, model) = (self.subject.fs(), self.known.fs());
        compare::compare(subject, model)?;
        for (slot, (a, b)) in self.subject.open().iter().zip(self.known.open()).enumerate() {
            if let (Some(a), Some(b)) = (a, b) {
                let of = |fs, ino| Node::of(fs, ino).map_err(|e| format!("#{slot}: {e}"));
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
            if node.seen.kind == Kind::File {
                let found = self.subject.find(&Who::Root.caller(), &Target::Path(path.clone()));
                let ino = found.map_err(|e| format!("{path}: {e}"))?;
                if let Some(ino) = ino {
                    compare::pieces(subject, ino, &node).map_err(|e| format!("{path}: {e}"))?;
                }
            }
        }
        Ok(())
    }

    /// All operations that `next` gives; it is told the paths that there are.
    fn all(&mut self, next: &mut dyn FnMut(&Model) -> Option<Op>) -> Result<(), Divergence> {
        let mut ops: Vec<Op> = Vec::new();
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
    subject: &dyn Files,
    rules: &Rules,
    next: &mut dyn FnMut(&Model) -> Option<Op>,
) -> Result<(), Divergence> {
    let model = Model::new();
    let (one, two) = (Session::new(subject), Session::new(&model));
    Pair { subject: one, model: &model, known: two, rules: *rules }.all(next)
}

/// Applies `count` operations of a seed to a fresh subject and to the model, and compares all answers, and
/// trees and times as often as the rules say.
///
/// # Errors
/// Where the two part first.
pub fn run(seed: u64, count: usize, subject: &dyn Files, rules: &Rules) -> Result<(), Divergence> {
    let mut drawer = Drawer::new(seed);
    drawer.limits = rules.limits;
    let (mut left, mut base) = (count, super::every::base().into_iter());
    side_by_side(subject, rules, &mut |model| {
        if let Some(op) = base.next() {
            return Some(op);
        }
        left = left.checked_sub(1)?;
        Some(drawer.draw(&model.paths()))
    })
}

/// The same with given operations.
///
/// # Errors
/// Where the two part first.
pub fn replay(ops: &[Op], subject: &dyn Files, rules: &Rules) -> Result<(), Divergence> {
    let mut ops = ops.iter().cloned();
    side_by_side(subject, rules, &mut |_| ops.next())
}

/// Whether a divergence may stand for another one: it is not an answer that is wrong in some other way, or it
/// shows what is wrong earlier, in a tree.
fn stands_for(one: &Divergence, other: &Divergence) -> bool {
    let letters = |d: &Divergence| d.what.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    !one.what.contains(ANSWER) || letters(one) == letters(other)
}

/// Drops operations of a divergence while fresh subjects still part from the model in the same way, trees and
/// times being looked at after each.
#[must_use]
pub fn smallest(found: &Divergence, fresh: &dyn Fn() -> Box<dyn Files>, rules: &Rules) -> Divergence {
    let mut best = found.clone();
    let careful = Rules { trees: 1, times: rules.times.min(1), ..*rules };
    let pick = |keep: &[u32]| keep.iter().filter_map(|&i| found.ops.get(i as usize)).cloned().collect();
    let keep = shrink::fewest(found.ops.len(), Instant::now() + TIME, &mut |keep| {
        let ops: Vec<Op> = pick(keep);
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

impl Model {
    /// The paths of all that there is, in the order of names.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        self.walked().into_iter().map(|names| Path(names.join("/"))).collect()
    }
}
