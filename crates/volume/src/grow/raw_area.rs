//! The area of PCM for direct writes by physical addresses (`raw_bytes` of HFSL). It is no part of
//! the volume's contents, so it is copied beside them. A byte keeps its offset in the area.

use super::{CHUNK, differs};
use crate::error::{Error, Result};
use crate::volume::Volume;
use std::ops::Range;

/// Physical addresses of the area for direct writes, before and after a volume was grown.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RawAreaMove {
    /// Addresses in the PCM of the old volume.
    pub before: Range<u64>,
    /// Addresses in the PCM of the new volume.
    pub now: Range<u64>,
}

/// Refuses an area of `size` bytes that would cut off bytes of the old one. Zeros may be cut off,
/// since the bytes of a new area are zeros.
pub(super) fn check_size(old: &mut Volume, size: u64) -> Result<()> {
    let area = old.raw_area();
    let (mut at, len) = (size, area.end - area.start);
    while at < len {
        let bytes = read(old, at, len - at)?;
        if let Some(i) = bytes.iter().position(|&b| b != 0) {
            let why = format!(
                "the old area for physical addresses has {len} bytes, and its contents from byte {} on (physical address \
                 {}) would be lost: set raw_bytes to {len} or more, or write zeros there first",
                at + i as u64,
                area.start + at + i as u64
            );
            return Err(frit_core::Error::param("raw_bytes", size, why).into());
        }
        at += bytes.len() as u64;
    }
    Ok(())
}

/// Copies the area, and makes the copy durable.
pub(super) fn copy(old: &mut Volume, new: &mut Volume) -> Result<()> {
    let len = shared_bytes(old, new);
    let mut at = 0;
    while at < len {
        let bytes = read(old, at, len - at)?;
        new.write_raw_area(at, &bytes)?;
        at += bytes.len() as u64;
    }
    if len > 0 {
        new.flush()?;
    }
    Ok(())
}

/// Compares the areas. Returns their addresses, or `None` if both volumes have no such area.
pub(super) fn compare(old: &mut Volume, new: &mut Volume) -> Result<Option<RawAreaMove>> {
    let len = shared_bytes(old, new);
    let mut at = 0;
    while at < len {
        let bytes = read(old, at, len - at)?;
        if bytes != read(new, at, bytes.len() as u64)? {
            return Err(differs("the area for physical addresses", bytes.len(), at));
        }
        at += bytes.len() as u64;
    }
    let (before, now) = (old.raw_area(), new.raw_area());
    Ok((!before.is_empty() || !now.is_empty()).then_some(RawAreaMove { before, now }))
}

/// Returns the number of bytes that both areas have.
fn shared_bytes(old: &mut Volume, new: &mut Volume) -> u64 {
    let [old, new] = [old, new].map(Volume::raw_area).map(|area| area.end - area.start);
    old.min(new)
}

/// Reads at most one chunk of `left` bytes.
fn read(volume: &mut Volume, at: u64, left: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; left.min(CHUNK as u64) as usize];
    volume.read_raw_area(at, &mut bytes).map_err(Error::from)?;
    Ok(bytes)
}
