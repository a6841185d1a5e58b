//! Final check after the workload: reads everything back, halts, boots, and reads everything back
//! again.

use super::{Stage, Verifier};
use frit_core::{Hints, Progress, Result, SECTOR_BYTES, Sector, Sink, Top};
use frit_engine::{Arrival, Host, Times};

/// Maximum number of sectors of one read: 256 KiB.
const LONGEST: u64 = 512;

/// A step of the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Read(usize),
    Halt,
    Boot,
    ReadAgain(usize),
    End,
}

/// Host that performs the check. It uses an engine like any other host, so that commands are
/// completed and do not accumulate in a queue.
pub(crate) struct ReadBack<'a, S: Sink> {
    layer: &'a mut dyn Top<S>,
    verifier: &'a mut Verifier,
    ranges: Vec<(u64, u64)>,
    next: Step,
    now: Step,
}

impl<'a, S: Sink> ReadBack<'a, S> {
    pub(crate) fn new(layer: &'a mut dyn Top<S>, verifier: &'a mut Verifier) -> ReadBack<'a, S> {
        let page = u64::from(layer.info().page_bytes) / SECTOR_BYTES;
        let ranges = verifier.shadow.touched(page, LONGEST);
        ReadBack { layer, verifier, ranges, next: Step::Read(0), now: Step::Read(0) }
    }

    /// Describes the current step, for an error message.
    pub(crate) fn doing(&self) -> &'static str {
        match self.now {
            Step::Read(_) => "reading everything back",
            Step::Halt => "halting for --verify",
            Step::Boot => "booting for --verify",
            Step::ReadAgain(_) | Step::End => "reading everything back after a boot",
        }
    }

    fn read(&mut self, sink: &mut S, stage: Stage, i: usize) -> Result<()> {
        let Some(&(at, sectors)) = self.ranges.get(i) else { return Ok(()) };
        self.verifier.stage = stage;
        let bytes = (sectors * SECTOR_BYTES) as u32;
        self.verifier.read(self.layer, sink, Sector(at), bytes, Hints::NONE)
    }
}

impl<S: Sink> Host<S> for ReadBack<'_, S> {
    fn next(&mut self) -> Result<Option<Arrival>> {
        let ends = |i: usize| i + 1 >= self.ranges.len();
        self.now = self.next;
        self.next = match self.now {
            Step::Read(i) if ends(i) => Step::Halt,
            Step::Read(i) => Step::Read(i + 1),
            Step::Halt => Step::Boot,
            Step::Boot => Step::ReadAgain(0),
            Step::ReadAgain(i) if ends(i) => Step::End,
            Step::ReadAgain(i) => Step::ReadAgain(i + 1),
            Step::End => return Ok(None),
        };
        Ok(Some(Arrival { at: frit_core::Nanos::ZERO, class: 0 }))
    }

    fn serve(&mut self, sink: &mut S) -> Result<()> {
        match self.now {
            Step::Read(i) => self.read(sink, Stage::ReadBack, i),
            Step::Halt => self.layer.halt(sink),
            Step::Boot => self.layer.boot(sink),
            Step::ReadAgain(i) => self.read(sink, Stage::AfterBoot, i),
            Step::End => Ok(()),
        }
    }

    fn background(&mut self, sink: &mut S, budget: u32) -> Result<Progress<S::Tok>> {
        // A halted layer has written its map to durable memory, so nothing may change until it has
        // booted.
        if matches!(self.now, Step::Halt) { Ok(Progress::Idle) } else { self.layer.step(sink, budget) }
    }

    fn done(&mut self, _: u8, _: Times) {}
}
