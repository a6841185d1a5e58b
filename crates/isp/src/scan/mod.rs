//! Division of a range into parts, and of the bytes of a part into views of an operation.
//!
//! A view is a slice in the memory of the source wherever possible. Bytes are copied only where
//! something that belongs together (an occurrence, a line, a block) spans two pieces.

mod blocks;
mod lines;
mod windows;

use crate::engine::{Account, Charge};
use crate::instructions::Answer;
use crate::outcome::Failure;
use lines::LongLine;
use std::ops::Range;

/// Things that an operation needs undivided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Every position with this many bytes behind it.
    Positions {
        /// Bytes of a view behind the last position of the view.
        overlap: usize,
    },
    /// Lines with their line feed. The last one may have none.
    Lines,
    /// Lines that may not be records. The range is scanned as one part if one of them is too long, and such
    /// lines are in several views then.
    Records,
    /// Blocks of a size. The last one may be shorter.
    Blocks(usize),
}

/// Bytes for an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// Position of the first byte in the source.
    pub(crate) at: u64,
    /// Whole units.
    pub(crate) bytes: &'a [u8],
    /// Number of positions that belong to the view, in views of positions. Else the number of bytes.
    pub(crate) starts: usize,
}

/// Continuation of a scan or a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// The scan goes on.
    Continue,
    /// The results are complete; later bytes do not matter.
    Done,
    /// The results of a part exceed its memory. The part is scanned again when its predecessors are
    /// merged, into the total.
    Overflow,
    /// The data cannot be divided. The range is scanned again as one part.
    Sequential,
}

/// Time that the processing of a view can take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum StepTime {
    /// In proportion to its bytes.
    Short,
    /// Up to minutes, for long lines.
    Long,
    /// Without a bound, in a program of a user.
    Endless,
}

/// Role of a set of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Results of one part.
    Part,
    /// Results of all parts up to the current one. They are cut at the limit of memory.
    Total,
}

/// Conditions under which results are collected.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    /// Role of the results.
    pub(crate) role: Role,
    /// `true` if the range is scanned as one part.
    pub(crate) sequential: bool,
    /// Bytes that the results may occupy.
    pub(crate) memory: usize,
    /// Memory of the user, which has to be counted before the results occupy it.
    pub(crate) account: Account,
}

/// Results of an instruction in the form for its user.
pub(crate) struct Finished {
    pub(crate) answer: Answer,
    /// `true` if the results were cut at the limit of memory.
    pub(crate) truncated: bool,
    /// Count of their memory.
    pub(crate) charge: Option<Charge>,
}

impl Finished {
    /// Results of a small size that does not depend on the data.
    pub(crate) fn small(answer: Answer) -> Self {
        Self { answer, truncated: false, charge: None }
    }

    /// Results whose memory is counted.
    pub(crate) fn new(answer: Answer, truncated: bool, charge: Charge) -> Self {
        Self { answer, truncated, charge: Some(charge) }
    }
}

/// Operation of an instruction on the data of a range.
pub(crate) trait Operation: Send + Sync + 'static {
    /// Results of a part, or of all parts.
    type Results: Send + 'static;

    /// Units of the views.
    fn unit(&self) -> Unit;

    /// Returns `true` if the range has to be scanned as one part. It is asked again after the preparation.
    fn sequential(&self) -> bool {
        false
    }

    /// Returns `true` if views are copies, so that they hold no lock of the source: they may take long, read the
    /// source themselves, or write a file.
    fn detached(&self) -> bool {
        self.step_time() > StepTime::Short
    }

    /// Returns the time that a view can take.
    fn step_time(&self) -> StepTime {
        StepTime::Short
    }

    /// Returns the largest range in bytes that the caller's thread scans itself. The thread cannot be
    /// cancelled. `usual` is the one for operations that take few instructions for each byte.
    fn inline_bytes(&self, usual: u64) -> u64 {
        usual
    }

    /// Prepares the operation with the first bytes of the range (for a header).
    fn prepare(&self, _head: &dyn Head) -> Result<(), Failure> {
        Ok(())
    }

    /// Creates empty results.
    fn begin(&self, begin: Begin) -> Self::Results;

    /// Processes a view. The views of a part ascend, and are consecutive.
    fn view(&self, results: &mut Self::Results, view: View<'_>) -> Result<Flow, Failure>;

    /// Ends the scan of a part.
    fn end_of_part(&self, _results: &mut Self::Results) -> Result<Flow, Failure> {
        Ok(Flow::Continue)
    }

    /// Appends the results of the next part to those of its predecessors.
    fn merge(&self, total: &mut Self::Results, next: Self::Results) -> Result<Flow, Failure>;

    /// Converts the results.
    fn finish(&self, total: Self::Results) -> Result<Finished, Failure>;
}

/// Access to the beginning of the range.
pub(crate) trait Head {
    /// Range of the instruction.
    fn range(&self) -> Range<u64>;

    /// Returns the first bytes of the range, at most `len`.
    fn first(&self, len: usize) -> Result<Vec<u8>, Failure>;
}

/// Bytes of one part, in order.
pub(crate) trait Bytes {
    /// Calls `each` with consecutive pieces of these bytes until it returns `false`. The caller has a
    /// chance to stop the scan between chunks.
    fn read(&mut self, bytes: Range<u64>, each: &mut EachPiece<'_>) -> Result<(), Failure>;

    /// Begins to count memory of a buffer.
    fn charge(&self) -> Charge;
}

/// Scans the units that begin in `part`, which is a part of `range`.
pub(crate) fn scan<O: Operation>(
    operation: &O,
    results: &mut O::Results,
    bytes: &mut dyn Bytes,
    part: &Range<u64>,
    range: &Range<u64>,
    (record_max, sequential): (usize, bool),
) -> Result<Flow, Failure> {
    let mut flow = Flow::Continue;
    let mut view = |view: View<'_>| {
        if flow == Flow::Continue && !view.bytes.is_empty() {
            flow = operation.view(results, view)?;
        }
        Ok(flow == Flow::Continue)
    };
    match operation.unit() {
        Unit::Positions { overlap } => windows::scan(bytes, part, range, overlap, &mut view)?,
        Unit::Lines => _ = lines::scan(bytes, part, range, (record_max, LongLine::Refused), &mut view)?,
        Unit::Records => {
            let long = if sequential { LongLine::Divided } else { LongLine::Ends };
            if !lines::scan(bytes, part, range, (record_max, long), &mut view)? {
                return Ok(Flow::Sequential);
            }
        }
        Unit::Blocks(size) => blocks::scan(bytes, part, size, &mut view)?,
    }
    if flow == Flow::Continue { operation.end_of_part(results) } else { Ok(flow) }
}

/// Function that processes a piece at a position, and returns `true` if the scan goes on.
pub(crate) type EachPiece<'a> = dyn FnMut(u64, &[u8]) -> Result<bool, Failure> + 'a;

/// Function that processes a view, and returns `true` if the scan goes on.
type Each<'a> = dyn FnMut(View<'_>) -> Result<bool, Failure> + 'a;
