//! PCM and other byte-addressable persistent memories: bytes are durable, written in place, and
//! wear.
//!
//! Rules of the device:
//!
//! - An access lies within the device.
//! - A write costs, and wears, the write units that it covers.
//! - A power loss tears a write only between aligned words of [`ATOMIC_BYTES`]. Only a fence orders
//!   writes.
//! - A clean write needs cells that were refreshed since they were last written. On a device that
//!   was recovered from a store, cells that contain zeros count as refreshed.
//!
//! The chips of a channel work in lockstep, so that the channel is the unit. If they form groups,
//! each group is a unit.

mod clean;
mod geometry;
mod layout;
mod ops;
mod partition;

pub use geometry::PcmGeometry;
pub use partition::Partition;

use crate::memory::table32;
use crate::stripe::Stripe;
use crate::{AnyStore, Device, Hardware, PcmTiming, Store, TimingModel};
use clean::CleanMap;
use frit_core::visible::{MediumView, Wear, WearArea};
use frit_core::{Counts, Error, MediumKind, Result, UnitId, size};

/// Size of an aligned word that a power loss cannot tear (the guarantee of persistent memory on
/// 64-bit machines: Intel SDM volume 3, "Guaranteed Atomic Operations", on aligned 8-byte stores).
pub const ATOMIC_BYTES: u32 = 8;

/// Maximum number of entries in a wear view. On larger devices, each entry represents several
/// lines.
const WEAR_ENTRIES_MAX: usize = 1 << 20;

/// Configuration of a PCM device.
#[derive(Clone, Debug)]
pub struct PcmConfig {
    /// Name of the device in the stack.
    pub name: String,
    /// Geometry of the device.
    pub geometry: PcmGeometry,
    /// Timing of its commands.
    pub timing: PcmTiming,
    /// Specified endurance of a cell in writes.
    pub endurance: u64,
    /// Bytes that one refresh cleans; `None` for a part without clean writes.
    pub refresh_bytes: Option<u32>,
    /// Serial number, kept in the store: the store of another device is refused. 0 if the device
    /// has none.
    pub serial: u64,
}

/// A PCM device that keeps its bytes in a store.
#[derive(Debug)]
pub struct Pcm {
    config: PcmConfig,
    bytes: u64,
    group_bytes: u64,
    stripe: Stripe,
    line_shift: u32,
    first_unit: UnitId,
    wear: Vec<u32>,
    clean: CleanMap,
    partitions: Vec<(&'static str, Partition)>,
    counts: Counts,
    store: AnyStore,
}

impl Pcm {
    /// Returns `true` if the store keeps the bytes that are written.
    #[inline]
    #[must_use]
    pub fn stores_bytes(&self) -> bool {
        self.store.stores_bytes()
    }

    /// Opens a device on `store` and registers its units with `hw`. On a blank store the device is
    /// new; otherwise the data and the wear of the last [`Pcm::sync`] are recovered from the store.
    ///
    /// # Errors
    /// An impossible geometry, a store that is too small or contains another device, or more units
    /// than a stack can have.
    pub fn new(
        config: PcmConfig,
        store: impl Into<AnyStore>,
        hw: &mut Hardware,
    ) -> std::result::Result<Self, String> {
        Self::on(config, store.into(), hw)
    }

    fn on(config: PcmConfig, store: AnyStore, hw: &mut Hardware) -> std::result::Result<Self, String> {
        let g = config.geometry;
        g.check().map_err(|e| e.to_string())?;
        g.check_refresh(config.refresh_bytes).map_err(|e| e.to_string())?;
        if store.stores_bytes() && store.len() < g.store_bytes() {
            return Err(format!(
                "the store of PCM '{}' has {} bytes and needs {}: {} of data and the rest for its wear",
                config.name,
                store.len(),
                g.store_bytes(),
                size::format(g.bytes())
            ));
        }
        let first_unit = hw.add(Device {
            name: config.name.clone(),
            kind: MediumKind::Pcm,
            model: TimingModel::Pcm(config.timing.clone()),
            unit_channel: (0..g.units()).map(|unit| (unit % g.channels) as u16).collect(),
            nand: None,
        })?;
        let unit_shift = g.write_unit.trailing_zeros();
        let clean = match config.refresh_bytes {
            None => CleanMap::none(),
            Some(_) => CleanMap::new(g.bytes() >> unit_shift, unit_shift, store.is_blank()),
        };
        let mut pcm = Pcm {
            bytes: g.bytes(),
            group_bytes: g.group_bytes(),
            stripe: Stripe::new(g.channels, g.interleave_bytes),
            line_shift: g.line_bytes.trailing_zeros(),
            first_unit,
            wear: table32(g.lines() as usize),
            clean,
            partitions: Vec::new(),
            counts: Counts::default(),
            store,
            config,
        };
        pcm.load().map_err(|e| format!("PCM '{}': {e}", pcm.config.name))?;
        Ok(pcm)
    }

