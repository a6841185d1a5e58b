//! The map of virtual blocks, and the queue of migrations.

use super::VIRTUAL;
use crate::flash::{ForwardMap, MovedPage};
use frit_core::convert::{low_u16, low_u32, to_u64, to_usize};
use frit_core::{Error, Lpn, Migration, PhysicalAddress, Ppn, Result, Sink, Tok};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

/// Entry of a checkpoint for a virtual block that is lost. No address has version 0.
pub(super) const LOST: PhysicalAddress = PhysicalAddress { page: u32::MAX, version: 0 };

/// Address of a version in NAND.
pub(super) fn address_of(ppn: Ppn, seq: u64) -> PhysicalAddress {
    PhysicalAddress { page: ppn.0, version: low_u32(seq) }
}

/// Low bits of the version of an address, as spare areas are compared.
pub(super) fn tag_of(at: PhysicalAddress) -> u16 {
    low_u16(u64::from(at.version))
}

/// Address that a word of the map stands for; `None` for a block without contents or with lost ones.
fn address(word: u64) -> Option<PhysicalAddress> {
    let at = PhysicalAddress::from_word(word);
    (at.version != 0).then_some(at)
}

/// Returns `true` if a word of the map stands for an address at a page.
fn is_at(word: u64, page: Ppn) -> bool {
    address(word).is_some_and(|at| at.page == page.0)
}

/// Place of a block with migrations that its owner has not acknowledged.
#[derive(Clone, Copy, Debug)]
struct MovedBlock {
    page: u32,
    /// Number of these migrations.
    pending: u32,
}

/// What garbage collection changes: the map of virtual blocks and of pages of metadata behind them, and
/// the queue of migrations of nameless blocks.
#[derive(Debug)]
pub(super) struct DeviceMaps {
    /// Addresses as words, 0 for none.
    table: Vec<u64>,
    /// Addresses of the versions of virtual blocks and of parts of the map that the last checkpoint names,
    /// which stay valid until the next one is durable. Empty without atomic flushes.
    saved: Vec<u64>,
    virtual_blocks: u32,
    /// Parts of the map, whose numbers follow those of the virtual blocks.
    map_parts: u32,
    /// Virtual blocks whose contents are lost, with the reason.
    lost: BTreeMap<u32, String>,
    migrations: VecDeque<Migration>,
    /// Places of the blocks in this queue, by owner and version.
    present: HashMap<(u32, u32), MovedBlock>,
    /// Token that is done when all virtual blocks and pages of metadata so far are programmed.
    pub(super) written: Tok,
    /// Blocks that were moved.
    pub(super) moved: u64,
    /// Nameless blocks that are valid.
    pub(super) stored: u32,
}

impl DeviceMaps {
    pub(super) fn new(virtual_blocks: u32, map_parts: u32, numbers: u32, atomic_flush: bool) -> DeviceMaps {
        DeviceMaps {
            table: vec![0; to_usize(numbers)],
            saved: vec![0; if atomic_flush { to_usize(virtual_blocks + map_parts) } else { 0 }],
            map_parts,
            virtual_blocks,
            lost: BTreeMap::new(),
            migrations: VecDeque::new(),
            present: HashMap::new(),
            written: Tok::default(),
            moved: 0,
            stored: 0,
        }
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self) {
        self.table.fill(0);
        self.saved.fill(0);
        self.lost.clear();
        self.migrations.clear();
        self.present.clear();
        self.written = Tok::default();
        self.stored = 0;
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
        Some(self.table[to_usize(number)]).and_then(address)
    }

    /// Changes an address. A new version ends the loss of a block.
    pub(super) fn set(&mut self, number: u32, at: PhysicalAddress) {
        self.table[to_usize(number)] = at.to_word();
        self.lost.remove(&number);
    }

    /// Notes that a virtual block is lost.
    pub(super) fn note_lost(&mut self, number: u32, why: String) {
        self.table[to_usize(number)] = LOST.to_word();
        self.lost.insert(number, why);
    }

