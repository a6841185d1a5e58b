//! The plan of one operation: every call of the file system to its medium and every command that it becomes, with
//! what each waits for, when it starts and ends.

use crate::area::Area;
use crate::bench::{directory, format};
use crate::board::{Board, Call, Step};
use crate::build::{Parts, UnitName};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::timed::Timed;
use frit_core::{Cause, Nanos, Op, UnitId, size};
use frit_engine::{Eager, Record};
use frit_fs::{Caller, Changes, Files, Fs, New, RenameMode};
use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Operations that have plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Operation {
    /// Reads from the start of a file.
    Read,
    /// Writes over what was written.
    Write,
    /// Writes at the end of a file.
    Append,
    /// Cuts a file to nothing.
    Truncate,
    /// Makes a file.
    Create,
    /// Makes a directory.
    Mkdir,
    /// Looks a name up.
    Stat,
    /// Gives a file another name in its directory.
    Rename,
    /// Removes the only name of a file of these bytes.
    Unlink,
    /// Changes permissions.
    Chmod,
    /// Syncs a file just after a write over what was written.
    Fsync,
}

/// An operation and its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// What is done.
    pub operation: Operation,
    /// With how many bytes, where it has any.
    pub bytes: u64,
}

/// Bytes of an operation that names none.
const BYTES: u64 = 4096;
/// Most bytes of an operation: its plan has a command for every few.
const BYTES_MAX: u64 = 64 << 20;

impl Asked {
    /// Reads `write 4K`, `create` …
    ///
    /// # Errors
    /// An unknown operation, or no size.
    pub fn parse(text: &str) -> std::result::Result<Asked, String> {
        let (name, bytes) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let operation = name
            .parse()
            .map_err(|_| format!("'{name}' has no plan; there are {}", Operation::VARIANTS.join(", ")))?;
        let bytes = if bytes.is_empty() { BYTES } else { size::parse(bytes)? };
        if bytes == 0 || bytes > BYTES_MAX {
            return Err(format!("{}: has to be 1 byte to {}", size::show(bytes), size::show(BYTES_MAX)));
        }
        Ok(Asked { operation, bytes })
    }
}

/// A call of the file system to its medium.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanStep {
    /// What was called.
    pub call: Call,
    /// Where, in bytes.
    pub at: u64,
    /// How many bytes.
    pub bytes: u64,
    /// What for.
    pub area: Option<Area>,
    /// Its first command, as an index into the plan's.
    pub first: u64,
    /// The command behind its last.
    pub end: u64,
    /// The steps that its commands wait for, counted from 0.
    pub after: Vec<usize>,
    /// When its first command starts, counted from the start of the operation.
    pub start_ns: u64,
    /// When its last command is done.
    pub end_ns: u64,
}

/// A command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanCommand {
    /// What does it: a unit of the memory, the link, copying, software.
    pub unit: String,
    /// What it does: an operation of the memory; `in` or `out` of the link; `work` of the processor.
    pub op: &'static str,
    /// Why.
    pub cause: Cause,
    /// Where, in bytes of the memory; 0 of what is no memory.
    pub at: u64,
    /// How many bytes.
    pub bytes: u32,
    /// The commands of this plan that it waits for, by index.
    pub after: Vec<u64>,
    /// When it starts, counted from the start of the operation.
    pub start_ns: u64,
    /// When it is done.
    pub end_ns: u64,
}

/// Commands of one kind, summed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanSum {
    /// What does them.
    pub unit: String,
    /// What they do.
    pub op: &'static str,
    /// Why.
    pub cause: Cause,
    /// How many.
    pub commands: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time from start to end of each, added up.
    pub busy_ns: u64,
}

/// The plan of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// The operation.
    pub operation: String,
    /// The profile of the memory.
    pub profile: String,
    /// The host.
    pub host: String,
    /// From the start of the operation to its answer.
    pub latency_ns: u64,
    /// From the start of the operation to when the last of its commands is done.
    pub done_ns: u64,
    /// Calls to the medium, in their order.
    pub steps: Vec<PlanStep>,
    /// Commands, in order of emission.
    pub commands: Vec<PlanCommand>,
    /// Commands by unit, operation and cause.
    pub sums: Vec<PlanSum>,
}

type Planned = Record<Timed>;

/// An operation that was made.
struct Made {
    /// When it began.
    began: Nanos,
    /// How long it took.
    took: Nanos,
    /// The first of its commands, counted from the board's first.
    first: u64,
}

/// Makes a file system with a file, and in it the operation, of which the board has kept the calls.
fn make(board: &Board<Planned>, asked: Asked, sums: bool) -> Result<Made> {
    let (me, bytes) = (Caller::ROOT, vec![1; asked.bytes as usize]);
    let fs = Fs::format(board, format(0, sums)).map_err(Error::fs("format"))?;
    let dir = directory(&fs, "dir")?;
    let file = fs.create(&me, dir, b"file", New::file(0o644)).map_err(Error::fs("create"))?.ino;
    fs.write(file, 0, &bytes).map_err(Error::fs("write"))?;
    board.quiet();
    if asked.operation == Operation::Fsync {
        // What is written here is on its way when the sync begins.
        board.operation(|| fs.write(file, 0, &bytes)).0.map_err(Error::fs("write"))?;
    }
    let (began, first) = (board.now(), board.commands());
    let change = |changes: Changes| fs.set_attr(&me, file, &changes).map(drop);
    board.keep_steps();
    let (made, took) = board.operation(|| match asked.operation {
        Operation::Read => fs.read(file, 0, &mut bytes.clone()).map(drop),
        Operation::Write => fs.write(file, 0, &bytes).map(drop),
        Operation::Append => fs.append(file, &bytes).map(drop),
        Operation::Truncate => change(Changes { size: Some(0), ..Changes::default() }),
        Operation::Chmod => change(Changes { mode: Some(0o600), ..Changes::default() }),
        Operation::Create => fs.create(&me, dir, b"new", New::file(0o644)).map(drop),
        Operation::Mkdir => fs.create(&me, dir, b"new", New::directory(0o755)).map(drop),
        Operation::Stat => fs.lookup(&me, dir, b"file").map(drop),
        Operation::Rename => fs.rename(&me, (dir, b"file"), (dir, b"moved"), RenameMode::Replace),
        Operation::Unlink => fs.unlink(&me, dir, b"file"),
        Operation::Fsync => fs.sync_file(file, false),
    });
    made.map_err(Error::fs(asked.operation.into()))?;
    Ok(Made { began, took, first })
}

