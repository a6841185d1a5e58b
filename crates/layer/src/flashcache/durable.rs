//! Durability interface of the cache manager.

use super::layer::Flashcache;
use super::layout::HEADERS;
use super::sector::{SECTOR, UsageState};
use crate::planted::FlashcacheBug;
use frit_core::convert::count_u32;
use frit_core::extents::merge_runs;
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, Cause, CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Extent, Finding,
    Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Sink, Tok, WriteData, WriteGuarantee,
};

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Writes all metadata, and then the header of a cache that was shut down. Returns the completion.
    pub(super) fn write_all(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let fresh = self.take_fresh();
        self.write_halted(sink, after).inspect_err(|_| self.keep_fresh(fresh))
    }

    fn write_halted(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        // The entries state that their data is durable.
        let flushed = self.flush_ssd(sink, after)?;
        let written = self.write_metadata(sink, (0..self.layout.metadata_blocks()).collect(), flushed)?;
        self.changed.clear();
        let noted = self.flush_ssd(sink, written)?;
        self.write_header(sink, UsageState::Halted, noted)
    }
}

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Quiesce for Flashcache<C, D> {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        if self.state == UsageState::InUse {
            // Blocks that are clean, and those written past the cache, are durable on the disk before the
            // header vouches for them.
            let start = sink.start();
            let flushed =
                if is_planted(FlashcacheBug::HaltNotFlushed) { start } else { self.flush_disk(sink, start)? };
            let done = self.write_all(sink, flushed)?;
            sink.ack(done);
            self.ready = done;
        }
        self.ssd.halt(sink)?;
        self.disk.halt(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.disk.boot(sink)?;
        self.ssd.boot(sink)?;
        self.recover_cache(sink).map(|_| ())
    }
}

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Durable for Flashcache<C, D> {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.disk.format(sink)?;
        self.ssd.format(sink)?;
        let mut blank = sink.start();
        for copy in 0..HEADERS {
            let zeros = WriteData::Bytes(&[0; SECTOR]);
            let start = sink.start();
            let tok = self.ssd.write(sink, self.layout.header_at(copy), zeros, Cause::Meta, start)?;
            blank = sink.join(blank, tok);
        }
        let done = self.write_all(sink, blank)?;
        self.ready = done;
        sink.ack(done);
        Ok(())
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        // The cache accepts requests only after the layers below it have recovered.
        let mut below = self.ssd.recover(sink, crash)?;
        below.extend(self.disk.recover(sink, crash)?);
        let mut own = self.recover_cache(sink)?;
        own.clean &= below.iter().all(|b| b.recovery.clean);
        own.below.extend(below);
        Ok(own)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        // A part of a block goes to the disk.
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: count_u32(SECTOR),
            ..WriteGuarantee::default()
        }
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let below = self.ssd.check(sink, scope, found)? + self.disk.check(sink, scope, found)?;
        Ok(self.check_cache(sink, scope, found)? + below)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let block = self.config.block;
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            let end = (byte / block + 1) * block;
            if let Some(slot) = self.sets.find(self.block_of(byte)) {
                let (_, place) = self.ssd.place(self.layout.slot_at(slot) + byte % block);
                return (end, place);
            }
            let (device_end, place) = self.disk.place(byte);
            (end.min(device_end), place)
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        let own = self.health.refusal().map(str::to_owned);
        own.or_else(|| self.ssd.refuses()).or_else(|| self.disk.refuses())
    }

    fn refuse(&mut self, why: String) {
        self.ssd.refuse(&why);
        self.disk.refuse(&why);
        self.health.refuse(why);
    }
}
