//! A zone.

use super::buffer::WriteBuffer;
use super::sizes::Sizes;
use super::table::{Mark, Record};
use frit_core::{PAGE_NONE, Ppn, Tok, ZoneState};

/// Number that stands for no block.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// An erase block of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ZoneBlock {
    /// Its number; [`NO_BLOCK`] before the first program.
    pub(super) block: u32,
    /// A crash may have interrupted a program in it: it is replaced before the next program.
    pub(super) suspect: bool,
}

impl Default for ZoneBlock {
    fn default() -> ZoneBlock {
        ZoneBlock { block: NO_BLOCK, suspect: false }
    }
}

/// A zone. Numbers of pages count from its start.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) state: ZoneState,
    /// Epoch of its pages. A reset begins a new one.
    pub(super) epoch: u64,
    /// Write pointer.
    pub(super) written: u32,
    /// Pages in the blocks of the zone: whole program units.
    pub(super) programmed: u32,
    pub(super) blocks: Vec<ZoneBlock>,
    /// Places of saved pages from `programmed` on. Those of pages that are lost are `PAGE_NONE`.
    pub(super) saved: Vec<Ppn>,
    /// Write buffer, if the zone is open.
    pub(super) buffer: Option<Box<WriteBuffer>>,
    /// Token for which the next program waits: the last reset is durable.
    pub(super) ready: Tok,
    /// Token that is done when the saved pages are programmed.
    pub(super) saved_done: Tok,
    /// Time of the last write, in writes.
    pub(super) used: u64,
    /// The data was ended by a finish, with padding.
    pub(super) finished: bool,
}

impl Zone {
    pub(super) fn new(sizes: &Sizes) -> Zone {
        Zone {
            state: ZoneState::Empty,
            epoch: 0,
            written: 0,
            programmed: 0,
            blocks: vec![ZoneBlock::default(); sizes.zone_blocks as usize],
            saved: Vec::new(),
            buffer: None,
            ready: Tok::default(),
            saved_done: Tok::default(),
            used: 0,
            finished: false,
        }
    }

    /// Record of the zone as it is.
    pub(super) fn record(&self) -> Record {
        let mark = match self.state {
            ZoneState::ReadOnly => Mark::ReadOnly,
            ZoneState::Offline => Mark::Offline,
            _ if self.finished => Mark::Finished,
            _ => Mark::None,
        };
        Record { epoch: self.epoch, written: self.written, mark }
    }

    /// Place of a saved page, if it has one.
    pub(super) fn saved_at(&self, page: u32) -> Option<Ppn> {
        let place = self.saved.get(page.checked_sub(self.programmed)? as usize)?;
        (place.0 != PAGE_NONE).then_some(*place)
    }
}
