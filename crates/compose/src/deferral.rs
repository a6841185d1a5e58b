//! Deferred requests of a composer: accesses that the caller makes without the lock of the layer.
//!
//! A composer defers what its devices transfer from or to the buffer of a request. A range with a
//! deferred request in flight does not change meanwhile: a conflicting request is refused with
//! [`Error::WouldBlock`], and its caller repeats it. A deferred request that fails is made again in
//! place, where the composer handles the error as ever.

use frit_core::{Deferred, DeferredPart, Error, ReadTarget, Result};
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Kind of a request, as far as it is deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestKind {
    Read,
    Write,
    Zero,
}

/// A request whose accesses are deferred.
#[derive(Clone, Debug)]
pub(crate) struct DeferredRequest {
    pub(crate) kind: RequestKind,
    /// Bytes of the layer.
    pub(crate) range: Range<u64>,
}

/// Deferred requests of a layer.
#[derive(Debug, Default)]
pub(crate) struct Deferral {
    /// `true` if requests are deferred.
    pub(crate) on: bool,
    /// Accesses of the current request, which the caller has not taken yet.
    now: Option<(DeferredRequest, Vec<DeferredPart>)>,
    in_flight: Vec<(u64, DeferredRequest)>,
    next: u64,
    /// Number of reads in a row that needed no deferred access.
    immediate: u32,
}

/// Number of reads in a row without a deferred access, after which the next one is expected to need
/// none either: what is read lies in the page cache.
const IMMEDIATE: u32 = 64;

impl Deferral {
    /// Checks that no request in flight conflicts with a request.
    ///
    /// # Errors
    /// `WouldBlock` if a range overlaps, and one of both requests changes it.
    #[inline]
    pub(crate) fn check(&self, at: u64, bytes: u64, kind: RequestKind) -> Result<()> {
        if self.in_flight.is_empty() { Ok(()) } else { self.check_in_flight(at..at + bytes, kind) }
    }

    fn check_in_flight(&self, range: Range<u64>, kind: RequestKind) -> Result<()> {
        let conflict = |other: &DeferredRequest| {
            (kind != RequestKind::Read || other.kind != RequestKind::Read)
                && range.start < other.range.end
                && other.range.start < range.end
        };
        if self.in_flight.iter().any(|(_, r)| conflict(r)) { Err(Error::WouldBlock) } else { Ok(()) }
    }

    /// Defers the accesses of the current request.
    pub(crate) fn begin(&mut self, request: DeferredRequest, parts: Vec<DeferredPart>) {
        if request.kind == RequestKind::Read {
            self.immediate = if parts.is_empty() { self.immediate.saturating_add(1) } else { 0 };
        }
        if !parts.is_empty() {
            self.now = Some((request, parts));
        }
    }

    /// Returns `true` if the next read is expected to need deferred accesses.
    pub(crate) fn reads_wait(&self) -> bool {
        self.immediate < IMMEDIATE
    }

    /// Returns the accesses of the last request, for the caller to make.
    pub(crate) fn take(&mut self) -> Option<Deferred> {
        let (request, parts) = self.now.take()?;
        self.next += 1;
        self.in_flight.push((self.next, request));
        Some(Deferred { id: self.next, parts })
    }

    /// Ends a request in flight, and returns it.
    pub(crate) fn end(&mut self, id: u64) -> Option<DeferredRequest> {
        let i = self.in_flight.iter().position(|(of, _)| *of == id)?;
        Some(self.in_flight.swap_remove(i).1)
    }
}

/// Accesses of one device that are deferred: those from or to the buffer of the current request.
///
/// A composer passes parts of the buffer to its devices, and uses buffers of its own for its
/// metadata. The addresses tell them apart.
#[derive(Debug, Default)]
pub(crate) struct BufferScope {
    /// Addresses of the buffer in memory; `None` if nothing is deferred.
    buffer: Option<Range<usize>>,
}

impl BufferScope {
    /// Begins a request with this buffer; with an empty one, only accesses without data are deferred.
    pub(crate) fn begin(&mut self, buffer: Range<usize>) {
        self.buffer = Some(buffer);
    }

    pub(crate) fn end(&mut self) {
        self.buffer = None;
    }

    /// Returns `true` between begin and end of a deferred request.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.buffer.is_some()
    }

    /// Returns the place of a part of the buffer in it; `None` for another buffer.
    #[inline]
    pub(crate) fn find(&self, part: &[u8]) -> Option<Range<usize>> {
        let buffer = self.buffer.as_ref()?;
        let from = part.as_ptr().addr().checked_sub(buffer.start)?;
        (from + part.len() <= buffer.len()).then(|| from..from + part.len())
    }
}

/// Returns the addresses of a buffer in memory.
#[inline]
pub(crate) fn addresses(buffer: &[u8]) -> Range<usize> {
    let start = buffer.as_ptr().addr();
    start..start + buffer.len()
}

/// Returns the addresses of the buffer of a read; `None` if it has none.
#[inline]
pub(crate) fn addresses_of_read(into: &ReadTarget<'_>) -> Option<Range<usize>> {
    match into {
        ReadTarget::Bytes(bytes) => Some(addresses(bytes)),
        ReadTarget::Len(_) => None,
    }
}
