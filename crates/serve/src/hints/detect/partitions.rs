//! Partition tables: MBR (primary partitions) and GPT, with sectors of 512 bytes.

use super::bytes::{byte, le16, le32, le64};
use std::ops::Range;

/// Size of the start of a volume that holds a GPT of the usual 128 entries.
pub(super) const TABLE_BYTES: u64 = 34 * SECTOR;

const SECTOR: u64 = 512;
/// Maximum number of partitions of a GPT that are used: the usual size of its table.
const GPT_ENTRIES_MAX: u32 = 128;
/// Type of the MBR partition that protects a GPT.
const PROTECTIVE: u8 = 0xee;

/// Returns the partitions of a table, in bytes; `None` if there is no table. Partitions that do not
/// fit into the volume, or that overlap an earlier one, are left out.
pub(super) fn parse(start: &[u8], bytes: u64) -> Option<Vec<Range<u64>>> {
    if le16(start, 510) != 0xaa55 {
        return None;
    }
    let mbr = (0..4).map(|i| 446 + 16 * i);
    let found: Vec<Range<u64>> = if mbr.clone().any(|e| byte(start, e + 4) == PROTECTIVE) {
        gpt(start)?
    } else {
        let range = |e| sectors(le32(start, e + 8).into(), le32(start, e + 12).into());
        mbr.filter(|&e| byte(start, e + 4) != 0).filter_map(range).collect()
    };
    let mut used: Vec<Range<u64>> = Vec::new();
    for range in found {
        let overlaps = used.iter().any(|u| range.start < u.end && u.start < range.end);
        if range.start > 0 && range.start < range.end && range.end <= bytes && !overlaps {
            used.push(range);
        }
    }
    Some(used)
}

fn gpt(start: &[u8]) -> Option<Vec<Range<u64>>> {
    let header = start.get(512..1024)?;
    if !header.starts_with(b"EFI PART") {
        return None;
    }
    let (table, count, size) = (le64(header, 72), le32(header, 80), le32(header, 84));
    // Only the usual table right behind its header is read.
    if table != 2 || !(128..=4096).contains(&size) {
        return None;
    }
    let entries = start.get(1024..)?.chunks_exact(size as usize);
    let used = entries.take(count.min(GPT_ENTRIES_MAX) as usize).filter(|e| e[..16] != [0; 16]);
    Some(
        used.filter_map(|e| sectors(le64(e, 32), le64(e, 40).checked_sub(le64(e, 32))?.checked_add(1)?))
            .collect(),
    )
}

fn sectors(first: u64, count: u64) -> Option<Range<u64>> {
    let start = first.checked_mul(SECTOR)?;
    Some(start..start.checked_add(count.checked_mul(SECTOR)?)?)
}
