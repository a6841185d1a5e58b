//! Evictions, cleaning, and the blocks that are present.

use super::layer::Ssc;
use super::map::{BlockMap, Entry};
use super::records::{Change, Record};
use crate::planted::SscBug;
use frit_core::convert::to_u64;
use frit_core::planted::is_planted;
use frit_core::{BlockState, Lpn, Result, Sink, Tok};
use std::ops::Range;

impl Ssc {
    /// State of a block, if it is present.
    pub(super) fn state_of(entry: Entry) -> Option<BlockState> {
        let dirty = if entry.is_dirty() { BlockState::Dirty } else { BlockState::Clean };
        (!entry.is_empty()).then_some(dirty)
    }

    /// Blocks of a range that are present, with their states, in ascending order.
    pub(super) fn present(&self, blocks: Range<u32>) -> Vec<(u32, BlockState)> {
        let mut found = Vec::new();
        if blocks.end.saturating_sub(blocks.start) <= self.map.rows() {
            found.extend(blocks.filter_map(|b| Some((b, Self::state_of(self.map.get(b))?))));
        } else {
            self.map.each(&mut |block, entry| {
                if blocks.contains(&block)
                    && let Some(state) = Self::state_of(entry)
                {
                    found.push((block, state));
                }
            });
            found.sort_unstable_by_key(|&(block, _)| block);
        }
        found
    }

    /// Removes blocks.
    pub(super) fn evict_all(
        &mut self,
        sink: &mut Sink,
        blocks: impl Iterator<Item = u32>,
        after: Tok,
    ) -> Result<Tok> {
        self.health.writable()?;
        if self.config.is_synchronous() {
            // Before, as it can empty erase blocks, and what is removed may have to be restored.
            self.make_room_for_log(sink)?;
        }
        let mut removed: Vec<(u32, Entry)> = Vec::new();
        let before = self.seq;
        for block in blocks {
            let entry = self.map.get(block);
            self.drop_buffered(block, entry);
            self.set_entry(block, Entry::default());
            if entry.ppn().is_some() {
                removed.push((block, entry));
                if !is_planted(SscBug::EvictNotLogged) {
                    self.record(sink, Change::Evicted { block }, after);
                }
            }
        }
        self.stats.evicted += to_u64(removed.len());
        if !self.config.is_synchronous() || is_planted(SscBug::EvictNotDurable) {
            return Ok(after);
        }
        // A block that was dropped silently is gone durably once the log states so, too.
        let states = |r: &Record| matches!(r.change, Change::Evicted { .. } | Change::Emptied { .. });
        if !removed.is_empty() || self.log.pending.iter().any(states) {
            self.write_log(sink).inspect_err(|_| self.restore(&removed, before))?;
        }
        Ok(sink.join(after, self.log.written))
    }

    /// Restores the blocks whose evictions, with the numbers after `before`, could not be logged: a
    /// recovery finds these blocks.
    fn restore(&mut self, removed: &[(u32, Entry)], before: u64) {
        if is_planted(SscBug::EvictNotUndone) {
            return;
        }
        for (&(block, entry), seq) in removed.iter().zip(before + 1..) {
            if seq > self.log.through {
                self.set_entry(block, entry.unbuffered());
            }
        }
    }

    fn drop_buffered(&mut self, block: u32, entry: Entry) {
        if entry.is_buffered()
            && let Some(position) = self.buffer.find(Lpn(block))
        {
            self.buffer.remove(position);
        }
    }

    /// Removes clean blocks in memory only.
    pub(super) fn forget_all_clean(&mut self, blocks: Range<u32>) {
        for (block, state) in self.present(blocks) {
            if state == BlockState::Clean {
                let entry = self.map.get(block);
                self.drop_buffered(block, entry);
                self.set_entry(block, Entry::default());
            }
        }
    }

    /// Makes blocks clean.
    pub(super) fn clean_all(&mut self, sink: &mut Sink, blocks: Range<u32>, after: Tok) -> Result<Tok> {
        self.health.writable()?;
        for (block, state) in self.present(blocks) {
            if state == BlockState::Clean {
                continue;
            }
            let entry = self.map.get(block);
            self.stats.cleaned += 1;
            if entry.is_buffered() {
                // The older version in NAND stays dirty until the buffer is programmed.
                self.set_entry(block, entry.buffered(false));
                self.buffer.wait_for(sink, after);
            } else {
                self.set_entry(block, entry.cleaned());
                self.record(sink, Change::Cleaned { block }, after);
            }
        }
        Ok(after)
    }
}
