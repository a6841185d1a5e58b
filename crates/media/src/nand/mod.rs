//! NAND flash: pages that program once, in order, in blocks that erase and wear.
//!
//! The rules (each broken one is an [`Error::Rule`](frit_core::Error::Rule), counted nowhere):
//! a page programs once per erase; the pages of a block program in order; only programmed pages are
//! read; a block marked bad, or whose last erase failed, neither programs nor (when bad) erases;
//! a copyback stays within its unit.

mod faults;
mod geometry;
mod layout;
mod ops;
mod page;
mod preset;

pub use faults::NandFaults;
pub use geometry::{NandGeometry, PlaneOps};
pub use page::{Expected, SPARE_RECORD_BYTES, Spare};

use crate::{Device, Hardware, Model, NandTiming, Store};
use frit_core::visible::{MediumView, Wear};
use frit_core::{BlockId, Counts, MediumKind, Result, UnitId};

/// All that makes a NAND device.
#[derive(Clone, Debug)]
pub struct NandConfig {
    /// Its name in the stack.
    pub name: String,
    /// Its shape.
    pub geometry: NandGeometry,
    /// What its commands cost.
    pub timing: NandTiming,
    /// Erases that a block is specified for. Beyond it erases fail, see [`NandFaults`].
    pub endurance: u32,
    /// What goes wrong.
    pub faults: NandFaults,
    /// Its serial number, kept in the store: a store that holds another device is refused. 0: none.
    pub serial: u64,
}

/// Marked bad, by the factory or grown.
const BAD: u16 = 1;
/// The last erase failed: erase again, or retire.
const ERASE_FAILED: u16 = 2;

/// What the device knows of a block: 8 bytes, one cache line for eight blocks.
#[derive(Clone, Copy, Default, Debug)]
struct Block {
    /// Pages that are programmed, from the first on.
    next: u16,
    flags: u16,
    erases: u32,
}

/// A NAND device on a store.
#[derive(Debug)]
pub struct Nand<St> {
    config: NandConfig,
    pages: u32,
    blocks_per_unit: u32,
    first_unit: UnitId,
    state: Vec<Block>,
    counts: Counts,
    injects: bool,
    /// A block state that the store did not take; all are written with the next sync.
    unsaved: bool,
    store: St,
    /// A page, for those of which only a part is asked for and for copybacks. Empty without bytes.
    page: Vec<u8>,
}

impl<St: Store> Nand<St> {
    /// A device on `store`: a new one when the store is blank, else the one that the store holds,
    /// with its wear, its bad blocks and its pages. Registers its units with `hw`.
    ///
    /// # Errors
    /// An impossible geometry, a store that is too small, holds another device or is damaged, or
    /// more units than a stack can have.
    pub fn new(config: NandConfig, store: St, hw: &mut Hardware) -> std::result::Result<Self, String> {
        let g = config.geometry;
        g.check().map_err(|e| e.to_string())?;
        config.faults.check().map_err(|e| e.to_string())?;
        if St::HOLDS && store.len() < g.store_bytes() {
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
            model: Model::Nand(config.timing),
            unit_channel: (0..g.units()).map(|u| g.channel_of_unit(u) as u16).collect(),
        })?;
        let mut nand = Nand {
            pages: g.pages(),
            blocks_per_unit: g.blocks_per_unit(),
            first_unit,
            state: vec![Block::default(); g.blocks() as usize],
            counts: Counts::default(),
            injects: config.faults.injects(),
            unsaved: false,
            store,
            page: vec![0; if St::HOLDS { g.page_bytes as usize } else { 0 }],
            config,
        };
        nand.start().map_err(|e| format!("NAND '{}': {e}", nand.config.name))?;
        Ok(nand)
    }

    /// Its shape.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &NandGeometry {
        &self.config.geometry
    }

    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &NandConfig {
        &self.config
    }

    /// The stack-wide number of one of its units.
    #[inline]
    #[must_use]
    pub fn unit_id(&self, unit: u32) -> UnitId {
        UnitId(self.first_unit.0 + unit as u16)
    }

    /// The page that a block programs next: as many as are programmed.
    #[inline]
    #[must_use]
    pub fn next_page(&self, b: BlockId) -> u32 {
        u32::from(self.state[b.idx()].next)
    }

    /// How often a block was erased.
    #[inline]
    #[must_use]
    pub fn erases(&self, b: BlockId) -> u32 {
        self.state[b.idx()].erases
    }

    /// Whether a block is marked bad. Its pages can still be read.
    #[inline]
    #[must_use]
    pub fn is_bad(&self, b: BlockId) -> bool {
        self.state[b.idx()].flags & BAD != 0
    }

    /// How many blocks are marked bad.
    #[must_use]
    pub fn bad_blocks(&self) -> u32 {
        self.state.iter().filter(|b| b.flags & BAD != 0).count() as u32
    }

    /// Commands by operation and cause.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What holds its bytes.
    #[must_use]
    pub fn store(&self) -> &St {
        &self.store
    }

    /// What holds its bytes, to be changed behind its back (damage, cuts).
    pub fn store_mut(&mut self) -> &mut St {
        &mut self.store
    }

    /// Gives the store back.
    #[must_use]
    pub fn into_store(self) -> St {
        self.store
    }

    /// Makes all that was programmed outlive the machine.
    ///
    /// # Errors
    /// A store that fails.
    pub fn sync(&mut self) -> Result<()> {
        if self.unsaved {
            for b in 0..self.state.len() as u32 {
                self.save_state(BlockId(b))?;
            }
            self.unsaved = false;
        }
        self.store.sync()
    }

    /// Geometry, counts and wear.
    #[must_use]
    pub fn view(&self) -> MediumView {
        let g = &self.config.geometry;
        MediumView {
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
            },
        }
    }
}

#[cfg(test)]
mod tests;
