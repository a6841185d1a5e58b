//! A medium in an ordinary file, which is accessed through the page cache.
//!
//! Only a sync writes the image. The image always holds the complete state of the last sync; after
//! a power loss the double-write file (`log`) is needed to restore it. Later changes are in an
//! overlay in memory (`store`), in pages. A process that is killed leaves the overlay behind for
//! the next one.
//!
//! A sync *freezes* the current layer of the overlay: it waits until no write is in progress, and
//! then directs changes to the other layer. The sync thus writes a snapshot of the medium, and
//! writers do not wait for it. The snapshot may be taken in the middle of a transaction: recovery
//! completes or ignores that transaction, as after a power loss on a medium with real fences.

mod dirs;
mod disk;
mod files;
mod lock_file;
mod log;
mod open;
mod overlay_file;
mod overlay_mark;
mod sharded_lock;
mod stale;
mod store;
mod sync;

pub use disk::Disk;
pub use files::ImageFile;
pub use lock_file::LockFile;
pub use overlay_file::OverlayOptions;
pub(super) use overlay_file::in_memory;
pub use stale::OverlayNote;

use super::Medium;
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::planted::ImageFileBug;
use crate::sync::{AtomicU64, Mutex};
use frit_core::planted::is_planted;
use sharded_lock::ShardedRwLock;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::OverlayStore;
use sync::SyncState;

/// Number of locks for pages that are copied into the overlay.
const STRIPES: usize = 64;
/// Maximum number of bytes written before a writer releases its shared lock, so that a sync can
/// proceed.
const STEP: u64 = 1 << 20;
/// Source of zeros for pages.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Interval between attempts of a write to get memory when a sync did not free any.
const PAUSE: Duration = Duration::from_millis(20);

/// An image in an ordinary file. Fences order the changes that survive the kill of a process. Only
/// a [`Medium::sync`] survives a power loss, after which the image has exactly the state of the
/// last one.
#[derive(Debug)]
pub struct Overlaid<D: Disk = ImageFile> {
    disk: D,
    store: OverlayStore,
    /// Path of the overlay, which is removed when no unsynced change is left.
    path: Option<PathBuf>,
    /// Notes about overlays of other images.
    notes: Vec<OverlayNote>,
    sharded_lock: ShardedRwLock,
    stripes: [Mutex<()>; STRIPES],
    /// Number of syncs requested.
    syncs_requested: AtomicU64,
    run: Mutex<SyncState>,
    /// Number of pages in the current layer at which a write performs a sync.
    limit: u64,
    /// The effective limit, raised temporarily when that sync failed.
    effective_limit: AtomicU64,
}

/// Contents to write to a range.
#[derive(Clone, Copy)]
enum NewContents<'a> {
    Bytes(&'a [u8]),
    Zeros(u64),
}

impl<'a> NewContents<'a> {
    fn len(self) -> u64 {
        match self {
            Self::Bytes(data) => data.len() as u64,
            Self::Zeros(len) => len,
        }
    }

    /// Returns a part of the contents.
    fn part(self, from: u64, len: u64) -> Self {
        match self {
            Self::Bytes(data) => Self::Bytes(&data[from as usize..(from + len) as usize]),
            Self::Zeros(_) => Self::Zeros(len),
        }
    }

    /// Returns the bytes, or for zeros as many as fit into `ZEROS`.
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(data) => data,
            Self::Zeros(len) => &ZEROS[..ZEROS.len().min(len as usize)],
        }
    }
}

/// Error: no memory is available for another page.
struct NoMemory;

impl Overlaid {
    /// Reserves disk space for the largest sync that the overlay's limit permits, so that syncs do
    /// not fail on a full disk.
    ///
    /// # Errors
    /// Not enough disk space is available beside the image.
    pub fn reserve(&self) -> Result<()> {
        // One page more, as the first page of the image is part of each sync.
        let pages = (self.limit + 1).min(self.disk.bytes() / BLOCK);
        self.disk.reserve_log(log::DoubleWriteLog::bytes_of(pages as usize))
    }
}