    /// Reason for which a virtual block is lost.
    pub(super) fn why_lost(&self, number: u32) -> Option<&str> {
        self.lost.get(&number).map(String::as_str)
    }

    /// Number of the first page of checkpoints.
    pub(super) fn first_of_checkpoints(&self) -> u32 {
        self.virtual_blocks + self.map_parts
    }

    /// Virtual blocks that are lost, with the reasons.
    pub(super) fn losses(&self) -> impl Iterator<Item = (u32, &str)> {
        self.lost.range(..self.virtual_blocks).map(|(&number, why)| (number, why.as_str()))
    }

    /// Number of virtual blocks with contents.
    pub(super) fn mapped(&self) -> usize {
        self.table[..to_usize(self.virtual_blocks)].iter().filter(|&&word| address(word).is_some()).count()
    }

    /// Forgets the address of a virtual block, which reads as zeros then.
    pub(super) fn clear(&mut self, number: u32) {
        self.table[to_usize(number)] = 0;
        self.lost.remove(&number);
    }

    /// Returns `true` if the last checkpoint names the version of a virtual block at a page.
    pub(super) fn is_saved_at(&self, number: u32, at: PhysicalAddress) -> bool {
        self.saved.get(to_usize(number)) == Some(&at.to_word())
    }

    /// Entry of a virtual block or of a part of the map in saved metadata.
    pub(super) fn entry(&self, number: u32) -> PhysicalAddress {
        PhysicalAddress::from_word(self.table[to_usize(number)])
    }

    /// Returns `true` if the entries of some virtual blocks differ from those of the last checkpoint.
    pub(super) fn differs(&self, blocks: Range<u32>) -> bool {
        let blocks = to_usize(blocks.start)..to_usize(blocks.end);
        self.saved[blocks.clone()] != self.table[blocks]
    }

    /// Returns `true` if garbage collection has found an unreadable part of the map.
    pub(super) fn lost_part(&self) -> bool {
        self.lost.range(self.virtual_blocks..).next().is_some()
    }

    /// Notes that no part of the map names the virtual blocks that are lost, so that the next flush writes
    /// their parts.
    pub(super) fn forget_saved_losses(&mut self) {
        for &number in self.lost.keys() {
            if let Some(saved) = self.saved.get_mut(to_usize(number)) {
                *saved = 0;
            }
        }
    }

    /// Notes that a checkpoint names the present versions of all virtual blocks. `replaced` is called with
    /// each version that only the one before has named.
    pub(super) fn mark_saved(&mut self, mut replaced: impl FnMut(PhysicalAddress)) {
        for (saved, &present) in self.saved.iter_mut().zip(&self.table) {
            if *saved != present {
                address(*saved).into_iter().for_each(&mut replaced);
                *saved = present;
            }
        }
    }

    /// Present address of a block with pending migrations.
    pub(super) fn moved_to(&self, owner: u32, version: u32) -> Option<PhysicalAddress> {
        self.present.get(&(owner, version)).map(|moved| PhysicalAddress { page: moved.page, version })
    }

    /// Migrations that were not acknowledged, the oldest first.
    pub(super) fn migrations(&self) -> &VecDeque<Migration> {
        &self.migrations
    }

    /// Removes the oldest migration.
    pub(super) fn acknowledge_oldest(&mut self) {
        let Some(Migration { owner, to: Some(to), .. }) = self.migrations.pop_front() else { return };
        let key = (owner, to.version);
        if let Some(moved) = self.present.get_mut(&key) {
            moved.pending -= 1;
            if moved.pending == 0 {
                self.present.remove(&key);
            }
        }
    }

    /// Notes the migration of a nameless block.
    fn note_migration(&mut self, owner: u32, from: u32, to: PhysicalAddress) {
        self.migrations.push_back(Migration { owner, from, to: Some(to) });
        let moved =
            self.present.entry((owner, to.version)).or_insert(MovedBlock { page: to.page, pending: 0 });
        moved.page = to.page;
        moved.pending += 1;
    }

