//! NAND flash. A page is programmed once and in order; a block is erased as a whole and wears out.
//!
//! Rules of the device (a violation is an [`Error::Rule`](frit_core::Error::Rule), and is not
//! counted as a command):
//!
//! - A page is programmed once per erase, and the pages of a block in order.
//! - Only programmed pages can be read.
//! - A block that is marked bad cannot be programmed or erased; a block whose last erase failed
//!   cannot be programmed.
//! - A copyback stays within its unit.

mod array;
mod cells;
mod faults;
mod geometry;
mod layout;
mod ops;
mod page;
mod preset;
mod program_unit;
mod records;

pub use array::NandArray;
pub use cells::{CellKind, NandCells, NandSuspend, PageOrder, PageTimes, SuspendOps, SuspendTimes};
pub use faults::NandFaults;
pub use geometry::{NandGeometry, PlaneOps, SlcArea};
pub use ops::Transfer;
pub use page::{ExpectedPage, PageState, SPARE_RECORD_BYTES, Spare};

use crate::{AnyStore, Device, Hardware, NandTiming, Store, TimingModel};
use frit_core::visible::{MediumView, OneBitWear, Wear};
use frit_core::{BlockId, Counts, MediumKind, Result, UnitId};

/// Configuration of a NAND device.
#[derive(Clone, Debug)]
pub struct NandConfig {
    /// Name of the device in the stack.
    pub name: String,
    /// Geometry of the device.
    pub geometry: NandGeometry,
    /// Timing of its commands.
    pub timing: NandTiming,
    /// Latencies by type of page, and rules of suspension, if the device has them.
    pub cells: Option<NandCells>,
    /// Blocks that are used with one bit a cell, if the device has this mode.
    pub slc: Option<SlcMode>,
    /// Specified endurance of a block in erases. Beyond it erases fail; see [`NandFaults`].
    pub endurance: u32,
    /// Injected faults.
    pub faults: NandFaults,
    /// Serial number, kept in the store: the store of another device is refused. 0 if the device
    /// has none.
    pub serial: u64,
}

/// Properties of a block that is used with one bit a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlcMode {
    /// Latencies of its pages.
    pub times: PageTimes,
    /// Specified endurance, in erases after such a use.
    pub endurance: u32,
}

impl NandConfig {
    /// Returns the timing model of the device.
    #[must_use]
    pub fn timing_model(&self) -> TimingModel {
        let uses = self.geometry.slc.blocks > 0 || self.geometry.slc.dynamic;
        let slc = self.slc.filter(|_| uses).map(|slc| slc.times);
        if self.cells.is_none() && slc.is_none() {
            return TimingModel::Nand(self.timing);
        }
        let cells = self.cells.clone().unwrap_or_default().on(&self.geometry, slc);
        TimingModel::NandCells(Box::new((self.timing, cells)))
    }
}

/// Flag: the block is marked bad (a factory bad block or a grown one).
const BAD: u16 = 1;
/// Flag: the last erase failed. The block must be erased again or retired.
const ERASE_FAILED: u16 = 2;
/// Flag: the last erase put the block into the mode with one bit a cell.
const ONE_BIT: u16 = 4;

/// State of a block: 8 bytes, so that a cache line holds eight blocks.
#[derive(Clone, Copy, Default, Debug)]
struct NandBlock {
    /// Number of programmed pages, from the first page on.
    next: u16,
    flags: u16,
    erases: u32,
}

/// A NAND device that keeps its bytes in a store.
#[derive(Debug)]
pub struct Nand {
    config: NandConfig,
    pages: u32,
    blocks_per_unit: u32,
    first_unit: UnitId,
    state: Vec<NandBlock>,
    /// Erases of each block after a use with one bit a cell; empty if the device does not use this mode.
    slc_erases: Vec<u32>,
    counts: Counts,
    injects: bool,
    /// `true` if the store refused a block state. The next sync writes all block states.
    states_dirty: bool,
    store: AnyStore,
    /// Buffer of one page, for partial reads and for copybacks. Empty if the store holds no bytes.
    page: Vec<u8>,
}

impl Nand {
    /// Returns `true` if the store keeps the bytes that are written.
    #[inline]
    #[must_use]
    pub fn stores_bytes(&self) -> bool {
        self.store.stores_bytes()
    }

    /// Opens a device on `store` and registers its units with `hw`. On a blank store the device is
    /// new; otherwise the wear, the bad blocks and the pages are recovered from the store.
    ///
    /// # Errors
    /// An impossible geometry, a store that is too small, contains another device or is damaged, or
    /// more units than a stack can have.
    pub fn new(
        config: NandConfig,
        store: impl Into<AnyStore>,
        hw: &mut Hardware,
    ) -> std::result::Result<Self, String> {
        Self::on(config, store.into(), hw)
    }

