//! Block allocator of an image: it uses the bitmap, and prefers blocks near those that a file has.
//!
//! Lines of the bitmap are read on first use and kept: 32 KB of DRAM for each GB accessed.

use super::line::{self, Bits};
use super::{AllocRequest, Allocator};
use crate::error::{Error, Result};
use crate::format::{Geometry, LINE_BLOCKS};
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::sync::Mutex;
use crate::types::Ino;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Value of `free_in` for a line that was not read yet.
const UNREAD: u16 = u16::MAX;

/// Free blocks of an image.
#[derive(Debug)]
pub(crate) struct BitmapAllocator {
    pub(super) geometry: Geometry,
    pub(super) salt: u32,
    inner: Mutex<BitmapState>,
}

/// State of the allocator.
#[derive(Debug)]
pub(super) struct BitmapState {
    pub(super) lines: Vec<Option<Box<Bits>>>,
    /// Number of free blocks in each line, or [`UNREAD`].
    pub(super) free_in: Vec<u16>,
    /// Line in which the last search ended.
    pub(super) cursor: u64,
    /// Number of blocks that are free and not allocated.
    pub(super) free: u64,
    /// Blocks reserved for the next appends to files, so that files that grow concurrently stay
    /// contiguous.
    reservations: HashMap<Ino, BlockRun, FixedState>,
    /// Number of blocks in `reservations`.
    reserved_blocks: u64,
    /// Number of lines that do not match their checksum; no blocks are allocated from them.
    damaged: u64,
}

impl BitmapAllocator {
    /// Creates an allocator with no line read.
    pub(crate) fn new(geometry: Geometry, salt: u32, used: u64) -> Self {
        let lines = geometry.lines as usize;
        let inner = BitmapState {
            lines: (0..lines).map(|_| None).collect(),
            free_in: vec![UNREAD; lines],
            cursor: 0,
            free: geometry.data_blocks.saturating_sub(used),
            reservations: HashMap::default(),
            reserved_blocks: 0,
            damaged: 0,
        };
        Self { geometry, salt, inner: Mutex::new(inner) }
    }
}

impl<M: Medium> Allocator<M> for BitmapAllocator {
    fn free(&self) -> u64 {
        let inner = self.inner.lock();
        inner.free + inner.reserved_blocks
    }

    fn reserve(&self, medium: &M, want: AllocRequest) -> Result<BlockRun> {
        let mut inner = self.inner.lock();
        if let Some((ino, ahead)) = want.reserve_ahead
            && let Some(run) = inner.find_reserved(self, medium, want, ino, ahead)
        {
            return Ok(run);
        }
        if let Some(run) = inner.find_for_request(self, medium, want) {
            return Ok(run);
        }
        // Space is short: reservations are dropped before the request fails.
        inner.drop_reservation(self);
        inner.find_for_request(self, medium, want).ok_or(Error::NoSpace)
    }

    fn release(&self, run: BlockRun) {
        self.inner.lock().free_run(self, run);
    }

    fn prepare_release(&self, medium: &M, run: BlockRun) {
        // A line loaded after the transaction would have the bits clear already, and `release`
        // would not count the blocks as free.
        let mut inner = self.inner.lock();
        for (line, ..) in line::parts(&self.geometry, run) {
            inner.load(self, medium, line);
        }
    }

    fn drop_reservation(&self, ino: Ino) {
        let mut inner = self.inner.lock();
        if let Some(reserved) = inner.take_reservation(ino) {
            inner.free_run(self, reserved);
        }
    }
}

impl BitmapState {
    /// Searches once: at or near the goal, or for a whole run anywhere if one is required.
    fn find_for_request<M: Medium>(
        &mut self,
        space: &BitmapAllocator,
        medium: &M,
        want: AllocRequest,
    ) -> Option<BlockRun> {
        let near = self.find(space, medium, want.goal, want.blocks)?;
        if !want.contiguous || near.len == want.blocks {
            return Some(near);
        }
        self.free_run(space, near);
        self.find_contiguous(space, medium, want.blocks)
    }

    /// Allocates from the reservation of a file if the file continues there. Otherwise allocates a
    /// run and reserves its rest.
    fn find_reserved<M: Medium>(
        &mut self,
        space: &BitmapAllocator,
        medium: &M,
        want: AllocRequest,
        ino: Ino,
        ahead: u64,
    ) -> Option<BlockRun> {
        if let Some(reserved) = self.take_reservation(ino) {
            if want.goal == Some(reserved.start) {
                return Some(self.keep_rest(ino, reserved, want.blocks));
            }
            self.free_run(space, reserved);
        }
        let run = self.find(space, medium, want.goal, want.blocks + ahead)?;
        Some(self.keep_rest(ino, run, want.blocks))
    }

    fn take_reservation(&mut self, ino: Ino) -> Option<BlockRun> {
        let reserved = self.reservations.remove(&ino)?;
        self.reserved_blocks -= reserved.len;
        Some(reserved)
    }

    /// Returns the first `want` blocks of a run and reserves the rest for the file.
    fn keep_rest(&mut self, ino: Ino, run: BlockRun, want: u64) -> BlockRun {
        let len = run.len.min(want);
        if run.len > len {
            self.reservations.insert(ino, BlockRun { start: run.start + len, len: run.len - len });
            self.reserved_blocks += run.len - len;
        }
        BlockRun { start: run.start, len }
    }

    fn drop_reservation(&mut self, space: &BitmapAllocator) {
        let reserved: Vec<_> = self.reservations.drain().map(|(_, run)| run).collect();
        self.reserved_blocks = 0;
        for run in reserved {
            self.free_run(space, run);
        }
    }

    fn free_run(&mut self, space: &BitmapAllocator, run: BlockRun) {
        for (line, from, to) in line::parts(&space.geometry, run) {
            // A damaged line has no bits, and no blocks are allocated from it.
            if let Some(bits) = self.lines[line as usize].as_mut() {
                // If a damaged file shares blocks with another one, some of them may be free
                // already.
                let mut freed = 0;
                for (word, mask) in line::masks(from, to) {
                    freed += (bits[word] & mask).count_ones();
                    bits[word] &= !mask;
                }
                self.free_in[line as usize] += freed as u16;
                self.free += u64::from(freed);
            }
        }
    }

    /// Returns the number of free blocks of a line, which is read if necessary.
    pub(super) fn load<M: Medium>(&mut self, space: &BitmapAllocator, medium: &M, line: u64) -> u16 {
        let i = line as usize;
        if self.free_in[i] != UNREAD {
            return self.free_in[i];
        }
        let Some(mut bits) = line::read(medium, &space.geometry, space.salt, line) else {
            self.damaged += 1;
            self.free_in[i] = 0;
            return 0;
        };
        // Blocks of the last line beyond the data space count as used.
        let exist = line::blocks_of(&space.geometry, line);
        for (word, mask) in line::masks(exist, LINE_BLOCKS) {
            bits[word] |= mask;
        }
        let used: u32 = bits.iter().map(|word| word.count_ones()).sum();
        self.free_in[i] = (LINE_BLOCKS - u64::from(used)) as u16;
        self.lines[i] = Some(Box::new(bits));
        self.free_in[i]
    }
}
