//! Parameters of thin provisioning, and the sizes that follow from them.

use crate::sizing::{DeviceSizes, Resizable, in_ratio, least_bytes, round_up};
use crate::table::{TableKind, TableLayout, VolumeShape, check_chunks};
use frit_core::{Error, Result, size};

frit_core::parameters! {
    /// Configuration of thin provisioning.
    pub struct ThinConfig {
        #[serde(deserialize_with = "size::deserialize")]
        "size" size: u64 as Size = 0, fixed, unit "bytes",
            "capacity that the layer offers, a multiple of a chunk: it may be larger than the device; 0: \
             that of the chunks of the device";
        // A first write to a chunk writes all of it: 64 KiB take a disk less than a tenth of the time of
        // a seek and half a revolution. The map of 1 TiB takes 64 MiB of DRAM.
        #[serde(deserialize_with = "size::deserialize")]
        "chunk" chunk: u64 as Size = 64 << 10, fixed, unit "bytes", within 4096..=1 << 30,
            "size of a chunk, a power of two: space is allocated in chunks";
        "low_water" low_water: f64 as Number = 0.1, live, unit "share of the chunks", within 0.0..=1.0,
            "share of free chunks on the device below which the metric low_space is 1";
    }
}

/// The table of a thin layer.
pub(super) const KIND: TableKind =
    TableKind { layer: "thin", magic: *b"fritTHIN", number: 1, entry_bytes: ENTRY_BYTES };

/// Bytes of an entry of the table.
pub(super) const ENTRY_BYTES: usize = 8;

/// Largest number of chunks on the device: the entries in DRAM have 32 bits, two of whose values
/// are no chunks.
const CHUNKS_MAX: u64 = u32::MAX as u64 - 2;

/// Sizes of a thin layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThinShape {
    /// As the superblock keeps it.
    pub(super) volume: VolumeShape,
    pub(super) layout: TableLayout,
    /// Number of chunks that the layer offers.
    pub(super) offered: u64,
    /// Number of chunks on the device.
    pub(super) stored: u64,
}

impl ThinShape {
    /// Returns the sizes on a device of this size.
    ///
    /// # Errors
    /// A chunk or a size that does not fit the device.
    pub(super) fn new(config: &ThinConfig, device_bytes: u64) -> Result<ThinShape> {
        let chunk = config.chunk;
        check_chunks(chunk, config.size)?;
        let of = |offered: u64| -> Result<ThinShape> {
            let layout = TableLayout::new(&KIND, offered)?;
            let data_at = layout.bytes().next_multiple_of(chunk);
            let stored = device_bytes.saturating_sub(data_at) / chunk;
            let volume = VolumeShape { size: offered * chunk, chunk, device_bytes, data_at };
            Ok(ThinShape { volume, layout, offered, stored })
        };
        let shape = match config.size {
            0 => of(of(device_bytes / chunk)?.stored)?,
            size => of(size / chunk)?,
        };
        if shape.stored == 0 {
            let why = format!(
                "leaves no chunk on the device of {}: the table takes {}",
                size::format(device_bytes),
                size::format(shape.layout.bytes())
            );
            return Err(Error::param("size", size::format(config.size), why));
        }
        if shape.stored > CHUNKS_MAX {
            return Err(Error::param("chunk", size::format(chunk), "is too small for the device"));
        }
        Ok(shape)
    }
}

impl Resizable for ThinConfig {
    /// Keeps the ratio of chunks on the device to chunks that the layer offers.
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        let size = round_up(bytes, self.chunk)?;
        if self.size == 0 {
            let device = least_bytes(|device| Ok(ThinShape::new(self, device)?.volume.size >= size))?;
            return Ok(DeviceSizes::equal(1, device));
        }
        let present = ThinShape::new(self, now.devices.iter().sum())?;
        let stored = in_ratio(size / self.chunk, present.stored, present.offered);
        let sized = ThinConfig { size, ..self.clone() };
        let device = least_bytes(|device| Ok(ThinShape::new(&sized, device)?.stored >= stored))?;
        Ok(DeviceSizes { own: Some(size), ..DeviceSizes::equal(1, device) })
    }
}
