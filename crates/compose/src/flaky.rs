//! A device that fails by rules: for tests of the layers above it.

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use frit_core::convert::to_f64;
use frit_core::split_mix;
use frit_core::visible::Metric;
use frit_core::{
    BlockDevice, Cause, Error, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, Tok, WriteData,
    WriteGuarantee, size,
};
use std::ops::Range;

frit_core::parameters! {
    /// Configuration of a flaky device. Rates are shares of the requests of a kind.
    pub struct FlakyConfig {
        "seed" seed: u64 as Number = 1, fixed,
            "seed of the random choices: the same requests fail in each run";
        "read_errors" read_errors: f64 as Number = 0.0, live, within 0.0..=1.0,
            "share of reads that fail";
        "write_errors" write_errors: f64 as Number = 0.0, live, within 0.0..=1.0,
            "share of writes and discards that fail and change nothing";
        "torn_writes" torn_writes: f64 as Number = 0.0, live, within 0.0..=1.0,
            "share of writes of several sectors that fail after they have changed only the first ones";
        "flush_errors" flush_errors: f64 as Number = 0.0, live, within 0.0..=1.0,
            "share of flushes that fail and make nothing durable";
        "lost_flushes" lost_flushes: f64 as Number = 0.0, live, within 0.0..=1.0,
            "share of flushes that are acknowledged and make nothing durable";
        "corrupt_reads" corrupt_reads: f64 as Number = 0.0, live, within 0.0..=1.0,
            "share of reads of which one bit is wrong, without an error";
        "good" good: u64 as Number = 0, fixed, unit "requests",
            "number of requests before the first fault";
        #[serde(deserialize_with = "size::deserialize")]
        "from" from: u64 as Size = 0, fixed, unit "bytes",
            "faults concern requests that touch the range from here";
        #[serde(deserialize_with = "size::deserialize")]
        "to" to: u64 as Size = 0, fixed, unit "bytes",
            "… to here; 0: the end of the device",
            unused |c| c.from == 0 && c.to == 0 => "0 is the end of the device";
        "down" down: bool as Switch = false, live,
            "all requests fail";
    }
}

/// Number of faults by kind.
#[derive(Clone, Copy, Default, Debug)]
struct FaultCounts {
    read_errors: u64,
    write_errors: u64,
    torn_writes: u64,
    flush_errors: u64,
    lost_flushes: u64,
    corrupt_reads: u64,
}

/// A device that fails by rules.
pub struct Flaky {
    base: Base<FlakyConfig>,
    state: u64,
    requests: u64,
    counts: FaultCounts,
}

impl Flaky {
    /// Makes a device fail, the only one of `devices`.
    #[must_use]
    pub fn new(config: FlakyConfig, devices: Devices) -> Flaky {
        Flaky {
            state: config.seed,
            base: Base::new(config, devices),
            requests: 0,
            counts: FaultCounts::default(),
        }
    }

    /// Counts a request. Returns `true` if it can have faults.
    fn counts_request(&mut self, range: &Range<u64>) -> bool {
        self.requests += 1;
        let to = if self.base.config.to == 0 { u64::MAX } else { self.base.config.to };
        self.requests > self.base.config.good && range.start < to && range.end > self.base.config.from
    }

    /// Decides whether a fault of this rate occurs. A rate of 0 takes no random number, so that the
    /// choices of one kind do not depend on the others that are off.
    fn occurs(&mut self, rate: f64) -> bool {
        rate > 0.0 && to_f64(split_mix::next(&mut self.state) >> 11) < rate * to_f64(1 << 53)
    }

    fn error(&self, rule: &str, what: &str, range: &Range<u64>) -> Error {
        let (at, sectors) = (range.start / SECTOR_BYTES, (range.end - range.start) / SECTOR_BYTES);
        Error::Io {
            what: format!("{what} of {sectors} sectors at {at} fails by the rule {rule}"),
            source: std::io::Error::other("fault of a flaky device"),
        }
    }

    fn check_up(&self, what: &str, range: &Range<u64>) -> Result<()> {
        if self.base.config.down { Err(self.error("down", what, range)) } else { Ok(()) }
    }
}

