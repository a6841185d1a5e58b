//! Streams of placement handles: writes with different hints go to different erase blocks, and wait in
//! different merge buffers.
//!
//! The buffer of the stream that is written is [`Ftl::buffer`], and the others are parked here. A
//! page waits in one buffer only: a further write to it goes there, whatever its hints are.

use super::layer::Ftl;
use super::merge_buffer::MergeBuffer;
use crate::flash::{HANDLES_MAX, NandStream};
use crate::planted::FtlBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Hints, Lpn, Result, Sink};

/// Streams of a volume. Number 0 has the data without a placement handle.
#[derive(Debug)]
pub(super) struct WriteStreams {
    /// Buffers of all streams. That of the current one is an empty one in its place.
    parked: Vec<MergeBuffer>,
    current: usize,
    /// Program unit of each stream that is written next, for the allocation in turn.
    turns: [u32; HANDLES_MAX + 1],
}

impl WriteStreams {
    /// Creates streams for placement handles, with a buffer for each.
    pub(super) fn new(handles: usize, buffer: impl Fn() -> MergeBuffer) -> WriteStreams {
        let count = if handles == 0 { 0 } else { handles.min(HANDLES_MAX) + 1 };
        WriteStreams {
            parked: (0..count).map(|_| buffer()).collect(),
            current: 0,
            turns: [0; HANDLES_MAX + 1],
        }
    }

    /// Number of the stream that is written.
    #[inline]
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Stream of NAND that is written.
    #[inline]
    pub(super) fn nand_stream(&self) -> NandStream {
        // There are at most three handles.
        if self.current == 0 { NandStream::Host } else { NandStream::Handle(self.current as u8) }
    }

    /// Next turn of the current stream: with one for all, streams that alternate would each stay on few
    /// units.
    #[inline]
    pub(super) fn next_turn(&mut self) -> u32 {
        let turn = &mut self.turns[self.current];
        *turn = turn.wrapping_add(1);
        *turn
    }

    /// Stream of a write with these hints.
    fn of(&self, hints: Hints) -> usize {
        let cold = hints.has(Hints::COLD);
        match self.parked.len() {
            4 if hints.has(Hints::METADATA) => 3,
            3 | 4 if cold => 2,
            2.. if !cold && (hints.has(Hints::HOT) || hints.has(Hints::METADATA)) => 1,
            _ => 0,
        }
    }
}

impl Ftl {
    /// Selects the stream of a write with these hints.
    #[inline]
    pub(super) fn select_stream(&mut self, hints: Hints) {
        if !self.streams.parked.is_empty() {
            self.switch_to(self.streams.of(hints));
        }
    }

    /// Makes a stream the one that is written.
    #[inline]
    pub(super) fn switch_to(&mut self, stream: usize) {
        let streams = &mut self.streams;
        if streams.current != stream {
            std::mem::swap(&mut self.buffer, &mut streams.parked[streams.current]);
            std::mem::swap(&mut self.buffer, &mut streams.parked[stream]);
            streams.current = stream;
        }
    }

    /// Returns the position of a page in a merge buffer, and makes its stream the one that is written.
    pub(super) fn find_buffered(&mut self, lpn: Lpn) -> Option<usize> {
        if let Some(position) = self.buffer.find(lpn) {
            return Some(position);
        }
        let holder = self.streams.parked.iter().position(|buffer| buffer.find(lpn).is_some())?;
        self.switch_to(holder);
        self.buffer.find(lpn)
    }

    /// Programs the pages that wait in all merge buffers, those of the current stream first.
    pub(super) fn program_all(&mut self, sink: &mut Sink, cause: Cause) -> Result<()> {
        self.program_buffer(sink, cause)?;
        if is_planted(FtlBug::StreamNotFlushed) {
            return Ok(());
        }
        for stream in 0..self.streams.parked.len() {
            self.switch_to(stream);
            self.program_buffer(sink, cause)?;
        }
        Ok(())
    }

    /// Number of pages that wait in merge buffers.
    pub(super) fn buffered_pages(&self) -> u64 {
        let parked = self.streams.parked.iter().map(MergeBuffer::len).sum::<usize>();
        (self.buffer.len() + parked) as u64
    }

    /// Forgets the pages of all merge buffers.
    pub(super) fn reset_buffers(&mut self) {
        self.buffer.reset();
        self.streams.parked.iter_mut().for_each(MergeBuffer::reset);
    }

    /// Returns `true` if a page waits in a merge buffer.
    #[cfg(test)]
    pub(super) fn is_in_a_buffer(&self, lpn: Lpn) -> bool {
        self.buffer.find(lpn).is_some() || self.streams.parked.iter().any(|buffer| buffer.find(lpn).is_some())
    }
}
