//! Implementation of [`Backend`] for volumes, without pacing.

use crate::{Backend, ReplyTime};
use frit_core::{
    BlockingMedium, Buffer, CacheCommand, CacheInfo, CacheReply, Deferred, Error, Hints, MediumKind,
    NamelessCommand, NamelessInfo, Nanos, ParamInfo, RequestIntent, Result, SECTOR_BYTES, StackView,
    SyncedFile, ZoneCommand, ZoneInfo, ZonedInfo,
};
use frit_stack::layers::LayerKind;
use frit_volume::Volume;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Executes a request. Its reply waits for the delays of the layers.
#[inline]
fn timed(volume: &mut Volume, request: impl FnOnce(&mut Volume) -> Result<()>) -> Result<ReplyTime> {
    // Work before the request, such as a recovery or a step, may have had delays of its own.
    volume.sink().take_delay();
    request(volume)?;
    Ok(match volume.sink().take_delay() {
        Nanos::ZERO => ReplyTime::NOW,
        delay => ReplyTime { not_before: Some(Instant::now() + Duration::from_nanos(delay.0)) },
    })
}

impl Backend for Volume {
    fn bytes(&self) -> u64 {
        Volume::bytes(self)
    }

    fn page_bytes(&self) -> u32 {
        Volume::page_bytes(self)
    }

    fn write_unit_bytes(&mut self) -> u32 {
        Volume::zoned_info(self).map_or(1, |info| info.block_bytes)
    }

    fn discard_unit_bytes(&mut self) -> u64 {
        Volume::zoned_info(self).map_or(SECTOR_BYTES, |info| info.zone_sectors * SECTOR_BYTES)
    }

    fn read_only(&self) -> Option<String> {
        Volume::read_only(self)
    }

    /// A stack with delays answers later.
    fn paced(&self) -> bool {
        self.stack().layers().iter().any(|layer| layer.kind == LayerKind::Delay)
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        timed(self, |v| v.read(at, into))
    }

    fn read_in_storage(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        timed(self, |v| v.read_in_storage(at, into))
    }

    fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime> {
        timed(self, |v| v.write(at, data, hints))
    }

    fn serves_bytes(&mut self) -> bool {
        Volume::serves_bytes(self)
    }

    fn read_bytes(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        timed(self, |v| v.read_bytes(at, into))
    }

    fn write_bytes(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime> {
        timed(self, |v| v.write_bytes(at, data, hints))
    }

    fn raw_read(&mut self, caller: &str, medium: MediumKind, at: u64, into: &mut [u8]) -> Result<()> {
        Volume::raw_read(self, caller, medium, at, into)
    }

    fn raw_write(&mut self, caller: &str, at: u64, data: &[u8]) -> Result<()> {
        Volume::raw_write(self, caller, at, data)
    }

    fn cache_info(&mut self) -> Result<CacheInfo> {
        Volume::cache_info(self)
    }

    fn cache_command(&mut self, command: CacheCommand<'_>) -> Result<(CacheReply, ReplyTime)> {
        let mut reply = CacheReply::Done;
        let time = timed(self, |v| {
            reply = v.cache_command(command)?;
            Ok(())
        })?;
        Ok((reply, time))
    }

    fn nameless_info(&mut self) -> Result<NamelessInfo> {
        Volume::nameless_info(self)
    }

    fn nameless_command(&mut self, command: NamelessCommand<'_>) -> Result<ReplyTime> {
        timed(self, |v| v.nameless_command(command))
    }

    fn zoned_info(&mut self) -> Result<ZonedInfo> {
        Volume::zoned_info(self)
    }

    fn zones(&mut self, first: u32, most: usize) -> Result<Vec<ZoneInfo>> {
        Volume::zones(self, first, most)
    }

    fn zone_command(&mut self, command: ZoneCommand<'_>) -> Result<ReplyTime> {
        timed(self, |v| v.zone_command(command))
    }

    fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<ReplyTime> {
        timed(self, |v| v.write_zeroes(at, len, keep_allocated))
    }

    fn discard(&mut self, at: u64, len: u64) -> Result<ReplyTime> {
        timed(self, |v| v.discard(at, len))
    }

    fn flush(&mut self) -> Result<ReplyTime> {
        timed(self, Volume::flush)
    }

    fn extents(&self, at: u64, len: u64, each: &mut dyn FnMut(u64, Option<MediumKind>)) -> Result<()> {
        Volume::extents(self, at, len, each)
    }

    fn step(&mut self, budget: u32) -> Result<bool> {
        Volume::step(self, budget)
    }

    fn defer(&mut self, on: bool) -> bool {
        Volume::defer(self, on)
    }

    fn would_block(&self, what: RequestIntent, at: u64, len: u64) -> bool {
        Volume::would_block(self, what, at, len)
    }

    fn deferred(&mut self) -> Option<Deferred> {
        Volume::deferred(self)
    }

    fn job(&mut self) -> Result<Option<Deferred>> {
        Volume::job(self)
    }

    fn settle(&mut self, of: &Deferred, outcome: Result<()>, buffer: &mut Buffer<'_>) -> Result<()> {
        Volume::settle(self, of, outcome, buffer)
    }

    fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        Volume::each_shared(self, each);
    }

    fn visible(&self) -> StackView {
        Volume::visible(self)
    }

    fn params(&mut self) -> Vec<ParamInfo> {
        Volume::params(self)
    }

    fn set_params(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        Volume::set_params(self, settings)
    }

    fn synced_files(&self) -> Vec<Arc<SyncedFile>> {
        Volume::synced_files(self)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Volume::close(*self).map_err(|e| match e {
            frit_volume::Error::Core(e) => e,
            other => Error::Io { what: "closing the volume".into(), source: std::io::Error::other(other) },
        })
    }
}
