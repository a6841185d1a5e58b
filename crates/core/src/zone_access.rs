//! Zones of a zoned device, and their commands for clients of a complete stack, beside its block
//! interface.
//!
//! The terms are those of the NVMe Zoned Namespace Command Set Specification 1.1.

use crate::{Result, Sector, Sink, WriteData};
use strum::{EnumString, IntoStaticStr};

/// State of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ZoneState {
    /// Nothing is written, and the zone takes no resources.
    Empty,
    /// A write has opened the zone. The device may close it.
    ImplicitlyOpen,
    /// A command has opened the zone. Only commands close it.
    ExplicitlyOpen,
    /// Active, without a write buffer.
    Closed,
    /// Nothing can be written before a reset.
    Full,
    /// The data can be read only: a block failed, and no other could replace it.
    ReadOnly,
    /// Out of use: too many blocks went bad.
    Offline,
}

impl ZoneState {
    /// Returns `true` if the zone is open.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
    }

    /// Returns `true` if the zone is active: open or closed.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.is_open() || self == ZoneState::Closed
    }

    /// Returns the name that messages and clients use.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Reason for which a command does not fit the state of a zone: the status codes of the
/// specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ZoneFault {
    /// A write does not begin at the write pointer, or does not consist of whole blocks.
    InvalidWrite,
    /// A write reaches past the end of its zone.
    BoundaryError,
    /// The zone is full.
    IsFull,
    /// The zone is read-only.
    IsReadOnly,
    /// The zone is offline.
    IsOffline,
    /// The limit of active zones is reached.
    TooManyActive,
    /// The limit of open zones is reached, and all are open by commands.
    TooManyOpen,
    /// The state of the zone does not permit the command.
    InvalidTransition,
}

impl ZoneFault {
    /// Returns the name that clients use.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Sizes and limits of a zoned device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonedInfo {
    /// Size of a logical block, the unit of a write, in bytes.
    pub block_bytes: u32,
    /// Number of zones.
    pub zones: u32,
    /// Size of a zone, in sectors. All of it can be written.
    pub zone_sectors: u64,
    /// Limit of open zones; 0: none.
    pub max_open: u32,
    /// Limit of active zones; 0: none.
    pub max_active: u32,
    /// Zones that are open.
    pub open: u32,
    /// Zones that are active.
    pub active: u32,
}

/// A zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneInfo {
    /// Its number.
    pub zone: u32,
    /// Its state.
    pub state: ZoneState,
    /// Its first sector.
    pub start: Sector,
    /// The sector that the next write has to begin at. In a full zone, the end of its data.
    pub write_pointer: Sector,
}

/// Management of a zone (Zone Management Send).
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ZoneAction {
    /// Opens the zone explicitly.
    Open,
    /// Closes an open zone.
    Close,
    /// Makes the zone full, whatever its write pointer.
    Finish,
    /// Makes the zone empty.
    Reset,
}

/// The commands of a zoned device.
pub trait ZoneAccess<S: Sink> {
    /// Returns the sizes and the limits.
    fn zoned_info(&self) -> ZonedInfo;

    /// Returns a zone; `None` if there is no zone with this number.
    fn zone(&self, zone: u32) -> Option<ZoneInfo>;

    /// Manages a zone. A finish and a reset are durable when they are acknowledged.
    ///
    /// # Errors
    /// `Zone` if the state of the zone does not permit it; a parameter error for a zone that does not
    /// exist; `ReadOnly`; an error of the medium.
    fn manage(&mut self, sink: &mut S, zone: u32, action: ZoneAction) -> Result<()>;

    /// Writes data at the write pointer of a zone, and returns its first sector.
    ///
    /// # Errors
    /// As [`ZoneAccess::manage`].
    fn append(&mut self, sink: &mut S, zone: u32, data: WriteData<'_>) -> Result<Sector>;
}
