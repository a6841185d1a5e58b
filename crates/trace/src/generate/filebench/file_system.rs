//! The file system model: files on extents, metadata blocks, and a page cache before the disk.

use super::extents::{BlockRun, FreeSpace};
use super::layout::{BLOCK_BYTES, Layout};
use super::page_cache::PageCache;
use crate::{ReqOp, Request, SectorCut};
use frit_core::{Hints, Nanos, SECTOR_BYTES, Sector};
use std::collections::{BTreeSet, VecDeque};

/// Sectors of a block.
const BLOCK_SECTORS: u32 = (BLOCK_BYTES / SECTOR_BYTES) as u32;

/// Properties of the model that the user may set.
#[derive(Clone, Copy, Debug)]
pub(super) struct FsOptions {
    /// Page cache, in blocks.
    pub(super) cached_blocks: u32,
    /// Dirty blocks from which the oldest are written.
    pub(super) dirty_blocks: usize,
    /// Age from which dirty blocks are written, in nanoseconds.
    pub(super) age_ns: u64,
    /// Time between two commits of the journal, in nanoseconds.
    pub(super) commit_ns: u64,
    /// Largest request in blocks: of a read, and of a write.
    pub(super) read_blocks: u32,
    pub(super) write_blocks: u32,
}

/// A file: its size, and the blocks that hold it.
#[derive(Clone, Default)]
struct File {
    bytes: u64,
    extents: Vec<BlockRun>,
}

impl File {
    /// Returns the runs of the blocks from number `from` to `end` of the file.
    fn runs(&self, from: u32, end: u32) -> Vec<BlockRun> {
        let mut at = 0;
        let mut runs = Vec::new();
        for e in &self.extents {
            let (first, last) = (from.max(at), end.min(at + e.blocks));
            if first < last {
                runs.push(BlockRun { first: e.first + (first - at), blocks: last - first });
            }
            at += e.blocks;
        }
        runs
    }

    fn blocks(&self) -> u32 {
        self.bytes.div_ceil(BLOCK_BYTES) as u32
    }
}

/// Model of a journaling file system. It turns operations on files into block requests.
pub(super) struct FileSystem {
    pub(super) options: FsOptions,
    pub(super) layout: Layout,
    space: FreeSpace,
    /// Goal of the next allocation in each block group: the end of the last one.
    goals: Vec<u32>,
    pub(super) cache: PageCache,
    files: Vec<File>,
    /// Metadata blocks that changed since the last commit.
    pub(super) transaction: BTreeSet<u32>,
    /// Block of the journal that the next commit begins with, counted from its start.
    pub(super) journal_next: u32,
    pub(super) committed_at: u64,
    /// Time of the current operation, in nanoseconds.
    pub(super) now: u64,
    pub(super) out: VecDeque<Request>,
}

impl FileSystem {
    pub(super) fn new(options: FsOptions, layout: Layout, files: u32) -> FileSystem {
        FileSystem {
            cache: PageCache::new(options.cached_blocks as usize),
            space: FreeSpace::new(layout.data),
            goals: (0..layout.groups()).map(|group| layout.group_start(group)).collect(),
            files: vec![File::default(); files as usize],
            options,
            layout,
            transaction: BTreeSet::new(),
            journal_next: 0,
            committed_at: 0,
            now: 0,
            out: VecDeque::new(),
        }
    }

    /// Puts a file on the disk without requests: it was written before the workload begins.
    pub(super) fn preset(&mut self, file: u32, bytes: u64) {
        self.files[file as usize].bytes = bytes;
        let blocks = self.files[file as usize].blocks();
        self.allocate(file, blocks);
    }

    /// Forgets all requests so far, and empties the page cache.
    pub(super) fn start_cold(&mut self) {
        self.out.clear();
        self.transaction.clear();
        self.cache = PageCache::new(self.options.cached_blocks as usize);
    }

    /// Creates an empty file.
    pub(super) fn create(&mut self, file: u32) {
        self.files[file as usize].bytes = 0;
        self.change_metadata(self.layout.entry(file));
        self.change_metadata(self.layout.inode(file));
    }

    /// Looks a file up, and reads its attributes.
    pub(super) fn look_up(&mut self, file: u32) {
        self.read_blocks(BlockRun { first: self.layout.entry(file), blocks: 1 }, Hints::METADATA);
        self.read_blocks(BlockRun { first: self.layout.inode(file), blocks: 1 }, Hints::METADATA);
    }

