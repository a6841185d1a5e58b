//! Coming up: the records in PCM are all that is needed, and the cache is as warm as it was.

use super::BLOCK_BYTES;
use super::layer::Cache;
use super::layout::STATE_AT;
use super::policy::{Policy, Setup, WriteCache};
use super::record::{RECORD_BYTES, Record};
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Error, MediumKind, Recovery, Result, Sink, Source, Stop, Target};
use frit_media::Store;
use frit_media::checksum::crc32c;

const MAGIC: &[u8; 8] = b"fritCACH";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 64;

/// Not in use: the last user halted in order.
const HALTED: u64 = 1;
/// In use, or stopped while it was.
const IN_USE: u64 = 2;

/// Records that are read together.
const CHUNK: u32 = 2048;

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
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Magic (8), version (4), slots (4), bytes of the disk (8), zeros (36), CRC32C (4).
    fn head(&self) -> [u8; HEAD_BYTES] {
        let mut h = [0; HEAD_BYTES];
        h[..8].copy_from_slice(MAGIC);
        h[8..12].copy_from_slice(&VERSION.to_le_bytes());
        h[12..16].copy_from_slice(&self.space.layout.slots.to_le_bytes());
        h[16..24].copy_from_slice(&self.disk.bytes().to_le_bytes());
        let crc = crc32c(&h[..HEAD_BYTES - 4]);
        h[HEAD_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        h
    }

    fn write_state<S: Sink<Tok = T>>(&mut self, sink: &mut S, state: u64) -> Result<()> {
        let after = sink.start();
        let word = state.to_le_bytes();
        let source = if P::HOLDS { Source::Bytes(&word) } else { Source::Len(8) };
        let tok = self.space.pcm.write(sink, STATE_AT, source, Cause::Meta, after)?;
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
        self.usage.noted = true;
        self.write_state(sink, IN_USE)
    }

    /// A simulation over bytes begins without being formatted: it can be halted and booted all the same.
    fn head_new<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let mut head = [0; HEAD_BYTES];
        if P::HOLDS {
            self.space.pcm.peek(0, &mut head)?;
        }
        if P::HOLDS && head == [0; HEAD_BYTES] { self.put_head(sink) } else { Ok(()) }
    }

    pub(super) fn write_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.config.durable()?;
        self.put_head(sink)
    }

    fn put_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let after = self.space.pcm.format(sink)?;
        let head = self.head();
        let source = if P::HOLDS { Source::Bytes(&head) } else { Source::Len(HEAD_BYTES as u32) };
        let tok = self.space.pcm.write(sink, 0, source, Cause::Meta, after)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        self.write_state(sink, HALTED)?;
        self.space.pcm.sync(sink)
    }

    /// Everything is on its way, and the head says so.
    pub(super) fn stop<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.flying.len() > 0 || self.unflushed.is_some() {
            let landed = self.land(sink);
            if landed.is_err() && !self.was_disk() {
                landed?;
            }
        }
        if self.space.volatile() {
            self.sync_slots(sink)?;
        }
        self.usage.noted = false;
        self.write_state(sink, HALTED)?;
        self.space.pcm.sync(sink)
    }

    /// Reads the head: whether the layer was halted.
    fn read_head(&self) -> Result<bool> {
        let corrupt = |what: String| Err(Error::Corrupt { medium: MediumKind::Pcm, at: 0, what });
        let mut head = [0; HEAD_BYTES];
        self.space.pcm.peek(0, &mut head)?;
        if head != self.head() {
            let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            return corrupt(match word(HEAD_BYTES - 4) == crc32c(&head[..HEAD_BYTES - 4]) {
                true if head[..8] == *MAGIC => format!(
                    "it holds a cache of {} blocks, for another disk or of another size than this stack says",
                    word(12)
                ),
                _ => "it holds no cache, or its head is damaged".into(),
            });
        }
        let mut state = [0; 8];
        self.space.pcm.peek(STATE_AT, &mut state)?;
        match u64::from_le_bytes(state) {
            HALTED => Ok(true),
            IN_USE => Ok(false),
            other => corrupt(format!("its state is {other:#x}, which is none")),
        }
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
        let mut found = self.scan(sink, &mut recovery)?;
        // The last version of a block first; where all of it is there, it is the one.
        found.sort_unstable_by_key(|f| std::cmp::Reverse(f.seq));
        if is(Bug::AnyVersionTaken) {
            found.reverse();
        }
        self.space.seq = found.iter().map(|f| f.seq).max().unwrap_or(0).max(self.space.mark);
        let mut gone = Vec::new();
        for f in &mut found {
            let known = self.dir.get(f.lbn).is_some();
            if known || f.lbn >= self.dir.disk_blocks() || !self.is_whole(f, sure, &mut recovery)? {
                gone.push(f.slot);
                f.seq = 0;
                continue;
            }
            self.dir.insert(f.lbn, f.slot, f.valid, true);
        }
        self.dir.free_rest();
        // Policies see them in the order in which they were written.
        for f in found.iter().rev().filter(|f| f.seq > 0) {
            self.tick();
            let access = self.access(f.lbn, true);
            self.policy.insert(f.slot, &access);
            self.dir.touch(f.lbn, self.clock);
        }
        recovery.padded = gone.len() as u32;
        recovery.pages = u64::from(self.dir.len());
        recovery.pages_in_pcm = recovery.pages;
        let start = sink.start();
        for slot in gone {
            self.space.erase_record(sink, slot, start)?;
        }
        let done = self.space.settle(sink, start);
        self.space.fence_after(sink, done);
        self.space.set_mark(sink)?;
        self.usage.noted = false;
        if doubt {
            self.space.pcm.flush(sink)?;
        }
        Ok(recovery)
    }

    /// Whether all of a block is there that its record describes.
    fn is_whole(&mut self, f: &Found, sure: u64, recovery: &mut Recovery) -> Result<bool> {
        if f.seq <= sure || is(Bug::TornBlockTaken) {
            return Ok(true);
        }
        recovery.bytes_read += BLOCK_BYTES;
        match self.space.record(f.slot)? {
            Some(record) => self.space.load(f.slot, &record, &mut self.block),
            None => Ok(false),
        }
    }

    fn scan<S: Sink<Tok = T>>(&mut self, sink: &mut S, recovery: &mut Recovery) -> Result<Vec<Found>> {
        let slots = self.space.layout.slots;
        let mut found = Vec::new();
        let mut chunk = vec![0; (CHUNK.min(slots) * RECORD_BYTES as u32) as usize];
        let start = sink.start();
        let mut first = 0;
        while first < slots {
            let n = CHUNK.min(slots - first);
            let bytes = &mut chunk[..(n * RECORD_BYTES as u32) as usize];
            let at = self.space.layout.record(first);
            self.space.pcm.read(sink, at, Target::Bytes(bytes), Cause::Meta, start)?;
            recovery.bytes_read += bytes.len() as u64;
            let (records, _) = bytes.as_chunks::<{ RECORD_BYTES as usize }>();
            for (slot, bytes) in (first..).zip(records) {
                if let Some(r) = Record::read(bytes) {
                    found.push(Found { seq: r.seq, lbn: r.lbn, slot, valid: r.valid });
                }
            }
            first += n;
        }
        Ok(found)
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
        self.left = super::deferred::Left::default();
        self.trouble = super::trouble::Trouble::default();
        Ok(())
    }
}
