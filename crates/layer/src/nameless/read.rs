//! Reads.

use super::layer::Nameless;
use crate::spans::page_spans;
use frit_core::convert::to_usize;
use frit_core::{Cause, Error, Lpn, MediumKind, NamelessDevice, ReadTarget, Result, Sink};

impl<D: NamelessDevice> Nameless<D> {
    /// Reads a range of bytes.
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let mut run = std::mem::take(&mut self.run);
        run.clear();
        // Begin of the run in the target, its length, and its offset in the first block.
        let (mut from, mut len, mut offset) = (0, 0, 0);
        let mut result = Ok(());
        for span in page_spans(at, into.len(), self.page_bytes) {
            let queued = self.queue.find(span.lpn);
            let block = if queued.is_some() { None } else { self.block_of(span.lpn) };
            if let Some(block) = block {
                if run.is_empty() {
                    (from, len, offset) = (span.from, 0, span.offset);
                }
                run.push(block);
                len += span.len;
                continue;
            }
            result = self.read_run(sink, &mut run, offset, into.part(from, len), cause);
            if result.is_err() {
                break;
            }
            let mut part = into.part(span.from, span.len);
            match queued {
                Some(position) => {
                    if let (Some(into), Some(page)) = (part.bytes(), self.queue.bytes(position)) {
                        into.copy_from_slice(&page[to_usize(span.offset)..][..to_usize(span.len)]);
                    }
                    self.stats.queue_reads += 1;
                    sink.ack(self.queue.read);
                }
                None => {
                    part.zero();
                    result = self.check_not_lost(span.lpn);
                }
            }
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() {
            result = self.read_run(sink, &mut run, offset, into.part(from, len), cause);
        }
        self.run = run;
        result
    }

    /// Reads a run of blocks, and empties it.
    fn read_run(
        &mut self,
        sink: &mut Sink,
        run: &mut Vec<frit_core::OwnedBlock>,
        offset: u32,
        into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        if run.is_empty() {
            return Ok(());
        }
        let read = self.device.physical_read(sink, run, offset, into, cause);
        run.clear();
        sink.ack(read?);
        Ok(())
    }

    /// Checks that a page without an address was not lost.
    ///
    /// # Errors
    /// `Corrupt`, with the reason of the loss.
    pub(super) fn check_not_lost(&self, lpn: Lpn) -> Result<()> {
        match self.map.lost().get(&lpn.0) {
            None => Ok(()),
            Some(why) => Err(Error::Corrupt {
                medium: MediumKind::Nand,
                at: 0,
                what: format!("logical page {} is lost: {why}", lpn.0),
            }),
        }
    }
}
