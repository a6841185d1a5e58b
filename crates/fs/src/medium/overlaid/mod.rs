//! An image in an ordinary file, which the page cache stands before, as a medium.
//!
//! The image is written by a sync alone, and holds the state of the last one, whole: together with the double-write
//! file (`log`) after a power cut as well. What was changed since lies in an overlay of memory (`store`), page by page,
//! which a killed process leaves behind for the next.
//!
//! A sync *freezes* the current layer of the overlay: it waits until nobody is in the middle of a write, and from
//! then on changes go into the other layer. So what it writes is the medium as it was at one moment, and nothing waits
//! while it is written. A moment in the middle of a transaction is as good as any: a start completes it, or finds it
//! had not begun, as after a cut of a medium whose fences are real.

mod dirs;
mod disk;
mod files;
mod gate;
mod leftover;
mod log;
mod own;
mod place;
mod store;
mod sync;

pub use disk::Disk;
pub use files::ImageFile;
pub use own::LockFile;
pub use place::Overlay;
pub(super) use place::in_memory;

use super::Medium;
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::sync::{AtomicU64, Mutex};
use frit_core::planted::{Bug, is};
use gate::Gate;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::Store;
use sync::Run;

/// Locks for pages that are brought into the overlay.
const STRIPES: usize = 64;
/// Most bytes that are written between two looks whether somebody wants to be alone.
const STEP: u64 = 1 << 20;
/// Zeros that pages are made of.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// How long a write waits before it asks again for memory that a sync did not free.
const PAUSE: Duration = Duration::from_millis(20);

/// An image in an ordinary file. Fences order what a killed process leaves; only a [`Medium::sync`] outlives the
/// machine, and a power cut leaves exactly the last one.
#[derive(Debug)]
pub struct Overlaid<D: Disk = ImageFile> {
    disk: D,
    store: Store,
    /// Where the overlay is, to be removed with the last change synced.
    path: Option<PathBuf>,
    /// Overlays of other images that were found.
    notes: Vec<String>,
    gate: Gate,
    stripes: [Mutex<()>; STRIPES],
    /// Syncs that were asked for.
    asked: AtomicU64,
    run: Mutex<Run>,
    /// Pages that the current layer may have before a write makes a sync.
    limit: u64,
    /// The same, raised for a while when that sync failed.
    next: AtomicU64,
}

/// What a range is changed to.
#[derive(Clone, Copy)]
enum New<'a> {
    Bytes(&'a [u8]),
    Zeros(u64),
}

impl<'a> New<'a> {
    fn len(self) -> u64 {
        match self {
            Self::Bytes(data) => data.len() as u64,
            Self::Zeros(len) => len,
        }
    }

    /// A part of it.
    fn part(self, from: u64, len: u64) -> Self {
        match self {
            Self::Bytes(data) => Self::Bytes(&data[from as usize..(from + len) as usize]),
            Self::Zeros(_) => Self::Zeros(len),
        }
    }

    /// Its bytes, or the first of them if they are zeros.
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(data) => data,
            Self::Zeros(len) => &ZEROS[..ZEROS.len().min(len as usize)],
        }
    }
}

/// There is no memory for another page.
struct Full;

impl Overlaid {
    /// Reserves disk space for the largest sync that is made without need, so that a full disk fails none.
    ///
    /// # Errors
    /// There is not as much space beside the image.
    pub fn reserve(&self) -> Result<()> {
        // The first page is always among those of a sync.
        let pages = (self.limit + 1).min(self.disk.bytes() / BLOCK);
        self.disk.reserve_log(log::Log::bytes_of(pages as usize))
    }
}

