//! Coming up: the records in PCM are all that is needed, and the cache is as warm as it was.

use super::BLOCK_BYTES;
use super::layer::Cache;
use super::layout::Layout;
use super::policy::{Policy, Setup, WriteCache};
use super::space::{FRAGMENT, runs};
use crate::Token;
use crate::head::{Head, Use, damaged, halted, put_state};
use crate::record::{COPIES_MAX, End, RECORD_BYTES, Record, STATE_WORD_AT, State, Verdict};
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Recovery, Result, Sink, Source, Stop, Target};
use frit_media::Store;
use std::collections::{HashMap, HashSet};

const MAGIC: &[u8; 8] = b"fritCACH";
const VERSION: u32 = 1;
/// Where the head has the slots: the word behind the version.
const SLOTS_WORD: usize = 1;

/// Records that are read together.
const CHUNK: u32 = 2048;
/// How many records ahead memory is fetched.
const AHEAD: usize = 8;

/// What the head in PCM says of the layer's use.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Usage {
    /// The head says that the layer is in use.
    noted: bool,
}

/// A record that was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    seq: u64,
    lbn: u32,
    slot: u32,
    valid: u8,
    /// It is there, or has left.
    there: bool,
    /// All copies of its record say the same.
    agreed: bool,
}

/// What the records say.
#[derive(Debug, Default)]
struct Scanned {
    found: Vec<Found>,
    /// Slots whose block is no longer there, of which a stop left a copy that does not say so.
    halves: Vec<(u32, (Record, End))>,
    /// Slots with a record that is none: with words of a later one of the same block it could be whole again, and
    /// not its data.
    remains: Vec<u32>,
}

/// What is known of blocks that left.
#[derive(Debug)]
struct Left<T> {
    /// When the disk has what it was given.
    written: Option<T>,
    /// Fragments of blocks that newer records have, or the disk has got.
    parts: HashMap<u32, u8>,
    /// Slots of blocks that the disk was given.
    taken: Vec<u32>,
    /// Blocks of which a later version has left.
    gone: HashSet<u32>,
}

impl<T> Default for Left<T> {
    fn default() -> Left<T> {
        Left { written: None, parts: HashMap::new(), taken: Vec::new(), gone: HashSet::new() }
    }
}

/// What the copies of a slot's record say, of chunks that begin with the slot `first`.
fn verdict_in(copies: &[Vec<u8>], layout: &Layout, first: u32, slot: u32) -> Verdict {
    let mut states = [State::Bad; COPIES_MAX as usize];
    for ((state, place), bytes) in states.iter_mut().zip(layout.places(slot)).zip(copies) {
        let (records, _) = bytes.as_chunks::<{ RECORD_BYTES as usize }>();
        *state = State::read(&records[(slot - first) as usize], place);
    }
    Verdict::of(&states[..copies.len()])
}

