//! Parameters of a log of segments, and the sizes that follow from them.

use crate::sizing::{DeviceSizes, Resizable, StoreSize, in_ratio, round_up};
use crate::table::{TableKind, TableLayout, VolumeShape, check_chunks};
use frit_core::{Error, Result, size};

frit_core::parameters! {
    /// Configuration of a log of segments.
    pub struct SegmentsConfig {
        #[serde(deserialize_with = "size::deserialize")]
        "size" size: u64 as Size = 0, fixed, unit "bytes",
            "capacity that the layer offers, a multiple of a chunk; 0: what the store and the map hold";
        // A write of a part of a chunk reads the rest; a smaller chunk needs more map.
        #[serde(deserialize_with = "size::deserialize")]
        "chunk" chunk: u64 as Size = 4096, fixed, unit "bytes", within 4096..=1 << 20,
            "unit of mapping, a power of two: a smaller write reads the rest of its chunk";
        "over_provisioning" over_provisioning: u32 as Number = 20, fixed, unit "%", within 5..=80,
            "share of the store that stays free for overwritten chunks: more of it means less cleaning";
        "clean_below" clean_below: u32 as Number = 50, live, unit "%", within 0..=90,
            "idle cleaning: largest share of live chunks in an object that is cleaned; 0: none";
        "buffers" buffers: u32 as Number = 2, fixed, unit "segments", within 1..=64,
            "segments in DRAM whose put is not complete: more writes wait for the oldest";
    }
}

/// The table of a log of segments.
pub(super) const KIND: TableKind =
    TableKind { layer: "segments", magic: *b"fritSEGM", number: 3, entry_bytes: ENTRY_BYTES };

/// Bytes of an entry of the table.
pub(super) const ENTRY_BYTES: usize = 16;

/// Sizes of a log of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentsShape {
    /// As the superblock keeps it. The table has its own device, so `data_at` is the size of an
    /// object.
    pub(super) volume: VolumeShape,
    pub(super) layout: TableLayout,
    /// Number of chunks that the layer offers.
    pub(super) offered: u64,
    /// Number of chunks of an object.
    pub(super) per_object: u32,
    /// Number of objects up to which new ones are put without cleaning before.
    pub(super) unreserved: u64,
}

impl SegmentsShape {
    /// Returns the sizes for a map device and a store.
    ///
    /// # Errors
    /// A chunk or a size that does not fit them.
    pub(super) fn new(config: &SegmentsConfig, map: u64, object: u32, objects: u64) -> Result<Self> {
        let chunk = config.chunk;
        check_chunks(chunk, config.size)?;
        let per_object = u64::from(object) / chunk;
        if per_object == 0 || per_object > u64::from(u16::MAX) {
            let why =
                format!("an object of {} has to hold 1 to {} chunks", size::format(object.into()), u16::MAX);
            return Err(Error::param("chunk", size::format(chunk), why));
        }
        let reserved = reserved_objects(config.over_provisioning);
        let unreserved = objects.saturating_sub(reserved);
        let most = chunks_in(unreserved * per_object, config.over_provisioning);
        let offered = if config.size == 0 { most.min(entries_in(map)) } else { config.size / chunk };
        let layout = TableLayout::new(&KIND, offered)?;
        if offered == 0 || offered > most {
            let why = format!(
                "the store of {objects} objects of {} offers {}: {reserved} objects are reserved for cleaning, \
                 and over_provisioning is {} %",
                size::format(object.into()),
                size::format(most * chunk),
                config.over_provisioning
            );
            return Err(Error::param("size", size::format(config.size), why));
        }
        if layout.bytes() > map {
            let why = format!(
                "the map needs {}, and its device has {}",
                size::format(layout.bytes()),
                size::format(map)
            );
            return Err(Error::param("size", size::format(config.size), why));
        }
        let volume = VolumeShape { size: offered * chunk, chunk, device_bytes: map, data_at: object.into() };
        Ok(SegmentsShape { volume, layout, offered, per_object: per_object as u32, unreserved })
    }
}

/// Number of objects that cleaning may use at one time. With a share `f` of live chunks, objects that
/// have dead chunks for at least one object, and for less than two, have live ones for at most
/// 2 `f` / (1 - `f`) objects. A commit in between puts two objects that may be partly filled, and one
/// more is open.
fn reserved_objects(over_provisioning: u32) -> u64 {
    2 * u64::from((100 - over_provisioning).div_ceil(over_provisioning)) + 3
}

/// Returns the number of chunks that a store offers which has places for `places`.
fn chunks_in(places: u64, over_provisioning: u32) -> u64 {
    places.saturating_mul(u64::from(100 - over_provisioning)) / 100
}

/// Returns the least number of objects of `per_object` chunks whose store offers `chunks`.
fn objects_for(chunks: u64, per_object: u64, over_provisioning: u32) -> u64 {
    let places = in_ratio(chunks, 100, u64::from(100 - over_provisioning));
    places.div_ceil(per_object).saturating_add(reserved_objects(over_provisioning))
}

impl Resizable for SegmentsConfig {
    /// Keeps the ratio of chunks for which the store has space to chunks that the layer offers. The
    /// map gets the size that its entries need.
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        let Some(store) = now.store else { return Err(Error::param("store", "", "is needed")) };
        let size = round_up(bytes, self.chunk)?;
        let present = SegmentsShape::new(self, now.devices.iter().sum(), store.object_bytes, store.objects)?;
        let (per_object, spare) = (u64::from(present.per_object), self.over_provisioning);
        let wanted = size / self.chunk;
        let chunks = if self.size == 0 {
            wanted
        } else {
            in_ratio(wanted, chunks_in(present.unreserved * per_object, spare), present.offered)
        };
        let objects = objects_for(chunks, per_object, spare);
        let map = TableLayout::new(&KIND, wanted)?.bytes();
        Ok(DeviceSizes {
            devices: vec![map],
            store: Some(StoreSize { objects, ..store }),
            own: (self.size != 0).then_some(size),
        })
    }
}

/// Returns the number of entries for which a device of this size has room.
fn entries_in(map: u64) -> u64 {
    // Both copies have a superblock and whole sectors.
    let sectors = (map / frit_core::SECTOR_BYTES / 2).saturating_sub(1);
    sectors * KIND.entries_per_sector() as u64
}
