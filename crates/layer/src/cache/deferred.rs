//! Accesses to the disk that are carried out by others, without the layer's lock.
//!
//! A hit never waits for them: it is served from PCM whatever the disk does. What is under way is known by its
//! range; blocks in such a range do not leave, and what would meet a write under way has to come again.

use super::layer::Cache;
use super::policy::Victim;
use crate::Token;
use frit_core::{Buffer, Cause, Deferred, Error, Op, Result, Sink, SlowAccess, SlowMedium};
use frit_media::Store;
use std::sync::Arc;

/// What is done when accesses are settled.
#[derive(Debug)]
enum Then {
    /// Nothing more: reads.
    Read {
        /// First byte of the request.
        at: u64,
    },
    /// The disk has something that is not flushed.
    Direct,
    /// The disk has these blocks, not flushed; a copy of what the cache has, or the last there is.
    Written(Vec<Victim>),
    /// The same for a request that was written through.
    Through(Vec<Victim>),
    /// These blocks land.
    Landed(Vec<Victim>),
    /// The disk is flushed.
    Flushed,
    /// The blocks from the first to before the second are zeros on the disk, for certain.
    Zeroed(u32, u32),
}

/// Accesses under way.
#[derive(Debug)]
struct UnderWay {
    id: u64,
    /// Byte ranges on the disk, from and to.
    ranges: Vec<(u64, u64)>,
    writes: bool,
    /// It flushes what went past the cache.
    covers: bool,
    then: Then,
}

/// The accesses that are left to others.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Where they are carried out.
    medium: Option<Arc<dyn SlowMedium>>,
    /// Accesses are left to others.
    on: bool,
    /// For the request that was just made: accesses, their ranges.
    pub(super) now: Vec<SlowAccess>,
    /// The request is written through: these blocks are clean when the disk has it.
    pub(super) through: Option<Vec<Victim>>,
    /// The request discards these blocks, from the first to before the second.
    pub(super) zeroed: Option<(u32, u32)>,
    /// The flush that is begun covers what went past the cache.
    covers: bool,
    under_way: Vec<UnderWay>,
    /// Background work that nobody has taken yet.
    jobs: Vec<Deferred>,
    next: u64,
}

impl Left {
    /// Whether accesses are left to others.
    pub(super) fn on(&self) -> bool {
        self.on
    }

    /// Whether a range meets accesses under way, of which one is a write.
    fn meets(&self, from: u64, to: u64, write: bool) -> bool {
        self.under_way
            .iter()
            .filter(|u| write || u.writes)
            .any(|u| u.ranges.iter().any(|&(a, b)| a < to && from < b))
    }

