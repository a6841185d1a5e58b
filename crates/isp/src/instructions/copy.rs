//! Copy of records that match a pattern.

use super::filter::matching_lines;
use super::{Answer, Kind, Report};
use crate::engine::{Charge, Control, Start};
use crate::matcher::{Expressions, Matcher, Pattern};
use crate::outcome::{Failure, Status};
use crate::scan::{Begin, Finished, Flow, Operation, Role, StepTime, Unit, View};
use crate::source::{Destination, Target};
use crate::text::Keys;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Bytes that are collected for one write.
const WRITE_BYTES: usize = 1 << 20;
/// Maximum size of a block of a copy, in bytes.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Records of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordUnit {
    /// Lines with their line feed. The last line of the range may have none, and is copied as it is.
    Lines,
    /// Blocks of this size in bytes, counted from the begin of the range. The last one may be shorter.
    Blocks(usize),
}

/// Copies the records that match a pattern, in their order and without gaps, to another file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copy {
    /// Pattern of a record.
    pub pattern: Pattern,
    /// `true` for the records that do not match.
    pub invert: bool,
    /// Number of records to copy, at most.
    pub limit: Option<u64>,
    /// Records.
    pub unit: RecordUnit,
    /// File to write.
    pub to: Target,
    /// Position of the first copied byte in this file.
    pub at: u64,
}

/// Results of `Copy`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CopyAnswer {
    /// Number of copied records.
    pub records: u64,
    /// Number of written bytes.
    pub bytes: u64,
}

impl Report for CopyAnswer {}

impl Kind for Copy {
    const NAME: &'static str = "copy";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        let to = keys.text("to")?.ok_or_else(|| {
            Failure::invalid("\"copy\" needs \"to\", the path of an existing file that it writes")
        })?;
        Ok(Self {
            pattern: Pattern::parse("copy", value)?,
            invert: keys.flag("invert")?,
            limit: keys.number("limit")?,
            unit: keys.size("block")?.map_or(RecordUnit::Lines, RecordUnit::Blocks),
            to: Target::name(to).map_err(Failure::invalid)?,
            at: keys.number("at")?.unwrap_or(0),
        })
    }

    fn held_bytes(&self) -> usize {
        self.pattern.held_bytes()
    }

    fn starts_quickly(&self) -> bool {
        self.pattern.compiles_quickly()
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        if let RecordUnit::Blocks(size) = self.unit
            && !(1..=BLOCK_BYTES_MAX).contains(&size)
        {
            return Err(Failure::invalid(format!("a block has {size} bytes; it has 1 to {BLOCK_BYTES_MAX}")));
        }
        if start.request.instruction.file == self.to {
            return Err(Failure::invalid(
                "the copy would overwrite the file that it reads; name another file in \"to\"",
            ));
        }
        let Some(destination) = start.request.destination.clone() else {
            return Err(Failure::new(Status::NotFound, format!("there is no file {} to write", self.to)));
        };
        check_end(&*destination, &self.to, self.at, 0)?;
        let control = Arc::clone(&start.control);
        let matcher = match self.unit {
            RecordUnit::Lines => Matcher::of_lines(&self.pattern, control.account())?,
            RecordUnit::Blocks(_) => {
                Matcher::of_texts(&self.pattern, Expressions::new(control.account(), 1))?
            }
        };
        start.with(Copying { matcher, destination, copy: self.clone(), control })
    }
}

/// Fails if a file cannot be so large that it has the bytes of a write.
fn check_end(destination: &dyn Destination, to: &Target, at: u64, len: u64) -> Result<(), Failure> {
    let (max, end) = (destination.bytes_max(), at.saturating_add(len));
    if end <= max {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "{to} has at most {max} bytes, and the copy would end at byte {end} or behind; choose a smaller \"at\""
    )))
}

/// Operation of `Copy`.
struct Copying {
    matcher: Matcher,
    destination: Arc<dyn Destination>,
    copy: Copy,
    control: Arc<Control>,
}