impl<D: Disk> Overlaid<D> {
    /// Returns the path of the overlay, which holds the unsynced changes, if it has a name.
    #[must_use]
    pub fn overlay(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Opens an image on any disk, for tests of power loss, with an overlay that ends with this
    /// value and takes at most `bound` bytes. Completes an interrupted sync.
    ///
    /// # Errors
    /// The log belongs to another image or state; a call of the operating system failed.
    pub fn on(disk: D, bound: u64) -> Result<Self> {
        let os = |error| Error::Os { what: "cannot create", path: "an overlay in memory".into(), error };
        let at = log::recover(&disk)?;
        let file = rustix::fs::memfd_create("frit overlay", rustix::fs::MemfdFlags::CLOEXEC);
        let file = File::from(file.map_err(|e| os(e.into()))?);
        let store = OverlayStore::make(file, disk.bytes(), [0; store::IMAGE_WORDS], &[], at).map_err(os)?;
        Ok(Self::with(disk, store, None, bound))
    }

    fn with(disk: D, store: OverlayStore, path: Option<PathBuf>, bound: u64) -> Self {
        // Half of the bound, as a sync writes one layer while the other one is filled.
        let limit = (bound / BLOCK / 2).max(1);
        Self {
            run: Mutex::new(SyncState::new(log::SyncStamp::read(&disk))),
            disk,
            store,
            path,
            notes: Vec::new(),
            sharded_lock: ShardedRwLock::new(),
            stripes: std::array::from_fn(|_| Mutex::new(())),
            syncs_requested: AtomicU64::new(0),
            limit,
            effective_limit: AtomicU64::new(limit),
        }
    }

    /// Returns the bytes of unsynced changes in memory, in whole pages.
    pub fn unsynced(&self) -> u64 {
        (self.store.count(0) + self.store.count(1)) * BLOCK
    }

    /// Returns notes about overlays of other images that killed processes left behind.
    pub fn notes(&self) -> &[OverlayNote] {
        &self.notes
    }

    /// Panics if a range is outside the medium.
    #[allow(clippy::panic)]
    #[inline]
    fn assert_inside(&self, at: u64, len: u64) {
        if at.checked_add(len).is_none_or(|end| end > self.disk.bytes()) {
            panic!("{len} bytes at {at} are outside of a medium of {} bytes", self.disk.bytes());
        }
    }

    /// Returns `true` if the overlay has no page of a range. The result stays valid as long as no
    /// thread writes to the range, because pages leave the overlay only after they were written to
    /// the image.
    #[inline]
    fn is_unchanged(&self, at: u64, len: u64) -> bool {
        let none = |layer| self.store.count(layer) == 0;
        // The counts avoid a scan of the bitmaps while the overlay is empty.
        (none(0) && none(1))
            || (at / BLOCK..(at + len).div_ceil(BLOCK))
                .all(|page| !self.store.has(0, page) && !self.store.has(1, page))
    }

    /// Reads a range. The caller holds the shared lock.
    fn read_layers(&self, mut at: u64, mut into: &mut [u8]) {
        let current = self.store.current();
        let place = |page| match (self.store.has(current, page), self.store.has(1 - current, page)) {
            (true, _) => Some(current),
            (_, true) => Some(1 - current),
            _ => None,
        };
        while !into.is_empty() {
            let first_place = place(at / BLOCK);
            let mut len = (BLOCK - at % BLOCK).min(into.len() as u64);
            while len < into.len() as u64 && place((at + len) / BLOCK) == first_place {
                len = (len + BLOCK).min(into.len() as u64);
            }
            let (now, rest) = into.split_at_mut(len as usize);
            match first_place {
                Some(layer) => self.store.read(layer, at, now),
                None => self.disk.read_image(at, now),
            }
            at += len;
            into = rest;
        }
    }

    fn change(&self, at: u64, new: NewContents<'_>) {
        self.assert_inside(at, new.len());
        let mut done = 0;
        while done < new.len() {
            let rest = new.part(done, (new.len() - done).min(STEP));
            let changed = {
                let _inside = self.sharded_lock.lock_shared();
                self.change_some(at + done, rest)
            };
            match changed {
                Ok(len) => done += len,
                Err(NoMemory) => self.reclaim(),
            }
            if self.store.count(self.store.current()) >= self.effective_limit.load(Ordering::Relaxed) {
                self.sync_at_limit();
            }
        }
    }

    /// Changes a prefix of the range that needs one kind of access: pages in the current layer,
    /// whole pages that are not in it, or a part of such a page. Returns the number of bytes.
    fn change_some(&self, at: u64, new: NewContents<'_>) -> Result<u64, NoMemory> {
        let layer = self.store.current();
        let (page, end) = (at / BLOCK, at + new.len());
        let whole = |page: u64| page * BLOCK >= at && (page + 1) * BLOCK <= end;
        if self.can_change_in_place(layer, page) {
            let pages = (page..end.div_ceil(BLOCK))
                .take_while(|page| self.can_change_in_place(layer, *page))
                .count() as u64;
            let len = ((page + pages) * BLOCK).min(end) - at;
            self.change_in_place(layer, at, new.part(0, len));
            return Ok(len);
        }
        if whole(page) {
            let absent = |page: &u64| whole(*page) && !self.can_change_in_place(layer, *page);
            let pages = (page..end.div_ceil(BLOCK)).take_while(absent).count() as u64;
            // The caller of `Medium` ensures that no other thread accesses these pages.
            let contents = new.part(0, pages * BLOCK).bytes();
            self.store.add(layer, page, contents).map_err(|_| NoMemory)?;
            return Ok(contents.len() as u64);
        }
        let len = (BLOCK - at % BLOCK).min(new.len());
        self.copy_up(layer, at, new.part(0, len))?;
        Ok(len)
    }

    /// Returns `true` if a page can be changed in place.
    fn can_change_in_place(&self, layer: usize, page: u64) -> bool {
        self.store.has(layer, page)
            || (is_planted(ImageFileBug::NotFrozen) && self.store.has(1 - layer, page))
    }

    fn change_in_place(&self, layer: usize, at: u64, new: NewContents<'_>) {
        let layer = if is_planted(ImageFileBug::NotFrozen) && !self.store.has(layer, at / BLOCK) {
            1 - layer
        } else {
            layer
        };
        match new {
            NewContents::Bytes(data) => self.store.write(layer, at, data),
            NewContents::Zeros(len) => self.store.zero(layer, at, len),
        }
    }

    /// Copies a page into the layer and changes a part of it.
    fn copy_up(&self, layer: usize, at: u64, new: NewContents<'_>) -> Result<(), NoMemory> {
        let page = at / BLOCK;
        // Threads may change different bytes of one page, which must be copied only once.
        let _one = self.stripes[page as usize % STRIPES].lock();
        if self.store.has(layer, page) {
            // Another thread has added the page in the meantime, for a change of other bytes.
            self.change_in_place(layer, at, new);
            return Ok(());
        }
        let mut contents = [0; BLOCK as usize];
        if self.store.has(1 - layer, page) {
            self.store.read(1 - layer, page * BLOCK, &mut contents);
        } else {
            self.disk.read_image(page * BLOCK, &mut contents);
        }
        let from = (at % BLOCK) as usize;
        contents[from..from + new.len() as usize].copy_from_slice(new.bytes());
        self.store.add(layer, page, &contents).map_err(|_| NoMemory)
    }

    /// Frees memory by a sync when the overlay cannot grow. If the sync fails or there is nothing
    /// to sync, the write waits.
    #[cold]
    fn reclaim(&self) {
        if self.unsynced() == 0 || self.sync().is_err() {
            std::thread::sleep(PAUSE);
        }
    }

    /// Performs a sync because the overlay has reached its limit. If it fails, the limit is raised,
    /// and the next explicit sync reports the error.
    #[cold]
    fn sync_at_limit(&self) {
        let more = match self.sync() {
            Ok(()) => 0,
            // The limit exceeds the current count, so that not every write retries a failing sync.
            Err(_) => self.store.count(self.store.current()) + self.limit / 4,
        };
        self.effective_limit.store(self.limit + more, Ordering::Relaxed);
    }
}

impl<D: Disk> Medium for Overlaid<D> {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        self.assert_inside(at, into.len() as u64);
        if self.is_unchanged(at, into.len() as u64) {
            return self.disk.read_image(at, into);
        }
        let _inside = self.sharded_lock.lock_shared();
        self.read_layers(at, into);
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        debug_assert!(at.is_multiple_of(8) && data.len().is_multiple_of(8));
        self.change(at, NewContents::Bytes(data));
    }

    #[inline]
    fn write_data(&self, at: u64, data: &[u8]) {
        self.change(at, NewContents::Bytes(data));
    }

    #[inline]
    fn zero(&self, at: u64, len: u64) {
        self.change(at, NewContents::Zeros(len));
    }

    #[inline]
    fn fence(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    fn sync(&self) -> Result<()> {
        self.sync_once()
    }
}

impl<D: Disk> Drop for Overlaid<D> {
    /// Removes the overlay and the log if there are no unsynced changes or the image was deleted.
    /// Otherwise they are kept for the next open.
    fn drop(&mut self) {
        if self.unsynced() > 0 && !self.disk.is_deleted() {
            return;
        }
        if let Some(path) = &self.path {
            self.disk.remove_overlay(path);
        }
        let _ = self.disk.remove_log();
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;
