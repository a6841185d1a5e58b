//! Interfaces beside blocks: access by bytes, and direct access to media.

use crate::{Cause, Hints, MediumKind, ReadTarget, Result, Sink, WriteData};

/// Byte-granular access to a layer's address space, beside its block interface.
pub trait ByteAccess<S: Sink> {
    /// Reads bytes from byte address `at`.
    ///
    /// # Errors
    /// Returns an error if the range is outside the layer, or if the medium cannot return the data.
    fn read_bytes(&mut self, sink: &mut S, at: u64, into: ReadTarget<'_>) -> Result<()>;

    /// Writes bytes at byte address `at`, on any medium. A power loss leaves each part of the range
    /// in an atomic unit of the layer either old or new, as for a block write.
    ///
    /// # Errors
    /// Returns the errors of a block write.
    fn write_bytes(&mut self, sink: &mut S, at: u64, data: WriteData<'_>, hints: Hints) -> Result<()>;
}

/// Physical access to media for callers that the configuration names (write protection: section
/// 2.7.4 of the HFSL paper).
pub trait RawAccess<S: Sink> {
    /// Reads physical bytes.
    ///
    /// # Errors
    /// Returns [`Error::Protected`](crate::Error::Protected) for a caller that the configuration
    /// does not name, or an error of the medium.
    fn raw_read(
        &mut self,
        sink: &mut S,
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
        sink: &mut S,
        caller: &str,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
    ) -> Result<()>;
}
