//! The map of virtual blocks, and the queue of migrations.

use super::VIRTUAL;
use crate::Token;
use crate::flash::{ForwardMap, MovedPage};
use frit_core::convert::{low_u16, low_u32, to_u64, to_usize};
use frit_core::{Error, Lpn, Migration, PhysicalAddress, Ppn, Result, Sink};
use std::collections::{BTreeMap, VecDeque};

/// Address of a version in NAND.
pub(super) fn address_of(ppn: Ppn, seq: u64) -> PhysicalAddress {
    PhysicalAddress { page: ppn.0, version: low_u32(seq) }
}

/// Low bits of the version of an address, as spare areas are compared.
pub(super) fn tag_of(at: PhysicalAddress) -> u16 {
    low_u16(u64::from(at.version))
}

/// What garbage collection changes: the map of virtual blocks and of pages of metadata behind them, and
/// the queue of migrations of nameless blocks.
#[derive(Debug)]
pub(super) struct DeviceMaps<T> {
    /// Addresses as words, 0 for none.
    table: Vec<u64>,
    virtual_blocks: u32,
    /// Virtual blocks whose contents are lost, with the reason.
    lost: BTreeMap<u32, String>,
    pub(super) migrations: VecDeque<Migration>,
    /// Token that is done when all virtual blocks and pages of metadata so far are programmed.
    pub(super) written: T,
    /// Blocks that were moved.
    pub(super) moved: u64,
}

impl<T: Token> DeviceMaps<T> {
    pub(super) fn new(virtual_blocks: u32, numbers: u32) -> DeviceMaps<T> {
        DeviceMaps {
            table: vec![0; to_usize(numbers)],
            virtual_blocks,
            lost: BTreeMap::new(),
            migrations: VecDeque::new(),
            written: T::default(),
            moved: 0,
        }
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self) {
        self.table.fill(0);
        self.lost.clear();
        self.migrations.clear();
        self.written = T::default();
    }

    /// Number of virtual blocks.
    pub(super) fn virtual_blocks(&self) -> u32 {
        self.virtual_blocks
    }

    /// Number of virtual blocks and of pages of metadata.
    pub(super) fn numbers(&self) -> u32 {
        frit_core::convert::count_u32(self.table.len())
    }

    /// Address of a virtual block or of a page of metadata.
    pub(super) fn get(&self, number: u32) -> Option<PhysicalAddress> {
        Some(self.table[to_usize(number)]).filter(|&w| w != 0).map(PhysicalAddress::from_word)
    }

    /// Changes an address. A new version ends the loss of a block.
    pub(super) fn set(&mut self, number: u32, at: PhysicalAddress) {
        self.table[to_usize(number)] = at.to_word();
        self.lost.remove(&number);
    }

    /// Notes that a virtual block is lost.
    pub(super) fn note_lost(&mut self, number: u32, why: String) {
        self.table[to_usize(number)] = 0;
        self.lost.insert(number, why);
    }

    /// Reason for which a virtual block is lost.
    pub(super) fn why_lost(&self, number: u32) -> Option<&str> {
        self.lost.get(&number).map(String::as_str)
    }

    /// DRAM of the map, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        to_u64(self.table.len()) * 8
    }
}

impl<T: Token> ForwardMap<T> for DeviceMaps<T> {
    fn moved<S: Sink<Tok = T>>(&mut self, _: &mut S, page: MovedPage<T>) -> Result<T> {
        let at = address_of(page.to, page.seq);
        self.moved += 1;
        match page.lpn.0.checked_sub(VIRTUAL) {
            Some(number) => self.table[to_usize(number)] = at.to_word(),
            None => {
                let (owner, from) = (page.lpn.0, page.from.0);
                self.migrations.push_back(Migration { owner, from, to: Some(at) });
            }
        }
        // The copy has the owner and the version in its spare area, so it needs no other record.
        Ok(page.done)
    }

    fn tag(&self, lpn: Lpn) -> u16 {
        lpn.0.checked_sub(VIRTUAL).and_then(|n| self.get(n)).map_or(0, tag_of)
    }

    fn knows_version(&self, lpn: Lpn) -> bool {
        lpn.0 >= VIRTUAL
    }

    fn lost(&mut self, lpn: Lpn, why: &Error) {
        if let Some(number) = lpn.0.checked_sub(VIRTUAL) {
            self.note_lost(number, why.to_string());
        }
    }

    fn lost_at(&mut self, lpn: Lpn, from: Ppn, why: &Error) {
        if lpn.0 >= VIRTUAL {
            return self.lost(lpn, why);
        }
        self.migrations.push_back(Migration { owner: lpn.0, from: from.0, to: None });
    }

    // The order of metadata is part of what it states: a copy is not durable before.
    fn copy_after(&self, lpn: Lpn) -> T {
        if lpn.0 >= VIRTUAL { self.written } else { T::default() }
    }

    fn retires_lost(&self) -> bool {
        true
    }

    fn keeps_versions(&self) -> bool {
        true
    }

    fn make_durable<S: Sink<Tok = T>>(&mut self, _: &mut S) -> Result<()> {
        Ok(())
    }
}
