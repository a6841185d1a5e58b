//! Commands of a served zoned device.

use crate::command::{self, DeviceKind, unexpected};
use crate::connection::{ClientError, Connection};
use crate::wire::{CACHE_BYTES_MAX, from_hex, to_hex};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Size of a sector, the unit of addresses, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// Maximum number of zones in the answer to one report.
pub const ZONES_MAX: usize = 4096;

/// A command, as serialized. Addresses are in sectors of 512 bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ZonedOperation {
    /// Returns the sizes and the limits of the device.
    Info {},
    /// Lists zones, from a zone on.
    Report {
        /// First zone.
        first: u32,
        /// Largest number of zones.
        most: u32,
    },
    /// Opens a zone explicitly.
    Open {
        /// The zone.
        zone: u32,
    },
    /// Closes an open zone.
    Close {
        /// The zone.
        zone: u32,
    },
    /// Makes a zone full, durably.
    Finish {
        /// The zone.
        zone: u32,
    },
    /// Makes a zone empty, durably.
    Reset {
        /// The zone.
        zone: u32,
    },
    /// Writes whole logical blocks at the write pointer of a zone.
    Append {
        /// The zone.
        zone: u32,
        /// Contents in hexadecimal digits.
        data: String,
    },
    /// Reads written sectors of a zone.
    Read {
        /// First sector.
        at: u64,
        /// Number of sectors.
        sectors: u32,
    },
    /// Makes all earlier commands durable.
    Flush {},
}

impl ZonedOperation {
    /// Returns `true` if the command only shows the state of the device.
    #[must_use]
    pub fn is_report(&self) -> bool {
        matches!(self, ZonedOperation::Info {} | ZonedOperation::Report { .. })
    }
}

/// Sizes and limits of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ZonedInfo {
    /// Size of a logical block, the unit of an append, in bytes.
    pub block_bytes: u32,
    /// Number of zones.
    pub zones: u32,
    /// Size of a zone, in sectors. All of it can be written.
    pub zone_sectors: u64,
    /// Largest append, in bytes (zone append size limit).
    pub append_bytes_max: u32,
    /// Limit of open zones; 0: none.
    pub max_open: u32,
    /// Limit of active zones; 0: none.
    pub max_active: u32,
    /// Number of zones that are open.
    pub open: u32,
    /// Number of zones that are active: open or closed.
    pub active: u32,
}

/// State of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneState {
    /// Nothing is written.
    Empty,
    /// An append has opened the zone. The device may close it.
    ImplicitlyOpen,
    /// A command has opened the zone.
    ExplicitlyOpen,
    /// Active, without a write buffer.
    Closed,
    /// Nothing can be written before a reset.
    Full,
    /// The data can be read only: a block of the device failed.
    ReadOnly,
    /// Out of use: too many blocks of the device went bad.
    Offline,
}

impl ZoneState {
    /// All states.
    pub const ALL: [ZoneState; 7] = [
        ZoneState::Empty,
        ZoneState::ImplicitlyOpen,
        ZoneState::ExplicitlyOpen,
        ZoneState::Closed,
        ZoneState::Full,
        ZoneState::ReadOnly,
        ZoneState::Offline,
    ];

    /// Returns the name, as in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ZoneState::Empty => "empty",
            ZoneState::ImplicitlyOpen => "implicitly-open",
            ZoneState::ExplicitlyOpen => "explicitly-open",
            ZoneState::Closed => "closed",
            ZoneState::Full => "full",
            ZoneState::ReadOnly => "read-only",
            ZoneState::Offline => "offline",
        }
    }
}

/// A zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReportedZone {
    /// Its number.
    pub zone: u32,
    /// Its state.
    pub state: ZoneState,
    /// Its first sector.
    pub start: u64,
    /// Its write pointer: the sector at which the next append begins. In a full zone, the end of its
    /// data.
    pub write_pointer: u64,
}

/// Reason for which a command does not fit a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneFault {
    /// A write does not begin at the write pointer, or does not consist of whole blocks.
    InvalidWrite,
    /// A command reaches past the end of its zone.
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
    /// A read reaches behind the write pointer.
    Unwritten,
    /// A reason that this version of the client does not know.
    #[serde(other)]
    Other,
}

/// Answer to a command, as serialized.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZonedAnswer {
    /// The command was executed.
    Done,
    /// Sizes and limits.
    Info(ZonedInfo),
    /// Zones, in ascending order.
    Zones(Vec<ReportedZone>),
    /// Place of appended data.
    Appended {
        /// First sector.
        at: u64,
    },
    /// Contents, in hexadecimal digits.
    Data(String),
}

/// A served zoned device (NVMe Zoned Namespace Command Set Specification 1.1).
///
/// 1. Appended data are durable after a [`ZonedClient::flush`]. After a crash, a zone has its first
///    appended data up to some block, and at least those that were flushed. Nothing follows a gap.
/// 2. A [`ZonedClient::finish`] and a [`ZonedClient::reset`] are durable when they return.
/// 3. Any number of clients append to one zone. Each append is one range of sectors, which no other
///    append shares, and [`ZonedClient::append`] returns its place.
/// 4. After a crash of the server, zones that were open are closed.
///
/// The reason of a refusal is [`crate::Refused::fault`], if it is one of a zone.
#[derive(Debug)]
pub struct ZonedClient {
    connection: Connection,
    info: ZonedInfo,
}

