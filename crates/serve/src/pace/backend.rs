//! A backend whose replies take as long as on the modelled device.

use super::meter::{PaceMeter, PendingReply};
use super::virtual_clock::VirtualClock;
use crate::backend::{Backend, ChannelState, ReplyTime};
use frit_core::{
    CacheCommand, CacheInfo, CacheReply, Hints, MediumKind, NamelessCommand, NamelessInfo, Nanos, ParamInfo,
    Result, StackView, UnitId, UnitState, ZoneCommand, ZoneInfo, ZonedInfo,
};
use frit_engine::SinkUsage;
use frit_media::Hardware;
use frit_volume::Volume;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A volume on the in-order engine, paced in real time.
#[derive(Debug)]
pub struct PacedBackend {
    volume: Volume,
    hardware: Hardware,
    start: Instant,
    time: VirtualClock,
    meter: Arc<PaceMeter>,
}

impl PacedBackend {
    /// Paces a volume from now on. Recovery, and earlier requests, ran at the speed of the host.
    #[must_use]
    pub fn new(mut volume: Volume, hardware: Hardware, meter: Arc<PaceMeter>) -> PacedBackend {
        // The engine is busy with commands of the opening. Time starts at their end, so that no
        // request waits for them.
        let engine = volume.sink();
        while engine.next_done(Nanos::MAX).is_some() {}
        let busy = Duration::from_nanos(engine.now().0);
        let start = Instant::now().checked_sub(busy).unwrap_or_else(Instant::now);
        PacedBackend { volume, hardware, start, time: VirtualClock::new(Duration::ZERO), meter }
    }

    /// Executes a request and returns the due time of its reply.
    fn timed(&mut self, op: usize, request: impl FnOnce(&mut Volume) -> Result<()>) -> Result<ReplyTime> {
        let admitted = Instant::now();
        self.time.admit(self.volume.sink(), admitted.saturating_duration_since(self.start));
        request(&mut self.volume)?;
        let due = self.start + self.time.done(self.volume.sink());
        self.meter.admitted(PendingReply { op, admitted, due });
        Ok(ReplyTime { not_before: Some(due) })
    }
}

/// Returns all units of a device.
fn units(hardware: &Hardware) -> impl Iterator<Item = UnitId> + use<> {
    (0..hardware.units()).map(|u| UnitId(u as u16))
}

impl Backend for PacedBackend {
    fn bytes(&self) -> u64 {
        self.volume.bytes()
    }

    fn page_bytes(&self) -> u32 {
        self.volume.page_bytes()
    }

    fn write_unit_bytes(&mut self) -> u32 {
        Backend::write_unit_bytes(&mut self.volume)
    }

    fn discard_unit_bytes(&mut self) -> u64 {
        Backend::discard_unit_bytes(&mut self.volume)
    }

    fn read_only(&self) -> Option<String> {
        self.volume.read_only()
    }

    fn paced(&self) -> bool {
        true
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        self.timed(0, |v| v.read(at, into))
    }

    fn read_in_storage(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        self.timed(0, |v| v.read_in_storage(at, into))
    }

    fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime> {
        self.timed(1, |v| v.write(at, data, hints))
    }

    fn serves_bytes(&mut self) -> bool {
        self.volume.serves_bytes()
    }

    fn read_bytes(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        self.timed(0, |v| v.read_bytes(at, into))
    }

