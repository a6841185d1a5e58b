//! Durability interface of the cache manager, and its recovery.

use super::config::FlashtierMode;
use super::layer::Flashtier;
use crate::planted::FlashtierBug;
use frit_core::extents::merge_runs;
use frit_core::planted::is_planted;
use frit_core::transfer::SerialLink;
use frit_core::{
    BlockDevice, BlockState, CacheDevice, CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable,
    Error, Extent, Finding, MediumKind, Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Sink, Tok,
    WriteGuarantee,
};

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    /// Recovers the device, and finds the dirty blocks in it.
    ///
    /// After a crash the disk may have newer versions of clean blocks, unless the configuration excludes
    /// it. These are evicted.
    fn recover_cache(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        let recovered = self.ssc.recover(sink, crash)?;
        self.ready = recovered.ready;
        (self.unflushed, self.flushed) = (None, Tok::default());
        self.tunnel = SerialLink::default();
        self.set_aside.clear();
        self.health = crate::health::Health::default();
        let recovery = recovered.recovery;
        let trusted = recovery.clean || self.config.keeps_clean() || is_planted(FlashtierBug::CleanTrusted);
        if !trusted {
            self.drop_clean(sink)?;
        }
        self.find_dirty();
        if !recovery.clean && self.disk.refuses().is_none() {
            // The disk may hold writes from before the crash in its volatile cache.
            match self.flush_disk(sink, self.ready) {
                Ok(flushed) => sink.ack(flushed),
                // The disk keeps what it has, and reads continue.
                Err(Error::ReadOnly { why }) => self.health.refuse(why),
                Err(e) => return Err(e),
            }
        }
        sink.ack(self.ready);
        if let Some(why) = self.ssc.refuses().or_else(|| self.disk.refuses()) {
            self.health.refuse(why);
        }
        Ok(recovery)
    }

    /// Removes all clean blocks. A device that refuses writes cannot record it: they are removed in memory,
    /// after each recovery anew.
    pub(super) fn drop_clean(&mut self, sink: &mut Sink) -> Result<()> {
        if self.ssc.refuses().is_none() {
            match self.ssc.evict_clean(sink, self.ready) {
                Ok(evicted) => sink.ack(evicted),
                Err(Error::ReadOnly { .. } | Error::NoSpace { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        if !is_planted(FlashtierBug::WornTrusted) {
            self.ssc.forget_clean(0..self.blocks);
        }
        Ok(())
    }

    fn find_dirty(&mut self) {
        let dirty = &mut self.dirty;
        dirty.clear();
        self.ssc.exists(0..self.blocks, &mut |block, state| {
            if state == BlockState::Dirty {
                dirty.insert(block);
            }
        });
    }
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> Quiesce for Flashtier<C, D> {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        // A clean block is durable on the disk before the device states a halt.
        let start = sink.start();
        let flushed = self.flush_disk(sink, start)?;
        sink.ack(flushed);
        self.ssc.halt(sink, flushed)?;
        self.disk.halt(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.disk.boot(sink)?;
        self.recover_cache(sink, CrashKind::Process).map(|_| ())
    }
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> Durable for Flashtier<C, D> {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.disk.format(sink)?;
        self.ssc.format(sink)
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        // The cache accepts requests only after the layers below it have recovered.
        let below = self.disk.recover(sink, crash)?;
        let mut own = self.recover_cache(sink, crash)?;
        own.clean &= below.iter().all(|b| b.recovery.clean);
        own.below.extend(below);
        Ok(own)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        let all_cached = self.config.mode == FlashtierMode::WriteBack && self.config.bypass_bytes == 0;
        if all_cached && self.ssc.durable_at() == DurabilityPoint::OnAck {
            return WriteGuarantee {
                durable_at: DurabilityPoint::OnAck,
                atomic_bytes: self.page,
                ..WriteGuarantee::default()
            };
        }
        // A power loss can tear a write to the disk, of a block that the device does not have durably.
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: SECTOR_BYTES as u32,
            ..WriteGuarantee::default()
        }
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let below = self.disk.check(sink, scope, found)?;
        let refused = self.ssc.refuses().is_some();
        let own = self.ssc.check(sink, scope, found)?;
        if scope.repair {
            if refused && self.ssc.refuses().is_none() {
                // An older state was accepted: the disk can have newer versions of its clean blocks.
                self.health.accept_missing();
                self.drop_clean(sink)?;
            }
            self.set_aside.clear();
            self.find_dirty();
        }
        Ok(own + below)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let page = u64::from(self.page);
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            let end = (byte / page + 1) * page;
            if self.ssc.state(self.block_of(byte)).is_some() {
                return (end, Some(MediumKind::Nand));
            }
            let (device_end, place) = self.disk.place(byte);
            (end.min(device_end), place)
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        let own = self.health.refusal().map(str::to_owned);
        own.or_else(|| self.ssc.refuses()).or_else(|| self.disk.refuses())
    }

    fn refuse(&mut self, why: String) {
        self.disk.refuse(&why);
        self.ssc.refuse(why.clone());
        self.health.refuse(why);
    }
}
