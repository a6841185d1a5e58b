//! Striping: equal chunks on the devices in turn (RAID 0).

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use crate::parts::{Part, place_in_part, prefetch_parts, read_parts, write_parts, zero_parts};
use crate::sizing::{DeviceSizes, Resizable, round_up};
use frit_core::{
    BlockDevice, Error, MediumKind, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, Tok, WriteData, size,
};

frit_core::parameters! {
    /// Configuration of a stripe.
    pub struct StripeConfig {
        #[serde(deserialize_with = "size::deserialize")]
        "chunk" chunk: u64 as Size = 64 << 10, fixed, unit "bytes", within 512..=1 << 30,
            "size of a chunk, a multiple of 512 bytes: consecutive chunks are on consecutive devices";
    }
}

impl Resizable for StripeConfig {
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        let count = now.devices.len();
        let share = bytes.div_ceil(count.max(1) as u64);
        Ok(DeviceSizes::equal(count, round_up(share, self.chunk)?))
    }
}

/// Chunks of equal size on the devices in turn. Devices that are larger than the smallest one are
/// used in part.
pub struct Stripe {
    base: Base<StripeConfig>,
    map: ChunkMap,
}

/// Mapping of addresses to chunks.
#[derive(Clone, Copy, Debug)]
struct ChunkMap {
    chunk: u64,
    devices: u64,
}

impl ChunkMap {
    /// Returns the part that begins at an address.
    fn part(self, at: u64) -> Part {
        let (chunk, within) = (at / self.chunk, at % self.chunk);
        let device = (chunk % self.devices) as usize;
        Part { device, at: chunk / self.devices * self.chunk + within, len: self.chunk - within }
    }
}

impl Stripe {
    /// Stripes devices in their order.
    ///
    /// # Errors
    /// A chunk that is not a multiple of a sector, or larger than a device.
    pub fn new(config: StripeConfig, devices: Devices) -> Result<Stripe> {
        let chunk = config.chunk;
        if !chunk.is_multiple_of(SECTOR_BYTES) {
            return Err(Error::param("chunk", chunk, "has to be a multiple of 512 bytes"));
        }
        if let Some(small) = devices.iter().map(BlockDevice::bytes).find(|&bytes| bytes < chunk) {
            let why = format!("is larger than the smallest device, which has {}", size::format(small));
            return Err(Error::param("chunk", size::format(chunk), why));
        }
        let map = ChunkMap { chunk, devices: devices.len() as u64 };
        Ok(Stripe { base: Base::new(config, devices), map })
    }
}

impl Composer for Stripe {
    const NAME: &'static str = "stripe";
    const PASSES_HINTS: bool = true;
    const DEFERS_READS: bool = true;
    const DEFERS_WRITES: bool = true;
    const FORGIVES_SYNCS: bool = true;
    type Config = StripeConfig;

    fn base(&self) -> &Base<StripeConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<StripeConfig> {
        &mut self.base
    }

    fn bytes(&self) -> u64 {
        let smallest = self.base.devices.iter().map(BlockDevice::bytes).min().unwrap_or(0);
        smallest / self.map.chunk * self.map.chunk * self.map.devices
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        prefetch_parts(&self.base.devices, self.bytes(), next, |at| self.map.part(at));
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        let map = self.map;
        read_parts(&mut self.base.devices, sink, at, into, after, |at| map.part(at))
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let map = self.map;
        write_parts(&mut self.base.devices, sink, at, data, after, |at| map.part(at))
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        let map = self.map;
        zero_parts(&mut self.base.devices, sink, at..at + len, after, |at| map.part(at))
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        place_in_part(&self.base.devices, at, self.map.part(at))
    }
}