    /// Whether any access is under way.
    pub(super) fn any(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether background work is under way or waits.
    pub(super) fn busy(&self) -> bool {
        self.under_way.iter().any(|u| matches!(u.then, Then::Written(_) | Then::Landed(_)))
    }

    /// Slots of blocks under way that lie elsewhere by now.
    #[cfg(test)]
    pub(super) fn orphans(&self, dir: &super::directory::Directory) -> u32 {
        let blocks = self.under_way.iter().flat_map(|u| match &u.then {
            Then::Written(b) | Then::Through(b) | Then::Landed(b) => b.as_slice(),
            _ => &[],
        });
        blocks.filter(|v| dir.get(v.lbn) != Some(v.slot)).count() as u32
    }

    /// Whether a flush of the disk is under way.
    pub(super) fn syncs(&self) -> bool {
        self.under_way.iter().any(|u| matches!(u.then, Then::Landed(_) | Then::Flushed | Then::Zeroed(..)))
    }

    fn begin(&mut self, accesses: Vec<SlowAccess>, writes: bool, then: Then) -> Option<Deferred> {
        let medium = self.medium.clone()?;
        self.next += 1;
        let ranges = accesses.iter().filter_map(range).collect();
        let covers = std::mem::take(&mut self.covers);
        self.under_way.push(UnderWay { id: self.next, ranges, writes, covers, then });
        Some(Deferred { id: self.next, accesses, medium })
    }
}

fn range(access: &SlowAccess) -> Option<(u64, u64)> {
    match access {
        SlowAccess::Read { at, into: part } | SlowAccess::Write { at, from: part } => {
            Some((*at, at + part.len() as u64))
        }
        SlowAccess::Put { at, data } => Some((*at, at + data.len() as u64)),
        SlowAccess::Zero { at, len } => Some((*at, at + len)),
        SlowAccess::Sync => None,
    }
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    pub(super) fn set_deferring(&mut self, on: bool) -> bool {
        if on && P::HOLDS && self.left.medium.is_none() {
            self.left.medium = self.disk.shared();
        }
        self.left.on = on && self.left.medium.is_some();
        self.left.on
    }

    /// A range of the disk may be accessed now.
    ///
    /// # Errors
    /// `Later` when it meets what is under way.
    pub(super) fn free_to(&self, from: u64, to: u64, write: bool) -> Result<()> {
        if self.left.meets(from, to, write) { Err(Error::Later) } else { Ok(()) }
    }

    /// Whether a block may leave, or be written to the disk: nothing of it is under way.
    pub(super) fn may_fly(&self, lbn: u32) -> bool {
        let at = u64::from(lbn) * super::BLOCK_BYTES;
        !self.left.meets(at, at + super::BLOCK_BYTES, true)
    }

    /// What the request left.
    pub(super) fn take_left(&mut self) -> Option<Deferred> {
        let accesses = std::mem::take(&mut self.left.now);
        let zeroed = self.left.zeroed.take();
        if let Some(blocks) = self.left.through.take() {
            return self.left.begin(accesses, true, Then::Through(blocks));
        }
        let (writes, then) = match (accesses.first()?, zeroed) {
            (_, Some((first, last))) => (true, Then::Zeroed(first, last)),
            (SlowAccess::Read { at, into }, _) => (false, Then::Read { at: at - into.start as u64 }),
            (SlowAccess::Sync, _) => (false, Then::Flushed),
            _ => (true, Then::Direct),
        };
        self.left.begin(accesses, writes, then)
    }

    /// Something is flushed now: until it is done, nobody may take it for flushed.
    pub(super) fn begin_flush(&mut self) {
        self.left.covers = self.unflushed.take().is_some();
    }

    /// A request did not come to its end: what it left is forgotten.
    pub(super) fn forget_left(&mut self) {
        self.left.now.clear();
        self.left.zeroed = None;
        if let Some(blocks) = self.left.through.take() {
            blocks.into_iter().for_each(|v| self.flying.add(v));
            self.call_back();
        }
    }

    /// The disk has to be given these writes, of blocks that fly when it has them.
    pub(super) fn leave_writes(&mut self, accesses: Vec<SlowAccess>, blocks: Vec<Victim>) {
        if let Some(job) = self.left.begin(accesses, true, Then::Written(blocks)) {
            self.left.jobs.push(job);
        }
    }

    /// The disk has to be flushed, and the blocks that fly land.
    pub(super) fn leave_landing(&mut self) {
        let blocks = self.flying.take();
        self.begin_flush();
        if let Some(job) = self.left.begin(vec![SlowAccess::Sync], false, Then::Landed(blocks)) {
            self.left.jobs.push(job);
        }
    }

    /// Background work: what waits, or what should be done now.
    pub(super) fn next_job<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<Option<Deferred>> {
        if let Some(job) = self.left.jobs.pop() {
            return Ok(Some(job));
        }
        if self.left.busy() || !self.left.on() {
            return Ok(None);
        }
        self.keep_room(sink)?;
        Ok(self.left.jobs.pop())
    }

    /// What was left was carried out.
    pub(super) fn settle_left<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        id: u64,
        outcome: Result<()>,
        buffer: &Buffer<'_>,
    ) -> Result<()> {
        let Some(i) = self.left.under_way.iter().position(|u| u.id == id) else { return outcome };
        let done = self.left.under_way.swap_remove(i);
        let start = sink.start();
        if let Err(e) = outcome {
            if done.covers {
                self.direct_lost(&e);
            }
            return self.failed(sink, done.then, e);
        }
        match done.then {
            Then::Read { at } => match buffer {
                Buffer::In(read) if self.config.read_caching => {
                    self.keep_ranges(sink, at, read, &done.ranges);
                    Ok(())
                }
                _ => Ok(()),
            },
            Then::Direct => {
                self.not_flushed(sink, start);
                Ok(())
            }
            Then::Written(blocks) | Then::Through(blocks) => {
                blocks.into_iter().for_each(|v| self.flying.add(v));
                self.flies_until(sink, start);
                self.came_back();
                Ok(())
            }
            Then::Landed(blocks) => {
                self.stats.disk_flushes += 1;
                self.land_blocks(sink, blocks, start).map(|_| ())
            }
            Then::Flushed => self.outlive(sink),
            Then::Zeroed(first, last) => self.forget_blocks(sink, first, last, start),
        }
    }

    /// The disk failed: blocks that were on their way are as before.
    fn failed<S: Sink<Tok = T>>(&mut self, sink: &mut S, then: Then, e: Error) -> Result<()> {
        let start = sink.start();
        match then {
            Then::Read { .. } => Err(self.read_failed(&e)),
            Then::Written(blocks) | Then::Through(blocks) | Then::Landed(blocks) => {
                blocks.into_iter().for_each(|v| self.flying.add(v));
                self.not_flushed(sink, start);
                // The disk says so to whoever asks next; nobody waits for this.
                drop(self.of_disk::<()>(Err(e)));
                self.was_disk();
                Ok(())
            }
            Then::Direct | Then::Flushed | Then::Zeroed(..) => {
                self.not_flushed(sink, start);
                let failed = self.of_disk(Err(e));
                self.was_disk();
                failed
            }
        }
    }

    /// A flush is left to others when there is something to flush.
    pub(super) fn leave_flush<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let start = sink.start();
        self.begin_flush();
        self.disk.note(sink, Op::DiskFlush, 0, 0, Cause::Host, start)?;
        self.left.now.push(SlowAccess::Sync);
        Ok(())
    }
}
