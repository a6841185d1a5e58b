//! The plan of one operation: every call of the file system to its medium and every command of the
//! call, with dependencies, start and end.

use crate::area::Area;
use crate::bench::{directory, format};
use crate::build::{Devices, UnitName};
use crate::error::{Error, Result};
use crate::host::HostModel;
use crate::sim_medium::{MediumCall, RecordedCall, SimMedium};
use crate::timed::{spans as command_spans, timed};
use frit_core::{Cause, Nanos, Op, Sink, UnitId, size};
use frit_engine::{InOrder, Recorder, Recording};
use frit_fs::{AttrChanges, Caller, FileSystem, Fs, NewInode, RenameMode};
use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Operations that have plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum FsOperation {
    /// Reads from the start of a file.
    Read,
    /// Overwrites written bytes.
    Write,
    /// Appends to a file.
    Append,
    /// Truncates a file to size 0.
    Truncate,
    /// Creates a file.
    Create,
    /// Creates a directory.
    Mkdir,
    /// Looks up a name.
    Stat,
    /// Renames a file within its directory.
    Rename,
    /// Removes the only name of a file with this many bytes.
    Unlink,
    /// Changes permissions.
    Chmod,
    /// Syncs a file just after an overwrite.
    Fsync,
}

/// An operation and its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationSpec {
    /// Operation.
    pub operation: FsOperation,
    /// Number of bytes, if the operation has a size.
    pub bytes: u64,
}

/// Bytes of an operation without a given size.
const BYTES: u64 = 4096;
/// Largest size of an operation in bytes, because its plan has a command for every few bytes.
const BYTES_MAX: u64 = 64 << 20;

impl OperationSpec {
    /// Parses an operation: `write 4K`, `create` …
    ///
    /// # Errors
    /// An unknown operation, or an invalid size.
    pub fn parse(text: &str) -> std::result::Result<OperationSpec, String> {
        let (name, bytes) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let operation = name
            .parse()
            .map_err(|_| format!("'{name}' has no plan; available: {}", FsOperation::VARIANTS.join(", ")))?;
        let bytes = if bytes.is_empty() { BYTES } else { size::parse(bytes)? };
        if bytes == 0 || bytes > BYTES_MAX {
            return Err(format!("{}: has to be 1 byte to {}", size::format(bytes), size::format(BYTES_MAX)));
        }
        Ok(OperationSpec { operation, bytes })
    }
}

/// A call of the file system to its medium.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanStep {
    /// Kind of call.
    pub call: MediumCall,
    /// Position in bytes.
    pub at: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Area of the access.
    pub area: Option<Area>,
    /// Index of its first command in the plan.
    pub first: u64,
    /// Index after its last command.
    pub end: u64,
    /// Indexes of the steps that its commands wait for.
    pub after: Vec<usize>,
    /// Start of its first command, from the start of the operation.
    pub start_ns: u64,
    /// End of its last command.
    pub end_ns: u64,
}

/// A command of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanCommand {
    /// Device that executes it: a unit of the memory, the link, copying, software.
    pub unit: String,
    /// Operation of the device: one of the memory; `in` or `out` for the link; `work` for the
    /// processor.
    pub op: &'static str,
    /// Cause of the command.
    pub cause: Cause,
    /// Position in bytes of the memory; 0 for other devices.
    pub at: u64,
    /// Number of bytes.
    pub bytes: u32,
    /// Indexes of the commands in this plan that it waits for.
    pub after: Vec<u64>,
    /// Start, from the start of the operation.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// Total of the commands of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CommandTotal {
    /// Device that executes them.
    pub unit: String,
    /// Operation of the device.
    pub op: &'static str,
    /// Cause of the commands.
    pub cause: Cause,
    /// Number of commands.
    pub commands: u64,
    /// Sum of their bytes.
    pub bytes: u64,
    /// Sum of their times from start to end.
    pub busy_ns: u64,
}

/// The plan of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// Operation.
    pub operation: String,
    /// Profile of the memory.
    pub profile: String,
    /// Host.
    pub host: String,
    /// Time from the start of the operation to its result.
    pub latency_ns: u64,
    /// Time from the start of the operation to the end of its last command.
    pub done_ns: u64,
    /// Calls to the medium, in order.
    pub steps: Vec<PlanStep>,
    /// Commands, in order of emission.
    pub commands: Vec<PlanCommand>,
    /// Totals of the commands by unit, operation and cause.
    pub sums: Vec<CommandTotal>,
}

/// An executed operation.
struct ExecutedOp {
    /// Start time.
    began: Nanos,
    /// Latency.
    took: Nanos,
    /// Number of its first command, counted from the first command of the medium.
    first: u64,
}

