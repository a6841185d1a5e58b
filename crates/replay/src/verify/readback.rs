//! Final check after the workload: reads everything back, halts, boots, and reads everything back
//! again.

use super::{Verifier, VerifyPhase};
use frit_core::{Hints, Progress, Result, SECTOR_BYTES, Sector, Sink, StackDevice};
use frit_engine::{Arrival, Host, RequestTimes};

/// Maximum number of sectors of one read: 256 KiB.
const READ_SECTORS_MAX: u64 = 512;

/// A step of the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadBackStep {
    Read(usize),
    Halt,
    Boot,
    ReadAgain(usize),
    End,
}

/// Host that performs the check. It uses an engine like any other host, so that commands are
/// completed and do not accumulate in a queue.
pub(crate) struct ReadBack<'a> {
    layer: &'a mut dyn StackDevice,
    verifier: &'a mut Verifier,
    ranges: Vec<(u64, u64)>,
    next: ReadBackStep,
    now: ReadBackStep,
}

impl<'a> ReadBack<'a> {
    pub(crate) fn new(layer: &'a mut dyn StackDevice, verifier: &'a mut Verifier) -> ReadBack<'a> {
        let page = u64::from(layer.info().page_bytes) / SECTOR_BYTES;
        let ranges = verifier.shadow.touched(page, READ_SECTORS_MAX);
        ReadBack { layer, verifier, ranges, next: ReadBackStep::Read(0), now: ReadBackStep::Read(0) }
    }

    /// Describes the current step, for an error message.
    pub(crate) fn step_name(&self) -> &'static str {
        match self.now {
            ReadBackStep::Read(_) => "reading everything back",
            ReadBackStep::Halt => "halting for --verify",
            ReadBackStep::Boot => "booting for --verify",
            ReadBackStep::ReadAgain(_) | ReadBackStep::End => "reading everything back after a boot",
        }
    }

    fn read(&mut self, sink: &mut Sink, stage: VerifyPhase, i: usize) -> Result<()> {
        let Some(&(at, sectors)) = self.ranges.get(i) else { return Ok(()) };
        self.verifier.stage = stage;
        let bytes = (sectors * SECTOR_BYTES) as u32;
        self.verifier.read(self.layer, sink, Sector(at), bytes, Hints::NONE)
    }
}

impl Host for ReadBack<'_> {
    fn next(&mut self) -> Result<Option<Arrival>> {
        let ends = |i: usize| i + 1 >= self.ranges.len();
        self.now = self.next;
        self.next = match self.now {
            ReadBackStep::Read(i) if ends(i) => ReadBackStep::Halt,
            ReadBackStep::Read(i) => ReadBackStep::Read(i + 1),
            ReadBackStep::Halt => ReadBackStep::Boot,
            ReadBackStep::Boot => ReadBackStep::ReadAgain(0),
            ReadBackStep::ReadAgain(i) if ends(i) => ReadBackStep::End,
            ReadBackStep::ReadAgain(i) => ReadBackStep::ReadAgain(i + 1),
            ReadBackStep::End => return Ok(None),
        };
        Ok(Some(Arrival { at: frit_core::Nanos::ZERO, class: 0 }))
    }

    fn serve(&mut self, sink: &mut Sink) -> Result<()> {
        match self.now {
            ReadBackStep::Read(i) => self.read(sink, VerifyPhase::ReadBack, i),
            ReadBackStep::Halt => self.layer.halt(sink),
            ReadBackStep::Boot => self.layer.boot(sink),
            ReadBackStep::ReadAgain(i) => self.read(sink, VerifyPhase::AfterBoot, i),
            ReadBackStep::End => Ok(()),
        }
    }

    fn background(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        // A halted layer has written its map to durable memory, so nothing may change until it has
        // booted.
        if matches!(self.now, ReadBackStep::Halt) {
            Ok(Progress::Idle)
        } else {
            self.layer.step(sink, budget)
        }
    }

    fn done(&mut self, _: u8, _: RequestTimes) {}
}