    fn write_bytes(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime> {
        self.timed(1, |v| v.write_bytes(at, data, hints))
    }

    fn raw_read(&mut self, caller: &str, medium: MediumKind, at: u64, into: &mut [u8]) -> Result<()> {
        self.volume.raw_read(caller, medium, at, into)
    }

    fn raw_write(&mut self, caller: &str, at: u64, data: &[u8]) -> Result<()> {
        self.volume.raw_write(caller, at, data)
    }

    fn cache_info(&mut self) -> Result<CacheInfo> {
        self.volume.cache_info()
    }

    fn cache_command(&mut self, command: CacheCommand<'_>) -> Result<(CacheReply, ReplyTime)> {
        // The kinds of operations are those of `PaceMeter::OPS`.
        let op = match command {
            CacheCommand::Read { .. } | CacheCommand::Exists { .. } => 0,
            CacheCommand::WriteDirty { .. } | CacheCommand::WriteClean { .. } => 1,
            CacheCommand::Evict(_) | CacheCommand::Clean(_) => 3,
        };
        let mut reply = CacheReply::Done;
        let time = self.timed(op, |v| {
            reply = v.cache_command(command)?;
            Ok(())
        })?;
        Ok((reply, time))
    }

    fn nameless_info(&mut self) -> Result<NamelessInfo> {
        self.volume.nameless_info()
    }

    fn nameless_command(&mut self, command: NamelessCommand<'_>) -> Result<ReplyTime> {
        // The kinds of operations are those of `PaceMeter::OPS`.
        let op = match command {
            NamelessCommand::NamelessWrite { .. } | NamelessCommand::VirtualWrite { .. } => 1,
            NamelessCommand::VirtualDiscard(_) | NamelessCommand::Free(_) => 3,
            _ => 0,
        };
        self.timed(op, |v| v.nameless_command(command))
    }

    fn zoned_info(&mut self) -> Result<ZonedInfo> {
        self.volume.zoned_info()
    }

    fn zones(&mut self, first: u32, most: usize) -> Result<Vec<ZoneInfo>> {
        self.volume.zones(first, most)
    }

    fn zone_command(&mut self, command: ZoneCommand<'_>) -> Result<ReplyTime> {
        // The kinds of operations are those of `PaceMeter::OPS`.
        let op = match command {
            ZoneCommand::Read { .. } => 0,
            ZoneCommand::Append { .. } => 1,
            ZoneCommand::Manage { .. } => 3,
        };
        self.timed(op, |v| v.zone_command(command))
    }

    fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<ReplyTime> {
        self.timed(2, |v| v.write_zeroes(at, len, keep_allocated))
    }

    fn discard(&mut self, at: u64, len: u64) -> Result<ReplyTime> {
        self.timed(3, |v| v.discard(at, len))
    }

    fn flush(&mut self) -> Result<ReplyTime> {
        self.timed(4, Volume::flush)
    }

    fn extents(&self, at: u64, len: u64, each: &mut dyn FnMut(u64, Option<MediumKind>)) -> Result<()> {
        self.volume.extents(at, len, each)
    }

    /// Executes a step only while all units are idle. As in a device, background work uses idle
    /// time and delays a request by at most one step.
    fn step(&mut self, budget: u32) -> Result<bool> {
        self.time.admit(self.volume.sink(), self.start.elapsed());
        let engine = self.volume.sink();
        if units(&self.hardware).any(|u| !engine.unit(u).is_idle()) {
            return Ok(true);
        }
        self.volume.step(budget)
    }

    fn channels(&mut self) -> Vec<ChannelState> {
        self.time.admit(self.volume.sink(), self.start.elapsed());
        let (engine, hardware) = (self.volume.sink(), &self.hardware);
        let now = engine.now();
        let mut all: Vec<ChannelState> = Vec::with_capacity(hardware.channels());
        let mut first = (0, usize::MAX);
        for unit in units(hardware) {
            let (device, channel) = (hardware.device_of(unit), hardware.channel_of(unit));
            if first.1 != device {
                first = (channel, device);
            }
            if all.len() <= channel {
                let medium = hardware.devices()[device].name.clone();
                all.resize_with(channel + 1, || ChannelState {
                    medium: medium.clone(),
                    channel: 0,
                    units: 0,
                    busy_units: 0,
                    idle_in_ns: 0,
                    busy_ns: 0,
                });
            }
            let state = &mut all[channel];
            state.channel = (channel - first.0) as u32;
            state.units += 1;
            state.busy_ns = engine.usage().map_or(0, |usage| usage.channels()[channel].0);
            if let UnitState::BusyUntil(until) = engine.unit(unit) {
                state.busy_units += 1;
                state.idle_in_ns = state.idle_in_ns.max(until.since(now).0);
            }
        }
        all
    }

    fn visible(&self) -> StackView {
        self.volume.visible()
    }

    fn params(&mut self) -> Vec<ParamInfo> {
        self.volume.params()
    }

    fn set_params(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        self.volume.set_params(settings)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Backend::close(Box::new(self.volume))
    }
}
