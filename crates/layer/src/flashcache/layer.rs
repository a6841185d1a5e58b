//! The layer [`Flashcache`]: its state, and its block interface.

use super::config::FlashcacheConfig;
use super::layout::Layout;
use super::sector::UsageState;
use super::sets::Sets;
use super::view::FlashcacheStats;
use crate::cache::streams::Streams;
use crate::health::Health;
use crate::planted::FlashcacheBug;
use crate::tokens::join_into;
use frit_core::bounds::check_sectors;
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, BlockLayer, BlockingMedium, Cause, Error, Hints, Info, PREFETCH_REQUESTS, Params, Progress,
    ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackView, Tok, WriteData,
};
use std::sync::Arc;

/// A disk behind an SSD. `C` is the SSD, and `D` the disk.
///
/// The epoch orders metadata and data on an SSD that is durable at a flush only: an entry that states
/// a dirty block counts after a crash if its epoch was committed, by a header that is written after
/// a flush of the data.
pub struct Flashcache<C: ?Sized, D: ?Sized> {
    pub(super) config: FlashcacheConfig,
    pub(super) ssd: Box<C>,
    pub(super) disk: Box<D>,
    pub(super) layout: Layout,
    /// Whole blocks of the disk.
    pub(super) disk_blocks: u32,
    pub(super) sets: Sets,
    pub(super) streams: Streams,
    /// Usage state that the header on the SSD has.
    pub(super) state: UsageState,
    /// Last committed epoch.
    pub(super) epoch: u64,
    /// Slots that became dirty in the current epoch; some more than once.
    pub(super) fresh: Vec<u32>,
    /// Slots that were written to the disk since its last flush for cleaning.
    pub(super) written: Vec<u32>,
    /// Slots that were written to the disk before that flush, and the completion of the flush.
    pub(super) flushed: Vec<u32>,
    pub(super) flushed_at: Tok,
    /// Completion of the writes that the SSD has acknowledged but not flushed, and of all flushes so
    /// far. The same of the disk.
    pub(super) ssd_pending: Option<Tok>,
    pub(super) ssd_flushed: Tok,
    pub(super) disk_pending: Option<Tok>,
    pub(super) disk_flushed: Tok,
    /// `true` if the disk has acknowledged, and not flushed, a write that only the disk has.
    pub(super) direct_pending: bool,
    /// Token before which neither the SSD nor the disk must change.
    pub(super) ready: Tok,
    /// Token before which metadata must not be written: it states what is durable after it only.
    pub(super) metadata_after: Tok,
    /// Token after which the metadata of all blocks that are clean is durable.
    pub(super) reuse_after: Tok,
    pub(super) health: Health,
    /// `true` if slots were written since the last flush of the SSD.
    pub(super) slots_unflushed: bool,
    /// `true` after a failed flush of the SSD before which slots were written: they may have the contents
    /// of other blocks.
    pub(super) ssd_failed: bool,
    /// `true` after an error of the disk that left the cache consistent.
    pub(super) intact: bool,
    pub(super) stats: FlashcacheStats,
    /// `true` if the devices hold bytes.
    pub(super) holds_bytes: bool,
    /// Metadata blocks that have changed and are not written yet.
    pub(super) changed: Vec<u32>,
    pub(super) buffer: Vec<u8>,
}

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Creates a cache over an SSD and a disk. `holds_bytes` states whether the devices hold bytes.
    ///
    /// # Errors
    /// An error that names a parameter that is invalid with these devices, and its valid values.
    pub fn new(
        config: FlashcacheConfig,
        ssd: Box<C>,
        disk: Box<D>,
        holds_bytes: bool,
    ) -> Result<Flashcache<C, D>> {
        config.validate()?;
        let layout = Layout::new(&config, ssd.bytes())?;
        let blocks = disk.bytes() / config.block;
        let disk_blocks = u32::try_from(blocks).ok().filter(|&b| b > 0 && b < u32::MAX).ok_or_else(|| {
            let why = format!(
                "a disk of {} bytes has {blocks} blocks: at most 2^32 - 2 are possible",
                disk.bytes()
            );
            Error::param("block", config.block, why)
        })?;
        Ok(Flashcache {
            sets: Sets::new(layout.set_blocks, layout.sets),
            streams: Streams::new(config.streams),
            layout,
            disk_blocks,
            state: UsageState::InUse,
            epoch: 0,
            fresh: Vec::new(),
            written: Vec::new(),
            flushed: Vec::new(),
            flushed_at: Tok::default(),
            ssd_pending: None,
            ssd_flushed: Tok::default(),
            disk_pending: None,
            disk_flushed: Tok::default(),
            direct_pending: false,
            ready: Tok::default(),
            metadata_after: Tok::default(),
            reuse_after: Tok::default(),
            health: Health::default(),
            slots_unflushed: false,
            ssd_failed: false,
            intact: false,
            stats: FlashcacheStats::default(),
            holds_bytes,
            changed: Vec::new(),
            buffer: Vec::new(),
            ssd,
            disk,
            config,
        })
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &FlashcacheConfig {
        &self.config
    }

    /// Returns the capacity in bytes: all whole blocks of the disk.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.disk_blocks) * self.config.block
    }

    /// Checks that a range lies inside the volume, and returns the address of its first byte.
    pub(super) fn check_range(&self, at: Sector, bytes: u64) -> Result<u64> {
        check_sectors(at, bytes, self.bytes())
    }

    /// Address of a block on the disk.
    pub(super) fn byte_of(&self, block: u32) -> u64 {
        u64::from(block) * self.config.block
    }

    /// Block of an address.
    pub(super) fn block_of(&self, byte: u64) -> u32 {
        bounded_u32(byte / self.config.block)
    }

    /// Returns a buffer for a number of bytes, which is empty if the devices hold none.
    pub(super) fn new_buffer(&self, bytes: u32) -> Vec<u8> {
        vec![0; if self.holds_bytes { to_usize(bytes) } else { 0 }]
    }

    /// Writes a part of a slot.
    pub(super) fn write_slot(
        &mut self,
        sink: &mut Sink,
        slot: u32,
        offset: u32,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let reuse = if is_planted(FlashcacheBug::ReusedEarly) { after } else { self.reuse_after };
        let ready = sink.join(self.ready, reuse);
        let after = sink.join(ready, after);
        let at = self.layout.slot_at(slot) + u64::from(offset);
        self.slots_unflushed = true;
        let done = self.ssd.write(sink, at, data, cause, after)?;
        join_into(sink, &mut self.ssd_pending, done);
        Ok(done)
    }

    /// Handles the result of an access to the disk. A failure leaves the cache consistent.
    pub(super) fn of_disk<V>(&mut self, answer: Result<V>) -> Result<V> {
        answer.inspect_err(|_| {
            self.stats.disk_failures += 1;
            self.intact = true;
        })
    }

    /// Refuses writes after an unexpected error.
    #[cold]
    pub(super) fn refuse_after(&mut self, e: Error) -> Error {
        let intact = std::mem::take(&mut self.intact) || matches!(e, Error::WouldBlock);
        self.health.refuse_after(e, intact, FlashcacheBug::NotPoisoned)
    }
}

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> BlockLayer for Flashcache<C, D> {
    fn info(&self) -> Info {
        Info {
            name: "flashcache",
            sectors: self.bytes() / SECTOR_BYTES,
            page_bytes: bounded_u32(self.config.block),
            dram_bytes: self.sets.dram_bytes(),
            durable_map_bytes: u64::from(self.layout.metadata_blocks()) * self.config.metadata_block,
        }
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        // Each loop loads what the next one follows, so the loads of all requests overlap.
        for next in next.chunks(PREFETCH_REQUESTS) {
            let block = |at: Sector| self.block_of(at.0.saturating_mul(SECTOR_BYTES));
            next.iter().for_each(|&(at, _)| self.sets.prefetch(block(at)));
            next.iter().for_each(|&(at, _)| self.sets.prefetch_slot(block(at)));
            let mut slots = [(Sector(0), 0); PREFETCH_REQUESTS];
            for (own, &(at, sectors)) in slots.iter_mut().zip(next) {
                let slot = self.sets.prefetch_victim(block(at));
                *own = (Sector(self.layout.slot_at(slot) / SECTOR_BYTES), sectors);
            }
            self.ssd.prefetch(&slots[..next.len()]);
        }
        self.disk.prefetch(next);
    }

    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, hints: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(into.len()))?;
        self.read_range(sink, at, into, hints.read_cause())
    }

    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let at = self.check_range(at, u64::from(data.len()))?;
        self.begin_use(sink).and_then(|()| self.write_range(sink, at, data)).map_err(|e| self.refuse_after(e))
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        self.flush_all(sink).map_err(|e| self.refuse_after(e))
    }

    fn discard(&mut self, sink: &mut Sink, at: Sector, sectors: u64) -> Result<()> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let at = self.check_range(at, bytes)?;
        self.begin_use(sink)
            .and_then(|()| self.discard_range(sink, at, bytes))
            .map_err(|e| self.refuse_after(e))
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        match self.ssd.step(sink, budget)? {
            Progress::Busy(tok) => Ok(Progress::Busy(tok)),
            waiting => Ok(waiting.or(self.disk.step(sink, budget)?)),
        }
    }

    fn waits(&self) -> bool {
        self.disk.waits() || self.ssd.waits()
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.ssd.each_shared(each);
        self.disk.each_shared(each);
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }

    fn params(&mut self) -> &mut dyn Params {
        self
    }

    fn each_layer_below(&mut self, each: &mut dyn FnMut(&str, &Info, &mut dyn Params)) {
        self.ssd.each_layer(each);
        self.disk.each_layer(each);
    }
}
