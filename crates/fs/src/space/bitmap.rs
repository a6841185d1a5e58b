//! Which blocks are free. Nothing here is written: transactions change the bitmap, and what is handed out here and
//! never committed is free again at the next start.
//!
//! Lines of the bitmap are read when they are needed first and kept: 32 KB of DRAM for each GB that was touched.

pub(crate) mod line;
mod search;

use crate::error::{Error, Result};
use crate::format::{Geometry, LINE_BLOCKS};
use crate::journal::Run;
use crate::medium::Medium;
use crate::sync::Mutex;
use crate::types::Ino;
use hashbrown::HashMap;
use line::Bits;

/// The free blocks of a line that was not read yet.
const UNREAD: u16 = u16::MAX;

/// The allocator of data blocks.
#[derive(Debug)]
pub(crate) struct Space {
    geometry: Geometry,
    salt: u32,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    lines: Vec<Option<Box<Bits>>>,
    /// Free blocks in each line, or [`UNREAD`].
    free_in: Vec<u16>,
    /// Where the last search ended, a line.
    cursor: u64,
    /// All that is free and not handed out.
    free: u64,
    /// Kept for the next writes at the end of a file, so that files which grow side by side stay in one piece.
    ahead: HashMap<Ino, Run>,
    /// Blocks in `ahead`.
    ahead_blocks: u64,
    /// Lines that do not match their check; nothing is taken from them.
    damaged: u64,
}

impl Space {
    /// All lines unread.
    pub(crate) fn new(geometry: Geometry, salt: u32, used: u64) -> Self {
        let lines = geometry.lines as usize;
        let inner = Inner {
            lines: (0..lines).map(|_| None).collect(),
            free_in: vec![UNREAD; lines],
            cursor: 0,
            free: geometry.data_blocks.saturating_sub(used),
            ahead: HashMap::new(),
            ahead_blocks: 0,
            damaged: 0,
        };
        Self { geometry, salt, inner: Mutex::new(inner) }
    }

    /// Free blocks, with those that are kept ahead of files.
    pub(crate) fn free(&self) -> u64 {
        let inner = self.inner.lock();
        inner.free + inner.ahead_blocks
    }

    /// Hands out `want` blocks or fewer, at `goal` if that is free, else anywhere.
    ///
    /// # Errors
    /// None is free.
    pub(crate) fn reserve<M: Medium>(&self, medium: &M, goal: Option<u64>, want: u64) -> Result<Run> {
        let mut inner = self.inner.lock();
        if let Some(run) = inner.find(self, medium, goal, want.max(1)) {
            return Ok(run);
        }
        inner.forget_ahead(self);
        inner.find(self, medium, goal, want.max(1)).ok_or(Error::NoSpace)
    }

    /// As [`Space::reserve`] for the end of a file that will likely grow by `more` blocks soon: these are kept for it
    /// as long as nobody needs them.
    pub(crate) fn reserve_ahead<M: Medium>(
        &self,
        medium: &M,
        ino: Ino,
        goal: Option<u64>,
        want: u64,
        more: u64,
    ) -> Result<Run> {
        let mut inner = self.inner.lock();
        if let Some(kept) = inner.ahead.remove(&ino) {
            inner.ahead_blocks -= kept.len;
            if goal == Some(kept.start) {
                return Ok(inner.keep_rest(ino, kept, want));
            }
            inner.put_back(self, kept);
        }
        if let Some(run) = inner.find(self, medium, goal, want + more) {
            return Ok(inner.keep_rest(ino, run, want));
        }
        drop(inner);
        self.reserve(medium, goal, want)
    }

    /// Hands out a run of exactly this length, wherever it is.
    ///
    /// # Errors
    /// No such run is free, also when nothing is kept ahead of files any more.
    pub(crate) fn reserve_whole<M: Medium>(&self, medium: &M, want: u64) -> Result<Run> {
        let run = self.reserve(medium, None, want)?;
        if run.len == want {
            return Ok(run);
        }
        self.release(run);
        let mut inner = self.inner.lock();
        if let Some(run) = inner.find_whole(self, medium, want) {
            return Ok(run);
        }
        inner.forget_ahead(self);
        inner.find_whole(self, medium, want).ok_or(Error::NoSpace)
    }

    /// Takes blocks back: handed out and not used, or given up by a durable transaction.
    pub(crate) fn release(&self, run: Run) {
        self.inner.lock().put_back(self, run);
    }

    /// Reads the lines of blocks that a transaction is about to give up: read later, the bits would be clear
    /// before the blocks are taken back.
    pub(crate) fn expect<M: Medium>(&self, medium: &M, run: Run) {
        let mut inner = self.inner.lock();
        for (line, ..) in line::parts(&self.geometry, run) {
            inner.load(self, medium, line);
        }
    }

    /// A file will not grow for now.
    pub(crate) fn forget_ahead(&self, ino: Ino) {
        let mut inner = self.inner.lock();
        if let Some(kept) = inner.ahead.remove(&ino) {
            inner.ahead_blocks -= kept.len;
            inner.put_back(self, kept);
        }
    }
}

impl Inner {
    /// The first `want` blocks of a run; the rest is kept for the file.
    fn keep_rest(&mut self, ino: Ino, run: Run, want: u64) -> Run {
        let len = run.len.min(want);
        if run.len > len {
            self.ahead.insert(ino, Run { start: run.start + len, len: run.len - len });
            self.ahead_blocks += run.len - len;
        }
        Run { start: run.start, len }
    }

    fn forget_ahead(&mut self, space: &Space) {
        let kept: Vec<_> = self.ahead.drain().map(|(_, run)| run).collect();
        self.ahead_blocks = 0;
        for run in kept {
            self.put_back(space, run);
        }
    }

    fn put_back(&mut self, space: &Space, run: Run) {
        for (line, from, to) in line::parts(&space.geometry, run) {
            // A damaged line has no bits, and nothing is taken from it.
            if let Some(bits) = self.lines[line as usize].as_mut() {
                // Of blocks that a damaged file shares with another one some may be free already.
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

    /// The free blocks of a line, read if it was not.
    fn load<M: Medium>(&mut self, space: &Space, medium: &M, line: u64) -> u16 {
        let i = line as usize;
        if self.free_in[i] != UNREAD {
            return self.free_in[i];
        }
        let Some(mut bits) = line::read(medium, &space.geometry, space.salt, line) else {
            self.damaged += 1;
            self.free_in[i] = 0;
            return 0;
        };
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
