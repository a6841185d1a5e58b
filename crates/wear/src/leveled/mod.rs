//! PCM with wear leveling: the interface of [`Pcm`] with logical addresses.

mod area;
mod fresh;
mod header;
mod io;
mod moves;
mod recover;
mod view;

pub use recover::WearRecovery;

use super::{Leveler, LevelerKind, Levelers, Shape, WearConfig};
use crate::numbers::RegionId;
use area::RegisterArea;
use frit_core::convert::to_usize;
use frit_core::{Error, Result, Tok, TokTable, UnitId};
use frit_media::{AnyStore, Pcm, PcmConfig, PcmGeometry};

/// State of a region.
#[derive(Clone, Copy, Debug)]
struct WearRegion {
    /// Bytes written since the last move.
    bytes_since_move: u64,
    /// Token that completes when the last move is durable.
    move_barrier: Tok,
    /// Number of the region as of the last flush, if that is kept.
    synced: u64,
}

/// PCM with wear leveling. Addresses are logical, from 0 to [`Leveled::bytes`].
///
/// Refreshed cells move with their stripe: the copy has zeros where the stripe had them, and zeros
/// are the result of a refresh. [`Leveled::refresh_bytes`] is `None` if stripes are too small to be
/// refreshed.
#[derive(Debug)]
pub struct Leveled {
    pcm: Pcm,
    /// `true` without leveling: calls go directly to the device.
    passthrough: bool,
    bytes: u64,
    config: WearConfig,
    shape: Shape,
    leveler: Levelers,
    area: RegisterArea,
    stripe_shift: u32,
    interval_bytes: u64,
    regions: Vec<WearRegion>,
    /// For each physical stripe: token of the writes to it since its last move.
    last_writes: TokTable,
    /// For each physical stripe: token after which it may be accessed, since a move filled or freed
    /// it.
    ready: TokTable,
    /// Regions that moved since the last flush, if registers as of a flush are kept.
    moved: Vec<RegionId>,
    /// Buffer for the stripe to be moved; empty if the medium holds no bytes.
    buffer: Vec<u8>,
    /// Buffer for the second read of the stripe.
    again: Vec<u8>,
    moves: u64,
    /// Reason for refusing writes: a register write failed, so the registers in PCM are unknown.
    refuse_reason: Option<String>,
}

impl Leveled {
    /// Puts a leveler over a device. [`Leveled::recover`] reads its existing contents; a new device
    /// needs [`Leveled::format`].
    ///
    /// # Errors
    /// Parameters do not fit the device: those of the leveler, or a stripe smaller than a line or
    /// an interleave unit.
    pub fn new(pcm: Pcm, config: WearConfig) -> Result<Leveled> {
        let line = pcm.geometry().line_bytes;
        let passthrough = config.leveler == LevelerKind::NoLeveling;
        if config.stripe_bytes < line && !passthrough {
            let why = format!("has to be a multiple of the PCM's line of {line} bytes");
            return Err(Error::param("stripe_bytes", config.stripe_bytes, why));
        }
        let (per_stripe, head) = if passthrough { (0, 0) } else { RegisterArea::cost(&config, line) };
        let shape = Shape::fit(&config, pcm.bytes(), per_stripe, head);
        // Without leveling, stripes serve only for counting, so any size of device is accepted.
        let shape = if passthrough { shape.or_else(|_| Shape::whole(pcm.bytes())) } else { shape }?;
        let leveler = Levelers::new(&config, &shape)?;
        let bytes = if passthrough {
            pcm.bytes()
        } else {
            u64::from(leveler.logical()) * u64::from(shape.stripe_bytes)
        };
        let stripes = if passthrough { 0 } else { to_usize(leveler.physical()) };
        let held = if pcm.stores_bytes() && !passthrough { to_usize(shape.stripe_bytes) } else { 0 };
        let region = WearRegion { bytes_since_move: 0, move_barrier: Tok::default(), synced: 0 };
        Ok(Leveled {
            passthrough,
            bytes,
            area: RegisterArea::new(&config, &shape, &leveler, line),
            stripe_shift: shape.stripe_bytes.trailing_zeros(),
            interval_bytes: config.interval_bytes()?,
            regions: vec![region; to_usize(leveler.regions())],
            last_writes: TokTable::new(stripes),
            ready: TokTable::new(stripes),
            moved: Vec::new(),
            buffer: vec![0; held],
            again: vec![0; held],
            moves: 0,
            refuse_reason: None,
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

    /// Bytes of the device that are not used for data, registers or free stripes: the remainder of
    /// the division.
    #[must_use]
    pub fn unused_bytes(&self) -> u64 {
        if self.passthrough {
            return 0;
        }
        let used = u64::from(self.leveler.regions()) * u64::from(self.leveler.region_stripes());
        self.pcm.bytes() - used * u64::from(self.shape.stripe_bytes) - self.area.bytes()
    }

    /// Geometry of the device.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &PcmGeometry {
        self.pcm.geometry()
    }

    /// Configuration of the device.
    #[must_use]
    pub fn config(&self) -> &PcmConfig {
        self.pcm.config()
    }

    /// Returns `true` if a leveler is in use, `false` if calls go directly to the device.
    #[inline]
    #[must_use]
    pub fn is_leveled(&self) -> bool {
        !self.passthrough
    }

    /// Configuration of the leveling.
    #[must_use]
    pub fn wear_config(&self) -> &WearConfig {
        &self.config
    }

    /// Division of the device.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns `true` if the device keeps the bytes that are written.
    #[must_use]
    pub fn stores_bytes(&self) -> bool {
        self.pcm.stores_bytes()
    }

    /// The device below.
    #[must_use]
    pub fn pcm(&self) -> &Pcm {
        &self.pcm
    }

    /// Unit (channel) that currently holds a logical address, which must be in range.
    #[must_use]
    pub fn unit_of(&self, at: u64) -> UnitId {
        self.pcm.unit_of(self.physical(at))
    }

    /// Stack-wide number of a unit of the device.
    #[must_use]
    pub fn unit_id(&self, unit: u32) -> UnitId {
        self.pcm.unit_id(unit)
    }

    /// Store of the bytes.
    #[must_use]
    pub fn store(&self) -> &AnyStore {
        self.pcm.store()
    }

    /// Store of the bytes, to be changed directly (damage, power cuts). A sync of the store alone
    /// is not a flush: use [`Leveled::flush`].
    pub fn store_mut(&mut self) -> &mut AnyStore {
        self.pcm.store_mut()
    }

    /// Returns the store.
    #[must_use]
    pub fn into_store(self) -> AnyStore {
        self.pcm.into_store()
    }

    /// Reason for refusing writes, if writes are refused.
    #[must_use]
    pub fn refuses(&self) -> Option<&str> {
        self.refuse_reason.as_deref()
    }
}

#[cfg(test)]
mod tests;
