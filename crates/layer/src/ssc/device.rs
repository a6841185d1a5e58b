//! The interface of a solid-state cache.

use super::config::SscDurability;
use super::layer::Ssc;
use super::map::BlockMap;
use super::records::BLOCKS_MAX;
use crate::planted::SscBug;
use frit_core::planted::is_planted;
use frit_core::visible::Metric;
use frit_core::{
    BlockState, CacheDevice, CacheRead, CacheRecovery, Cause, CheckCounts, CheckScope, CrashKind,
    DurabilityPoint, Error, Finding, MediumKind, Progress, ReadTarget, Result, Sink, StackView, Tok,
    WriteData,
};
use std::ops::Range;

impl Ssc {
    /// Checks that an access to whole blocks is possible.
    fn check_blocks(&self, first: u32, data: WriteData<'_>) -> Result<()> {
        let count = data.len() / self.sizes.page_bytes;
        if !data.len().is_multiple_of(self.sizes.page_bytes) {
            let what = "a write must cover whole blocks";
            return Err(Error::Rule { medium: MediumKind::Nand, at: u64::from(first), what });
        }
        if first.checked_add(count).is_none_or(|end| end > BLOCKS_MAX) {
            let what = "a block number is too large";
            return Err(Error::Rule { medium: MediumKind::Nand, at: u64::from(first), what });
        }
        Ok(())
    }
}

impl CacheDevice for Ssc {
    fn block_bytes(&self) -> u32 {
        self.sizes.page_bytes
    }

    fn blocks(&self) -> u64 {
        self.capacity()
    }

    fn dirty_limit(&self) -> u64 {
        self.space_for_dirty()
    }

    fn lifetime_dirty_limit(&self) -> u64 {
        self.space_for_dirty_in_life()
    }

    fn dirty_blocks(&self) -> u64 {
        self.dirty
    }

    fn prefetch(&self, blocks: &[u32]) {
        self.prefetch_blocks(blocks);
    }

    fn state(&self, block: u32) -> Option<BlockState> {
        Self::state_of(self.map.get(block))
    }

    fn has_missing(&self) -> bool {
        self.health.has_missing()
    }

    fn read(
        &mut self,
        sink: &mut Sink,
        block: u32,
        offset: u32,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<CacheRead> {
        self.read_block(sink, block, offset, into, cause, after)
    }

    fn write_dirty(
        &mut self,
        sink: &mut Sink,
        first: u32,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.check_blocks(first, data)?;
        self.write_blocks(sink, first, data, true, cause, after).map_err(|e| self.refuse_after(e))
    }

    fn write_clean(
        &mut self,
        sink: &mut Sink,
        first: u32,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.check_blocks(first, data)?;
        self.write_blocks(sink, first, data, false, cause, after).map_err(|e| self.refuse_after(e))
    }

    fn evict(&mut self, sink: &mut Sink, blocks: Range<u32>, after: Tok) -> Result<Tok> {
        let present = self.present(blocks);
        let present = present.into_iter().map(|(block, _)| block);
        self.evict_all(sink, present, after).map_err(|e| self.refuse_after(e))
    }

    fn evict_clean(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let present = self.present(0..BLOCKS_MAX);
        let clean = present.into_iter().filter(|(_, state)| *state == BlockState::Clean).map(|(b, _)| b);
        self.evict_all(sink, clean, after).map_err(|e| self.refuse_after(e))
    }

    fn forget_clean(&mut self, blocks: Range<u32>) {
        self.forget_all_clean(blocks);
    }

    fn clean(&mut self, sink: &mut Sink, blocks: Range<u32>, after: Tok) -> Result<Tok> {
        self.clean_all(sink, blocks, after).map_err(|e| self.refuse_after(e))
    }

    fn exists(&self, blocks: Range<u32>, each: &mut dyn FnMut(u32, BlockState)) {
        for (block, state) in self.present(blocks) {
            each(block, state);
        }
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.flush_all(sink, after).map_err(|e| self.refuse_after(e))
    }

    fn durable_at(&self) -> DurabilityPoint {
        match self.config.durability {
            SscDurability::Deferred => DurabilityPoint::OnFlush,
            SscDurability::Synchronous => DurabilityPoint::OnAck,
        }
    }

    fn step(&mut self, sink: &mut Sink, _: u32) -> Result<Progress> {
        if self.health.refusal().is_some() {
            return Ok(Progress::Idle);
        }
        self.idle(sink).map_err(|e| self.refuse_after(e))
    }

    /// Blank NAND needs no format: it has no checkpoint.
    fn format(&mut self, _: &mut Sink) -> Result<()> {
        Ok(())
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<CacheRecovery> {
        let recovery = self.recover_from_media(sink, crash)?;
        self.in_use = self.log.written;
        Ok(CacheRecovery { recovery, ready: self.in_use })
    }

    fn halt(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        self.shut_down(sink, after).map_err(|e| self.refuse_after(e))
    }

    fn begin_use(&mut self, sink: &mut Sink) -> Result<Tok> {
        self.health.writable()?;
        if self.checkpoint.halted && !is_planted(SscBug::UseNotNoted) {
            self.write_checkpoint(sink, false).map_err(|e| self.refuse_after(e))?;
            self.in_use = self.log.written;
        }
        Ok(self.in_use)
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.run_check(sink, scope, found)
    }

    fn refuses(&self) -> Option<String> {
        self.health.refusal().map(str::to_owned)
    }

    fn refuse(&mut self, why: String) {
        self.health.refuse(why);
    }

    fn holds_bytes(&self) -> bool {
        self.stores_bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        self.list_metrics()
    }

    fn dram_bytes(&self) -> u64 {
        self.dram()
    }

    fn visible(&self, view: &mut StackView) {
        self.show(view);
    }
}
