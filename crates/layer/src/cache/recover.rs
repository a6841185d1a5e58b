//! Coming up: the records in PCM are all that is needed, and the cache is as warm as it was.

use super::BLOCK_BYTES;
use super::layer::Cache;
use super::layout::Layout;
use super::policy::{Policy, Setup, WriteCache};
use super::space::{FRAGMENT, runs};
use crate::Token;
use crate::record::{COPIES_MAX, End, RECORD_BYTES, Record, STATE_WORD_AT, State, Verdict};
use crate::summary::{Counted, Summary};
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Recovery, Result, Sink, Source, Stop, Target};
use frit_media::Store;
use std::collections::{HashMap, HashSet};

/// Records that are read together.
const CHUNK: u32 = 2048;
/// How many records ahead memory is fetched.
const AHEAD: usize = 8;

/// A record that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    seq: u64,
    digest: u64,
    lbn: u32,
    pub(super) slot: u32,
    valid: u8,
    /// It is there, or has left.
    there: bool,
    /// All copies of its record say the same.
    agreed: bool,
}

/// What the records say.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) found: Vec<Found>,
    /// The highest number of a record.
    pub(super) highest: u64,
    /// Slots whose block is no longer there, of which a stop left a copy that does not say so.
    halves: Vec<(u32, (Record, End))>,
    /// Slots with a record that is none: with words of a later one of the same block it could be whole again, and
    /// not its data.
    pub(super) remains: Vec<u32>,
}

impl Scanned {
    /// Summary of the blocks that are there.
    pub(super) fn summary(&self) -> Summary {
        let mut sum = Summary::default();
        for f in self.found.iter().filter(|f| f.there) {
            let record = Record { lbn: f.lbn, valid: f.valid, seq: f.seq, digest: f.digest };
            sum.add(&Counted { slot: f.slot, record, ended: false });
        }
        sum
    }
}

/// Use of an earlier version of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Earlier {
    /// The disk was given what the later version has not.
    Passed,
    /// It is damaged, and has what the later version has not.
    Damaged,
    /// It has nothing that counts.
    Needless,
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

/// Copies of records that a scan looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copies {
    /// All of them.
    All,
    /// This one: the others count as damaged.
    One(u32),
}

