//! Interfaces beside blocks: access by bytes, and direct access to media.

use crate::{Cause, Hints, MediumKind, ReadTarget, Result, Sink, WriteData};
use std::ops::Range;

/// Byte-granular access to a layer's address space, beside its block interface.
pub trait ByteAccess {
    /// Reads bytes from byte address `at`.
    ///
    /// # Errors
    /// Returns an error if the range is outside the layer, or if the medium cannot return the data.
    fn read_bytes(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>) -> Result<()>;

    /// Writes bytes at byte address `at`, on any medium. A power loss leaves each part of the range
    /// in an atomic unit of the layer either old or new, as for a block write.
    ///
    /// # Errors
    /// Returns the errors of a block write.
    fn write_bytes(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, hints: Hints) -> Result<()>;
}

/// Physical access to media for callers that the configuration names (write protection: section
/// 2.7.4 of the HFSL paper).
pub trait RawAccess {
    /// Reads physical bytes.
    ///
    /// # Errors
    /// Returns [`Error::Protected`](crate::Error::Protected) for a caller that the configuration
    /// does not name, or an error of the medium.
    fn raw_read(
        &mut self,
        sink: &mut Sink,
        caller: &str,
        medium: MediumKind,
        at: u64,
        into: ReadTarget<'_>,
    ) -> Result<()>;

    /// Writes physical bytes of a byte-addressable medium outside the areas that the layer manages.
    ///
    /// # Errors
    /// Returns [`Error::Protected`](crate::Error::Protected) for a caller that the configuration
    /// does not name, and a parameter error for an area that the layer owns.
    fn raw_write(
        &mut self,
        sink: &mut Sink,
        caller: &str,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
    ) -> Result<()>;

    /// Returns the physical addresses of the area that the layer leaves free for direct writes. It
    /// is empty if there is none.
    fn raw_area(&self) -> Range<u64>;

    /// Reads bytes of this area for the owner of the media, who copies the area to other media.
    /// `at` counts from the begin of the area.
    ///
    /// # Errors
    /// Returns an error if the range is outside the area, or an error of the medium.
    fn read_raw_area(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>) -> Result<()>;

    /// Writes bytes of this area, as [`RawAccess::read_raw_area`] reads them.
    ///
    /// # Errors
    /// As for [`RawAccess::read_raw_area`].
    fn write_raw_area(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()>;
}
