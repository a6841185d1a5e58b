//! Parameters of compression, and the sizes that follow from them.

use crate::sizing::{DeviceSizes, Resizable, in_ratio, least_bytes, round_up};
use crate::table::{TableKind, TableLayout, VolumeShape, check_chunks};
use frit_core::{Error, Result, SECTOR_BYTES, size};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Compression of the contents of a chunk.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    EnumString,
    IntoStaticStr,
    VariantNames,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Algorithm {
    /// Contents are stored as they are. Checksums and the places of chunks do not change.
    None,
    /// LZ4 blocks (`lz4_flex`).
    #[default]
    Lz4,
    /// Zstandard frames (`zstd`).
    Zstd,
}

frit_core::parameters! {
    /// Configuration of compression.
    pub struct CompressConfig {
        #[serde(deserialize_with = "size::deserialize")]
        "size" size: u64 as Size = 0, fixed, unit "bytes",
            "capacity that the layer offers, a multiple of a chunk: it may be larger than the device; 0: \
             what the device holds without compression";
        // Larger chunks compress better; a smaller read or write costs a whole chunk.
        #[serde(deserialize_with = "size::deserialize")]
        "chunk" chunk: u64 as Size = 64 << 10, fixed, unit "bytes", within 4096..=1 << 20,
            "size of a chunk, a power of two: chunks are compressed and stored one by one";
        "algorithm" algorithm: Algorithm as Keyword = Algorithm::Lz4, live,
            "compression of the chunks that are written: none, lz4 or zstd";
        "level" level: u32 as Number = 3, live, within 1..=19,
            "level of zstd: a higher one is slower and compresses better",
            unused |c| c.algorithm != Algorithm::Zstd => "only zstd has levels";
        "buffer_chunks" buffer_chunks: u32 as Number = 16, fixed, unit "chunks", within 1..=1024,
            "chunks in DRAM that collect writes until a flush, or until the buffer is full";
        "modelled_ratio" modelled_ratio: f64 as Number = 1.0, live, within 1.0..=100.0,
            "ratio of compression in a simulation without bytes: logical bytes for each stored byte";
    }
}

/// The table of a compressing layer.
pub(super) const KIND: TableKind =
    TableKind { layer: "compress", magic: *b"fritCMPR", number: 2, entry_bytes: ENTRY_BYTES };

/// Bytes of an entry of the table.
pub(super) const ENTRY_BYTES: usize = 24;

/// Sizes of a compressing layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CompressShape {
    /// As the superblock keeps it.
    pub(super) volume: VolumeShape,
    pub(super) layout: TableLayout,
    /// Number of chunks that the layer offers.
    pub(super) offered: u64,
    /// Sectors of a chunk.
    pub(super) chunk_sectors: u64,
    /// First sector of the area through which overlapping runs are moved: that of one chunk.
    pub(super) exchange: u64,
    /// Sectors for runs: first one, and end.
    pub(super) runs: (u64, u64),
}

/// Chunks' worth of space that new chunks leave free, so that overwrites stay possible.
pub(super) const KEPT_BY_NEW: u64 = 2;
/// Chunks' worth of space that overwrites leave free: a chunk is written to a new place before its
/// old one is free.
pub(super) const KEPT_BY_OVERWRITES: u64 = 1;

impl CompressShape {
    /// Returns the sizes on a device of this size.
    ///
    /// # Errors
    /// A chunk or a size that does not fit the device.
    pub(super) fn new(config: &CompressConfig, device_bytes: u64) -> Result<CompressShape> {
        let chunk = config.chunk;
        check_chunks(chunk, config.size)?;
        let chunk_sectors = chunk / SECTOR_BYTES;
        let of = |offered: u64| -> Result<CompressShape> {
            let layout = TableLayout::new(&KIND, offered)?;
            let data_at = layout.bytes().next_multiple_of(4096);
            let exchange = data_at / SECTOR_BYTES;
            let volume = VolumeShape { size: offered * chunk, chunk, device_bytes, data_at };
            let runs = (exchange + chunk_sectors, device_bytes / SECTOR_BYTES);
            Ok(CompressShape { volume, layout, offered, chunk_sectors, exchange, runs })
        };
        let shape = match config.size {
            0 => of(of(device_bytes / chunk)?.room().saturating_sub(KEPT_BY_NEW))?,
            size => of(size / chunk)?,
        };
        if shape.room() <= KEPT_BY_NEW || shape.offered == 0 {
            let why = format!(
                "leaves no room on the device of {}: the table takes {}, and {} chunks stay free",
                size::format(device_bytes),
                size::format(shape.layout.bytes()),
                KEPT_BY_NEW + 1
            );
            return Err(Error::param("size", size::format(config.size), why));
        }
        Ok(shape)
    }

    /// Returns the number of chunks for which the device has room without compression.
    fn room(&self) -> u64 {
        self.runs.1.saturating_sub(self.runs.0) / self.chunk_sectors
    }
}

impl Resizable for CompressConfig {
    /// Keeps the ratio of room on the device to chunks that the layer offers.
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        let size = round_up(bytes, self.chunk)?;
        if self.size == 0 {
            let device = least_bytes(|device| Ok(CompressShape::new(self, device)?.volume.size >= size))?;
            return Ok(DeviceSizes::equal(1, device));
        }
        let present = CompressShape::new(self, now.devices.iter().sum())?;
        let room = in_ratio(size / self.chunk, present.room(), present.offered);
        let sized = CompressConfig { size, ..self.clone() };
        let device = least_bytes(|device| Ok(CompressShape::new(&sized, device)?.room() >= room))?;
        Ok(DeviceSizes { own: Some(size), ..DeviceSizes::equal(1, device) })
    }
}
