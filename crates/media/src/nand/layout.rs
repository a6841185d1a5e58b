//! Layout of a device in its store, and recovery of a device from it.
//!
//! ```text
//! 0                 pages, page_bytes each, by PPN
//! D = pages         records of the spare areas, 24 bytes each, by PPN; then their second copies, if any
//! B = D + records   block states, 16 bytes each, by block
//! H = B + states    header, 64 bytes
//! ```
//! `docs/reference/media.md` shows every byte.

use super::page::SPARE_RECORD_BYTES;
use super::{BAD, ERASE_FAILED, Nand, NandBlock, NandGeometry, ONE_BIT};
use crate::Store;
use crate::header::{self, HEADER_BYTES, HeaderBytes};
use frit_core::{BlockId, Ppn, Result};

const STATE_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"fritNAND";
const VERSION: u32 = 1;
/// Positions of the number of pages of a program, less one, and of the number of copies of a record,
/// less one, in the header.
const PROGRAM_PAGES_AT: usize = 56;
const RECORD_COPIES_AT: usize = 58;

impl NandGeometry {
    /// Size that a store must have, in bytes.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        self.header_at() + HEADER_BYTES as u64
    }

    fn state_at(&self, block: BlockId) -> u64 {
        self.bytes() + self.record_bytes() + u64::from(block.0) * STATE_BYTES as u64
    }

    fn header_at(&self) -> u64 {
        self.state_at(BlockId(self.blocks()))
    }

    /// Magic (8), version (4), nine values of the geometry (36), serial number (8), pages of a
    /// program beyond the first (2), copies of a record beyond the first (2), CRC32C (4). [`header::finish_header`] fills in the serial number and the checksum.
    fn header(&self) -> HeaderBytes {
        let mut h = [0; HEADER_BYTES];
        h[..8].copy_from_slice(MAGIC);
        let words = [
            VERSION,
            self.channels,
            self.chips_per_channel,
            self.dies_per_chip,
            self.planes_per_die,
            self.blocks_per_plane,
            self.pages_per_block,
            self.page_bytes,
            self.spare_bytes,
            // Blocks with one bit a cell lie in the upper bits, which were always 0 without them.
            self.plane_ops as u32 | u32::from(self.slc.dynamic) << 7 | self.slc.blocks << 8,
        ];
        for (i, w) in words.iter().enumerate() {
            h[8 + 4 * i..12 + 4 * i].copy_from_slice(&w.to_le_bytes());
        }
        let half = |value: u32| (value as u16).to_le_bytes();
        h[PROGRAM_PAGES_AT..RECORD_COPIES_AT].copy_from_slice(&half(self.program_pages - 1));
        h[RECORD_COPIES_AT..RECORD_COPIES_AT + 2].copy_from_slice(&half(self.record_copies - 1));
        h
    }
}

/// Largest number of erases after uses with one bit a cell that a state holds.
pub(super) const SLC_ERASES_MAX: u32 = (1 << 24) - 1;

/// Encodes the state of a block: erases (4), flags (1), erases after uses with one bit a cell (3), block
/// (4), CRC32C of these (4). All zeros: a new block.
fn state_bytes(block: BlockId, state: NandBlock, slc_erases: u32) -> [u8; STATE_BYTES] {
    let mut b = [0; STATE_BYTES];
    b[..4].copy_from_slice(&state.erases.to_le_bytes());
    b[4..8].copy_from_slice(&(u32::from(state.flags) | slc_erases << 8).to_le_bytes());
    b[8..12].copy_from_slice(&block.0.to_le_bytes());
    let crc = crate::checksum::crc32c(&b[..12]);
    b[12..].copy_from_slice(&crc.to_le_bytes());
    b
}

/// Decodes the state of a block, with its erases after uses with one bit a cell; `None` if it is damaged.
fn state_from(block: BlockId, b: &[u8]) -> Option<(NandBlock, u32)> {
    if b.iter().all(|&x| x == 0) {
        return Some((NandBlock::default(), 0));
    }
    let word = |i: usize| b.get(i..i + 4)?.try_into().ok().map(u32::from_le_bytes);
    let flags = word(4)? as u16 & (BAD | ERASE_FAILED | ONE_BIT);
    let (state, slc_erases) = (NandBlock { next: 0, flags, erases: word(0)? }, word(4)? >> 8);
    (b == state_bytes(block, state, slc_erases)).then_some((state, slc_erases))
}

impl Nand {
    /// Initializes a new device, or recovers the one in the store.
    pub(super) fn load(&mut self) -> std::result::Result<(), String> {
        if self.stores_bytes() && !self.store.is_blank() {
            let g = self.config.geometry;
            header::verify_header(
                &self.store,
                g.header_at(),
                g.header(),
                self.config.serial,
                &format!("NAND of {g}"),
            )?;
            return self.recover().map_err(|e| e.to_string());
        }
        self.format_store().map_err(|e| e.to_string())
    }

    fn format_store(&mut self) -> Result<()> {
        if self.stores_bytes() {
            let g = self.config.geometry;
            self.store.write(g.header_at(), &header::finish_header(g.header(), self.config.serial))?;
        }
        for b in 0..self.state.len() as u32 {
            if self.config.faults.is_factory_bad(b) {
                self.state[b as usize].flags |= BAD;
                self.save_state(BlockId(b))?;
            }
        }
        Ok(())
    }

    fn recover(&mut self) -> Result<()> {
        let g = self.config.geometry;
        let mut states = vec![0; self.state.len() * STATE_BYTES];
        self.store.read(g.state_at(BlockId(0)), &mut states)?;
        let mut records = vec![0; g.pages_per_block as usize * SPARE_RECORD_BYTES];
        for (b, bytes) in states.chunks_exact(STATE_BYTES).enumerate() {
            let block = BlockId(b as u32);
            // A block with a damaged state may be bad: treat it as bad, so that it is read but not
            // programmed again.
            let damaged = (NandBlock { flags: BAD, ..NandBlock::default() }, 0);
            let (state, slc_erases) = state_from(block, bytes).unwrap_or(damaged);
            if let Some(cycles) = self.slc_erases.get_mut(b) {
                *cycles = slc_erases;
            }
            let pages = self.recorded_pages(block, &mut records)?;
            // A program that was interrupted uses up its whole program unit.
            let next = pages.next_multiple_of(g.program_pages);
            self.state[b] = NandBlock { next: next as u16, ..state };
        }
        Ok(())
    }

    /// Writes the erase count and the flags of a block to the store.
    pub(super) fn save_state(&mut self, block: BlockId) -> Result<()> {
        if !self.stores_bytes() {
            return Ok(());
        }
        let at = self.config.geometry.state_at(block);
        self.store.write(at, &state_bytes(block, self.state[block.idx()], self.slc_erases(block)))
    }

    /// Returns the address of a page's data in the store.
    #[inline]
    pub(super) fn data_at(&self, ppn: Ppn) -> u64 {
        u64::from(ppn.0) * u64::from(self.config.geometry.page_bytes)
    }
}