    /// Size in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Geometry of the device.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &PcmGeometry {
        &self.config.geometry
    }

    /// Configuration of the device.
    #[must_use]
    pub fn config(&self) -> &PcmConfig {
        &self.config
    }

    /// Returns the unit (the group of a channel) that holds an address.
    #[inline]
    #[must_use]
    pub fn unit_of(&self, at: u64) -> UnitId {
        let mut unit = self.stripe.channel(at);
        if self.config.geometry.groups > 1 {
            unit += (at / self.group_bytes) as u32 * self.config.geometry.channels;
        }
        UnitId(self.first_unit.0 + unit as u16)
    }

    /// Returns the stack-wide id of a unit of this device.
    #[must_use]
    pub fn unit_id(&self, unit: u32) -> UnitId {
        UnitId(self.first_unit.0 + unit as u16)
    }

    /// Command counts by operation and cause.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Number of writes to the line that holds an address: an upper bound for each of its cells.
    #[must_use]
    pub fn wear_of(&self, at: u64) -> u32 {
        self.wear[(at >> self.line_shift) as usize]
    }

    /// The store that holds the bytes of the device.
    #[must_use]
    pub fn store(&self) -> &AnyStore {
        &self.store
    }

    /// Mutable access to the store that bypasses the device, to inject damage or torn writes.
    pub fn store_mut(&mut self) -> &mut AnyStore {
        &mut self.store
    }

    /// Returns the store.
    #[must_use]
    pub fn into_store(self) -> AnyStore {
        self.store
    }

    /// Saves the wear counters to the store, and makes all written bytes durable.
    ///
    /// # Errors
    /// An error of the store.
    pub fn sync(&mut self) -> Result<()> {
        self.save_wear()?;
        self.store.sync()
    }

    /// Geometry, partitions, counts and wear.
    #[must_use]
    pub fn view(&self) -> MediumView {
        let g = &self.config.geometry;
        let mut geometry = g.named();
        geometry.extend(self.partitions.iter().map(|(name, p)| (*name, p.bytes)));
        let lines = self.wear.len().div_ceil(WEAR_ENTRIES_MAX).max(1);
        let cycles = self.wear.chunks(lines).map(|c| c.iter().copied().max().unwrap_or(0)).collect();
        let line = size::format(u64::from(g.line_bytes));
        let per = match lines {
            1 => format!("line of {line}"),
            n => format!("most written of {n} lines of {line}"),
        };
        let group = lines as u64 * u64::from(g.line_bytes);
        let areas = self.partitions.iter().map(|&(name, p)| WearArea {
            name,
            at: p.start,
            bytes: p.bytes,
            groups: (p.start / group) as usize..p.end().div_ceil(group) as usize,
        });
        let areas = areas.collect();
        let limit = self.config.endurance;
        let bad = self.wear.iter().filter(|&&c| u64::from(c) > limit).count() as u32;
        MediumView {
            layer: String::new(),
            name: self.config.name.clone(),
            kind: MediumKind::Pcm,
            bytes: self.bytes,
            channels: g.channels,
            first_unit: self.first_unit,
            units: g.units(),
            geometry,
            counts: self.counts.clone(),
            wear: Wear { per, cycles, limit, bad, areas, one_bit: None },
        }
    }

    #[cold]
    fn rule<T>(at: u64, what: &'static str) -> Result<T> {
        Err(Error::Rule { medium: MediumKind::Pcm, at, what })
    }
}

#[cfg(test)]
mod tests;
