//! Payloads for media that may hold no bytes.

use frit_core::WriteData;
use frit_core::convert::to_usize;

/// Zeros for parts of pages and blocks that are discarded.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Returns the contents of a buffer as a payload; only the length `len` if the buffer is empty, because
/// the media hold no bytes.
pub(crate) fn buffered(buffer: &[u8], len: u32) -> WriteData<'_> {
    if buffer.is_empty() { WriteData::Len(len) } else { WriteData::Bytes(buffer) }
}

/// Returns zeros as a payload, at most 64 KiB; only their length if the medium holds no bytes.
#[inline]
pub(crate) fn zeros_on(holds_bytes: bool, len: u32) -> WriteData<'static> {
    if holds_bytes { WriteData::Bytes(&ZEROS[..to_usize(len)]) } else { WriteData::Len(len) }
}
