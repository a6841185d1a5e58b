//! An open volume.

mod device_commands;

use crate::backing::MediumFile;
use crate::error::{Error, Result};
use crate::open_report::OpenReport;
use crate::superblock::{Superblock, SuperblockFile, VolumeState, boot_id};
use frit_core::{
    BlockingMedium, Buffer, CheckCounts, CheckScope, Deferred, Finding, Hints, MediumKind, ParamInfo,
    Progress, ReadTarget, RequestIntent, Result as CoreResult, SECTOR_BYTES, Sector, Sink, StackDevice,
    StackView, SyncedFile, WriteData,
};
use frit_stack::Stack;
use frit_stack::record::RecordPort;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Maximum number of bytes in one request to the layer: such requests have 32-bit lengths.
const REQUEST_BYTES: usize = 64 << 20;
/// Source of zeros for writes.
static ZEROS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; 1 << 20]);

/// An open volume. If it is dropped without [`Volume::close`], it stays dirty, and the next opening
/// recovers it.
pub struct Volume {
    dir: PathBuf,
    stack: Stack,
    layer: Box<dyn StackDevice>,
    sink: Sink,
    superblock: SuperblockFile,
    files: Arc<Vec<MediumFile>>,
    records: Vec<RecordPort>,
    read_only: bool,
    pub(crate) recovered: OpenReport,
    bytes: u64,
    page_bytes: u32,
}

/// Components of an open volume.
pub(crate) struct VolumeParts {
    pub(crate) dir: PathBuf,
    pub(crate) stack: Stack,
    pub(crate) layer: Box<dyn StackDevice>,
    pub(crate) sink: Sink,
    pub(crate) superblock: SuperblockFile,
    pub(crate) files: Arc<Vec<MediumFile>>,
    pub(crate) records: Vec<RecordPort>,
    pub(crate) read_only: bool,
    pub(crate) recovered: OpenReport,
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume")
            .field("dir", &self.dir)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// Converts a byte address to a sector. Ranges consist of whole sectors and lie in a volume of
/// `size` bytes.
fn sector(at: u64, len: u64, size: u64) -> CoreResult<Sector> {
    if at.is_multiple_of(SECTOR_BYTES) && len.is_multiple_of(SECTOR_BYTES) {
        let at = Sector(at / SECTOR_BYTES);
        return match at.bytes().checked_add(len) {
            Some(end) if end <= size => Ok(at),
            _ => Err(frit_core::Error::OutOfRange {
                at: at.0,
                sectors: len / SECTOR_BYTES,
                capacity: size / SECTOR_BYTES,
            }),
        };
    }
    let why = format!("requests start and end at multiples of {SECTOR_BYTES} bytes");
    Err(frit_core::Error::param("range", format!("{len} bytes at {at}"), why))
}

/// Returns `true` if a range begins and ends at sectors.
fn aligned(at: u64, len: u64) -> bool {
    (at | len).is_multiple_of(SECTOR_BYTES)
}

/// Checks that a range of bytes lies in a volume of `size` bytes, and that its length has 32 bits.
fn check_bytes(at: u64, len: u64, size: u64) -> CoreResult<()> {
    match at.checked_add(len) {
        Some(end) if end <= size && u32::try_from(len).is_ok() => Ok(()),
        _ => Err(frit_core::Error::OutOfRange {
            at: at / SECTOR_BYTES,
            sectors: len.div_ceil(SECTOR_BYTES),
            capacity: size / SECTOR_BYTES,
        }),
    }
}

/// Returns the error of a range of bytes on a layer of sectors.
fn no_bytes(at: u64, len: u64) -> frit_core::Error {
    let layers = frit_stack::layers::with_byte_access().join(", ");
    let why = format!(
        "the layer of this volume serves multiples of {SECTOR_BYTES} bytes only; layers that serve bytes: {layers}"
    );
    frit_core::Error::param("range", format!("{len} bytes at {at}"), why)
}

/// Returns the error of a physical address on a layer without physical access.
fn no_raw() -> frit_core::Error {
    frit_core::Error::param("raw access", "", "the layer of this volume has no access by physical address")
}

impl Volume {
    pub(crate) fn from_parts(p: VolumeParts) -> Volume {
        let info = p.layer.info();
        Volume {
            dir: p.dir,
            stack: p.stack,
            layer: p.layer,
            sink: p.sink,
            superblock: p.superblock,
            files: p.files,
            records: p.records,
            read_only: p.read_only,
            recovered: p.recovered,
            bytes: info.sectors * SECTOR_BYTES,
            page_bytes: info.page_bytes,
        }
    }

