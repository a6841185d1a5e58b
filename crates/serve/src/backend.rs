//! The [`Backend`] trait: the narrow interface between clients and the storage that is served.

use frit_core::{
    BlockingMedium, Buffer, CacheCommand, CacheInfo, CacheReply, Deferred, Error, Hints, MediumKind,
    NamelessCommand, NamelessInfo, ParamInfo, RequestIntent, Result, SECTOR_BYTES, StackView, SyncedFile,
    ZoneCommand, ZoneInfo, ZonedInfo,
};
use std::sync::Arc;
use std::time::Instant;

/// Time at which the reply to a request may be sent. The request itself has already taken effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct ReplyTime {
    /// The reply must not be sent before this time, since a modelled device is still busy. `None`:
    /// the reply may be sent at once.
    pub not_before: Option<Instant>,
}

impl ReplyTime {
    /// Allows the reply at once.
    pub const NOW: ReplyTime = ReplyTime { not_before: None };

    /// Returns the later of both times.
    pub fn and(self, other: ReplyTime) -> ReplyTime {
        ReplyTime { not_before: self.not_before.max(other.not_before) }
    }
}

/// State of a channel of a modelled device at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct ChannelState {
    /// Name of the medium in the stack.
    pub medium: String,
    /// Number of the channel within the medium.
    pub channel: u32,
    /// Number of units behind the channel.
    pub units: u32,
    /// Number of these units that have work. The channel is idle if it is 0.
    pub busy_units: u32,
    /// Time until the last of them is idle, in nanoseconds.
    pub idle_in_ns: u64,
    /// Total time of transfers over the channel since the volume was opened, in nanoseconds. For
    /// media whose commands have no separate transfer, the time of their commands.
    pub busy_ns: u64,
}

/// Storage that clients read and write by byte address. Addresses and lengths are multiples of 512
/// and inside [`Backend::bytes`]; the [`Device`](crate::Device) in front checks this.
///
/// Each call has taken effect when it returns. Ranges that were never written, or that were
/// discarded, read as zeros.
pub trait Backend: Send {
    /// Returns the size in bytes, a multiple of 512.
    fn bytes(&self) -> u64;

    /// Returns the size in bytes at which writes need no read-modify-write.
    fn page_bytes(&self) -> u32;

    /// Returns the size in bytes of which writes have to be multiples, a power of two; 1 if the device
    /// reads, modifies and writes what a request covers in part.
    fn write_unit_bytes(&mut self) -> u32 {
        1
    }

    /// Returns the size in bytes of the units that only a discard of a whole one changes, such as zones;
    /// otherwise that of a sector. A request is divided at their ends.
    fn discard_unit_bytes(&mut self) -> u64 {
        SECTOR_BYTES
    }

    /// Returns the reason of read-only mode, or `None` if writes are accepted.
    fn read_only(&self) -> Option<String>;

    /// Returns `true` if replies may be delayed ([`ReplyTime::not_before`]).
    fn paced(&self) -> bool {
        false
    }

    /// Reads the bytes from `at` on into `into`.
    ///
    /// # Errors
    /// A medium cannot return the bytes.
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime>;

    /// Reads the bytes from `at` on into `into` for the processing engine. A backend that can count its
    /// reads apart from those of clients does so.
    ///
    /// # Errors
    /// As for [`Backend::read`].
    fn read_in_storage(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        self.read(at, into)
    }

    /// Writes `data` at `at`. `data` must not be empty.
    ///
    /// # Errors
    /// No space is left, or a medium fails. Writes acknowledged earlier are not lost.
    fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime>;

    /// Returns `true` if [`Backend::read_bytes`] and [`Backend::write_bytes`] serve ranges that
    /// begin or end inside a sector. Otherwise the device reads, modifies and writes sectors.
    fn serves_bytes(&mut self) -> bool {
        false
    }