    /// Appends to a file. Returns the bytes written: fewer than asked for if the disk is full.
    pub(super) fn append(&mut self, file: u32, bytes: u64) -> u64 {
        let f = &self.files[file as usize];
        let (size, has) = (f.bytes, f.blocks());
        if bytes == 0 {
            return 0;
        }
        if size % BLOCK_BYTES > 0 {
            // The rest of the last block is needed.
            let last = f.runs(has - 1, has);
            last.into_iter().for_each(|run| self.read_blocks(run, Hints::NONE));
        }
        let wanted = (size + bytes).div_ceil(BLOCK_BYTES) as u32;
        let got = self.allocate(file, wanted - has);
        let end = u64::from(has + got) * BLOCK_BYTES;
        let f = &mut self.files[file as usize];
        f.bytes = (size + bytes).min(end);
        let (written, changed) = (f.bytes - size, f.runs((size / BLOCK_BYTES) as u32, has + got));
        for run in changed {
            for block in run.first..run.first + run.blocks {
                self.change(block);
            }
        }
        self.change_metadata(self.layout.inode(file));
        written
    }

    /// Reads a file. Returns its size in bytes.
    pub(super) fn read(&mut self, file: u32) -> u64 {
        for run in self.files[file as usize].extents.clone() {
            self.read_blocks(run, Hints::NONE);
        }
        self.files[file as usize].bytes
    }

    /// Deletes a file. Its dirty blocks are not written.
    pub(super) fn delete(&mut self, file: u32) {
        let deleted = std::mem::take(&mut self.files[file as usize]);
        self.change_metadata(self.layout.entry(file));
        self.change_metadata(self.layout.inode(file));
        for run in deleted.extents {
            (run.first..run.first + run.blocks).for_each(|block| self.cache.remove(block));
            self.change_bitmaps(run);
            self.space.give_back(run);
        }
    }

    /// Makes a file durable: writes its dirty blocks, and commits the journal.
    pub(super) fn fsync(&mut self, file: u32) {
        for run in self.files[file as usize].extents.clone() {
            for block in run.first..run.first + run.blocks {
                if self.cache.is_dirty(block) {
                    self.write_around(block, run);
                }
            }
        }
        self.commit(true);
    }

    /// Allocates blocks to a file: after its last block, or else in the block group of its directory.
    /// Returns their number.
    fn allocate(&mut self, file: u32, blocks: u32) -> u32 {
        let group = self.layout.group(file) as usize;
        let mut got = 0;
        while got < blocks {
            let last = self.files[file as usize].extents.last();
            let goal = last.map_or(self.goals[group], |last| last.first + last.blocks);
            let Some(run) = self.space.take(goal, blocks - got) else { break };
            got += run.blocks;
            self.goals[group] = run.first + run.blocks;
            self.change_bitmaps(run);
            let extents = &mut self.files[file as usize].extents;
            match extents.last_mut() {
                Some(last) if last.first + last.blocks == run.first => last.blocks += run.blocks,
                _ => extents.push(run),
            }
        }
        got
    }

    fn change_bitmaps(&mut self, run: BlockRun) {
        let (first, last) = (self.layout.bitmap(run.first), self.layout.bitmap(run.first + run.blocks - 1));
        (first..=last).for_each(|block| self.change_metadata(block));
    }

    /// Changes a metadata block, which is read first if it is not cached.
    fn change_metadata(&mut self, block: u32) {
        self.read_blocks(BlockRun { first: block, blocks: 1 }, Hints::METADATA);
        self.cache.dirty_now(block, self.now);
        self.transaction.insert(block);
    }

    /// Changes a data block as a whole.
    fn change(&mut self, block: u32) {
        if !self.cache.touch(block) {
            self.make_room();
            self.cache.insert(block);
        }
        self.cache.dirty_now(block, self.now);
    }

    /// Reads blocks that are not cached, with requests of at most the read size.
    fn read_blocks(&mut self, run: BlockRun, hints: Hints) {
        let mut missing = BlockRun { first: run.first, blocks: 0 };
        for block in run.first..run.first + run.blocks {
            if self.cache.touch(block) {
                self.emit(ReqOp::Read, missing, hints);
                missing = BlockRun { first: block + 1, blocks: 0 };
                continue;
            }
            missing.blocks += 1;
            self.make_room();
            self.cache.insert(block);
            if missing.blocks == self.options.read_blocks {
                self.emit(ReqOp::Read, missing, hints);
                missing = BlockRun { first: block + 1, blocks: 0 };
            }
        }
        self.emit(ReqOp::Read, missing, hints);
    }

    /// Emits a request for blocks, unless there are none.
    pub(super) fn emit(&mut self, op: ReqOp, run: BlockRun, hints: Hints) {
        if run.blocks == 0 && op != ReqOp::Flush {
            return;
        }
        self.out.push_back(Request {
            at: Nanos(self.now),
            sector: Sector(u64::from(run.first) * u64::from(BLOCK_SECTORS)),
            sectors: run.blocks * BLOCK_SECTORS,
            device: 0,
            op,
            hints,
            cut: SectorCut::NONE,
        });
    }
}
