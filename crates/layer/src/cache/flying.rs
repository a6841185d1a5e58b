//! Blocks that the disk has acknowledged, or that leave without: they stay until the disk is flushed.

use super::config::DiskFlush;
use super::directory::PINNED;
use super::layer::Cache;
use super::policy::{Victim, WriteCache};
use crate::Token;
use crate::record::End;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Result, Sink};
use frit_media::Store;

/// The block leaves the cache when it lands.
pub(super) const LEAVES: u8 = 4;
/// The block is damaged and waits to be written anew.
pub(super) const DAMAGED: u8 = 8;

/// Blocks on their way.
#[derive(Debug)]
pub(super) struct Flying<T> {
    pub(super) blocks: Vec<Victim>,
    /// What the disk has to be done with.
    written: Option<T>,
    /// A flush is needed: something was written to the disk.
    flush: bool,
    /// Blocks of the directory that leave when they land.
    pub(super) leaving: u32,
}

impl<T> Default for Flying<T> {
    fn default() -> Flying<T> {
        Flying { blocks: Vec::new(), written: None, flush: false, leaving: 0 }
    }
}

impl<T> Flying<T> {
    pub(super) fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// A block that has reached the disk, or needs not.
    pub(super) fn add(&mut self, v: Victim) {
        self.blocks.push(v);
    }

    /// All of them, to land together.
    pub(super) fn take(&mut self) -> Vec<Victim> {
        self.flush = false;
        self.written = None;
        std::mem::take(&mut self.blocks)
    }
}

impl<T: Copy> Flying<T> {
    /// What they wait for, when the disk was given anything.
    pub(super) fn until(&self) -> Option<T> {
        self.written
    }
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// A block takes off: it stays readable, and nobody may make it leave again.
    pub(super) fn take_off(&mut self, v: Victim, leaves: bool) {
        self.pin(v.slot, leaves);
        self.flying.add(v);
    }

    /// A block may not leave before it has landed.
    pub(super) fn pin(&mut self, slot: u32, leaves: bool) {
        self.dir.set_flags(slot, if leaves { PINNED | LEAVES } else { PINNED });
        self.flying.leaving += u32::from(leaves);
    }

    /// A block that is on its way leaves when it lands.
    pub(super) fn leaves_too(&mut self, slot: u32) {
        let flags = self.dir.flags(slot);
        if flags & (LEAVES | DAMAGED) == 0 {
            self.dir.set_flags(slot, flags | LEAVES);
            self.flying.leaving += 1;
        }
    }

    /// The disk was given something that the blocks on their way wait for.
    pub(super) fn flies_until<S: Sink<Tok = T>>(&mut self, sink: &mut S, tok: T) {
        self.flying.flush = true;
        self.flying.written = Some(match self.flying.written {
            Some(w) => sink.join(w, tok),
            None => tok,
        });
    }

    /// Whether so many are on their way that their slots are wanted back.
    pub(super) fn many_fly(&self) -> bool {
        self.flying.len() > (f64::from(self.space.layout.slots) * self.config.flying) as u32
    }

    /// Flushes the disk and lets all blocks land: what leaves gives its slot back, the rest is clean.
    /// Returns when it is done.
    pub(super) fn land<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<T> {
        let mut done = match self.flying.written {
            Some(w) => w,
            None => sink.start(),
        };
        if let Some(host) = self.unflushed {
            done = sink.join(done, host);
        }
        if (self.flying.flush || self.unflushed.is_some()) && !is(Bug::DestageNotFlushed) {
            done = self.flush_disk(sink, Cause::Destage, done)?;
        }
        let blocks = self.flying.take();
        self.land_blocks(sink, blocks, done)
    }

    /// Lets blocks land that the disk has for certain after `done`.
    pub(super) fn land_blocks<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        blocks: Vec<Victim>,
        done: T,
    ) -> Result<T> {
        // Of clean blocks that leave the disk may have been flushed before.
        let done = if is(Bug::CleanLeavesEarly) { done } else { sink.join(done, self.flushed) };
        // Records of earlier versions have to be gone before those of the last ones go.
        let done = self.space.settle(sink, done);
        let mut gone = None;
        for &Victim { lbn, slot } in &blocks {
            let current = self.dir.get(lbn) == Some(slot);
            if current && self.dir.flags(slot) & LEAVES == 0 {
                self.dir.set_flags(slot, 0);
                self.dir.set_dirty(lbn, slot, false);
                continue;
            }
            if current {
                self.flying.leaving -= 1;
                self.dir.remove(lbn);
            }
            let end = if current { End::Left } else { End::Moved };
            let tok = self.space.end_record(sink, slot, end, done)?;
            gone = Some(match gone {
                Some(g) => sink.join(g, tok),
                None => tok,
            });
        }
        let Some(gone) = gone else {
            self.reuse_buffer(blocks);
            return Ok(done);
        };
        // The slots may not be written before their records are gone for certain.
        let free = self.space.settle(sink, gone);
        let mut same = false;
        for &Victim { lbn, slot } in &blocks {
            if self.dir.get(lbn) != Some(slot) {
                self.give_back(slot, free, same);
                same = true;
            }
        }
        self.reuse_buffer(blocks);
        Ok(free)
    }

    fn reuse_buffer(&mut self, mut blocks: Vec<Victim>) {
        if self.flying.blocks.capacity() == 0 {
            blocks.clear();
            self.flying.blocks = blocks;
        }
    }

    /// A slot is free after `after`.
    pub(super) fn give_back(&mut self, slot: u32, after: T, same: bool) {
        if self.space.release(slot, after, same) {
            self.dir.free(slot);
        }
    }

    /// Flushes the disk after `after`, unless it counts as written what it acknowledges.
    pub(super) fn flush_disk<S: Sink<Tok = T>>(&mut self, sink: &mut S, cause: Cause, after: T) -> Result<T> {
        if self.config.disk_flush == DiskFlush::Never {
            self.unflushed = None;
            return Ok(after);
        }
        self.stats.disk_flushes += 1;
        let done = self.disk.flush(sink, cause, after);
        if let (Err(e), true) = (&done, self.unflushed.is_some()) {
            self.direct_lost(e);
        }
        let done = self.of_disk(done)?;
        self.unflushed = None;
        self.flushed = sink.join(self.flushed, done);
        self.came_back();
        Ok(done)
    }

    /// A block that flew comes back to the policy: the disk failed.
    pub(super) fn call_back(&mut self) {
        let blocks = self.flying.take();
        for &Victim { lbn, slot } in &blocks {
            if self.dir.get(lbn) != Some(slot) {
                // Written elsewhere since: the slot goes with the next ones.
                self.flying.blocks.push(Victim { lbn, slot });
                continue;
            }
            let leaves = self.dir.flags(slot) & LEAVES != 0;
            self.dir.set_flags(slot, 0);
            if leaves {
                self.flying.leaving -= 1;
                let access = self.access(lbn, true);
                self.policy.insert(slot, &access);
            }
        }
    }
}
