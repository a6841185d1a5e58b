//! The head: whose PCM it is, whether the cache is in use, and the halt in order.

use super::layer::Cache;
use super::space::digest_of;
use crate::Token;
use crate::head::{Head, Use, damaged, put_state, state};
use crate::record::Record;
use crate::summary::{Counted, Summary};
use frit_core::planted::{Bug, is};
use frit_core::{Result, Sink};
use frit_media::Store;

const MAGIC: &[u8; 8] = b"fritCACH";
const VERSION: u32 = 1;
/// The head's word for the slots: the one behind the version.
const SLOTS_WORD: usize = 1;

/// Use of the layer as the head in PCM says it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Usage {
    /// The head says that the layer is in use.
    noted: bool,
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Version, slots, bytes of the disk (two words), copies of records.
    fn head(&self) -> Head {
        let layout = &self.space.layout;
        let disk = self.disk.bytes();
        Head::new(MAGIC, &[VERSION, layout.slots, disk as u32, (disk >> 32) as u32, layout.copies])
    }

    /// Writes the state, and returns when it is certain. A head that says "halted" is behind all that it vouches for,
    /// the summary among it.
    fn write_state<S: Sink<Tok = T>>(&mut self, sink: &mut S, state: Use) -> Result<T> {
        let after = if is(Bug::HaltedBeforeSummary) { sink.start() } else { self.space.fenced() };
        let tok = put_state(&mut self.space.pcm, sink, state, after)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        Ok(done)
    }

    /// The first write since the layer came up is noted.
    #[inline]
    pub(super) fn begin_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.usage.noted {
            return Ok(());
        }
        // What is refused changes nothing: a summary that does not fit stays.
        self.writable()?;
        self.head_new(sink)?;
        self.note_use(sink)
    }

    /// Notes that the layer is in use, before anything else changes. Over files the note is synced first, so that a
    /// head that says "halted" is true whatever stopped the machine.
    pub(super) fn note_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let noted = self.write_state(sink, Use::Open)?;
        self.space.noted = sink.join(self.space.noted, noted);
        if self.space.volatile() {
            self.space.pcm.flush(sink)?;
        }
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
        self.keep_damage(sink)?;
        self.outlive(sink)?;
        if P::HOLDS {
            // What the summary says is not there before what it is of, also over files.
            self.space.pcm.flush(sink)?;
            // Records that were taken away without a fence are not in the summary: they must not be found again.
            let start = sink.start();
            let after = self.space.settle(sink, start);
            let put = self.summary()?.put(&mut self.space.pcm, sink, after)?;
            self.space.fence_after(sink, put);
        }
        self.usage.noted = false;
        self.write_state(sink, if P::HOLDS { Use::Summed } else { Use::Halted })?;
        self.space.pcm.sync(sink)
    }

    /// Writes a record for each block whose own is damaged in all copies: its digest is wrong on purpose, so that the
    /// block stays known, as a damaged one.
    fn keep_damage<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
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

    /// Summary of the records that an opening will find: of cached blocks, and of earlier versions of which the disk
    /// has not got the rest.
    fn summary(&self) -> Result<Summary> {
        let mut sum = Summary::upto(self.space.seq);
        let earlier = self.flying.blocks.iter().filter(|v| self.dir.get(v.lbn) != Some(v.slot));
        let earlier = earlier.map(|v| v.slot);
        for slot in self.dir.iter().map(|(_, slot)| slot).chain(earlier) {
            if let Some(record) = self.space.record(slot)? {
                sum.add(&Counted { slot, record, ended: false });
            }
        }
        Ok(sum)
    }

    /// Reads the head: whether the layer was halted.
    pub(super) fn read_head(&self) -> Result<Use> {
        let head = Head::read(&self.space.pcm)?;
        if head == self.head() {
            return state(&self.space.pcm);
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
}
