//! Zones of a zoned device, and their commands for clients of a complete stack, beside its block
//! interface.
//!
//! The terms are those of the NVMe Zoned Namespace Command Set Specification 1.1.

use crate::convert::to_u64;
use crate::{Error, Result, SECTOR_BYTES, Sector, Sink, WriteData};
use strum::{EnumIter, EnumString, IntoStaticStr};

/// State of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumIter, EnumString, IntoStaticStr)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumIter, EnumString, IntoStaticStr)]
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
    /// A read reaches behind the write pointer (Deallocated or Unwritten Logical Block, NVMe Base
    /// Specification 2.0).
    Unwritten,
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
pub trait ZoneAccess {
    /// Returns the sizes and the limits.
    fn zoned_info(&self) -> ZonedInfo;

    /// Returns a zone; `None` if there is no zone with this number.
    fn zone(&self, zone: u32) -> Option<ZoneInfo>;

    /// Manages a zone. A finish and a reset are durable when they are acknowledged.
    ///
    /// # Errors
    /// `Zone` if the state of the zone does not permit it; a parameter error for a zone that does not
    /// exist; `ReadOnly`; an error of the medium.
    fn manage(&mut self, sink: &mut Sink, zone: u32, action: ZoneAction) -> Result<()>;

    /// Writes data at the write pointer of a zone, and returns its first sector.
    ///
    /// # Errors
    /// As [`ZoneAccess::manage`].
    fn append(&mut self, sink: &mut Sink, zone: u32, data: WriteData<'_>) -> Result<Sector>;
}

/// A command of a zoned device that takes time.
#[derive(Debug)]
pub enum ZoneCommand<'a> {
    /// Manages a zone.
    Manage {
        /// The zone.
        zone: u32,
        /// What is to be done.
        action: ZoneAction,
    },
    /// Writes data at the write pointer of a zone.
    Append {
        /// The zone.
        zone: u32,
        /// Contents, whole logical blocks.
        data: &'a [u8],
        /// Receives the first sector of the data.
        at: &'a mut Sector,
    },
    /// Reads written sectors of one zone.
    Read {
        /// First sector.
        at: Sector,
        /// Buffer of whole sectors.
        into: &'a mut [u8],
    },
}

impl ZoneCommand<'_> {
    /// Returns `true` if the command changes the device.
    #[must_use]
    pub fn changes(&self) -> bool {
        !matches!(self, ZoneCommand::Read { .. })
    }
}

/// Returns the zones from `first` on, at most `most` of them.
///
/// # Errors
/// A parameter error for a zone that does not exist.
pub fn report_zones(access: &dyn ZoneAccess, first: u32, most: usize) -> Result<Vec<ZoneInfo>> {
    let zones = access.zoned_info().zones;
    if first >= zones {
        return Err(Error::param("zone", first, format!("has to be less than {zones}")));
    }
    let end = zones.min(first.saturating_add(u32::try_from(most).unwrap_or(u32::MAX)));
    Ok((first..end).filter_map(|zone| access.zone(zone)).collect())
}

/// Checks that a read lies in one zone, before its write pointer. The block interface has no such
/// limit: there, sectors that are not written read as zeros.
///
/// # Errors
/// `Zone` with the reason; a parameter error for an empty read or one outside of the device.
pub fn check_zone_read(access: &dyn ZoneAccess, at: Sector, bytes: usize) -> Result<()> {
    let info = access.zoned_info();
    let sectors = to_u64(bytes) / SECTOR_BYTES;
    let number = u32::try_from(at.0 / info.zone_sectors.max(1)).ok();
    let Some(zone) = number.and_then(|number| access.zone(number)) else {
        let end = u64::from(info.zones) * info.zone_sectors;
        return Err(Error::param("sector", at.0, format!("has to be less than {end}")));
    };
    if sectors == 0 {
        return Err(Error::param("sectors", sectors, "a read has at least one sector"));
    }
    let end = at.0.saturating_add(sectors);
    let refused = |fault, why: &str| {
        let what = format!(
            "a read of sectors {} to {} {why} (state {}, write pointer {})",
            at.0,
            end - 1,
            zone.state.name(),
            zone.write_pointer.0
        );
        Err(Error::Zone { zone: zone.zone, fault, what })
    };
    if zone.state == ZoneState::Offline {
        return refused(ZoneFault::IsOffline, "is not possible, as the zone is offline");
    }
    if end > zone.start.0 + info.zone_sectors {
        return refused(ZoneFault::BoundaryError, "reaches past the end of the zone; divide it there");
    }
    if end > zone.write_pointer.0 {
        return refused(ZoneFault::Unwritten, "reaches behind the write pointer; read what is written only");
    }
    Ok(())
}
