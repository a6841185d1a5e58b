//! Concatenation: the devices one after the other.

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use crate::parts::{Part, place_in_part, prefetch_parts, read_parts, write_parts, zero_parts};
use crate::sizing::{DeviceSizes, Resizable, in_ratio, round_up};
use frit_core::{BlockDevice, MediumKind, ReadTarget, Result, Sector, Sink, Tok, WriteData};

frit_core::parameters! {
    /// Configuration of a concatenation. It has no parameters.
    pub struct ConcatConfig {}
}

/// Shares of devices are multiples of this size, which most devices have exactly.
const SHARE_STEP: u64 = 64 << 10;

impl Resizable for ConcatConfig {
    /// Divides the capacity in proportion to the present sizes of the devices.
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        let (mut rest, mut total) = (bytes, now.devices.iter().sum::<u64>());
        let mut devices = Vec::new();
        for &present in &now.devices {
            let share = in_ratio(rest, present, total);
            let step = if share < rest { SHARE_STEP } else { 1 };
            // No device can be empty, so the last ones have a sector of a size that is too small.
            let share = round_up(share, step)?.min(rest).max(frit_core::SECTOR_BYTES);
            devices.push(share);
            rest = rest.saturating_sub(share);
            total -= present;
        }
        Ok(DeviceSizes { devices, ..DeviceSizes::default() })
    }
}

/// The devices one after the other, as one device of their total capacity.
pub struct Concat {
    base: Base<ConcatConfig>,
    /// First byte of each device, and the end of the last one.
    starts: Vec<u64>,
}

impl Concat {
    /// Concatenates devices in their order.
    #[must_use]
    pub fn new(config: ConcatConfig, devices: Devices) -> Concat {
        let mut end = 0;
        let mut starts = vec![0];
        starts.extend(devices.iter().map(|d| {
            end += d.bytes();
            end
        }));
        Concat { base: Base::new(config, devices), starts }
    }
}

/// Returns the part that begins at an address.
fn part(starts: &[u64], at: u64) -> Part {
    let device = starts.partition_point(|&start| start <= at) - 1;
    Part { device, at: at - starts[device], len: starts[device + 1] - at }
}

impl Composer for Concat {
    const NAME: &'static str = "concat";
    const PASSES_HINTS: bool = true;
    const DEFERS_READS: bool = true;
    const DEFERS_WRITES: bool = true;
    const FORGIVES_SYNCS: bool = true;
    type Config = ConcatConfig;

    fn base(&self) -> &Base<ConcatConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<ConcatConfig> {
        &mut self.base
    }

    fn bytes(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        prefetch_parts(&self.base.devices, self.bytes(), next, |at| part(&self.starts, at));
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        let starts = &self.starts;
        read_parts(&mut self.base.devices, sink, at, into, after, |at| part(starts, at))
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let starts = &self.starts;
        write_parts(&mut self.base.devices, sink, at, data, after, |at| part(starts, at))
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        let starts = &self.starts;
        zero_parts(&mut self.base.devices, sink, at..at + len, after, |at| part(starts, at))
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        place_in_part(&self.base.devices, at, part(&self.starts, at))
    }
}
