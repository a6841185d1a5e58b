//! The header of the PCM: identity of the cache, and its state.

use super::layer::Cache;
use crate::header::{HeaderNote, LayerHeader, UsageState, write_state};
use crate::planted::CacheBug;
use frit_core::convert::low_u32;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Result, Sink, Tok};

const MAGIC: &[u8; 8] = b"fritCACH";
const VERSION: u32 = 1;
/// Index of the header word that holds the number of slots, which follows the version.
const SLOTS_WORD: usize = 1;

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Returns the header: version, slots, bytes of the disk (two words), copies of records.
    pub(super) fn head(&self) -> LayerHeader {
        let layout = &self.space.layout;
        let disk = self.disk.bytes();
        LayerHeader::new(MAGIC, &[VERSION, layout.slots, low_u32(disk), low_u32(disk >> 32), layout.copies])
    }

    /// Writes the state after `after`, and returns the completion after which it is durable. The
    /// state "halted" is written after all data that it vouches for, the summary included.
    pub(super) fn write_state(&mut self, sink: &mut Sink, state: UsageState, after: Tok) -> Result<Tok> {
        let fenced =
            if is_planted(CacheBug::HaltedBeforeSummary) { sink.start() } else { self.space.fenced() };
        let after = sink.join(fenced, after);
        write_state(&mut self.space.pcm, &mut self.space.fences, sink, state, after)
    }

    /// Notes in the header that the cache is in use, before the first write after opening.
    #[inline]
    pub(super) fn begin_use(&mut self, sink: &mut Sink) -> Result<()> {
        if self.usage.noted {
            return Ok(());
        }
        // A request that is refused must change nothing: a summary that does not match the records
        // is kept.
        self.health.writable()?;
        self.head().preset_if_blank(&mut self.space.pcm)?;
        self.note_use(sink)
    }

    /// Notes that the layer is in use, before anything else changes. Over files the note is synced
    /// first, so that the state "halted" is true after any power loss.
    pub(super) fn note_use(&mut self, sink: &mut Sink) -> Result<()> {
        let start = sink.start();
        let noted = self.write_state(sink, UsageState::InUse, start)?;
        self.space.noted = sink.join(self.space.noted, noted);
        if self.space.volatile() {
            self.space.pcm.flush(sink)?;
        }
        self.usage = HeaderNote::IN_USE;
        Ok(())
    }

    pub(super) fn write_head(&mut self, sink: &mut Sink) -> Result<()> {
        self.config.durable()?;
        self.put_head(sink)
    }

    fn put_head(&mut self, sink: &mut Sink) -> Result<()> {
        let head = self.head();
        let done = head.write(&mut self.space.pcm, &mut self.space.fences, sink)?;
        self.write_state(sink, UsageState::Halted, done)?;
        self.space.pcm.sync(sink)
    }

    /// Reads the header and returns the state of the layer.
    pub(super) fn read_head(&self) -> Result<UsageState> {
        let other = |head: &LayerHeader| {
            format!(
                "it holds a cache of {} blocks, formatted for another disk or size than the stack file has",
                head.word(SLOTS_WORD)
            )
        };
        let none = "it holds no cache, or its head is damaged: put the right file or device back, since \
                    blocks that were not written back yet are nowhere else";
        self.head().usage_state(&self.space.pcm, other, none)
    }
}