    /// Reads any bytes from `at` on into `into`.
    ///
    /// # Errors
    /// As for [`Backend::read`].
    fn read_bytes(&mut self, at: u64, into: &mut [u8]) -> Result<ReplyTime> {
        self.read(at, into)
    }

    /// Writes `data` at any byte `at`.
    ///
    /// # Errors
    /// As for [`Backend::write`].
    fn write_bytes(&mut self, at: u64, data: &[u8], hints: Hints) -> Result<ReplyTime> {
        self.write(at, data, hints)
    }

    /// Reads bytes at a physical address of a medium for a caller with this right.
    ///
    /// # Errors
    /// The caller has no right, or the backend has no physical addresses.
    fn raw_read(&mut self, _caller: &str, _medium: MediumKind, _at: u64, _into: &mut [u8]) -> Result<()> {
        Err(Error::param("raw access", "", "there are no physical addresses here"))
    }

    /// Writes bytes at a physical address of PCM for a caller with this right.
    ///
    /// # Errors
    /// The caller has no right, the area belongs to the layer, or the backend has no physical
    /// addresses.
    fn raw_write(&mut self, _caller: &str, _at: u64, _data: &[u8]) -> Result<()> {
        Err(Error::param("raw access", "", "there are no physical addresses here"))
    }

    /// Returns the sizes and the state of a solid-state cache.
    ///
    /// # Errors
    /// The backend is not one.
    fn cache_info(&mut self) -> Result<CacheInfo> {
        Err(Error::param("cache command", "", "there is no solid-state cache here"))
    }

    /// Gives a command to a solid-state cache.
    ///
    /// # Errors
    /// The backend is not one; see [`frit_core::CacheAccess::execute`].
    fn cache_command(&mut self, _command: CacheCommand<'_>) -> Result<(CacheReply, ReplyTime)> {
        Err(Error::param("cache command", "", "there is no solid-state cache here"))
    }

    /// Returns the sizes and the state of a nameless-write device.
    ///
    /// # Errors
    /// The backend is not one.
    fn nameless_info(&mut self) -> Result<NamelessInfo> {
        Err(Error::param("nameless command", "", "there is no nameless-write device here"))
    }

    /// Gives a command to a nameless-write device.
    ///
    /// # Errors
    /// The backend is not one; see [`frit_core::NamelessDevice`].
    fn nameless_command(&mut self, _command: NamelessCommand<'_>) -> Result<ReplyTime> {
        Err(Error::param("nameless command", "", "there is no nameless-write device here"))
    }

    /// Returns the sizes and the limits of a zoned device.
    ///
    /// # Errors
    /// The backend is not one.
    fn zoned_info(&mut self) -> Result<ZonedInfo> {
        Err(no_zones())
    }

    /// Returns zones of a zoned device: those from `first` on, at most `most` of them.
    ///
    /// # Errors
    /// The backend is not one, or has no such zone.
    fn zones(&mut self, _first: u32, _most: usize) -> Result<Vec<ZoneInfo>> {
        Err(no_zones())
    }

    /// Gives a command to a zoned device.
    ///
    /// # Errors
    /// The backend is not one; see [`frit_core::ZoneAccess`].
    fn zone_command(&mut self, _command: ZoneCommand<'_>) -> Result<ReplyTime> {
        Err(no_zones())
    }

    /// Makes a range read as zeros. With `keep_allocated` its space stays allocated.
    ///
    /// # Errors
    /// As for [`Backend::write`].
    fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> Result<ReplyTime>;

    /// Discards a range, which reads as zeros afterwards.
    ///
    /// # Errors
    /// As for [`Backend::write`].
    fn discard(&mut self, at: u64, len: u64) -> Result<ReplyTime>;

    /// Makes all completed writes durable.
    ///
    /// # Errors
    /// A medium fails. The state of all writes since the last successful flush is then unknown.
    fn flush(&mut self) -> Result<ReplyTime>;

    /// Passes the extents of a range to `each`, in order: length in bytes, and the medium (`None`:
    /// not allocated, reads as zeros).
    ///
    /// # Errors
    /// The map cannot be read.
    fn extents(&self, at: u64, len: u64, each: &mut dyn FnMut(u64, Option<MediumKind>)) -> Result<()>;

