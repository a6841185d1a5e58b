//! Repair of a directory block with damaged names.

use super::record::{DirRecord, SLOT, SLOTS};
use crate::format::{BLOCK, write_words};
use crate::medium::Medium;
use crate::types::Ino;

/// Clears the slots of a block without a valid name, and reports the position of each run of such
/// slots. If preceding blocks were lost, the block moves within the directory: `pages` are its old
/// and its new page number.
pub(crate) fn salvage<M: Medium>(
    medium: &M,
    (salt, dir): (u32, Ino),
    block: u64,
    pages: (u64, u64),
    mut damaged: impl FnMut(u64),
) {
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
            if let Some(kind) = record.kind().filter(|_| record.sound(salt, dir, number(pages.0))) {
                if pages.0 != pages.1 {
                    let moved = DirRecord::new(salt, dir, number(pages.1), record.name(), record.ino(), kind);
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
