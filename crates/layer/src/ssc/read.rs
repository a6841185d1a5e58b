//! Reads.

use super::layer::Ssc;
use super::map::BlockMap;
use super::records::Change;
use crate::planted::SscBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{CacheRead, Cause, Error, Lpn, ReadTarget, Result, Sink, Tok};

impl Ssc {
    /// Reads part of a block, if no damage makes the whole map uncertain. A clean block that is damaged is dropped, and is a miss.
    pub(super) fn read_block(
        &mut self,
        sink: &mut Sink,
        block: u32,
        offset: u32,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<CacheRead> {
        // Without a part of the log, every entry can be outdated, and every miss be a block that is
        // present.
        self.health.check_not_missing(|| (0, format!("block {block} may have a newer version")))?;
        let entry = self.map.get(block);
        if entry.is_buffered()
            && let Some(position) = self.buffer.find(Lpn(block))
            && !is_planted(SscBug::BufferIgnored)
        {
            let from = to_usize(offset);
            if let (Some(into), Some(page)) = (into.bytes(), self.buffer.bytes(position)) {
                into.copy_from_slice(&page[from..from + into.len()]);
            }
            self.stats.hits += 1;
            return Ok(CacheRead::Hit(after));
        }
        let Some(ppn) = entry.ppn() else {
            self.stats.misses += 1;
            return Ok(CacheRead::Miss);
        };
        let expect = self.expected(block, entry);
        match self.nand.read_expected(sink, ppn, offset, into, expect, cause, after) {
            Ok(read) => {
                self.stats.hits += 1;
                Ok(CacheRead::Hit(read))
            }
            Err(Error::Corrupt { .. }) if !entry.is_dirty_in_nand() => {
                self.stats.damaged_clean += 1;
                self.stats.misses += 1;
                self.set_entry(block, entry.dropped());
                self.record(sink, Change::Evicted { block }, after);
                Ok(CacheRead::Miss)
            }
            Err(e) => Err(e),
        }
    }
}
