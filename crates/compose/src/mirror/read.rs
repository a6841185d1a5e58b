//! Reads: from one side, and from another one if it fails.

use super::Mirror;
use super::side_device::is_misuse;
use super::write::Outcome;
use crate::planted::MirrorBug;
use frit_core::BlockDevice;
use frit_core::planted::is_planted;
use frit_core::{Cause, ReadTarget, Result, SECTOR_BYTES, Sink, Tok, WriteData};

impl Mirror {
    /// Returns the side that serves an address, and the end of the range for which it does.
    #[inline]
    pub(super) fn reader(&self, at: u64) -> (usize, u64) {
        let chunk = at / self.base.config.read_chunk;
        let end = (chunk + 1).saturating_mul(self.base.config.read_chunk);
        if self.regions.copies() == 0 {
            return (self.readers[(chunk % self.readers.len() as u64) as usize] as usize, end);
        }
        // Also the end of a region may be the end of what this side serves.
        let region = self.layout.region_of(at);
        let end = end.min(self.layout.bytes_of(region).end);
        if self.regions.differs(region) {
            return (self.source, end);
        }
        (self.readers[(chunk % self.readers.len() as u64) as usize] as usize, end)
    }

    /// Reads data.
    pub(super) fn read_data(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        after: Tok,
    ) -> Result<Tok> {
        let (mut done, mut from, len) = (after, 0, into.len());
        while from < len {
            let at = at + u64::from(from);
            let (side, end) = self.reader(at);
            let n = (end - at).min(u64::from(len - from)) as u32;
            let tok = self.read_part(sink, side, at, into.part(from, n), after)?;
            done = sink.join(done, tok);
            from += n;
        }
        Ok(done)
    }

    /// Reads a part that one side serves.
    pub(super) fn read_part(
        &mut self,
        sink: &mut Sink,
        side: usize,
        at: u64,
        mut into: ReadTarget<'_>,
        after: Tok,
    ) -> Result<Tok> {
        let len = into.len();
        match self.base.devices.get_mut(side).read(sink, at, into.part(0, len), Cause::Host, after) {
            Err(e) if is_misuse(&e) || is_planted(MirrorBug::ReadErrorReturned) => Err(e),
            Err(e) => {
                self.counts.read_errors += 1;
                self.read_elsewhere(sink, side, at, into, after).unwrap_or(Err(e))
            }
            read => read,
        }
    }

    /// Reads from another side than the one that failed, and rewrites the sectors on that one.
    /// Returns `None` if every side fails.
    #[cold]
    fn read_elsewhere(
        &mut self,
        sink: &mut Sink,
        failed: usize,
        at: u64,
        mut into: ReadTarget<'_>,
        after: Tok,
    ) -> Option<Result<Tok>> {
        let len = into.len();
        for other in self.readers.clone() {
            let other = other as usize;
            if other == failed {
                continue;
            }
            let part = into.part(0, len);
            let Ok(read) = self.base.devices.get_mut(other).read(sink, at, part, Cause::Host, after) else {
                continue;
            };
            let data = match &into {
                ReadTarget::Bytes(b) => WriteData::Bytes(b),
                ReadTarget::Len(n) => WriteData::Len(*n),
            };
            let device = self.base.devices.get_mut(failed);
            match device.write(sink, at, data, Cause::Migrate, read) {
                Ok(written) => {
                    self.counts.sectors_rewritten += u64::from(len) / SECTOR_BYTES;
                    self.pending = sink.join(self.pending, written);
                }
                Err(e) => {
                    let outcome = Outcome { done: read, failed: 1 << failed, error: Some(e) };
                    // The data was read. What the superblocks do not say yet, they say before the
                    // next write.
                    drop(self.handle_failure(sink, outcome, after, |_| {}));
                }
            }
            return Some(Ok(read));
        }
        None
    }
}
