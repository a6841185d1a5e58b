//! Reads of a source in chunks, with cancellation and the foreground gate between them.

use super::{EngineOptions, Ticket};
use crate::outcome::{Failure, Status};
use crate::scan::{Bytes, EachPiece, Head};
use crate::source::Source;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Work of a job, counted by all its threads.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) bytes: AtomicU64,
    pub(super) cpu_ns: AtomicU64,
    pub(super) yields: AtomicU64,
    pub(super) yielded_ns: AtomicU64,
}

/// Reads the bytes of a job.
pub(super) struct Reader<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) options: &'a EngineOptions,
    pub(super) ticket: &'a Ticket,
    /// `true` if the results of the part are no longer needed.
    pub(super) stopped: &'a AtomicBool,
    pub(super) counters: &'a Counters,
    pub(super) range: Range<u64>,
}

impl Reader<'_> {
    /// Waits for foreground requests. A scan that has to stop fails.
    fn check(&self) -> Result<(), Failure> {
        let stop = || self.ticket.is_cancelled() || self.stopped.load(Ordering::Relaxed);
        if let Some(waited) = self.options.foreground.pass(&stop) {
            self.counters.yields.fetch_add(1, Ordering::Relaxed);
            self.counters.yielded_ns.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
        }
        if stop() { Err(cancelled()) } else { Ok(()) }
    }
}

/// Failure of a cancelled instruction.
pub(super) fn cancelled() -> Failure {
    Failure::new(
        Status::Cancelled,
        "the instruction was cancelled before its end; write it again to repeat it",
    )
}

impl Bytes for Reader<'_> {
    fn read(&mut self, bytes: Range<u64>, each: &mut EachPiece<'_>) -> Result<(), Failure> {
        let mut at = bytes.start;
        while at < bytes.end {
            self.check()?;
            let len = (bytes.end - at).min(self.options.chunk_bytes as u64) as usize;
            let mut piece_at = at;
            let mut go_on = Ok(true);
            let read = self.source.read(at, len, &mut |piece| {
                if let Ok(true) = go_on
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
            self.counters.bytes.fetch_add(len as u64, Ordering::Relaxed);
            if !go_on? {
                return Ok(());
            }
            at = piece_at;
        }
        Ok(())
    }
}

impl Head for Reader<'_> {
    fn start(&self) -> u64 {
        self.range.start
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
