//! Repair of the extents of one inode.

use super::RepairRound;
use crate::dir;
use crate::extents::{Extent, LineReader, Salvage};
use crate::format::BLOCK;
use crate::inode::Inode;
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::names::target;
use crate::planted::DamageBug;
use crate::types::{Ino, InodeType, TARGET_MAX};
use frit_core::planted::is_planted;
use std::collections::BTreeMap;

/// Valid extents with their slots, by their first block in the file.
type KeptExtents = BTreeMap<u64, (u32, Extent)>;

impl<M: Medium> RepairRound<'_, M> {
    /// Removes invalid extents. Returns the number of blocks that remain, or `None` if the inode is
    /// lost.
    pub(super) fn repair_extents(&mut self, ino: Ino, inode: &mut Inode) -> Option<u64> {
        let symlink = inode.kind == InodeType::Symlink;
        if symlink && !(1..=TARGET_MAX as u64).contains(&inode.size) {
            return None;
        }
        if !inode.has_extents() {
            return Some(0);
        }
        let (medium, geometry, place) = (self.medium, self.geometry, self.place(ino));
        let reader = LineReader { medium, geometry: &geometry, salt: self.salt, ino };
        let (log, blocks) = (&mut *self.log, &mut self.blocks);
        let mut extent_blocks = Vec::new();
        let taken = |run: BlockRun| {
            let free = blocks.claim(&geometry, run);
            extent_blocks.extend(free.then_some(run));
            !free
        };
        let add_message = |what: String| log.add_message(format_args!("{place}: {what}"));
        let mut salvage = Salvage::read(&reader, inode, taken, add_message);
        let mut kept_extents = KeptExtents::new();
        for (at, extent) in salvage.extents(inode) {
            if let Some(why) = self.reject_reason(inode.kind, &kept_extents, extent) {
                let (from, to) = (extent.at * BLOCK, extent.end() * BLOCK);
                self.log.add_message(format_args!(
                    "{place} has lost bytes from {from} to {to}, blocks from {} on: {why}",
                    extent.start
                ));
                salvage.put(inode, at, None);
            } else {
                kept_extents.insert(extent.at, (at, extent));
            }
        }
        let sound =
            |(_, extent): &(u32, Extent)| target::read(medium, self.salt, ino, inode, extent.start).is_ok();
        // A link without its whole target is lost: its blocks are released, and the caller frees
        // it.
        if symlink && (kept_extents.len() != 1 || !kept_extents.get(&0).is_some_and(sound)) {
            let runs = kept_extents.values().map(|(_, extent)| extent.run()).chain(extent_blocks);
            runs.for_each(|run| self.blocks.release(&geometry, run));
            return None;
        }
        if inode.kind == InodeType::Directory {
            self.repair_directory(ino, inode, &mut salvage, &kept_extents);
        }
        let count =
            salvage.extent_blocks() + kept_extents.values().map(|(_, extent)| extent.len).sum::<u64>();
        salvage.write();
        Some(count)
    }

    /// Returns the reason why an extent is invalid; claims its blocks if it is valid.
    fn reject_reason(
        &mut self,
        kind: InodeType,
        kept_extents: &KeptExtents,
        extent: Extent,
    ) -> Option<&'static str> {
        let before = kept_extents.range(..extent.end()).next_back();
        let directory = kind == InodeType::Directory;
        if !extent.fits(&self.geometry, kind) {
            Some("they lie outside the data space, or beyond the maximum file size")
        } else if before.is_some_and(|(_, (_, before))| before.end() > extent.at) {
            Some("another extent covers the same bytes")
        } else if directory && (!extent.written || extent.end() > dir::BLOCKS_MAX) {
            Some("a directory cannot have them")
        } else if !self.blocks.claim(&self.geometry, extent.run()) {
            Some("they belong to another inode, or twice to this one")
        } else {
            None
        }
    }

    /// Clears slots without valid names, and closes gaps left by lost blocks.
    fn repair_directory(
        &mut self,
        ino: Ino,
        inode: &mut Inode,
        salvage: &mut Salvage<'_, M>,
        kept_extents: &KeptExtents,
    ) {
        let place = self.place(ino);
        let mut page = 0;
        for (at, extent) in kept_extents.values() {
            for i in 0..extent.len {
                let block = dir::SalvagedBlock {
                    dir: ino,
                    block: extent.start + i,
                    old_page: extent.at + i,
                    new_page: page + i,
                };
                let log = &mut *self.log;
                dir::salvage(self.medium, self.salt, block, |at| {
                    if !is_planted(DamageBug::RepairUntold) {
                        log.add_message(format_args!(
                            "{place}: a name at byte {at:#x} did not match its checksum: it was removed"
                        ));
                    }
                });
            }
            if extent.at != page {
                salvage.put(inode, *at, Some(Extent { at: page, ..*extent }));
            }
            page += extent.len;
        }
        if inode.size != page * BLOCK {
            self.log.add_message(format_args!(
                "{place}: the size of the directory was {} bytes: it was set to {}",
                inode.size,
                page * BLOCK
            ));
            inode.size = page * BLOCK;
        }
    }
}
