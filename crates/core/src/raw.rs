//! Richer interfaces than blocks: bytes, and media addressed directly.

use crate::{Cause, MediumKind, Result, Sink, Source, Target};

/// Byte-granular access to a layer's address space, beside its block interface.
pub trait ByteAccess<S: Sink> {
    /// Reads bytes from byte address `at`.
    ///
    /// # Errors
    /// A range outside the layer, or a medium that cannot give the bytes back.
    fn read_bytes(&mut self, sink: &mut S, at: u64, into: Target<'_>) -> Result<()>;

    /// Writes bytes at byte address `at`, wherever they lie.
    ///
    /// # Errors
    /// As for a block write.
    fn write_bytes(&mut self, sink: &mut S, at: u64, data: Source<'_>) -> Result<()>;
}

/// Physical access to media, for callers that the configuration names (write protection: section
/// 2.7.4 of the HFSL paper).
pub trait RawAccess<S: Sink> {
    /// Reads physical bytes.
    ///
    /// # Errors
    /// `Protected` for a caller that is not named; else as the medium says.
    fn raw_read(
        &mut self,
        sink: &mut S,
        who: &str,
        medium: MediumKind,
        at: u64,
        into: Target<'_>,
    ) -> Result<()>;

    /// Writes physical bytes of a byte-addressable medium outside the areas that the layer manages.
    ///
    /// # Errors
    /// `Protected` for a caller that is not named or an area that the layer owns.
    fn raw_write(&mut self, sink: &mut S, who: &str, at: u64, data: Source<'_>, cause: Cause) -> Result<()>;
}
