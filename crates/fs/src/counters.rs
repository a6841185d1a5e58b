//! Counters of the whole file system, in one line of 64 bytes that transactions update.

use crate::error::{Error, Result};
use crate::format::{Geometry, crc_words, read_words, write_words};
use crate::medium::Medium;

/// Changes of the counters by one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CounterDelta {
    /// Change of the number of used blocks.
    pub(crate) blocks: i64,
    /// Change of the number of used inodes.
    pub(crate) inodes: i64,
    /// Highest inode number that the transaction uses.
    pub(crate) highest: u64,
    /// `Some(true)` if the transaction closes the file system, `Some(false)` if it opens it.
    pub(crate) closed: Option<bool>,
}

/// Counters of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counters {
    /// Number of used blocks of the data space.
    pub(crate) blocks: u64,
    /// Number of used inodes.
    pub(crate) inodes: u64,
    /// Highest inode number ever used; the inode table is not read beyond it.
    pub(crate) highest: u64,
    /// Number of inodes ever created; the generation of the next inode.
    pub(crate) created: u64,
    /// Number of times the file system was opened.
    pub(crate) opened: u64,
    /// `true` if the file system is cleanly closed.
    pub(crate) closed: bool,
}

impl Counters {
    /// Number of words of the journal record that updates the counters.
    pub(crate) const RECORD_WORDS: usize = 9;

    pub(crate) fn changed_by(&self, counts: &CounterDelta) -> Self {
        let mut next = *self;
        // Saturating arithmetic, so that damaged counters do not overflow.
        next.blocks = next.blocks.saturating_add_signed(counts.blocks);
        next.inodes = next.inodes.saturating_add_signed(counts.inodes);
        next.highest = next.highest.max(counts.highest);
        next.created = next.created.wrapping_add(counts.inodes.max(0) as u64);
        if let Some(closed) = counts.closed {
            next.closed = closed;
            next.opened = next.opened.wrapping_add(u64::from(!closed));
        }
        next
    }

    pub(crate) fn encode(&self, salt: u32) -> [u64; 8] {
        let mut w =
            [self.blocks, self.inodes, self.highest, self.created, self.opened, u64::from(self.closed), 0, 0];
        w[7] = u64::from(crc_words(salt, &w[..7]));
        w
    }

    /// Reads the counters and verifies their checksum and limits.
    pub(crate) fn read<M: Medium>(medium: &M, geometry: &Geometry, salt: u32) -> Result<Self> {
        let w: [u64; 8] = read_words(medium, geometry.ledger_at);
        let counters = Self {
            blocks: w[0],
            inodes: w[1],
            highest: w[2],
            created: w[3],
            opened: w[4],
            closed: w[5] == 1,
        };
        let sound = w[7] == u64::from(crc_words(salt, &w[..7]))
            && counters.blocks <= geometry.data_blocks
            && counters.inodes <= counters.highest
            && counters.highest <= geometry.inodes;
        if sound { Ok(counters) } else { Err(Error::Damaged { what: "the ledger", at: geometry.ledger_at }) }
    }

    /// Writes the counters in place, for `mkfs` and repair.
    pub(crate) fn write<M: Medium>(&self, medium: &M, geometry: &Geometry, salt: u32) {
        write_words(medium, geometry.ledger_at, &self.encode(salt));
    }
}