    fn on(config: NandConfig, store: AnyStore, hw: &mut Hardware) -> std::result::Result<Self, String> {
        let g = config.geometry;
        g.check().map_err(|e| e.to_string())?;
        config.faults.check().map_err(|e| e.to_string())?;
        if store.stores_bytes() && store.len() < g.store_bytes() {
            return Err(format!(
                "the store of NAND '{}' has {} bytes and needs {}: {} of pages and the rest for their spare \
                 areas and block states",
                config.name,
                store.len(),
                g.store_bytes(),
                g.bytes()
            ));
        }
        let first_unit = hw.add(Device {
            name: config.name.clone(),
            kind: MediumKind::Nand,
            model: config.timing_model(),
            unit_channel: (0..g.units()).map(|u| g.channel_of_unit(u) as u16).collect(),
            nand: Some(g.layout()),
        })?;
        let mut nand = Nand {
            pages: g.pages(),
            blocks_per_unit: g.blocks_per_unit(),
            first_unit,
            state: vec![NandBlock::default(); g.blocks() as usize],
            slc_erases: vec![0; if g.slc.blocks > 0 || g.slc.dynamic { g.blocks() as usize } else { 0 }],
            counts: Counts::default(),
            injects: config.faults.injects(),
            states_dirty: false,
            page: vec![0; if store.stores_bytes() { g.page_bytes as usize } else { 0 }],
            store,
            config,
        };
        nand.load().map_err(|e| format!("NAND '{}': {e}", nand.config.name))?;
        Ok(nand)
    }

    /// Geometry of the device.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &NandGeometry {
        &self.config.geometry
    }

    /// Configuration of the device.
    #[must_use]
    pub fn config(&self) -> &NandConfig {
        &self.config
    }

    /// Returns the stack-wide id of a unit of this device.
    #[inline]
    #[must_use]
    pub fn unit_id(&self, unit: u32) -> UnitId {
        UnitId(self.first_unit.0 + unit as u16)
    }

    /// Returns the next page that can be programmed in a block, which is also the number of
    /// programmed pages.
    #[inline]
    #[must_use]
    pub fn next_page(&self, b: BlockId) -> u32 {
        u32::from(self.state[b.idx()].next)
    }

    /// Number of erases of a block.
    #[inline]
    #[must_use]
    pub fn erases(&self, b: BlockId) -> u32 {
        self.state[b.idx()].erases
    }

    /// Number of erases of a block after it was used with one bit a cell.
    #[inline]
    #[must_use]
    pub fn slc_erases(&self, b: BlockId) -> u32 {
        self.slc_erases.get(b.idx()).copied().unwrap_or(0)
    }

    /// Returns `true` if a block is used with one bit a cell.
    #[inline]
    #[must_use]
    pub fn is_one_bit(&self, b: BlockId) -> bool {
        self.state[b.idx()].flags & ONE_BIT != 0 || self.config.geometry.is_slc(b)
    }

    /// Pages of a block, which are fewer with one bit a cell.
    #[inline]
    #[must_use]
    pub fn pages_in(&self, b: BlockId) -> u32 {
        let g = &self.config.geometry;
        if self.is_one_bit(b) { g.slc.pages } else { g.pages_per_block }
    }

    /// Returns `true` if a block is marked bad. Its pages can still be read.
    #[inline]
    #[must_use]
    pub fn is_bad(&self, b: BlockId) -> bool {
        self.state[b.idx()].flags & BAD != 0
    }

    /// Number of blocks that are marked bad.
    #[must_use]
    pub fn bad_blocks(&self) -> u32 {
        self.state.iter().filter(|b| b.flags & BAD != 0).count() as u32
    }

    /// Command counts by operation and cause.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The store that holds the bytes of the device.
    #[must_use]
    pub fn store(&self) -> &AnyStore {
        &self.store
    }

    /// Mutable access to the store that bypasses the device, to inject damage or torn writes.
    pub fn store_mut(&mut self) -> &mut AnyStore {
        &mut self.store
    }

    /// Returns the store.
    #[must_use]
    pub fn into_store(self) -> AnyStore {
        self.store
    }

    /// Makes all programmed pages durable.
    ///
    /// # Errors
    /// An error of the store.
    pub fn sync(&mut self) -> Result<()> {
        if self.states_dirty {
            for b in 0..self.state.len() as u32 {
                self.save_state(BlockId(b))?;
            }
            self.states_dirty = false;
        }
        self.store.sync()
    }

    /// Geometry, counts and wear.
    #[must_use]
    pub fn view(&self) -> MediumView {
        let g = &self.config.geometry;
        MediumView {
            layer: String::new(),
            name: self.config.name.clone(),
            kind: MediumKind::Nand,
            bytes: g.bytes(),
            channels: g.channels,
            first_unit: self.first_unit,
            units: g.units(),
            geometry: g.named(),
            counts: self.counts.clone(),
            wear: Wear {
                per: "block".into(),
                cycles: self.state.iter().map(|b| b.erases).collect(),
                limit: u64::from(self.config.endurance),
                bad: self.bad_blocks(),
                areas: Vec::new(),
                one_bit: self.one_bit_wear(),
            },
        }
    }
}

impl Nand {
    /// Wear of the uses with one bit a cell.
    fn one_bit_wear(&self) -> Option<OneBitWear> {
        let limit = u64::from(self.config.slc.filter(|_| !self.slc_erases.is_empty())?.endurance);
        Some(OneBitWear { cycles: self.slc_erases.clone(), limit })
    }
}

#[cfg(test)]
mod tests;
