//! Payloads for media that may hold no bytes.

use frit_core::WriteData;
use frit_core::convert::{count_u32, to_usize};
use frit_media::Store;

/// Zeros for parts of pages and blocks that are discarded.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Returns bytes as a payload; only their length if the store `P` holds no bytes.
#[inline]
pub(crate) fn source_of<P: Store>(bytes: &[u8]) -> WriteData<'_> {
    if P::STORES_BYTES { WriteData::Bytes(bytes) } else { WriteData::Len(count_u32(bytes.len())) }
}

/// Returns zeros as a payload, at most 64 KiB; only their length if the store `P` holds no bytes.
#[inline]
pub(crate) fn zeros<P: Store>(len: u32) -> WriteData<'static> {
    if P::STORES_BYTES { WriteData::Bytes(&ZEROS[..to_usize(len)]) } else { WriteData::Len(len) }
}
