//! Client of a served volume over its control socket, for programs that use the commands of a device.
//!
//! [`Connection`] exchanges messages of any kind. [`CacheClient`] gives a served solid-state cache
//! (a stack whose upper layer has the kind `ssc`) its commands: a program with it is a cache manager.
//! [`NamelessClient`] does the same for a nameless-write device (kind `nameless-device`): a program with it
//! is the owner of blocks, as a file system is. [`ZonedClient`] gives a zoned device (kind `zns`) its
//! commands: a program with it appends to zones and resets them. [`IspClient`] gives instructions to the
//! processing engine of any volume.
//! `docs/guide/control.md` describes the messages.
//!
//! It is not: a fast path. A message is a line of JSON, and block data are hexadecimal digits. Bulk data
//! of a block device belong on NBD.

mod cache;
mod command;
mod connection;
mod isp;
mod nameless;
mod socket;
mod wire;
mod zoned;

pub use cache::{CacheAnswer, CacheClient, CacheInfo, CacheOperation, CacheState, PresentBlock};
pub use connection::{ClientError, Connection};
pub use isp::{IspAnswer, IspClient, IspResult, VolumeExtents, WordCount, WordQuery, WordsFound};
pub use nameless::{
    BlockAddress, ClaimedBlock, MovedBlock, NAMELESS_BLOCKS_MAX, NamelessAnswer, NamelessClient,
    NamelessInfo, NamelessOperation, OwnedBlock,
};
pub use socket::{ShortPath, short_path};
pub use wire::{
    ANSWER_BYTES_MAX, CACHE_BYTES_MAX, EXISTS_BLOCKS_MAX, RefusalKind, Refused, VERSION, from_hex, to_hex,
};
pub use zoned::{
    ReportedZone, SECTOR_BYTES, ZONES_MAX, ZoneFault, ZoneState, ZonedAnswer, ZonedClient, ZonedInfo,
    ZonedOperation,
};
