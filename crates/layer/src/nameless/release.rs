//! Migrations, and blocks that are no longer needed.
//!
//! A block that was replaced is freed at once, unless the saved map refers to it. Then it waits until the
//! map is saved.

use super::layer::Nameless;
use crate::planted::NamelessBug;
use frit_core::planted::is_planted;
use frit_core::{Lpn, Migration, NamelessDevice, OwnedBlock, PhysicalAddress, Sink, Tok};

impl<D: NamelessDevice> Nameless<D> {
    /// Takes the new addresses of blocks that the device has moved.
    pub(super) fn take_migrations(&mut self) {
        while let Some(migration) = self.device.migration() {
            if !is_planted(NamelessBug::MigrationIgnored) {
                match migration.to {
                    Some(to) => self.take_migration(migration, to),
                    None => self.take_loss(migration),
                }
            }
            self.device.acknowledge(1);
        }
    }

    /// Takes the new address of a block. The page that it had is not enough to find it: within one write, the
    /// device can move a version that the write replaces, erase its block, and program the new version at the
    /// same page. Blocks that were replaced come first, because their page was erased before it was programmed
    /// again.
    pub(super) fn take_migration(&mut self, migration: Migration, to: PhysicalAddress) {
        self.stats.migrations += 1;
        let Migration { owner, from, .. } = migration;
        // A copy on NAND without bytes has a version of its own.
        let has_version = self.device.holds_bytes();
        let is_moved = |b: &OwnedBlock| {
            b.owner == owner && b.at.page == from && (!has_version || b.at.version == to.version)
        };
        let lpn = Lpn(owner);
        if let Some(block) = self.replaced.iter_mut().find(|b| is_moved(b)) {
            block.at = to;
        } else if self.waiting.get(&from).is_some_and(is_moved) {
            self.waiting.remove(&from);
            self.waiting.insert(to.page, OwnedBlock { owner, at: to });
        } else if self.block_of(lpn).as_ref().is_some_and(is_moved) {
            // The saved map refers to the old address. A recovery finds the block by its version.
            self.map.set_moved(lpn, to);
            if is_planted(NamelessBug::MovedCountsAsNew) {
                self.map.note_unsaved(lpn);
            }
        }
    }

    fn take_loss(&mut self, migration: Migration) {
        let lpn = Lpn(migration.owner);
        if self.map.get(lpn).is_some_and(|at| at.page == migration.from) {
            let why = format!("NAND page {} was unreadable when it was to be moved", migration.from);
            self.map.note_lost(lpn, why);
        }
        self.waiting.remove(&migration.from);
        self.replaced.retain(|b| b.at.page != migration.from);
    }

    /// Frees the blocks that were just replaced. The saved map does not refer to them.
    pub(super) fn release_replaced(&mut self, sink: &mut Sink) {
        while let Some(block) = self.replaced.pop() {
            self.device.free(sink, block, Tok::default());
        }
    }

    /// Frees the blocks to which the saved map no longer refers once `saved` is done.
    pub(super) fn release_waiting(&mut self, sink: &mut Sink, saved: Tok) {
        let saved = if is_planted(NamelessBug::FreedEarly) { sink.start() } else { saved };
        // In the order of their pages, so that runs are reproducible.
        let mut blocks: Vec<_> = self.waiting.drain().map(|(_, block)| block).collect();
        blocks.sort_unstable_by_key(|b| b.at.page);
        for block in blocks {
            self.device.free(sink, block, saved);
        }
    }
}