/// Creates a file system with a file and executes the operation, whose calls the medium records.
fn make(medium: &SimMedium, asked: OperationSpec, sums: bool) -> Result<ExecutedOp> {
    let (me, bytes) = (Caller::ROOT, vec![1; asked.bytes as usize]);
    let fs = Fs::format(medium, format(0, sums)).map_err(Error::fs("format"))?;
    let dir = directory(&fs, "dir")?;
    let file = fs.create(&me, dir, b"file", NewInode::file(0o644)).map_err(Error::fs("create"))?.ino;
    fs.write(file, 0, &bytes).map_err(Error::fs("write"))?;
    medium.wait_idle();
    if asked.operation == FsOperation::Fsync {
        // The write is still in flight when the sync begins.
        medium.operation(|| fs.write(file, 0, &bytes)).0.map_err(Error::fs("write"))?;
    }
    let (began, first) = (medium.now(), medium.commands());
    let change = |changes: AttrChanges| fs.set_attr(&me, file, &changes).map(drop);
    medium.record_calls();
    let (made, took) = medium.operation(|| match asked.operation {
        FsOperation::Read => fs.read(file, 0, &mut bytes.clone()).map(drop),
        FsOperation::Write => fs.write(file, 0, &bytes).map(drop),
        FsOperation::Append => fs.append(file, &bytes).map(drop),
        FsOperation::Truncate => change(AttrChanges { size: Some(0), ..AttrChanges::default() }),
        FsOperation::Chmod => change(AttrChanges { mode: Some(0o600), ..AttrChanges::default() }),
        FsOperation::Create => fs.create(&me, dir, b"new", NewInode::file(0o644)).map(drop),
        FsOperation::Mkdir => fs.create(&me, dir, b"new", NewInode::directory(0o755)).map(drop),
        FsOperation::Stat => fs.lookup(&me, dir, b"file").map(drop),
        FsOperation::Rename => fs.rename(&me, (dir, b"file"), (dir, b"moved"), RenameMode::Replace),
        FsOperation::Unlink => fs.unlink(&me, dir, b"file"),
        FsOperation::Fsync => fs.sync_file(file, false),
    });
    made.map_err(Error::fs(asked.operation.into()))?;
    Ok(ExecutedOp { began, took, first })
}

/// Returns the plan of an operation on a new file system. Its file, of the size of the operation,
/// and its directory are in use, so their maps are in DRAM. Nothing is in flight when the operation
/// begins, except the write before `fsync`.
///
/// # Errors
/// Invalid devices, or an error of the file system.
pub fn explain(
    asked: OperationSpec,
    profile: &str,
    host: &str,
    bytes: Option<u64>,
    sums: bool,
) -> Result<Plan> {
    let mut parts = Devices::new(profile, HostModel::find(host)?, bytes)?;
    parts.sums = sums;
    let (units, host) = (parts.units(), parts.host.name.clone());
    let sink = Sink::new(Recorder::new(timed(InOrder::new(&parts.hardware))));
    let medium = SimMedium::new(parts, sink)?;
    let ExecutedOp { began, took, first } = make(&medium, asked, sums)?;
    let steps = medium.take_calls();
    let Some((recording, timed)) = Recorder::finish(medium.into_sink()) else {
        return Err(frit_core::Error::param("engine", "", "records nothing").into());
    };
    let spans = spans(&recording, command_spans(timed));
    let commands: Vec<PlanCommand> = (first as usize..recording.ops.len())
        .map(|i| {
            let (op, (start, end)) = (&recording.ops[i], spans[i]);
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
        FsOperation::Read
            | FsOperation::Write
            | FsOperation::Append
            | FsOperation::Truncate
            | FsOperation::Unlink
            | FsOperation::Fsync
    );
    Ok(Plan {
        operation: if sized {
            format!("{operation} {}", size::format(asked.bytes))
        } else {
            operation.into()
        },
        profile: profile.into(),
        host,
        latency_ns: took.0,
        done_ns: commands.iter().map(|c| c.end_ns).max().unwrap_or(0).max(took.0),
        steps: plan_steps(&steps, first, &commands),
        sums: sum_commands(&commands),
        commands,
    })
}

/// Returns the start and the end of each command. A fence that no unit executes is done when the
/// commands that it waits for are.
fn spans(recording: &Recording, executed: Vec<Option<(Nanos, Nanos)>>) -> Vec<(Nanos, Nanos)> {
    let mut spans: Vec<(Nanos, Nanos)> = Vec::with_capacity(executed.len());
    for (op, span) in recording.ops.iter().zip(executed) {
        let waits = || op.after.iter().map(|&a| spans[a as usize].1).max().unwrap_or_default();
        let span = span.unwrap_or_else(|| (waits(), waits()));
        spans.push(span);
    }
    spans
}

fn name(units: &[UnitName], unit: UnitId) -> String {
    units.iter().find(|u| u.unit == unit).map_or_else(String::new, |u| u.name.clone())
}

/// Returns the name of a command. Commands of the host's devices are transfers or processor time,
/// not accesses to memory.
fn operation_of(op: Op, is_link: bool) -> &'static str {
    match op {
        Op::DramRead if is_link => "in",
        Op::DramWrite if is_link => "out",
        Op::DramRead | Op::DramWrite => "work",
        op => op.into(),
    }
}

/// Returns the calls, with times and dependencies of their commands.
fn plan_steps(steps: &[RecordedCall], first: u64, commands: &[PlanCommand]) -> Vec<PlanStep> {
    // Each command belongs to the step that issued it.
    let mut of_command = vec![usize::MAX; commands.len()];
    for (i, step) in steps.iter().enumerate() {
        of_command[(step.first - first) as usize..(step.end - first) as usize].fill(i);
    }
    let tell = |(i, step): (usize, &RecordedCall)| {
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

/// Sums the commands by unit, operation and cause, in the order of first occurrence.
fn sum_commands(commands: &[PlanCommand]) -> Vec<CommandTotal> {
    let mut sums: Vec<CommandTotal> = Vec::new();
    for c in commands {
        let same = |s: &CommandTotal| s.unit == c.unit && s.op == c.op && s.cause == c.cause;
        let at = sums.iter().position(same).unwrap_or_else(|| {
            let (unit, op, cause) = (c.unit.clone(), c.op, c.cause);
            sums.push(CommandTotal { unit, op, cause, commands: 0, bytes: 0, busy_ns: 0 });
            sums.len() - 1
        });
        sums[at].commands += 1;
        sums[at].bytes += u64::from(c.bytes);
        sums[at].busy_ns += c.end_ns - c.start_ns;
    }
    sums
}