impl Composer for Flaky {
    const NAME: &'static str = "flaky";
    const PASSES_HINTS: bool = true;
    const FORGIVES_SYNCS: bool = true;
    type Config = FlakyConfig;

    fn base(&self) -> &Base<FlakyConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<FlakyConfig> {
        &mut self.base
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.base.devices.get(0).prefetch(next);
    }

    fn read(&mut self, sink: &mut Sink, at: u64, mut into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        let range = at..at + u64::from(into.len());
        self.check_up("a read", &range)?;
        let faulty = self.counts_request(&range);
        if faulty && self.occurs(self.base.config.read_errors) {
            self.counts.read_errors += 1;
            return Err(self.error("read_errors", "a read", &range));
        }
        let len = into.len();
        let done = self.base.devices.get_mut(0).read(sink, at, into.part(0, len), Cause::Host, after)?;
        if faulty && len > 0 && self.occurs(self.base.config.corrupt_reads) {
            self.counts.corrupt_reads += 1;
            let bit = split_mix::next(&mut self.state) % (u64::from(len) * 8);
            if let Some(bytes) = into.bytes() {
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
        }
        Ok(done)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let range = at..at + u64::from(data.len());
        self.check_up("a write", &range)?;
        if self.counts_request(&range) {
            if self.occurs(self.base.config.write_errors) {
                self.counts.write_errors += 1;
                return Err(self.error("write_errors", "a write", &range));
            }
            let sectors = u64::from(data.len()) / SECTOR_BYTES;
            if sectors > 1 && self.occurs(self.base.config.torn_writes) {
                self.counts.torn_writes += 1;
                let part = (1 + split_mix::next(&mut self.state) % (sectors - 1)) * SECTOR_BYTES;
                let part = data.part(0, part as u32);
                self.base.devices.get_mut(0).write(sink, at, part, Cause::Host, after)?;
                return Err(self.error("torn_writes", "a write", &range));
            }
        }
        self.base.devices.get_mut(0).write(sink, at, data, Cause::Host, after)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        let range = at..at + len;
        self.check_up("a discard", &range)?;
        if self.counts_request(&range) && self.occurs(self.base.config.write_errors) {
            self.counts.write_errors += 1;
            return Err(self.error("write_errors", "a discard", &range));
        }
        self.base.devices.get_mut(0).zero(sink, at, len, Cause::Host, after)
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        // A flush concerns the whole device.
        let range = 0..self.base.devices.get(0).bytes();
        self.check_up("a flush", &range)?;
        if self.counts_request(&range) {
            if self.occurs(self.base.config.flush_errors) {
                self.counts.flush_errors += 1;
                return Err(self.error("flush_errors", "a flush", &range));
            }
            if self.occurs(self.base.config.lost_flushes) {
                self.counts.lost_flushes += 1;
                return Ok(after);
            }
        }
        self.base.devices.flush(sink, Cause::Host, after)
    }

    /// A write can be torn at any sector.
    fn write_guarantee(&self) -> WriteGuarantee {
        let below = self.base.devices.weakest_guarantee();
        let torn = self.base.config.torn_writes > 0.0;
        WriteGuarantee { atomic_bytes: if torn { SECTOR_BYTES as u32 } else { below.atomic_bytes }, ..below }
    }

    fn metrics(&self) -> Vec<Metric> {
        let count = |name, value: u64, help| Metric { name, value: to_f64(value), unit: "", help };
        let c = &self.counts;
        vec![
            count("fault_read_errors", c.read_errors, "reads that failed by rule"),
            count("fault_write_errors", c.write_errors, "writes that failed by rule"),
            count("fault_torn_writes", c.torn_writes, "writes that were torn by rule"),
            count("fault_flush_errors", c.flush_errors, "flushes that failed by rule"),
            count("fault_lost_flushes", c.lost_flushes, "flushes that were lost by rule"),
            count("fault_corrupt_reads", c.corrupt_reads, "reads with a wrong bit by rule"),
        ]
    }
}
