//! Repair of a directory block with damaged names.

use super::record::{DirRecord, SLOT, SLOTS};
use crate::format::{BLOCK, write_words};
use crate::medium::Medium;
use crate::types::Ino;

/// A block of a directory that is repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SalvagedBlock {
    /// The directory.
    pub(crate) dir: Ino,
    /// The block on the medium.
    pub(crate) block: u64,
    /// Page of the directory that the block was.
    pub(crate) old_page: u64,
    /// Page of the directory that the block becomes.
    pub(crate) new_page: u64,
}

/// Clears the slots of a block without a valid name, and reports the position of each run of such
/// slots. If preceding blocks were lost, the block moves within the directory.
pub(crate) fn salvage<M: Medium>(medium: &M, salt: u32, block: SalvagedBlock, mut damaged: impl FnMut(u64)) {
    let SalvagedBlock { dir, block, old_page, new_page } = block;
    let (mut slot, mut in_run) = (0, false);
    while slot < SLOTS {
        let at = block * BLOCK + u64::from(slot) * SLOT;
        let mut record = DirRecord::blank();
        medium.read(at, record.first());
        let slots = record.slots();
        if record.is_free() {
            (slot, in_run) = (slot + 1, false);
            continue;
        }
        if slot + slots <= SLOTS {
            medium.read(at + SLOT, record.others());
            // The checksum of a record includes its slot number, so a moved record is written
            // again.
            let number = |page: u64| page as u32 * SLOTS + slot;
            if let Some(kind) = record.kind().filter(|_| record.sound(salt, dir, number(old_page))) {
                if old_page != new_page {
                    let moved =
                        DirRecord::new(salt, dir, number(new_page), record.name(), record.ino(), kind);
                    write_words(medium, at, moved.words());
                }
                (slot, in_run) = (slot + slots, false);
                continue;
            }
        }
        if !in_run {
            damaged(at);
        }
        write_words(medium, at, &[0]);
        (slot, in_run) = (slot + 1, true);
    }
}
