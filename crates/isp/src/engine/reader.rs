//! Reads of a source in chunks, with cancellation and the foreground gate between them.

use super::control::Control;
use super::memory::Charge;
use crate::outcome::{Failure, Status};
use crate::scan::{Bytes, EachPiece, Head};
use crate::source::Source;
use std::ops::Range;

/// Reads the bytes of a job.
pub(super) struct Reader<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) control: &'a Control,
    pub(super) range: Range<u64>,
    /// Copy of a chunk, for operations that must not be called while the source is read.
    pub(super) copy: Option<Vec<u8>>,
}

impl Bytes for Reader<'_> {
    fn read(&mut self, bytes: Range<u64>, each: &mut EachPiece<'_>) -> Result<(), Failure> {
        let mut at = bytes.start;
        while at < bytes.end {
            self.control.check()?;
            let len = (bytes.end - at).min(self.control.chunk_bytes() as u64) as usize;
            let mut piece_at = at;
            let mut go_on = Ok(true);
            let mut copy = self.copy.as_mut();
            let read = self.source.read(at, len, &mut |piece| {
                if let Some(copy) = &mut copy {
                    copy.extend_from_slice(piece);
                } else if let Ok(true) = go_on
                    && !piece.is_empty()
                {
                    go_on = each(piece_at, piece);
                }
                piece_at += piece.len() as u64;
            });
            read.map_err(|error| {
                let end = at + len as u64;
                Failure::new(Status::Io, format!("bytes {at} to {end} cannot be read: {error}"))
            })?;
            if piece_at != at + len as u64 {
                return Err(Failure::new(
                    Status::Io,
                    format!("a read of {len} bytes at {at} returned {} bytes", piece_at - at),
                ));
            }
            self.control.count_bytes(len as u64);
            if let Some(copy) = &mut self.copy {
                go_on = each(at, copy);
                copy.clear();
            }
            if !go_on? {
                return Ok(());
            }
            at = piece_at;
        }
        Ok(())
    }

    fn charge(&self) -> Charge {
        self.control.account().charge()
    }
}

impl Head for Reader<'_> {
    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    fn first(&self, len: usize) -> Result<Vec<u8>, Failure> {
        let len = (self.range.end - self.range.start).min(len as u64) as usize;
        let mut head = Vec::with_capacity(len);
        if len > 0 {
            let read = self.source.read(self.range.start, len, &mut |piece| head.extend_from_slice(piece));
            read.map_err(|error| {
                let at = self.range.start;
                Failure::new(Status::Io, format!("the first {len} bytes at {at} cannot be read: {error}"))
            })?;
        }
        Ok(head)
    }
}
