//! A delay of the acknowledgements of a device.

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use frit_core::transfer::transfer_time;
use frit_core::{BlockDevice, Cause, Nanos, ReadTarget, Result, Sector, Sink, Tok, WriteData};

frit_core::parameters! {
    /// Configuration of a delay.
    pub struct DelayConfig {
        "read_us" read_us: u64 as Number = 0, live, unit "µs", within 0..=60_000_000,
            "time that a read takes longer";
        "write_us" write_us: u64 as Number = 0, live, unit "µs", within 0..=60_000_000,
            "time that a write or a discard takes longer";
        "flush_us" flush_us: u64 as Number = 0, live, unit "µs", within 0..=60_000_000,
            "time that a flush takes longer";
        "link_mb_per_s" link_mb_per_s: u64 as Number = 0, live, unit "MB/s", within 0..=1_000_000,
            "rate at which the data of a read or a write is transferred in addition; 0: in no time";
    }
}

/// A device whose acknowledgements arrive later. The delays of different requests do not add up: a
/// delay is a long way to the device, and no queue.
///
/// A server waits before it sends the reply of a delayed request, outside of its lock. Other callers
/// of a volume do not wait.
pub struct Delay {
    base: Base<DelayConfig>,
}

impl Delay {
    /// Delays the acknowledgements of a device, the only one of `devices`.
    #[must_use]
    pub fn new(config: DelayConfig, devices: Devices) -> Delay {
        Delay { base: Base::new(config, devices) }
    }

    /// Makes a request to the device, and delays its acknowledgement. An error is not delayed.
    fn delayed(
        &mut self,
        sink: &mut Sink,
        delay: Nanos,
        after: Tok,
        ask: impl FnOnce(&mut Devices, &mut Sink) -> Result<Tok>,
    ) -> Result<Tok> {
        let outer = sink.begin_delayed();
        match ask(&mut self.base.devices, sink) {
            Ok(done) => Ok(sink.end_delayed(outer, done, delay)),
            Err(e) => {
                // The delays of the parts beside this one still count.
                sink.end_delayed(outer, after, Nanos::ZERO);
                Err(e)
            }
        }
    }

    /// Returns a delay with the time that the link takes for the data of a request.
    fn with_transfer(&self, us: u64, bytes: u64) -> Nanos {
        let transfer = transfer_time(bytes, self.base.config.link_mb_per_s).unwrap_or_default();
        Nanos(micros(us).0.saturating_add(transfer.0))
    }
}

const fn micros(us: u64) -> Nanos {
    Nanos(us * 1000)
}

impl Composer for Delay {
    const NAME: &'static str = "delay";
    const PASSES_HINTS: bool = true;
    const FORGIVES_SYNCS: bool = true;
    type Config = DelayConfig;

    fn base(&self) -> &Base<DelayConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<DelayConfig> {
        &mut self.base
    }

    /// A delay waits in any case.
    fn waits(&self) -> bool {
        true
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.base.devices.get(0).prefetch(next);
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        let delay = self.with_transfer(self.base.config.read_us, u64::from(into.len()));
        self.delayed(sink, delay, after, |device, sink| {
            device.get_mut(0).read(sink, at, into, Cause::Host, after)
        })
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let delay = self.with_transfer(self.base.config.write_us, u64::from(data.len()));
        self.delayed(sink, delay, after, |device, sink| {
            device.get_mut(0).write(sink, at, data, Cause::Host, after)
        })
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        self.delayed(sink, micros(self.base.config.write_us), after, |device, sink| {
            device.get_mut(0).zero(sink, at, len, Cause::Host, after)
        })
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.delayed(sink, micros(self.base.config.flush_us), after, |device, sink| {
            device.flush(sink, Cause::Host, after)
        })
    }
}