    /// Changes the address of a virtual block that was moved: the present version, the one of the last
    /// checkpoint, or both if they are the same.
    fn move_virtual(&mut self, number: u32, from: Ppn, at: PhysicalAddress) {
        let moved = |word: &mut u64| {
            if is_at(*word, from) {
                *word = at.to_word();
            }
        };
        moved(&mut self.table[to_usize(number)]);
        self.saved.get_mut(to_usize(number)).map(moved);
    }

    /// Returns `true` if the present version of a number is not the one that the last checkpoint names,
    /// and both are valid.
    fn has_two_versions(&self, number: u32) -> bool {
        self.saved
            .get(to_usize(number))
            .is_some_and(|&saved| saved != 0 && saved != self.table[to_usize(number)])
    }

    /// Number of valid pages that the map refers to.
    #[cfg(test)]
    pub(super) fn valid_pages(&self) -> u64 {
        let kept = (0..self.first_of_checkpoints()).filter(|&number| self.has_two_versions(number)).count();
        to_u64(self.table.iter().filter(|&&word| address(word).is_some()).count() + kept)
    }

    /// Bytes of the address map of virtual blocks, and of migrations that were not acknowledged.
    pub(super) fn dram_bytes(&self) -> u64 {
        let migrations = self.migrations.len() * size_of::<Migration>();
        // An entry of the index has its key, its value and a control byte.
        let present = self.present.capacity() * (size_of::<((u32, u32), MovedBlock)>() + 1);
        to_u64(self.table.len() + self.saved.len()) * 8 + to_u64(migrations + present)
    }
}

impl ForwardMap for DeviceMaps {
    fn moved(&mut self, _: &mut Sink, page: MovedPage) -> Result<Tok> {
        let at = address_of(page.to, page.seq);
        self.moved += 1;
        match page.lpn.0.checked_sub(VIRTUAL) {
            Some(number) => self.move_virtual(number, page.from, at),
            None => self.note_migration(page.lpn.0, page.from.0, at),
        }
        // The copy has the owner and the version in its spare area, so it needs no other record.
        Ok(page.done)
    }

    fn tag(&self, lpn: Lpn) -> u16 {
        lpn.0.checked_sub(VIRTUAL).and_then(|n| self.get(n)).map_or(0, tag_of)
    }

    fn knows_version(&self, lpn: Lpn) -> bool {
        lpn.0.checked_sub(VIRTUAL).is_some_and(|number| !self.has_two_versions(number))
    }

    fn lost(&mut self, lpn: Lpn, why: &Error) {
        if let Some(number) = lpn.0.checked_sub(VIRTUAL) {
            self.note_lost(number, why.to_string());
        }
    }

    fn lost_at(&mut self, lpn: Lpn, from: Ppn, why: &Error) {
        let Some(number) = lpn.0.checked_sub(VIRTUAL) else {
            self.stored -= 1;
            self.migrations.push_back(Migration { owner: lpn.0, from: from.0, to: None });
            return;
        };
        if let Some(saved) = self.saved.get_mut(to_usize(number)).filter(|saved| is_at(**saved, from)) {
            // Its record stays where it is, so a recovery finds the loss.
            *saved = 0;
        }
        if is_at(self.table[to_usize(number)], from) {
            self.lost(lpn, why);
        }
    }

    // The order of metadata is part of what it states: a copy is not durable before.
    fn copy_after(&self, lpn: Lpn) -> Tok {
        if lpn.0 >= VIRTUAL { self.written } else { Tok::default() }
    }

    fn retires_lost(&self) -> bool {
        true
    }

    fn keeps_versions(&self) -> bool {
        true
    }

    fn make_durable(&mut self, _: &mut Sink) -> Result<()> {
        Ok(())
    }
}