    /// Does background work of about `budget` media commands. Returns `true` if there is more to
    /// do.
    ///
    /// # Errors
    /// A medium fails in a way that the backend cannot repair.
    fn step(&mut self, budget: u32) -> Result<bool>;

    /// Switches deferral of accesses to slow media to the device on or off
    /// ([`frit_core::deferred`]). Returns `true` if accesses are deferred from now on.
    fn defer(&mut self, _on: bool) -> bool {
        false
    }

    /// Returns `true` if a request would have to wait for a slow medium now. The result is a hint,
    /// used to distribute requests among threads.
    fn would_block(&self, _what: RequestIntent, _at: u64, _len: u64) -> bool {
        false
    }

    /// Returns the next access that the last call deferred. The request is done only when all of
    /// them are completed.
    fn deferred(&mut self) -> Option<Deferred> {
        None
    }

    /// Returns the next background access to execute.
    ///
    /// # Errors
    /// A medium fails.
    fn job(&mut self) -> Result<Option<Deferred>> {
        Ok(None)
    }

    /// Calls `each` for the handle of each layer of the backend whose background work needs no lock
    /// of the device.
    fn each_shared(&mut self, _each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {}

    /// Completes deferred accesses after they were executed or failed.
    ///
    /// # Errors
    /// The error with which the request of these accesses ends.
    fn settle(&mut self, _of: &Deferred, outcome: Result<()>, _buffer: &mut Buffer<'_>) -> Result<()> {
        outcome
    }

    /// Returns the visible state: metrics and placement of data.
    fn visible(&self) -> StackView;

    /// Returns the state of the channels of the modelled device, in order; empty without a model in
    /// real time ([`PacedBackend`](crate::pace::PacedBackend)).
    fn channels(&mut self) -> Vec<ChannelState> {
        Vec::new()
    }

    /// Returns the parameters with their current values.
    fn params(&mut self) -> Vec<ParamInfo>;

    /// Changes parameters, either all of them or none. The change persists across restarts.
    ///
    /// # Errors
    /// An unknown key, or an invalid value.
    fn set_params(&mut self, settings: &[(&str, &str)]) -> Result<()>;

    /// Returns the files below the backend. After many writes the device syncs them without the lock
    /// before it calls [`Backend::flush`], which then has little left to do. A failure stays at the
    /// file, so that the flush meets it too.
    fn synced_files(&self) -> Vec<Arc<SyncedFile>> {
        Vec::new()
    }

    /// Shuts down in order, so that all completed writes are durable.
    ///
    /// # Errors
    /// A medium fails.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Returns the error of a command of a zoned device on another backend.
fn no_zones() -> Error {
    Error::param("zone command", "", "there is no zoned device here")
}

/// Returns the number of the medium of an extent, as used by the metadata context `frit:medium` and
/// by tables.
///
/// 0 not allocated, 1 NAND, 2 PCM, 3 DRAM, 4 disk, 5 object store.
#[must_use]
pub fn medium_number(place: Option<MediumKind>) -> u32 {
    match place {
        None => 0,
        Some(MediumKind::Nand) => 1,
        Some(MediumKind::Pcm) => 2,
        Some(MediumKind::Dram) => 3,
        Some(MediumKind::Disk) => 4,
        Some(MediumKind::Object) => 5,
    }
}

/// Returns `true` if the contents of the media are unknown after this error. Further writes must
/// then be refused.
pub(crate) fn is_unexpected(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => !is_full(source),
        Error::Rule { .. } | Error::ProgramFailed { .. } | Error::EraseFailed { .. } => true,
        _ => false,
    }
}

/// Returns `true` if the host's file system is full or over its quota. Such a state is temporary:
/// writes succeed again once space is freed.
pub(crate) fn is_full(source: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(source.kind(), StorageFull | QuotaExceeded)
}