    /// Applies the parameters that were changed in earlier sessions.
    pub(crate) fn apply_saved_params(&mut self) -> Result<()> {
        let saved = self.superblock.current().params.clone();
        Ok(self.set_in_any_order(&saved)?)
    }

    /// Sets parameters of the layer. Parameters that depend on each other (cleaning thresholds, for
    /// example) may have to be set in another order than the given one. So the parameters that are
    /// accepted are set, and the others are tried again, until all are set or no other is accepted.
    fn set_in_any_order<T: AsRef<str>>(&mut self, settings: &[(T, T)]) -> CoreResult<()> {
        let mut remaining: Vec<(&str, &str)> =
            settings.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect();
        loop {
            let (before, mut first) = (remaining.len(), None);
            remaining.retain(|(key, value)| {
                let set = self.layer.params().set(key, value);
                set.map_err(|e| first.get_or_insert(e)).is_err()
            });
            match first {
                None => return Ok(()),
                Some(e) if remaining.len() == before => return Err(e),
                Some(_) => {}
            }
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the size of a mapped page, in bytes. Requests aligned to it need no
    /// read-modify-write.
    #[must_use]
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Returns the reason of read-only mode; `None` if writes are accepted.
    #[must_use]
    pub fn read_only(&self) -> Option<String> {
        if self.read_only { Some("it was opened read-only".into()) } else { self.layer.refuses() }
    }

    /// Returns the result of the recovery at opening.
    #[must_use]
    pub fn recovery(&self) -> &OpenReport {
        &self.recovered
    }

    fn writable(&self) -> CoreResult<()> {
        if self.read_only {
            return Err(frit_core::Error::ReadOnly { why: "the volume was opened read-only".into() });
        }
        Ok(())
    }

    /// Reads `into.len()` bytes from `at`.
    ///
    /// # Errors
    /// The range is outside the volume or not of whole sectors; the bytes are damaged, with their
    /// address.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> CoreResult<()> {
        self.read_with(at, into, Hints::NONE)
    }

    /// Reads as [`Volume::read`] does, for the processing engine: layers count the commands of the read as
    /// those of in-storage processing.
    ///
    /// # Errors
    /// As for [`Volume::read`].
    pub fn read_in_storage(&mut self, at: u64, into: &mut [u8]) -> CoreResult<()> {
        self.read_with(at, into, Hints::IN_STORAGE)
    }

    fn read_with(&mut self, at: u64, into: &mut [u8], hints: Hints) -> CoreResult<()> {
        let mut at = sector(at, into.len() as u64, self.bytes)?;
        for part in into.chunks_mut(REQUEST_BYTES) {
            let sectors = part.len() as u64 / SECTOR_BYTES;
            let read = self.layer.read(&mut self.sink, at, ReadTarget::Bytes(part), hints);
            self.check_files_on_error(read)?;
            at.0 += sectors;
        }
        Ok(())
    }

    /// Writes `data` at `at`. It survives a crash of the program at once, and a power loss after
    /// [`Volume::flush`], or at once with [`Hints::FUA`].
    ///
    /// # Errors
    /// The range is outside the volume or not of whole sectors; no space is left; the volume
    /// refuses writes.
    pub fn write(&mut self, at: u64, data: &[u8], hints: Hints) -> CoreResult<()> {
        self.writable()?;
        let mut at = sector(at, data.len() as u64, self.bytes)?;
        for part in data.chunks(REQUEST_BYTES) {
            let wrote = self.layer.write(&mut self.sink, at, WriteData::Bytes(part), hints);
            self.check_files_on_error(wrote)?;
            at.0 += part.len() as u64 / SECTOR_BYTES;
        }
        if hints.has(Hints::FUA) { self.flush() } else { Ok(()) }
    }

    /// Returns `true` if the layer serves ranges that begin or end inside a sector
    /// ([`Volume::read_bytes`], [`Volume::write_bytes`]).
    pub fn serves_bytes(&mut self) -> bool {
        self.layer.byte_access().is_some()
    }

    /// Reads `into.len()` bytes from `at`, which may be any bytes of the volume.
    ///
    /// # Errors
    /// As for [`Volume::read`]; the range is not of whole sectors, and the layer serves only those.
    pub fn read_bytes(&mut self, at: u64, into: &mut [u8]) -> CoreResult<()> {
        let len = into.len() as u64;
        if aligned(at, len) {
            return self.read(at, into);
        }
        check_bytes(at, len, self.bytes)?;
        let access = self.layer.byte_access().ok_or_else(|| no_bytes(at, len))?;
        let read = access.read_bytes(&mut self.sink, at, ReadTarget::Bytes(into));
        self.check_files_on_error(read)
    }

    /// Writes `data` at `at`, which may be any bytes of the volume. The promises are those of
    /// [`Volume::write`]: after a power loss, the bytes in a block of 4 KiB are all old or all new.
    /// A range of 4 GiB or more is refused.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let dir = dir.path().join("vol");
    /// use frit_core::Hints;
    /// use frit_volume::{CreateOptions, Volume};
    ///
    /// let stack = frit_stack::Stack::builtin("hfsl-small", &[])?;
    /// let mut volume = Volume::create(&dir, &CreateOptions { stack, force: false })?;
    /// volume.write_bytes(1_000_001, b"one small record", Hints::METADATA)?;
    /// volume.flush()?;
    /// let mut record = [0; 16];
    /// volume.read_bytes(1_000_001, &mut record)?;
    /// assert_eq!(&record, b"one small record");
    /// volume.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Volume::write`]; the range is not of whole sectors, and the layer serves only those.
    pub fn write_bytes(&mut self, at: u64, data: &[u8], hints: Hints) -> CoreResult<()> {
        let len = data.len() as u64;
        if aligned(at, len) {
            return self.write(at, data, hints);
        }
        self.writable()?;
        check_bytes(at, len, self.bytes)?;
        let access = self.layer.byte_access().ok_or_else(|| no_bytes(at, len))?;
        let wrote = access.write_bytes(&mut self.sink, at, WriteData::Bytes(data), hints);
        self.check_files_on_error(wrote)?;
        if hints.has(Hints::FUA) { self.flush() } else { Ok(()) }
    }

    /// Reads bytes at a physical address of a medium, for a caller that the parameter `raw_access`
    /// of the layer names.
    ///
    /// # Errors
    /// [`Protected`](frit_core::Error::Protected) for a caller without this right; a layer without
    /// physical access; an address outside the medium, or damaged bytes.
    pub fn raw_read(&mut self, caller: &str, medium: MediumKind, at: u64, into: &mut [u8]) -> CoreResult<()> {
        let access = self.layer.raw_access().ok_or_else(no_raw)?;
        let read = access.raw_read(&mut self.sink, caller, medium, at, ReadTarget::Bytes(into));
        self.check_files_on_error(read)
    }

    /// Writes bytes at a physical address of PCM, in the area that the layer leaves free
    /// (`raw_bytes`). They are durable after [`Volume::flush`].
    ///
    /// # Errors
    /// As for [`Volume::raw_read`]; an address in an area of the layer; a volume that refuses
    /// writes.
    pub fn raw_write(&mut self, caller: &str, at: u64, data: &[u8]) -> CoreResult<()> {
        self.writable()?;
        let access = self.layer.raw_access().ok_or_else(no_raw)?;
        let wrote =
            access.raw_write(&mut self.sink, caller, at, WriteData::Bytes(data), frit_core::Cause::Host);
        self.check_files_on_error(wrote)
    }

    /// Returns the physical addresses of PCM that the layer leaves free for direct writes; empty if
    /// there are none.
    pub(crate) fn raw_area(&mut self) -> Range<u64> {
        self.layer.raw_access().map_or(0..0, |access| access.raw_area())
    }

    /// Reads bytes of this area, from byte `at` of it on.
    pub(crate) fn read_raw_area(&mut self, at: u64, into: &mut [u8]) -> CoreResult<()> {
        let access = self.layer.raw_access().ok_or_else(no_raw)?;
        let read = access.read_raw_area(&mut self.sink, at, ReadTarget::Bytes(into));
        self.check_files_on_error(read)
    }

    /// Writes bytes of this area, from byte `at` of it on. They are durable after
    /// [`Volume::flush`].
    pub(crate) fn write_raw_area(&mut self, at: u64, data: &[u8]) -> CoreResult<()> {
        self.writable()?;
        let access = self.layer.raw_access().ok_or_else(no_raw)?;
        let wrote = access.write_raw_area(&mut self.sink, at, WriteData::Bytes(data));
        self.check_files_on_error(wrote)
    }

    /// Makes a range read as zeros: by discarding it, or, with `keep_allocated`, by writing zeros,
    /// so that later writes find space.
    ///
    /// # Errors
    /// As for [`Volume::write`].
    pub fn write_zeroes(&mut self, at: u64, len: u64, keep_allocated: bool) -> CoreResult<()> {
        if !keep_allocated {
            return self.discard(at, len);
        }
        self.writable()?;
        let (mut at, mut left) = (sector(at, len, self.bytes)?, len);
        while left > 0 {
            let n = left.min(ZEROS.len() as u64);
            let zeros = WriteData::Bytes(&ZEROS[..n as usize]);
            let wrote = self.layer.write(&mut self.sink, at, zeros, Hints::NONE);
            self.check_files_on_error(wrote)?;
            at.0 += n / SECTOR_BYTES;
            left -= n;
        }
        Ok(())
    }

    /// Discards a range: it reads as zeros.
    ///
    /// # Errors
    /// As for [`Volume::write`].
    pub fn discard(&mut self, at: u64, len: u64) -> CoreResult<()> {
        self.writable()?;
        let at = sector(at, len, self.bytes)?;
        let done = self.layer.discard(&mut self.sink, at, len / SECTOR_BYTES);
        self.check_files_on_error(done)
    }

    /// Makes all acknowledged writes survive a power loss: they are in the files when this returns.
    ///
    /// # Errors
    /// A file cannot be synced, or was deleted or resized; the volume refuses writes from then on.
    pub fn flush(&mut self) -> CoreResult<()> {
        if self.read_only {
            return Ok(());
        }
        self.check_files()?;
        if let Err(e) = self.layer.flush(&mut self.sink) {
            // `Later` asks for another attempt; after a failure of a disk behind a cache, the cache
            // keeps the blocks and writes them again. Neither loses data, so the volume stays
            // writable.
            if matches!(e, frit_core::Error::WouldBlock | frit_core::Error::Medium { .. }) {
                return Err(e);
            }
            // After a failed sync, dirty pages may be gone from the page cache, and the next sync
            // would not report it: durability can no longer be guaranteed.
            self.layer.refuse(format!("a flush failed: {e}"));
            return Err(e);
        }
        Ok(())
    }

    /// Calls `each` for the extents of a range, in order: length in bytes, and the medium; `None`
    /// reads as zeros.
    ///
    /// # Errors
    /// The range is outside the volume or not of whole sectors.
    pub fn extents(
        &self,
        at: u64,
        len: u64,
        each: &mut dyn FnMut(u64, Option<MediumKind>),
    ) -> CoreResult<()> {
        let at = sector(at, len, self.bytes)?;
        self.layer.extents(at, len / SECTOR_BYTES, &mut |e| each(e.sectors * SECTOR_BYTES, e.place))
    }

    /// Runs background work of about `budget` media commands. Returns `true` if more is left.
    ///
    /// # Errors
    /// A medium fails in a way that the layer cannot repair.
    pub fn step(&mut self, budget: u32) -> CoreResult<bool> {
        if self.read_only || self.layer.refuses().is_some() {
            return Ok(false);
        }
        let step = self.layer.step(&mut self.sink, budget);
        Ok(matches!(self.check_files_on_error(step)?, Progress::Busy(_)))
    }

    /// Returns the visible state of layer and media.
    #[must_use]
    pub fn visible(&self) -> StackView {
        let mut view = StackView::default();
        self.layer.visible(&mut view);
        view
    }

    /// The layer's parameters.
    pub fn params(&mut self) -> Vec<ParamInfo> {
        self.layer.params().list()
    }

    /// Changes a parameter, as [`Volume::set_params`] does.
    ///
    /// # Errors
    /// As for [`Volume::set_params`].
    pub fn set_param(&mut self, key: &str, value: &str) -> CoreResult<()> {
        self.set_params(&[(key, value)])
    }

    /// Changes parameters: all of them or none, also after a crash. They take effect with the next
    /// request and are in the superblock when this returns. Their order does not matter.
    ///
    /// # Errors
    /// A key is unknown, a value is invalid, or a parameter is fixed; the superblock cannot be
    /// written.
    pub fn set_params(&mut self, settings: &[(&str, &str)]) -> CoreResult<()> {
        self.writable()?;
        if let Some((key, value)) = settings.iter().find(|(_, value)| value.chars().any(char::is_control)) {
            return Err(frit_core::Error::param(key, value.escape_debug(), "has a control character"));
        }
        let now = |(key, _): &(&str, &str)| Ok(((*key).to_owned(), self.layer.params().get(key)?));
        let before = settings.iter().map(now).collect::<CoreResult<Vec<_>>>()?;
        let done = self.set_in_any_order(settings).and_then(|()| {
            let saved =
                self.superblock.update(|s| settings.iter().for_each(|(key, value)| s.set_param(key, value)));
            saved.map_err(core_error)
        });
        if done.is_err() {
            // All or none: parameters that were set before the error get their old values back.
            self.set_in_any_order(&before)?;
        }
        done
    }

    /// Checks map, spare areas and descriptors for consistency, and the data if requested.
    ///
    /// # Errors
    /// A store fails; repair is requested of a read-only volume.
    pub fn check(&mut self, scope: CheckScope, found: &mut dyn FnMut(Finding)) -> CoreResult<CheckCounts> {
        if scope.repair {
            self.writable()?;
        }
        let checked = self.layer.check(&mut self.sink, scope, found);
        self.check_files_on_error(checked)
    }

    /// Enters read-only mode: writes are refused from now on, and reads continue. For errors that
    /// only the server detects.
    pub fn refuse(&mut self, why: String) {
        self.layer.refuse(why);
    }

    /// Turns the deferral of accesses to slow media to the caller on or off
    /// ([`frit_core::deferred`]). Returns `true` if they are deferred.
    pub fn defer(&mut self, on: bool) -> bool {
        // An engine needs the order of all commands: requests of a modelled device stay in one thread.
        !self.sink.is_timed() && self.layer.defer(on)
    }

    /// Returns `true` if a request for these bytes would have to wait for a slow medium now. This
    /// is a hint ([`frit_core::BlockLayer::would_block`]).
    #[must_use]
    pub fn would_block(&self, what: RequestIntent, at: u64, len: u64) -> bool {
        self.layer.would_block(what, Sector(at / SECTOR_BYTES), len.div_ceil(SECTOR_BYTES))
    }

    /// Returns the accesses that the last call deferred; its request completes after them.
    pub fn deferred(&mut self) -> Option<Deferred> {
        self.layer.deferred()
    }

    /// Returns background work for the caller to execute.
    ///
    /// # Errors
    /// A medium fails.
    pub fn job(&mut self) -> CoreResult<Option<Deferred>> {
        let job = self.layer.job(&mut self.sink);
        self.check_files_on_error(job)
    }

    /// Completes deferred accesses, which succeeded or failed.
    ///
    /// # Errors
    /// The error with which the request of the accesses ends.
    pub fn settle(
        &mut self,
        of: &Deferred,
        outcome: CoreResult<()>,
        buffer: &mut Buffer<'_>,
    ) -> CoreResult<()> {
        let settled = self.layer.settle(&mut self.sink, of, outcome, buffer);
        self.check_files_on_error(settled)
    }

    /// Calls `each` for the handle of each layer below the top one that works without the lock of
    /// this volume ([`frit_core::BlockDevice::shared`]).
    pub fn each_shared(&mut self, each: &mut dyn FnMut(&Arc<dyn BlockingMedium>)) {
        self.layer.each_shared(each);
    }

    /// Executes all deferred work, and turns deferral off.
    fn run_deferred_work(&mut self) -> CoreResult<()> {
        while let Some(job) = self.layer.job(&mut self.sink)? {
            let outcome = job.run(&mut Buffer::None);
            self.layer.settle(&mut self.sink, &job, outcome, &mut Buffer::None)?;
        }
        self.layer.defer(false);
        Ok(())
    }

    /// Returns the sink of media commands.
    pub fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// Returns the directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the stack, as stored in the superblock.
    #[must_use]
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the places where the stack asks for a recording. Nothing is recorded until a caller
    /// attaches a sink to one.
    #[must_use]
    pub fn record_ports(&self) -> &[RecordPort] {
        &self.records
    }

    /// Returns the superblock.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        self.superblock.current()
    }