/// The plan of an operation on a new file system. Its file, of as many bytes as the operation has, and its directory
/// are in use, so that their maps are in DRAM; nothing is on its way when it begins, but for what `fsync` waits for.
///
/// # Errors
/// A board that cannot be, or a file system that refuses the operation.
pub fn explain(asked: Asked, profile: &str, host: &str, bytes: Option<u64>, sums: bool) -> Result<Plan> {
    let mut parts = Parts::new(profile, Host::find(host)?, bytes)?;
    parts.sums = sums;
    let (units, host) = (parts.units(), parts.host.name.clone());
    let sink = Record::new(Timed::new(Eager::new(&parts.hardware)));
    let board = Board::new(parts, sink)?;
    let Made { began, took, first } = make(&board, asked, sums)?;
    let steps = board.take_steps();
    let (recording, timed) = board.into_sink().finish();
    let commands: Vec<PlanCommand> = (first as usize..recording.ops.len())
        .map(|i| {
            let (op, (start, end)) = (&recording.ops[i], timed.spans()[i]);
            PlanCommand {
                unit: name(&units, op.cmd.unit),
                op: operation_of(op.cmd.op, name(&units, op.cmd.unit) == "link"),
                cause: op.cmd.cause,
                at: op.cmd.addr,
                bytes: op.cmd.len,
                after: op.after.iter().filter_map(|a| u64::from(*a).checked_sub(first)).collect(),
                start_ns: start.since(began).0,
                end_ns: end.since(began).0,
            }
        })
        .collect();
    let operation: &str = asked.operation.into();
    let sized = matches!(
        asked.operation,
        Operation::Read
            | Operation::Write
            | Operation::Append
            | Operation::Truncate
            | Operation::Unlink
            | Operation::Fsync
    );
    Ok(Plan {
        operation: if sized { format!("{operation} {}", size::show(asked.bytes)) } else { operation.into() },
        profile: profile.into(),
        host,
        latency_ns: took.0,
        done_ns: commands.iter().map(|c| c.end_ns).max().unwrap_or(0).max(took.0),
        steps: told(&steps, first, &commands),
        sums: added_up(&commands),
        commands,
    })
}

fn name(units: &[UnitName], unit: UnitId) -> String {
    units.iter().find(|u| u.unit == unit).map_or_else(String::new, |u| u.name.clone())
}

/// What a command is called: the host's carriers are no memory.
fn operation_of(op: Op, is_link: bool) -> &'static str {
    match op {
        Op::DramRead if is_link => "in",
        Op::DramWrite if is_link => "out",
        Op::DramRead | Op::DramWrite => "work",
        op => op.into(),
    }
}

/// The calls, with times and orders of their commands.
fn told(steps: &[Step], first: u64, commands: &[PlanCommand]) -> Vec<PlanStep> {
    let mut of_command = vec![usize::MAX; commands.len()];
    for (i, step) in steps.iter().enumerate() {
        of_command[(step.first - first) as usize..(step.end - first) as usize].fill(i);
    }
    let tell = |(i, step): (usize, &Step)| {
        let own = &commands[(step.first - first) as usize..(step.end - first) as usize];
        let mut after: Vec<usize> = own
            .iter()
            .flat_map(|command| &command.after)
            .map(|a| of_command[*a as usize])
            .filter(|a| *a != usize::MAX && *a != i)
            .collect();
        after.sort_unstable();
        after.dedup();
        PlanStep {
            call: step.call,
            at: step.at,
            bytes: step.bytes,
            area: step.area,
            first: step.first - first,
            end: step.end - first,
            after,
            start_ns: own.iter().map(|c| c.start_ns).min().unwrap_or(0),
            end_ns: own.iter().map(|c| c.end_ns).max().unwrap_or(0),
        }
    };
    steps.iter().enumerate().map(tell).collect()
}

/// Commands by unit, operation and cause, in the order in which they occur first.
fn added_up(commands: &[PlanCommand]) -> Vec<PlanSum> {
    let mut sums: Vec<PlanSum> = Vec::new();
    for c in commands {
        let same = |s: &PlanSum| s.unit == c.unit && s.op == c.op && s.cause == c.cause;
        let at = sums.iter().position(same).unwrap_or_else(|| {
            let (unit, op, cause) = (c.unit.clone(), c.op, c.cause);
            sums.push(PlanSum { unit, op, cause, commands: 0, bytes: 0, busy_ns: 0 });
            sums.len() - 1
        });
        sums[at].commands += 1;
        sums[at].bytes += u64::from(c.bytes);
        sums[at].busy_ns += c.end_ns - c.start_ns;
    }
    sums
}
