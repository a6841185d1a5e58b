//! Positions of the two copies of a table.

use super::sector::PAYLOAD_BYTES;
use frit_core::{Error, Result, SECTOR_BYTES, size};

/// Number of copies of a table.
pub(crate) const COPIES: u32 = 2;

/// Kind of a table: the layer that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TableKind {
    /// Name of the layer, for messages.
    pub(crate) layer: &'static str,
    /// First bytes of a superblock.
    pub(crate) magic: [u8; 8],
    /// Number of the kind in each sector.
    pub(crate) number: u32,
    /// Size of an entry: a divisor of the bytes of entries in a sector.
    pub(crate) entry_bytes: usize,
}

impl TableKind {
    /// Returns the number of entries in a sector.
    pub(crate) const fn entries_per_sector(&self) -> usize {
        PAYLOAD_BYTES / self.entry_bytes
    }
}

/// Sizes of a layer with a table, as its superblock keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VolumeShape {
    /// Capacity that the layer offers, in bytes.
    pub(crate) size: u64,
    /// Bytes that an entry stands for.
    pub(crate) chunk: u64,
    /// Capacity of the device, in bytes.
    pub(crate) device_bytes: u64,
    /// First byte of data on the device.
    pub(crate) data_at: u64,
}

impl VolumeShape {
    /// Returns the part of a request from byte `at` on that lies in one chunk: the chunk, the first
    /// byte within it, and the length, at most `most`.
    #[inline]
    pub(crate) fn part(&self, at: u64, most: u64) -> (u32, usize, u32) {
        let within = at % self.chunk;
        ((at / self.chunk) as u32, within as usize, (self.chunk - within).min(most) as u32)
    }
}

/// Returns a function that writes the entries of a table sector. `encode` writes one entry.
pub(crate) fn fill_from<'a, E>(
    kind: &TableKind,
    entries: &'a [E],
    encode: impl Fn(&E, &mut [u8]) + 'a,
) -> impl Fn(u32, &mut [u8]) + 'a {
    let (per, bytes) = (kind.entries_per_sector(), kind.entry_bytes);
    move |i, payload: &mut [u8]| {
        let sector = entries.get(i as usize * per..).unwrap_or(&[]);
        payload.chunks_exact_mut(bytes).zip(sector).for_each(|(into, entry)| encode(entry, into));
    }
}

/// Checks the chunk and the size that the parameters of a layer give.
///
/// # Errors
/// A chunk that is no power of two, or a size that is no multiple of it.
pub(crate) fn check_chunks(chunk: u64, size: u64) -> Result<()> {
    if !chunk.is_power_of_two() {
        return Err(Error::param("chunk", size::format(chunk), "has to be a power of two"));
    }
    if !size.is_multiple_of(chunk) {
        let why = format!("has to be a multiple of a chunk of {}", size::format(chunk));
        return Err(Error::param("size", size, why));
    }
    Ok(())
}

/// Positions of the superblocks and of the sectors of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TableLayout {
    /// Number of sectors of a copy, without its superblock.
    pub(crate) sectors: u32,
}

impl TableLayout {
    /// Returns the layout of a table of this many entries.
    ///
    /// # Errors
    /// More entries than a table can have.
    pub(crate) fn new(kind: &TableKind, entries: u64) -> Result<TableLayout> {
        let sectors = entries.div_ceil(kind.entries_per_sector() as u64);
        match u32::try_from(sectors) {
            Ok(sectors) if sectors < u32::MAX => Ok(TableLayout { sectors }),
            _ => Err(Error::param("size", entries, "has too many chunks; use larger chunks")),
        }
    }

    /// Returns the address of a superblock.
    pub(crate) fn superblock_at(self, copy: u32) -> u64 {
        u64::from(copy) * (u64::from(self.sectors) + 1) * SECTOR_BYTES
    }

    /// Returns the address of a sector.
    pub(crate) fn sector_at(self, copy: u32, index: u32) -> u64 {
        self.superblock_at(copy) + (u64::from(index) + 1) * SECTOR_BYTES
    }

    /// Returns the size of both copies, in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.superblock_at(COPIES)
    }
}
