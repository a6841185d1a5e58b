//! The head: whose memory this is, and whether the layer was halted in order.

use super::layer::Ntl;
use super::mapping::Mapping;
use crate::Token;
use crate::head::{Head, Use, damaged, put_state, state};
use frit_core::planted::{Bug, is};
use frit_core::{Result, Sink};
use frit_media::Store;

const MAGIC: &[u8; 8] = b"fritNTL\0";
const VERSION: u32 = 1;

impl<T: Token, P: Store> Ntl<T, P> {
    /// Version, mapping, page bytes, block pages, chips, home pages and log pages of a chip, pages of a row, protected,
    /// log.
    fn head(&self) -> Head {
        let l = &self.space.layout;
        let words = [
            VERSION,
            self.config.mapping_kind().map_or(u32::MAX, |kind| kind as u32),
            l.page_bytes,
            self.config.block_pages,
            l.chips,
            l.homes,
            l.logs,
            l.row_pages,
            u32::from(self.space.protected),
            self.config.log_kind() as u32,
        ];
        Head::new(MAGIC, &words)
    }

    /// Writes the state, and returns when it is certain.
    fn write_state<S: Sink<Tok = T>>(&mut self, sink: &mut S, state: Use) -> Result<T> {
        let after = if is(Bug::NtlHaltedBeforeSummary) { sink.start() } else { self.space.fenced() };
        let tok = put_state(&mut self.space.pcm, sink, state, after)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        Ok(done)
    }

    /// The first write since the layer came up is noted, where somebody will ask.
    #[inline]
    pub(super) fn begin_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.noted || !P::HOLDS {
            return Ok(());
        }
        // What is refused changes nothing: a summary that does not fit stays.
        self.writable()?;
        // A simulation over bytes begins without being formatted: it can be halted and booted all the same.
        if Head::read(&self.space.pcm)?.is_blank() {
            self.put_head(sink)?;
        }
        self.note_use(sink)
    }

    /// Notes that the layer is in use, before anything else changes. Over files the note is synced first, so that a
    /// head that says "halted" is true whatever stopped the machine.
    pub(super) fn note_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        // No page is written before: a crash would tear it while the head says that everything is certain.
        let noted = self.write_state(sink, Use::Open)?;
        self.gate = sink.join(self.gate, noted);
        if self.space.volatile() {
            self.space.pcm.flush(sink)?;
        }
        self.noted = true;
        Ok(())
    }

    pub(super) fn put_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let tok = self.head().put(&mut self.space.pcm, sink)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        self.write_state(sink, Use::Halted)?;
        self.space.pcm.sync(sink)
    }

    /// Everything is written down, and the head says so.
    pub(super) fn stop<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.flush_all(sink)?;
        let sums = self.space.protected && P::HOLDS;
        if self.space.protected {
            self.space.set_mark(sink)?;
        } else {
            self.save(sink)?;
        }
        if sums {
            self.sum_up(sink)?;
        }
        self.noted = false;
        self.write_state(sink, if sums { Use::Summed } else { Use::Halted })?;
        self.space.pcm.sync(sink)
    }

    /// Reads the head: whether the layer was halted.
    pub(super) fn read_head(&self) -> Result<Use> {
        let head = Head::read(&self.space.pcm)?;
        if head == self.head() {
            return state(&self.space.pcm);
        }
        damaged(if head.is_of(MAGIC) {
            "it holds pages of another mapping, log, page size or size than this stack says".into()
        } else {
            "it holds no pages of this layer, or its head is damaged: put the right file or device back"
                .into()
        })
    }

    /// Forgets all that is not in memory that lasts.
    pub(super) fn forget(&mut self) {
        self.space.forget();
        self.mapping.forget();
        for bits in [&mut self.used, &mut self.live, &mut self.logged] {
            bits.fill(0, false);
        }
        self.warm.iter_mut().for_each(|b| b.fill(0, false));
        if let Some(log) = &mut self.log {
            log.forget();
        }
        self.buffer.clear();
        self.buffer.ready = T::default();
        self.gate = T::default();
        (self.warm_left, self.turn, self.noted) = (0, 0, false);
        self.missing = None;
    }
}
