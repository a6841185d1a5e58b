//! The header of the PCM: identity of the cache, its state, and the clean shutdown.

use super::layer::Cache;
use super::space::digest_of;
use crate::Token;
use crate::header::{Header, UsageState, damaged, put_state, state};
use crate::planted::CacheBug;
use crate::record::Record;
use crate::summary::{Summary, SummaryEntry};
use frit_core::planted::is;
use frit_core::{Result, Sink};
use frit_media::Store;

const MAGIC: &[u8; 8] = b"fritCACH";
const VERSION: u32 = 1;
/// Index of the header word that holds the number of slots, which follows the version.
const SLOTS_WORD: usize = 1;

/// The usage state of the layer that the header in PCM contains.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct HeaderNote {
    /// `true` if the header states that the layer is in use.
    noted: bool,
    /// `true` from a halt to the next use: the header vouches for the media as they are.
    pub(super) halted: bool,
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Returns the header: version, slots, bytes of the disk (two words), copies of records.
    fn head(&self) -> Header {
        let layout = &self.space.layout;
        let disk = self.disk.bytes();
        Header::new(MAGIC, &[VERSION, layout.slots, disk as u32, (disk >> 32) as u32, layout.copies])
    }

    /// Writes the state after `after`, and returns the completion after which it is durable. The
    /// state "halted" is written after all data that it vouches for, the summary included.
    fn write_state<S: Sink<Tok = T>>(&mut self, sink: &mut S, state: UsageState, after: T) -> Result<T> {
        let fenced = if is(CacheBug::HaltedBeforeSummary) { sink.start() } else { self.space.fenced() };
        let after = sink.join(fenced, after);
        let tok = put_state(&mut self.space.pcm, sink, state, after)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        Ok(done)
    }

    /// Notes in the header that the cache is in use, before the first write after opening.
    #[inline]
    pub(super) fn begin_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.usage.noted {
            return Ok(());
        }
        // A request that is refused must change nothing: a summary that does not match the records
        // is kept.
        self.writable()?;
        self.head_new(sink)?;
        self.note_use(sink)
    }

    /// Notes that the layer is in use, before anything else changes. Over files the note is synced
    /// first, so that the state "halted" is true after any power loss.
    pub(super) fn note_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let start = sink.start();
        let noted = self.write_state(sink, UsageState::InUse, start)?;
        self.space.noted = sink.join(self.space.noted, noted);
        if self.space.volatile() {
            self.space.pcm.flush(sink)?;
        }
        self.usage = HeaderNote { noted: true, halted: false };
        Ok(())
    }

    /// Writes the header if PCM is blank. A simulation with data starts without a format, but can
    /// be halted and booted too.
    fn head_new<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if P::HOLDS && Header::read(&self.space.pcm)?.is_blank() { self.put_head(sink) } else { Ok(()) }
    }

    pub(super) fn write_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.config.durable()?;
        self.put_head(sink)
    }

    fn put_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let tok = self.head().put(&mut self.space.pcm, sink)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        self.write_state(sink, UsageState::Halted, done)?;
        self.space.pcm.sync(sink)
    }

    /// Shuts down in order: completes all writebacks, writes the summary, and notes it in the
    /// header.
    pub(super) fn shut_down<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.in_flight.len() > 0 || self.unflushed.is_some() {
            let direct = self.unflushed.is_some() && self.config.bypasses();
            let landed = self.complete_writebacks(sink);
            // The halt is complete when the disk has what it was given, direct writes included.
            if let Ok(landed) = &landed {
                self.flushed = sink.join(self.flushed, *landed);
            }
            // Dirty blocks stay in PCM. Data that bypassed the cache has no other copy, so its
            // failure is an error.
            if landed.is_err() && (!self.take_disk_error() || direct) {
                landed?;
            }
        }
        self.preserve_damage(sink)?;
        self.sync_pcm(sink)?;
        if P::HOLDS {
            // The summary must not be durable before the data that it describes, also over files.
            self.space.pcm.flush(sink)?;
            // Records that were taken away without a fence are not in the summary: they must not be found again.
            let start = sink.start();
            let after = self.space.settle(sink, start);
            let put = self.summary()?.put(&mut self.space.pcm, sink, after)?;
            self.space.fence_after(sink, put);
        }
        self.usage = HeaderNote { noted: false, halted: true };
        let state = if P::HOLDS { UsageState::HaltedWithSummary } else { UsageState::Halted };
        self.write_state(sink, state, self.flushed)?;
        self.space.pcm.sync(sink)
    }

    /// Writes a new record for each block whose record is damaged in all copies. Its digest is
    /// wrong on purpose, so that the block stays known as damaged.
    fn preserve_damage<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if !P::HOLDS {
            return Ok(());
        }
        let mut damaged = Vec::new();
        for (lbn, slot) in self.dir.iter() {
            let valid = self.dir.valid(slot);
            if self.space.record(slot)?.is_none_or(|r| (r.lbn, r.valid) != (lbn, valid)) {
                damaged.push((lbn, slot, valid));
            }
        }
        for (lbn, slot, valid) in damaged {
            self.space.seq += 1;
            let any = Record { lbn, valid, seq: self.space.seq, digest: 0 };
            self.space.load(slot, &any, &mut self.block)?;
            let wrong = Record { digest: !digest_of(&self.block, valid), ..any };
            let start = sink.start();
            self.space.put_record(sink, slot, &wrong, start)?;
        }
        self.space.fence(sink);
        Ok(())
    }

    /// Returns the summary of the records that the next opening will find: those of cached blocks,
    /// and those of earlier versions in flight that were superseded.
    fn summary(&self) -> Result<Summary> {
        let mut sum = Summary::up_to(self.space.seq);
        let earlier = self.in_flight.blocks.iter().filter(|v| self.dir.get(v.lbn) != Some(v.slot));
        let earlier = earlier.map(|v| v.slot);
        for slot in self.dir.iter().map(|(_, slot)| slot).chain(earlier) {
            if let Some(record) = self.space.record(slot)? {
                sum.add(&SummaryEntry { slot, record, ended: false });
            }
        }
        Ok(sum)
    }

    /// Reads the header and returns the state of the layer.
    pub(super) fn read_head(&self) -> Result<UsageState> {
        let head = Header::read(&self.space.pcm)?;
        if head == self.head() {
            return state(&self.space.pcm);
        }
        damaged(if head.is_of(MAGIC) {
            format!(
                "it holds a cache of {} blocks, formatted for another disk or size than the stack file has",
                head.word(SLOTS_WORD)
            )
        } else {
            "it holds no cache, or its head is damaged: put the right file or device back, since blocks that were \
             not written back yet are nowhere else"
                .into()
        })
    }
}