impl<D: Disk> Overlaid<D> {
    /// Returns the file that holds what was changed and not synced, if it has a name.
    #[must_use]
    pub fn overlay(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// An image on any disk, with an overlay that ends with this value, and a bound of its pages in bytes: for tests of
    /// power cuts. Completes a sync that was cut off.
    ///
    /// # Errors
    /// The log belongs to another image or state; what the operating system says.
    pub fn on(disk: D, bound: u64) -> Result<Self> {
        let os = |error| Error::Os { what: "cannot make", path: "an overlay in memory".into(), error };
        let at = log::recover(&disk)?;
        let file = rustix::fs::memfd_create("frit overlay", rustix::fs::MemfdFlags::CLOEXEC);
        let file = File::from(file.map_err(|e| os(e.into()))?);
        let store = Store::make(file, disk.bytes(), [0; store::IMAGE_WORDS], &[], at).map_err(os)?;
        Ok(Self::with(disk, store, None, bound))
    }

    fn with(disk: D, store: Store, path: Option<PathBuf>, bound: u64) -> Self {
        // A sync writes one layer while the other one fills up.
        let limit = (bound / BLOCK / 2).max(1);
        Self {
            run: Mutex::new(Run::new(log::Stamp::read(&disk))),
            disk,
            store,
            path,
            notes: Vec::new(),
            gate: Gate::new(),
            stripes: std::array::from_fn(|_| Mutex::new(())),
            asked: AtomicU64::new(0),
            limit,
            next: AtomicU64::new(limit),
        }
    }

    /// Bytes that were changed since the last sync and lie in memory, in whole pages.
    pub fn unsynced(&self) -> u64 {
        (self.store.count(0) + self.store.count(1)) * BLOCK
    }

    /// Sentences about overlays of other images that killed processes left.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Refuses a range outside.
    #[allow(clippy::panic)]
    #[inline]
    fn inside(&self, at: u64, len: u64) {
        if at.checked_add(len).is_none_or(|end| end > self.disk.bytes()) {
            panic!("{len} bytes at {at} are outside of a medium of {} bytes", self.disk.bytes());
        }
    }

    /// Whether the overlay has nothing of a range. What is said holds for as long as nobody writes to the range: pages
    /// leave the overlay only when the image has them.
    #[inline]
    fn is_below(&self, at: u64, len: u64) -> bool {
        let none = |layer| self.store.count(layer) == 0;
        (none(0) && none(1))
            || (at / BLOCK..(at + len).div_ceil(BLOCK))
                .all(|page| !self.store.has(0, page) && !self.store.has(1, page))
    }

    /// Reads with the gate entered.
    fn read_layers(&self, mut at: u64, mut into: &mut [u8]) {
        let current = self.store.current();
        let place = |page| match (self.store.has(current, page), self.store.has(1 - current, page)) {
            (true, _) => Some(current),
            (_, true) => Some(1 - current),
            _ => None,
        };
        while !into.is_empty() {
            let here = place(at / BLOCK);
            let mut len = (BLOCK - at % BLOCK).min(into.len() as u64);
            while len < into.len() as u64 && place((at + len) / BLOCK) == here {
                len = (len + BLOCK).min(into.len() as u64);
            }
            let (now, rest) = into.split_at_mut(len as usize);
            match here {
                Some(layer) => self.store.read(layer, at, now),
                None => self.disk.read_image(at, now),
            }
            at += len;
            into = rest;
        }
    }

    fn change(&self, at: u64, new: New<'_>) {
        self.inside(at, new.len());
        let mut done = 0;
        while done < new.len() {
            let rest = new.part(done, (new.len() - done).min(STEP));
            let changed = {
                let _inside = self.gate.enter();
                self.change_some(at + done, rest)
            };
            match changed {
                Ok(len) => done += len,
                Err(Full) => self.relieve(),
            }
            if self.store.count(self.store.current()) >= self.next.load(Ordering::Relaxed) {
                self.bound();
            }
        }
    }

    /// Changes as much as is of one kind: in pages that the current layer has, whole pages that it has not, or a part
    /// of such a page. Returns how many bytes.
    fn change_some(&self, at: u64, new: New<'_>) -> Result<u64, Full> {
        let layer = self.store.current();
        let (page, end) = (at / BLOCK, at + new.len());
        let whole = |page: u64| page * BLOCK >= at && (page + 1) * BLOCK <= end;
        if self.here(layer, page) {
            let pages = (page..end.div_ceil(BLOCK)).take_while(|page| self.here(layer, *page)).count() as u64;
            let len = ((page + pages) * BLOCK).min(end) - at;
            self.in_place(layer, at, new.part(0, len));
            return Ok(len);
        }
        if whole(page) {
            let absent = |page: &u64| whole(*page) && !self.here(layer, *page);
            let pages = (page..end.div_ceil(BLOCK)).take_while(absent).count() as u64;
            // Nobody else reads or writes any byte of these pages now.
            let contents = new.part(0, pages * BLOCK).bytes();
            self.store.add(layer, page, contents).map_err(|_| Full)?;
            return Ok(contents.len() as u64);
        }
        let len = (BLOCK - at % BLOCK).min(new.len());
        self.bring(layer, at, new.part(0, len))?;
        Ok(len)
    }

    /// Whether a page can be changed where it is.
    fn here(&self, layer: usize, page: u64) -> bool {
        self.store.has(layer, page) || (is(Bug::FileNotFrozen) && self.store.has(1 - layer, page))
    }

    fn in_place(&self, layer: usize, at: u64, new: New<'_>) {
        let layer =
            if is(Bug::FileNotFrozen) && !self.store.has(layer, at / BLOCK) { 1 - layer } else { layer };
        match new {
            New::Bytes(data) => self.store.write(layer, at, data),
            New::Zeros(len) => self.store.zero(layer, at, len),
        }
    }

    /// Brings a page into the layer, with a part of it changed.
    fn bring(&self, layer: usize, at: u64, new: New<'_>) -> Result<(), Full> {
        let page = at / BLOCK;
        let _one = self.stripes[page as usize % STRIPES].lock();
        if self.store.has(layer, page) {
            // Somebody changed other bytes of it just now.
            self.in_place(layer, at, new);
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
        self.store.add(layer, page, &contents).map_err(|_| Full)
    }

    /// Makes room when memory is full: a sync empties the overlay. Where that does not help, the disk failed or others
    /// took the memory, the write waits.
    #[cold]
    fn relieve(&self) {
        if self.unsynced() == 0 || self.sync().is_err() {
            std::thread::sleep(PAUSE);
        }
    }

    /// Syncs because the overlay has reached its bound. If that fails a sync by somebody tells of it; until then more
    /// memory is used.
    #[cold]
    fn bound(&self) {
        let more = match self.sync() {
            Ok(()) => 0,
            Err(_) => self.store.count(self.store.current()) + self.limit / 4,
        };
        self.next.store(self.limit + more, Ordering::Relaxed);
    }
}

impl<D: Disk> Medium for Overlaid<D> {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        self.inside(at, into.len() as u64);
        if self.is_below(at, into.len() as u64) {
            return self.disk.read_image(at, into);
        }
        let _inside = self.gate.enter();
        self.read_layers(at, into);
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        debug_assert!(at.is_multiple_of(8) && data.len().is_multiple_of(8));
        self.change(at, New::Bytes(data));
    }

    #[inline]
    fn write_data(&self, at: u64, data: &[u8]) {
        self.change(at, New::Bytes(data));
    }

    #[inline]
    fn zero(&self, at: u64, len: u64) {
        self.change(at, New::Zeros(len));
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
    /// Without changes that were not synced, or with an image that was deleted, neither the overlay nor the log is
    /// needed any more. Others stay, for the next who opens the image.
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
mod tests;
