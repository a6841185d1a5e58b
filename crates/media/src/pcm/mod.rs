//! PCM and its kin: bytes that are durable, written in place, and wear.
//!
//! The rules: an access lies within the device; what is written costs, and wears, the write units
//! that it covers; a power cut tears a write at most between aligned words of [`ATOMIC_BYTES`], and
//! only a fence orders writes; a clean write goes to cells that were refreshed since they were last
//! written, or, when nobody remembers, hold zeros as a refresh leaves them.
//!
//! The chips of a channel work in lockstep, so that the channel is the unit; where they form groups, the group is.

mod clean;
mod geometry;
mod layout;
mod ops;
mod partition;

pub use geometry::PcmGeometry;
pub use partition::Partition;

use crate::memory::table32;
use crate::stripe::Stripe;
use crate::{Device, Hardware, Model, PcmTiming, Store};
use clean::Clean;
use frit_core::visible::{MediumView, Wear};
use frit_core::{Counts, Error, MediumKind, Result, UnitId, size};

/// What a power cut cannot tear: an aligned word of this many bytes (the guarantee of persistent
/// memory on 64-bit machines: Intel SDM volume 3, "Guaranteed Atomic Operations", on aligned
/// 8-byte stores).
pub const ATOMIC_BYTES: u32 = 8;

/// Most entries of a wear view: beyond it, an entry stands for several lines.
const WEAR_ENTRIES_MAX: usize = 1 << 20;

/// All that makes a PCM device.
#[derive(Clone, Debug)]
pub struct PcmConfig {
    /// Its name in the stack.
    pub name: String,
    /// Its shape.
    pub geometry: PcmGeometry,
    /// What its commands cost.
    pub timing: PcmTiming,
    /// Writes that a cell is specified for.
    pub endurance: u64,
    /// Bytes that one refresh cleans; none for a part without clean writes.
    pub refresh_bytes: Option<u32>,
    /// Its serial number, kept in the store: a store that holds another device is refused. 0: none.
    pub serial: u64,
}

/// A PCM device on a store.
#[derive(Debug)]
pub struct Pcm<St> {
    config: PcmConfig,
    bytes: u64,
    group_bytes: u64,
    stripe: Stripe,
    line_shift: u32,
    first_unit: UnitId,
    wear: Vec<u32>,
    clean: Clean,
    partitions: Vec<(&'static str, Partition)>,
    counts: Counts,
    store: St,
}

impl<St: Store> Pcm<St> {
    /// A device on `store`: a new one when the store is blank, else the one that the store holds,
    /// with the wear of the last [`Pcm::sync`]. Registers its channels with `hw`.
    ///
    /// # Errors
    /// An impossible geometry, a store that is too small or holds another device, or more units than a
    /// stack can have.
    pub fn new(config: PcmConfig, store: St, hw: &mut Hardware) -> std::result::Result<Self, String> {
        let g = config.geometry;
        g.check().map_err(|e| e.to_string())?;
        g.check_refresh(config.refresh_bytes).map_err(|e| e.to_string())?;
        if St::HOLDS && store.len() < g.store_bytes() {
            return Err(format!(
                "the store of PCM '{}' has {} bytes and needs {}: {} of data and the rest for its wear",
                config.name,
                store.len(),
                g.store_bytes(),
                size::show(g.bytes())
            ));
        }
        let first_unit = hw.add(Device {
            name: config.name.clone(),
            kind: MediumKind::Pcm,
            model: Model::Pcm(config.timing.clone()),
            unit_channel: (0..g.units()).map(|unit| (unit % g.channels) as u16).collect(),
        })?;
        let unit_shift = g.write_unit.trailing_zeros();
        let clean = match config.refresh_bytes {
            None => Clean::none(),
            Some(_) => Clean::new(g.bytes() >> unit_shift, unit_shift, store.is_blank()),
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
        pcm.start().map_err(|e| format!("PCM '{}': {e}", pcm.config.name))?;
        Ok(pcm)
    }

    /// Size in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its shape.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &PcmGeometry {
        &self.config.geometry
    }

    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &PcmConfig {
        &self.config
    }

    /// The unit (a channel's group) that holds an address.
    #[inline]
    #[must_use]
    pub fn unit_of(&self, at: u64) -> UnitId {
        let mut unit = self.stripe.channel(at);
        if self.config.geometry.groups > 1 {
            unit += (at / self.group_bytes) as u32 * self.config.geometry.channels;
        }
        UnitId(self.first_unit.0 + unit as u16)
    }

    /// The stack-wide number of one of its units.
    #[must_use]
    pub fn unit_id(&self, unit: u32) -> UnitId {
        UnitId(self.first_unit.0 + unit as u16)
    }

    /// Commands by operation and cause.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How often the line that holds an address was written: an upper bound for each of its cells.
    #[must_use]
    pub fn wear_of(&self, at: u64) -> u32 {
        self.wear[(at >> self.line_shift) as usize]
    }

    /// What holds its bytes.
    #[must_use]
    pub fn store(&self) -> &St {
        &self.store
    }

    /// What holds its bytes, to be changed behind its back (damage, cuts).
    pub fn store_mut(&mut self) -> &mut St {
        &mut self.store
    }

    /// Gives the store back.
    #[must_use]
    pub fn into_store(self) -> St {
        self.store
    }

    /// Writes the wear down, and makes all that was written outlive the machine.
    ///
    /// # Errors
    /// A store that fails.
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
        let line = size::show(u64::from(g.line_bytes));
        let per = match lines {
            1 => format!("line of {line}"),
            n => format!("most written of {n} lines of {line}"),
        };
        let limit = self.config.endurance;
        let bad = self.wear.iter().filter(|&&c| u64::from(c) > limit).count() as u32;
        MediumView {
            name: self.config.name.clone(),
            kind: MediumKind::Pcm,
            bytes: self.bytes,
            channels: g.channels,
            first_unit: self.first_unit,
            units: g.units(),
            geometry,
            counts: self.counts.clone(),
            wear: Wear { per, cycles, limit, bad },
        }
    }

    #[cold]
    fn rule<T>(at: u64, what: &'static str) -> Result<T> {
        Err(Error::Rule { medium: MediumKind::Pcm, at, what })
    }
}

#[cfg(test)]
mod tests;