/// What the copies of a slot's record say, of chunks that begin with the slot `first`.
fn verdict_in(copies: &[Vec<u8>], layout: &Layout, which: Copies, (first, slot): (u32, u32)) -> Verdict {
    let mut states = [State::Bad; COPIES_MAX as usize];
    for ((state, place), bytes) in states.iter_mut().zip(layout.places(slot)).zip(copies) {
        let (records, _) = bytes.as_chunks::<{ RECORD_BYTES as usize }>();
        if which == Copies::All || which == Copies::One(place.copy) {
            *state = State::read(&records[(slot - first) as usize], place);
        }
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
    /// Forgets all and finds the blocks again.
    pub(super) fn find<S: Sink<Tok = T>>(&mut self, sink: &mut S, stop: Stop) -> Result<Recovery> {
        self.space.pcm.recover(sink, stop)?;
        let state = self.read_head()?;
        self.forget()?;
        let mut recovery = Recovery::default();
        let mut scanned = self.scan(sink, Copies::All, &mut recovery)?;
        self.space.load_marks(scanned.highest)?;
        recovery.clean = self.compare_with_halt(sink, state, &mut scanned, &mut recovery)?;
        if self.trouble.missing.is_none() {
            self.note_use(sink)?;
        }
        let doubt = !recovery.clean && stop == Stop::Machine && self.space.volatile();
        let sure = self.sure(stop, recovery.clean);
        let Scanned { mut found, halves, remains, .. } = scanned;
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
        // Nobody knows whether the disk was flushed since it was written last.
        self.unflushed = Some(sink.start());
        if self.trouble.missing.is_some() {
            // Nothing is changed: what is there may tell more than is known now.
            return Ok(recovery);
        }
        for f in found.iter().filter(|f| f.seq > 0 && !f.agreed) {
            let Some(record) = self.space.record(f.slot)? else { continue };
            self.space.put_record(sink, f.slot, &record, self.space.noted)?;
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
        // Not before the head says that the cache is in use: the summary of the halt has these records.
        let after = sink.join(after, self.space.noted);
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
            let f = &found[i];
            if !f.there {
                left.gone.insert(f.lbn);
                found[i].seq = 0;
                continue;
            }
            if left.gone.contains(&f.lbn) && !is(Bug::GoneForgotten) {
                // A later version has left.
            } else if let Some(last) = self.dir.get(f.lbn) {
                match self.take_along(sink, f, last, left, (sure, recovery))? {
                    Earlier::Passed => {
                        left.taken.push(f.slot);
                        found[i].seq = 0;
                        continue;
                    }
                    // Neither version has the whole block, and the disk may lack the rest: it stays as a damaged one.
                    Earlier::Damaged => {
                        self.dir.remove(f.lbn);
                        self.dir.insert(f.lbn, f.slot, f.valid, true);
                        gone.push(last);
                        found[..i].iter_mut().filter(|f| f.slot == last).for_each(|f| f.seq = 0);
                        continue;
                    }
                    Earlier::Needless => {}
                }
            } else if f.lbn < self.dir.disk_blocks() && self.is_whole(f, sure, recovery)? {
                self.dir.insert(f.lbn, f.slot, f.valid, true);
                continue;
            }
            gone.push(f.slot);
            found[i].seq = 0;
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
    /// certain that records of blocks that left are gone.)
    fn take_along<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        f: &Found,
        last: u32,
        left: &mut Left<T>,
        (sure, recovery): (u64, &mut Recovery),
    ) -> Result<Earlier> {
        if self.trouble.missing.is_some() {
            return Ok(Earlier::Needless);
        }
        let newer = self.dir.valid(last) | left.parts.get(&f.lbn).copied().unwrap_or(0);
        let rest = f.valid & !newer;
        if rest == 0 || is(Bug::RestForgotten) {
            return Ok(Earlier::Needless);
        }
        if !self.is_whole(f, 0, recovery)? {
            let torn = f.seq > sure;
            return Ok(if torn { Earlier::Needless } else { Earlier::Damaged });
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
        Ok(Earlier::Passed)
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

    /// Returns the number up to which blocks whose records are found are certain: damage to their data is damage, and
    /// no torn write.
    fn sure(&self, stop: Stop, clean: bool) -> u64 {
        if is(Bug::HaltIgnored) && stop == Stop::Machine && self.space.volatile() {
            0
        } else if clean {
            u64::MAX
        } else if stop == Stop::Machine && self.space.volatile() {
            // What a machine had not written to its files may be missing anywhere.
            self.space.synced_mark
        } else {
            self.space.mark.max(self.space.synced_mark)
        }
    }

    /// Reads all records.
    pub(super) fn scan<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        which: Copies,
        recovery: &mut Recovery,
    ) -> Result<Scanned> {
        let layout = self.space.layout;
        let mut all = Scanned::default();
        let chunk = (CHUNK.min(layout.slots) * RECORD_BYTES as u32) as usize;
        let mut copies = vec![vec![0; chunk]; layout.copies as usize];
        let start = sink.start();
        for first in (0..layout.slots).step_by(CHUNK as usize) {
            let n = CHUNK.min(layout.slots - first);
            for (place, bytes) in layout.places(first).zip(&mut copies) {
                let part = &mut bytes[..(n * RECORD_BYTES as u32) as usize];
                recovery.bytes_read += part.len() as u64;
                let at = layout.record(place);
                self.space.pcm.read(sink, at, Target::Bytes(part), Cause::Meta, start)?;
            }
            for slot in first..first + n {
                let Verdict { block, ended, agreed } = verdict_in(&copies, &layout, which, (first, slot));
                if let (None, Some(ended), false) = (block, ended, agreed) {
                    all.halves.push((slot, ended));
                }
                if block.is_none() && ended.is_none() && has_remains(&copies, first, slot) {
                    all.remains.push(slot);
                }
                let left = ended.filter(|(_, end)| *end == End::Left).map(|(r, _)| r);
                for r in [block, ended.map(|(r, _)| r)].into_iter().flatten() {
                    all.highest = all.highest.max(r.seq);
                }
                let both = [(block, true), (left, false)];
                for (r, there) in both.into_iter().filter_map(|(r, there)| Some((r?, there))) {
                    let (seq, digest, lbn, valid) = (r.seq, r.digest, r.lbn, r.valid);
                    all.found.push(Found { seq, digest, lbn, slot, valid, there, agreed });
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
