//! Counters of the whole file system, in one line of 64 bytes that transactions change.

use crate::error::{Error, Result};
use crate::format::{Geometry, crc_words, read_words, write_words};
use crate::medium::Medium;

/// How a transaction changes the counters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    /// Blocks used.
    pub(crate) blocks: i64,
    /// Inodes used.
    pub(crate) inodes: i64,
    /// The highest inode that it uses.
    pub(crate) highest: u64,
    /// Whether the file system is closed by it, or opened.
    pub(crate) closed: Option<bool>,
}

/// The counters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Ledger {
    /// Blocks of the data space that are used.
    pub(crate) blocks: u64,
    /// Inodes that are used.
    pub(crate) inodes: u64,
    /// The highest inode that was ever used: the table is not read beyond it.
    pub(crate) highest: u64,
    /// Inodes that were ever made: the next one's generation.
    pub(crate) made: u64,
    /// How often it was opened.
    pub(crate) opened: u64,
    /// Whether it was closed in order.
    pub(crate) closed: bool,
}

impl Ledger {
    /// Words of the record that changes it.
    pub(crate) const RECORD_WORDS: usize = 9;

    pub(crate) fn changed_by(&self, counts: &Counts) -> Self {
        let mut next = *self;
        next.blocks = next.blocks.saturating_add_signed(counts.blocks);
        next.inodes = next.inodes.saturating_add_signed(counts.inodes);
        next.highest = next.highest.max(counts.highest);
        next.made = next.made.wrapping_add(counts.inodes.max(0) as u64);
        if let Some(closed) = counts.closed {
            next.closed = closed;
            next.opened = next.opened.wrapping_add(u64::from(!closed));
        }
        next
    }

    pub(crate) fn encode(&self, salt: u32) -> [u64; 8] {
        let mut w =
            [self.blocks, self.inodes, self.highest, self.made, self.opened, u64::from(self.closed), 0, 0];
        w[7] = u64::from(crc_words(salt, &w[..7]));
        w
    }

    /// Reads it.
    pub(crate) fn read<M: Medium>(medium: &M, geometry: &Geometry, salt: u32) -> Result<Self> {
        let w: [u64; 8] = read_words(medium, geometry.ledger_at);
        let ledger =
            Self { blocks: w[0], inodes: w[1], highest: w[2], made: w[3], opened: w[4], closed: w[5] == 1 };
        let sound = w[7] == u64::from(crc_words(salt, &w[..7]))
            && ledger.blocks <= geometry.data_blocks
            && ledger.inodes <= ledger.highest
            && ledger.highest <= geometry.inodes;
        if sound { Ok(ledger) } else { Err(Error::Damaged { what: "the ledger", at: geometry.ledger_at }) }
    }

    /// Writes it in place: for `mkfs` and repairs.
    pub(crate) fn write<M: Medium>(&self, medium: &M, geometry: &Geometry, salt: u32) {
        write_words(medium, geometry.ledger_at, &self.encode(salt));
    }
}
