//! PCM under a leveler: the calls of [`Pcm`], with logical addresses.

mod area;
mod fresh;
mod head;
mod io;
mod moves;
mod recover;
mod view;

pub use recover::WearRecovery;

use super::{Leveler, LevelerKind, Levelers, Shape, WearConfig};
use crate::Token;
use area::Area;
use frit_core::{Error, Result, UnitId};
use frit_media::{Pcm, PcmConfig, PcmGeometry, Store};

/// What is kept of a region.
#[derive(Clone, Copy, Debug)]
struct Region<T> {
    /// Bytes written since its last move.
    written: u64,
    /// When its last move is durable.
    gate: T,
    /// Its number as of the last flush, where that is kept.
    synced: u64,
}

/// PCM whose wear is leveled. Addresses are logical; [`Leveled::bytes`] says how many there are.
///
/// Refreshed cells move with their stripe: its copy has zeros where the stripe had them, and zeros are what a
/// refresh leaves. [`Leveled::refresh_bytes`] says whether stripes are large enough to be refreshed.
#[derive(Debug)]
pub struct Leveled<T, St> {
    pcm: Pcm<St>,
    /// Nothing is ever moved: calls go straight to the device.
    plain: bool,
    bytes: u64,
    config: WearConfig,
    shape: Shape,
    leveler: Levelers,
    area: Area,
    stripe_shift: u32,
    interval_bytes: u64,
    regions: Vec<Region<T>>,
    /// For each physical stripe: when what was written to it is there, of what was written since it was moved.
    written: Vec<T>,
    /// For each physical stripe: when it may be read and written, since a move took or freed it.
    ready: Vec<T>,
    /// Regions that moved since the last flush, where that is kept.
    moved: Vec<u32>,
    /// A stripe that moves; empty without bytes.
    buffer: Vec<u8>,
    /// The same, read once more.
    again: Vec<u8>,
    moves: u64,
    /// Why writes are refused, once a register may be in PCM and not here.
    broken: Option<String>,
}

impl<T: Token, St: Store> Leveled<T, St> {
    /// Levels a device. What it holds is found by [`Leveled::recover`]; a new one takes [`Leveled::format`].
    ///
    /// # Errors
    /// Parameters that do not fit the device: a leveler's, or a stripe smaller than a line or interleave unit.
    pub fn new(pcm: Pcm<St>, config: WearConfig) -> Result<Leveled<T, St>> {
        let line = pcm.geometry().line_bytes;
        let plain = config.leveler == LevelerKind::NoLeveling;
        if config.stripe_bytes < line && !plain {
            let why = format!("has to be a multiple of the PCM's line of {line} bytes");
            return Err(Error::param("stripe_bytes", config.stripe_bytes, why));
        }
        let (per_stripe, head) = if plain { (0, 0) } else { Area::cost(&config, line) };
        let shape = Shape::fit(&config, pcm.bytes(), per_stripe, head);
        // Without leveling stripes are a way to count, and any device will do.
        let shape = if plain { shape.or_else(|_| Shape::whole(pcm.bytes())) } else { shape }?;
        let leveler = Levelers::new(&config, &shape)?;
        let bytes =
            if plain { pcm.bytes() } else { u64::from(leveler.logical()) * u64::from(shape.stripe_bytes) };
        let stripes = if plain { 0 } else { leveler.physical() as usize };
        let region = Region { written: 0, gate: T::default(), synced: 0 };
        Ok(Leveled {
            plain,
            bytes,
            area: Area::new(&config, &shape, &leveler, line),
            stripe_shift: shape.stripe_bytes.trailing_zeros(),
            interval_bytes: config.interval_bytes()?,
            regions: vec![region; leveler.regions() as usize],
            written: vec![T::default(); stripes],
            ready: vec![T::default(); stripes],
            moved: Vec::new(),
            buffer: vec![0; if St::HOLDS && !plain { shape.stripe_bytes as usize } else { 0 }],
            again: vec![0; if St::HOLDS && !plain { shape.stripe_bytes as usize } else { 0 }],
            moves: 0,
            broken: None,
            config,
            shape,
            leveler,
            pcm,
        })
    }

    /// Logical size in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the device that hold neither data nor registers nor free stripes: what does not divide.
    #[must_use]
    pub fn unused_bytes(&self) -> u64 {
        if self.plain {
            return 0;
        }
        let used = u64::from(self.leveler.regions()) * u64::from(self.leveler.region_stripes());
        self.pcm.bytes() - used * u64::from(self.shape.stripe_bytes) - self.area.bytes()
    }

    /// The device's shape.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &PcmGeometry {
        self.pcm.geometry()
    }

    /// What the device was made from.
    #[must_use]
    pub fn config(&self) -> &PcmConfig {
        self.pcm.config()
    }

    /// What the leveling was made from.
    #[must_use]
    pub fn wear_config(&self) -> &WearConfig {
        &self.config
    }

    /// How the device is divided.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The device below.
    #[must_use]
    pub fn pcm(&self) -> &Pcm<St> {
        &self.pcm
    }

    /// The unit (channel) that holds a logical address, which has to be inside, now.
    #[must_use]
    pub fn unit_of(&self, at: u64) -> UnitId {
        self.pcm.unit_of(self.physical(at))
    }

    /// The stack-wide number of one of its units.
    #[must_use]
    pub fn unit_id(&self, unit: u32) -> UnitId {
        self.pcm.unit_id(unit)
    }

    /// What holds its bytes.
    #[must_use]
    pub fn store(&self) -> &St {
        self.pcm.store()
    }

    /// What holds its bytes, to be changed behind its back (damage, cuts). To make writes outlive the machine
    /// there is [`Leveled::flush`]: a sync of the store alone is none.
    pub fn store_mut(&mut self) -> &mut St {
        self.pcm.store_mut()
    }

    /// Gives the store back.
    #[must_use]
    pub fn into_store(self) -> St {
        self.pcm.into_store()
    }

    /// Why writes are refused, when they are.
    #[must_use]
    pub fn refuses(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

#[cfg(test)]
mod tests;