    /// Writes the remaining state to the media, and marks the volume clean.
    ///
    /// # Errors
    /// A volume that refused writes after an error stays dirty, with the reason; the files cannot
    /// be synced.
    pub fn close(self) -> Result<()> {
        self.finish().map(drop)
    }

    /// Closes the volume, and keeps the lock.
    pub(crate) fn finish(mut self) -> Result<SuperblockFile> {
        if self.read_only {
            return Ok(self.superblock);
        }
        self.run_deferred_work()?;
        self.flush()?;
        self.save_disabled_params()?;
        if let Some(why) = self.layer.refuses() {
            return Err(Error::LeftDirty { why });
        }
        // The order matters: `halt` writes the final state of the layer, the flush makes it
        // durable, and only then may the superblock say clean. A crash in between is an ordinary
        // recovery.
        self.layer.halt(&mut self.sink)?;
        self.flush()?;
        if let Some(why) = self.failed_sync() {
            return Err(Error::LeftDirty { why });
        }
        self.superblock.set_state(VolumeState::Clean, boot_id())?;
        Ok(self.superblock)
    }

    /// Returns the failure of a sync after which nothing was synced in its file.
    fn failed_sync(&self) -> Option<String> {
        self.files.iter().find_map(|file| {
            let why = file.synced().gate().failure()?;
            Some(format!("a sync of {} failed: {why}", file.path().display()))
        })
    }