/// Whether a copy of a slot's record has a last word, of chunks that begin with the slot `first`.
fn has_remains(copies: &[Vec<u8>], first: u32, slot: u32) -> bool {
    copies.iter().any(|bytes| {
        let (records, _) = bytes.as_chunks::<{ RECORD_BYTES as usize }>();
        records[(slot - first) as usize][STATE_WORD_AT as usize..].iter().any(|&b| b != 0)
    })
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Version, slots, bytes of the disk (two words), copies of records.
    fn head(&self) -> Head {
        let layout = &self.space.layout;
        let disk = self.disk.bytes();
        Head::new(MAGIC, &[VERSION, layout.slots, disk as u32, (disk >> 32) as u32, layout.copies])
    }

    fn write_state<S: Sink<Tok = T>>(&mut self, sink: &mut S, state: Use) -> Result<()> {
        let after = sink.start();
        let tok = put_state(&mut self.space.pcm, sink, state, after)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        Ok(())
    }

    /// The first write since the layer came up is noted.
    #[inline]
    pub(super) fn begin_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.usage.noted {
            return Ok(());
        }
        self.head_new(sink)?;
        self.write_state(sink, Use::InUse)?;
        self.usage.noted = true;
        Ok(())
    }

    /// A simulation over bytes begins without being formatted: it can be halted and booted all the same.
    fn head_new<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if P::HOLDS && Head::read(&self.space.pcm)?.is_blank() { self.put_head(sink) } else { Ok(()) }
    }

    pub(super) fn write_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.config.durable()?;
        self.put_head(sink)
    }

    fn put_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let tok = self.head().put(&mut self.space.pcm, sink)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        self.write_state(sink, Use::Halted)?;
        self.space.pcm.sync(sink)
    }

    /// Everything is on its way, and the head says so.
    pub(super) fn stop<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.flying.len() > 0 || self.unflushed.is_some() {
            let direct = self.unflushed.is_some() && self.config.passes();
            let landed = self.land(sink);
            // Dirty blocks stay; what went past the cache has no other place.
            if landed.is_err() && (!self.was_disk() || direct) {
                landed?;
            }
        }
        self.outlive(sink)?;
        self.usage.noted = false;
        self.write_state(sink, Use::Halted)?;
        self.space.pcm.sync(sink)
    }

    /// Reads the head: whether the layer was halted.
    fn read_head(&self) -> Result<bool> {
        let head = Head::read(&self.space.pcm)?;
        if head == self.head() {
            return halted(&self.space.pcm);
        }
        damaged(if head.is_of(MAGIC) {
            format!(
                "it holds a cache of {} blocks, for another disk or of another size than this stack says",
                head.word(SLOTS_WORD)
            )
        } else {
            "it holds no cache, or its head is damaged: put the right file or device back, since blocks that were \
             not written back yet are nowhere else"
                .into()
        })
    }

    /// Forgets all and finds the blocks again.
    pub(super) fn find<S: Sink<Tok = T>>(&mut self, sink: &mut S, stop: Stop) -> Result<Recovery> {
        self.space.pcm.recover(sink, stop)?;
        let clean = self.read_head()?;
        self.forget()?;
        self.space.load_mark()?;
        // What a machine had not written to its files may be missing anywhere.
        let doubt = stop == Stop::Machine && self.space.volatile();
        let sure = if doubt { 0 } else { self.space.mark };
        let mut recovery = Recovery { clean, ..Recovery::default() };
        let Scanned { mut found, halves, remains } = self.scan(sink, &mut recovery)?;
        // The last version of a block first; where all of it is there, it is the one.
        found.sort_unstable_by_key(|f| std::cmp::Reverse(f.seq));
        if is(Bug::AnyVersionTaken) {
            found.reverse();
        }
        let mut left = Left::default();
        let gone = self.choose(sink, &mut found, sure, &mut left, &mut recovery)?;
        self.dir.free_rest();
        self.warm(&found);
        recovery.padded = (gone.len() + left.taken.len()) as u32;
        recovery.pages = u64::from(self.dir.len());
        recovery.pages_in_pcm = recovery.pages;
        for f in found.iter().filter(|f| f.seq > 0 && !f.agreed) {
            let Some(record) = self.space.record(f.slot)? else { continue };
            let start = sink.start();
            self.space.put_record(sink, f.slot, &record, start)?;
        }
        self.space.fence(sink);
        if self.space.volatile() {
            // What a killed program wrote is in the page cache only: earlier versions go when it is safe.
            self.space.pcm.flush(sink)?;
            self.space.synced = self.space.seq;
        }
        let after = match left.written {
            Some(written) => self.disk.flush(sink, Cause::Destage, written)?,
            None => sink.start(),
        };
        for slot in gone.into_iter().chain(remains) {
            self.space.wipe_record(sink, slot, after)?;
        }
        for (slot, (record, end)) in halves {
            self.space.close_record(sink, slot, Some((&record, end)), after)?;
        }
        for slot in left.taken {
            // The disk has it: what is older may not come back over that.
            self.space.end_record(sink, slot, End::Left, after)?;
        }
        let done = self.space.settle(sink, after);
        self.space.fence_after(sink, done);
        self.space.set_mark(sink)?;
        self.usage.noted = false;
        // Nobody knows whether the disk was flushed since it was written last.
        self.unflushed = Some(sink.start());
        if doubt {
            self.space.pcm.flush(sink)?;
        }
        Ok(recovery)
    }

    /// Takes the blocks that are there into the directory, of records with the last ones first; what is not
    /// taken has no number afterwards. Returns slots whose records count no more.
    fn choose<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        found: &mut [Found],
        sure: u64,
        left: &mut Left<T>,
        recovery: &mut Recovery,
    ) -> Result<Vec<u32>> {
        let mut gone = Vec::new();
        for i in 0..found.len() {
            self.fetch_ahead(found, i);
            let f = &mut found[i];
            if !f.there {
                left.gone.insert(f.lbn);
                f.seq = 0;
                continue;
            }
            if left.gone.contains(&f.lbn) && !is(Bug::GoneForgotten) {
                // A later version has left.
            } else if let Some(last) = self.dir.get(f.lbn) {
                if self.take_along(sink, f, last, left, recovery)? {
                    left.taken.push(f.slot);
                    f.seq = 0;
                    continue;
                }
            } else if f.lbn < self.dir.disk_blocks() && self.is_whole(f, sure, recovery)? {
                self.dir.insert(f.lbn, f.slot, f.valid, true);
                continue;
            }
            gone.push(f.slot);
            f.seq = 0;
        }
        Ok(gone)
    }

    /// Loads what records after the one that is looked at will need: each would wait for memory several times.
    #[inline]
    fn fetch_ahead(&self, found: &[Found], i: usize) {
        let inside = |f: &&Found| f.lbn < self.dir.disk_blocks();
        if let Some(f) = found.get(i + 2 * AHEAD).filter(inside) {
            self.dir.prefetch(f.lbn);
            self.dir.prefetch_slot(f.slot);
        }
        if let Some(f) = found.get(i + AHEAD).filter(inside) {
            self.dir.prefetch_chain(f.lbn);
        }
    }

    /// Policies see the blocks in the order in which they were written.
    fn warm(&mut self, found: &[Found]) {
        for (i, f) in found.iter().enumerate().rev().filter(|(_, f)| f.seq > 0) {
            if let Some(before) = i.checked_sub(AHEAD) {
                self.dir.prefetch(found[before].lbn);
            }
            self.tick();
            let access = self.access(f.lbn, true);
            self.policy.insert(f.slot, &access);
            self.dir.touch(f.lbn, self.clock);
        }
    }

    /// An earlier record of a block whose last one is in slot `last`. A block that left the cache, and of which
    /// a part was written again, may leave both after a stop: the disk need not have got the rest yet. It gets
    /// it now. (While such a record is there the disk has nothing newer: whatever would go there first makes
    /// certain that records of blocks that left are gone.) Returns whether the disk was given anything.
    fn take_along<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        f: &Found,
        last: u32,
        left: &mut Left<T>,
        recovery: &mut Recovery,
    ) -> Result<bool> {
        let newer = self.dir.valid(last) | left.parts.get(&f.lbn).copied().unwrap_or(0);
        let rest = f.valid & !newer;
        if rest == 0 || is(Bug::RestForgotten) || !self.is_whole(f, 0, recovery)? {
            return Ok(false);
        }
        left.parts.insert(f.lbn, newer | f.valid);
        let start = sink.start();
        for (first, n) in runs(rest) {
            let at = u64::from(f.lbn) * BLOCK_BYTES + u64::from(first * FRAGMENT);
            let part = Source::Bytes(&self.block).part(first * FRAGMENT, n * FRAGMENT);
            let done = self.disk.write(sink, at, part, Cause::Destage, start)?;
            left.written = Some(match left.written {
                Some(w) => sink.join(w, done),
                None => done,
            });
        }
        Ok(true)
    }

    /// Whether all of a block is there that its record describes; it is in the block buffer when it was looked
    /// at.
    fn is_whole(&mut self, f: &Found, sure: u64, recovery: &mut Recovery) -> Result<bool> {
        if f.seq <= sure || is(Bug::TornBlockTaken) {
            return Ok(true);
        }
        // What is no good is looked at again: a bit may have flipped on its way.
        for _ in 0..2 {
            recovery.bytes_read += BLOCK_BYTES;
            let record = self.space.record(f.slot)?;
            if let Some(r) = record.filter(|r| r.seq == f.seq)
                && self.space.load(f.slot, &r, &mut self.block)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads all records. Numbers go on after the highest that any of them has.
    fn scan<S: Sink<Tok = T>>(&mut self, sink: &mut S, recovery: &mut Recovery) -> Result<Scanned> {
        let layout = self.space.layout;
        let mut all = Scanned::default();
        let chunk = (CHUNK.min(layout.slots) * RECORD_BYTES as u32) as usize;
        let mut copies = vec![vec![0; chunk]; layout.copies as usize];
        let start = sink.start();
        self.space.seq = self.space.mark;
        for first in (0..layout.slots).step_by(CHUNK as usize) {
            let n = CHUNK.min(layout.slots - first);
            for (place, bytes) in layout.places(first).zip(&mut copies) {
                let part = &mut bytes[..(n * RECORD_BYTES as u32) as usize];
                recovery.bytes_read += part.len() as u64;
                let at = layout.record(place);
                self.space.pcm.read(sink, at, Target::Bytes(part), Cause::Meta, start)?;
            }
            for slot in first..first + n {
                let Verdict { block, ended, agreed } = verdict_in(&copies, &layout, first, slot);
                if let (None, Some(ended), false) = (block, ended, agreed) {
                    all.halves.push((slot, ended));
                }
                if block.is_none() && ended.is_none() && has_remains(&copies, first, slot) {
                    all.remains.push(slot);
                }
                let left = ended.filter(|(_, end)| *end == End::Left).map(|(r, _)| r);
                for r in [block, ended.map(|(r, _)| r)].into_iter().flatten() {
                    self.space.seq = self.space.seq.max(r.seq);
                }
                let both = [(block, true), (left, false)];
                for (r, there) in both.into_iter().filter_map(|(r, there)| Some((r?, there))) {
                    all.found.push(Found { seq: r.seq, lbn: r.lbn, slot, valid: r.valid, there, agreed });
                }
            }
        }
        Ok(all)
    }

    /// As when it was made.
    fn forget(&mut self) -> Result<()> {
        let slots = self.space.layout.slots;
        let disk_blocks = self.dir.disk_blocks();
        self.dir = super::directory::Directory::new(disk_blocks, slots)?;
        let setup = Setup { slots, disk_blocks, config: &self.config.policy, next_use: None };
        self.policy = Policy::new(&setup)?;
        self.space.forget_reuse();
        self.flying = super::flying::Flying::default();
        self.replaced.clear();
        self.unflushed = None;
        self.flushed = T::default();
        self.left = super::deferred::Left::default();
        self.trouble = super::trouble::Trouble::default();
        Ok(())
    }
}
