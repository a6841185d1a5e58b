//! The header of the memory: identity of the layer, and its state.

use super::layer::Ntl;
use crate::header::{HeaderNote, LayerHeader, UsageState, write_state};
use crate::planted::NtlBug;
use frit_core::planted::is_planted;
use frit_core::{Result, Sink, Tok};

const MAGIC: &[u8; 8] = b"fritNTL\0";
const VERSION: u32 = 1;

impl Ntl {
    /// Returns the header: version, mapping, page bytes, block pages, chips, home pages and log
    /// pages of a chip, pages of a row, protected, log.
    pub(super) fn head(&self) -> LayerHeader {
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
        LayerHeader::new(MAGIC, &words)
    }

    /// Writes the state, and returns the completion after which it is durable.
    pub(super) fn write_state(&mut self, sink: &mut Sink, state: UsageState) -> Result<Tok> {
        let after = if is_planted(NtlBug::HaltedBeforeSummary) { sink.start() } else { self.space.fenced() };
        write_state(&mut self.space.pcm, &mut self.space.fences, sink, state, after)
    }

    /// Notes in the header that the layer is in use, before the first write after opening. Without
    /// bytes there is no header to read later.
    #[inline]
    pub(super) fn begin_use(&mut self, sink: &mut Sink) -> Result<()> {
        if self.usage.noted || !self.stores_bytes() {
            return Ok(());
        }
        // A request that is refused must change nothing: a summary that does not match the records
        // is kept.
        self.health.writable()?;
        if self.head().preset_if_blank(&mut self.space.pcm)? {
            self.usage = HeaderNote::IN_USE;
            return Ok(());
        }
        self.note_use(sink)
    }

    /// Notes that the layer is in use, before anything else changes. Over files the note is synced
    /// first, so that the state "halted" is true after any power loss.
    pub(super) fn note_use(&mut self, sink: &mut Sink) -> Result<()> {
        // No page is written before the note: a crash would tear it while the header states that
        // all data is durable.
        let noted = self.write_state(sink, UsageState::InUse)?;
        self.reuse_barrier = sink.join(self.reuse_barrier, noted);
        if self.space.volatile() {
            self.space.pcm.flush(sink)?;
        }
        self.usage = HeaderNote::IN_USE;
        Ok(())
    }

    pub(super) fn put_head(&mut self, sink: &mut Sink) -> Result<()> {
        let head = self.head();
        head.write(&mut self.space.pcm, &mut self.space.fences, sink)?;
        self.write_state(sink, UsageState::Halted)?;
        self.space.pcm.sync(sink)
    }

    /// Reads the header and returns the state of the layer.
    pub(super) fn read_head(&self) -> Result<UsageState> {
        let other = |_: &LayerHeader| {
            "it was formatted with another mapping, log, page size or capacity than the stack file has"
                .to_owned()
        };
        let none =
            "it holds no pages of this layer, or its head is damaged: put the right file or device back";
        self.head().usage_state(&self.space.pcm, other, none)
    }
}
