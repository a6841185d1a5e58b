//! Writes of the file system model to the disk: writeback of dirty blocks, and commits of the journal.

use super::extents::BlockRun;
use super::file_system::FileSystem;
use crate::ReqOp;
use frit_core::Hints;

impl FileSystem {
    /// Begins an operation at a time, and does the background work that is due.
    pub(super) fn begin(&mut self, now: u64) {
        self.now = now;
        if now - self.committed_at >= self.options.commit_ns {
            self.commit(false);
        }
        while let Some((since, block)) = self.cache.longest_dirty() {
            let aged = now - since >= self.options.age_ns;
            if !aged && self.cache.dirty() <= self.options.dirty_blocks {
                break;
            }
            self.write_around(block, self.layout.region(block));
        }
    }

    /// Makes space for a block in the page cache.
    pub(super) fn make_room(&mut self) {
        while self.cache.is_full() {
            let Some(oldest) = self.cache.oldest() else { return };
            if self.cache.is_dirty(oldest) {
                self.write_around(oldest, self.layout.region(oldest));
            }
            self.cache.remove(oldest);
        }
    }

    /// Writes a dirty block, and the dirty blocks around it with the same request.
    pub(super) fn write_around(&mut self, block: u32, within: BlockRun) {
        let run = self.cache.dirty_run(block, self.options.write_blocks, within);
        let metadata = run.first < self.layout.data.first;
        if metadata && self.transaction.range(run.first..run.first + run.blocks).next().is_some() {
            // A metadata block is written in place after its commit.
            self.commit(false);
        }
        self.emit(ReqOp::Write, run, if metadata { Hints::METADATA } else { Hints::NONE });
        (run.first..run.first + run.blocks).for_each(|b| self.cache.clean(b));
    }

    /// Commits the journal: a descriptor and the changed metadata blocks, a flush, a commit block,
    /// and a flush. With `sync` the flushes are done also if no metadata changed.
    pub(super) fn commit(&mut self, sync: bool) {
        self.committed_at = self.now;
        let changed = self.transaction.len() as u32;
        self.transaction.clear();
        if changed == 0 {
            if sync {
                self.emit(ReqOp::Flush, BlockRun { first: 0, blocks: 0 }, Hints::NONE);
            }
            return;
        }
        self.write_journal(1 + changed);
        self.emit(ReqOp::Flush, BlockRun { first: 0, blocks: 0 }, Hints::NONE);
        self.write_journal(1);
        self.emit(ReqOp::Flush, BlockRun { first: 0, blocks: 0 }, Hints::NONE);
    }

    /// Writes blocks at the head of the journal, which wraps around.
    fn write_journal(&mut self, mut blocks: u32) {
        let journal = self.layout.journal;
        while blocks > 0 {
            let run = BlockRun {
                first: journal.first + self.journal_next,
                blocks: blocks.min(self.options.write_blocks).min(journal.blocks - self.journal_next),
            };
            self.emit(ReqOp::Write, run, Hints::METADATA);
            self.journal_next = (self.journal_next + run.blocks) % journal.blocks;
            blocks -= run.blocks;
        }
    }
}