    /// Returns the files of the media. Their writes may be synced at any time, from any thread.
    #[must_use]
    pub fn synced_files(&self) -> Vec<Arc<SyncedFile>> {
        self.files.iter().map(|file| Arc::clone(file.synced())).collect()
    }

    /// Saves parameters that the layer has turned off (`drain` of a cache, when all blocks are
    /// clean). Otherwise the next opening would turn them on again.
    fn save_disabled_params(&mut self) -> Result<()> {
        let now = self.layer.params().list();
        let value = |key: &str| now.iter().find(|p| p.key == key).map(|p| p.value.clone());
        let saved = &self.superblock.current().params;
        let off =
            saved.iter().filter(|(_, v)| v == "true").filter_map(|(key, _)| Some((key.clone(), value(key)?)));
        let off: Vec<(String, String)> = off.filter(|(_, v)| v == "false").collect();
        if off.is_empty() {
            return Ok(());
        }
        self.superblock.update(|s| off.iter().for_each(|(key, v)| s.set_param(key, v)))
    }

    /// Checks the files after an I/O error of the host: if one was deleted or resized, reads
    /// continue and writes are refused.
    #[inline]
    fn check_files_on_error<T>(&mut self, result: CoreResult<T>) -> CoreResult<T> {
        if let Err(frit_core::Error::Io { .. } | frit_core::Error::Corrupt { .. }) = &result {
            // The error of the request is more specific; the result of the check is available from
            // `read_only`.
            drop(self.check_files());
        }
        result
    }

    /// Checks that every file is still the one that was opened.
    fn check_files(&mut self) -> CoreResult<()> {
        match self
            .superblock
            .unusable_reason()
            .or_else(|| self.files.iter().find_map(MediumFile::unusable_reason))
        {
            None => Ok(()),
            Some(why) => {
                self.layer.refuse(why.clone());
                Err(frit_core::Error::ReadOnly { why })
            }
        }
    }
}

/// Converts an error of a volume to an error of a request.
fn core_error(e: Error) -> frit_core::Error {
    match e {
        Error::Core(e) => e,
        other => frit_core::Error::Io {
            what: "superblock".into(),
            source: std::io::Error::other(other.to_string()),
        },
    }
}