/// Records of a part, or those that are to be written.
struct Copied {
    role: Role,
    memory: usize,
    /// Bytes of records that are not written.
    buffer: Vec<u8>,
    /// Ends of the records in the buffer.
    ends: Vec<usize>,
    records: u64,
    written: u64,
    charge: Charge,
}

impl Copying {
    fn limit(&self) -> u64 {
        self.copy.limit.unwrap_or(u64::MAX)
    }

    fn add(&self, copied: &mut Copied, record: &[u8]) -> Result<Flow, Failure> {
        if copied.records >= self.limit() {
            return Ok(Flow::Done);
        }
        let used = copied.buffer.len() + copied.ends.len() * size_of::<usize>() + record.len();
        copied.charge.cover(used)?;
        copied.buffer.extend_from_slice(record);
        copied.records += 1;
        if copied.role == Role::Part {
            copied.ends.push(copied.buffer.len());
            let used = copied.buffer.len() + copied.ends.len() * size_of::<usize>();
            if used > copied.memory {
                return Ok(Flow::Overflow);
            }
        } else if copied.buffer.len() >= WRITE_BYTES.min(copied.memory) {
            self.write(copied)?;
        }
        Ok(if copied.records >= self.limit() { Flow::Done } else { Flow::Continue })
    }

    /// Writes the collected bytes.
    fn write(&self, copied: &mut Copied) -> Result<(), Failure> {
        if copied.buffer.is_empty() {
            return Ok(());
        }
        let at = self.copy.at.saturating_add(copied.written);
        check_end(&*self.destination, &self.copy.to, at, copied.buffer.len() as u64)?;
        self.destination.write(at, &copied.buffer).map_err(|error| {
            let (len, to) = (copied.buffer.len(), &self.copy.to);
            Failure::new(Status::Io, format!("{len} bytes cannot be written at byte {at} of {to}: {error}"))
        })?;
        copied.written += copied.buffer.len() as u64;
        copied.buffer.clear();
        Ok(())
    }
}

impl Operation for Copying {
    type Results = Copied;

    fn unit(&self) -> Unit {
        match self.copy.unit {
            RecordUnit::Lines => Unit::Lines,
            RecordUnit::Blocks(size) => Unit::Blocks(size),
        }
    }

    // A write that waits for another file must not hold the lock of the source: the source can be the target of a copy
    // in the other direction, and a commit of the target may need it.
    fn detached(&self) -> bool {
        true
    }

    fn step_time(&self) -> StepTime {
        self.matcher.step_time()
    }

    fn begin(&self, begin: Begin) -> Copied {
        Copied {
            role: begin.role,
            memory: begin.memory,
            buffer: Vec::new(),
            ends: Vec::new(),
            records: 0,
            written: 0,
            charge: begin.account.charge(),
        }
    }

    fn view(&self, copied: &mut Copied, view: View<'_>) -> Result<Flow, Failure> {
        let mut flow = Ok(Flow::Continue);
        let check = || self.control.check_within(self.matcher.step_time());
        match self.copy.unit {
            RecordUnit::Lines => {
                matching_lines(&self.matcher, self.copy.invert, view.bytes, &check, &mut |line| {
                    flow = self.add(copied, line);
                    flow == Ok(Flow::Continue)
                })?;
            }
            RecordUnit::Blocks(size) => {
                let mut searches = self.matcher.searches();
                for block in view.bytes.chunks(size) {
                    check()?;
                    if searches.is_match(block, &check)? != self.copy.invert {
                        flow = self.add(copied, block);
                    }
                    if flow != Ok(Flow::Continue) {
                        break;
                    }
                }
            }
        }
        flow
    }

    fn merge(&self, total: &mut Copied, next: Copied) -> Result<Flow, Failure> {
        let mut begin = 0;
        for end in next.ends {
            if self.add(total, &next.buffer[begin..end])? == Flow::Done {
                return Ok(Flow::Done);
            }
            begin = end;
        }
        Ok(Flow::Continue)
    }

    fn finish(&self, mut total: Copied) -> Result<Finished, Failure> {
        self.write(&mut total)?;
        Ok(Finished::small(Answer::Copy(CopyAnswer { records: total.records, bytes: total.written })))
    }
}