impl ZonedClient {
    /// Connects to the control socket of a served device: `ctl.sock` in the directory of the volume.
    ///
    /// # Errors
    /// No server listens there, or its volume is not a zoned device.
    pub fn open(socket: &Path) -> Result<ZonedClient, ClientError> {
        let mut connection = Connection::open(socket)?;
        match execute(&mut connection, &ZonedOperation::Info {})? {
            ZonedAnswer::Info(info) => Ok(ZonedClient { connection, info }),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the size of a logical block, in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.info.block_bytes as usize
    }

    /// Returns the size of a zone, in sectors.
    #[must_use]
    pub fn zone_sectors(&self) -> u64 {
        self.info.zone_sectors
    }

    /// Returns the largest append, in bytes.
    #[must_use]
    pub fn append_bytes_max(&self) -> usize {
        self.info.append_bytes_max as usize
    }

    /// Returns the sizes, the limits, and the current numbers of open and active zones.
    ///
    /// # Errors
    /// The server did not answer.
    pub fn info(&mut self) -> Result<ZonedInfo, ClientError> {
        match execute(&mut self.connection, &ZonedOperation::Info {})? {
            ZonedAnswer::Info(info) => Ok(info),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns all zones. Other clients can change some of them during a report of more than
    /// [`ZONES_MAX`] zones.
    ///
    /// # Errors
    /// The server did not answer.
    pub fn report(&mut self) -> Result<Vec<ReportedZone>, ClientError> {
        let mut all = Vec::new();
        while all.len() < self.info.zones as usize {
            let first = all.len() as u32;
            all.extend(self.zones(first, ZONES_MAX as u32)?);
        }
        Ok(all)
    }

    /// Returns one zone.
    ///
    /// # Errors
    /// There is no such zone.
    pub fn zone(&mut self, zone: u32) -> Result<ReportedZone, ClientError> {
        Ok(self.zones(zone, 1)?[0])
    }

    fn zones(&mut self, first: u32, most: u32) -> Result<Vec<ReportedZone>, ClientError> {
        match execute(&mut self.connection, &ZonedOperation::Report { first, most })? {
            ZonedAnswer::Zones(zones) if !zones.is_empty() => Ok(zones),
            other => Err(unexpected(&other)),
        }
    }

    /// Opens a zone explicitly: the device does not close it by itself.
    ///
    /// # Errors
    /// Too many open or active zones; a zone that is full, read-only or offline.
    pub fn open_zone(&mut self, zone: u32) -> Result<(), ClientError> {
        self.done(&ZonedOperation::Open { zone })
    }

    /// Closes an open zone.
    ///
    /// # Errors
    /// The zone is not open.
    pub fn close_zone(&mut self, zone: u32) -> Result<(), ClientError> {
        self.done(&ZonedOperation::Close { zone })
    }

    /// Makes a zone full, durably.
    ///
    /// # Errors
    /// The zone is read-only or offline; a medium fails.
    pub fn finish(&mut self, zone: u32) -> Result<(), ClientError> {
        self.done(&ZonedOperation::Finish { zone })
    }

    /// Makes a zone empty, durably. Its data are lost.
    ///
    /// # Errors
    /// As for [`ZonedClient::finish`].
    pub fn reset(&mut self, zone: u32) -> Result<(), ClientError> {
        self.done(&ZonedOperation::Reset { zone })
    }

    /// Writes whole logical blocks at the write pointer of a zone, and returns their first sector. An
    /// append is never divided, so at most [`ZonedClient::append_bytes_max`] bytes are possible.
    ///
    /// # Errors
    /// The zone has too little space, or is full, read-only or offline; too many active zones; too many
    /// bytes.
    pub fn append(&mut self, zone: u32, data: &[u8]) -> Result<u64, ClientError> {
        let (block, most) = (self.block_bytes(), self.append_bytes_max());
        if data.is_empty() || !data.len().is_multiple_of(block) || data.len() > most {
            let why = format!(
                "{} bytes: an append has whole blocks of {block} bytes, and at most {most} bytes",
                data.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        match execute(&mut self.connection, &ZonedOperation::Append { zone, data: to_hex(data) })? {
            ZonedAnswer::Appended { at } => Ok(at),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads sectors of one zone, all of which are written.
    ///
    /// # Errors
    /// Sectors behind the write pointer, or in two zones; damage.
    pub fn read(&mut self, at: u64, sectors: u64) -> Result<Vec<u8>, ClientError> {
        let (mut all, mut from) = (Vec::new(), at);
        let most = (CACHE_BYTES_MAX / SECTOR_BYTES) as u64;
        let end = at.saturating_add(sectors);
        loop {
            let sectors = (end - from).min(most) as u32;
            match execute(&mut self.connection, &ZonedOperation::Read { at: from, sectors })? {
                ZonedAnswer::Data(hex) => all.extend(from_hex(&hex).map_err(ClientError::Answer)?),
                other => return Err(unexpected(&other)),
            }
            from += u64::from(sectors);
            if from >= end {
                return Ok(all);
            }
        }
    }

    /// Makes all earlier commands durable.
    ///
    /// # Errors
    /// A medium fails.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.done(&ZonedOperation::Flush {})
    }

    fn done(&mut self, operation: &ZonedOperation) -> Result<(), ClientError> {
        match execute(&mut self.connection, operation)? {
            ZonedAnswer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }
}

fn execute(connection: &mut Connection, command: &ZonedOperation) -> Result<ZonedAnswer, ClientError> {
    command::execute(connection, DeviceKind::Zoned, command)
}
