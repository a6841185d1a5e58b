//! The overlay: pages changed since the last sync, in a file in memory (tmpfs) that survives the
//! process but not a power loss.
//!
//! It has two *layers*. Each has space for every page of the image at the same position, and most
//! of it is a hole. One layer is current and receives changes. The other one is empty, or frozen
//! while a sync writes it. A bitmap records the pages of each layer.
//!
//! ```text
//! block 0       words: magic, version, image (device, inode, birth, bytes, UUID), current layer, two stamps,
//!               file system; path
//! behind        bits of layer 0, bits of layer 1, each to a multiple of 4096
//! behind        layer 0, layer 1, each as large as the image
//! ```
//!
//! Memory for pages is allocated by write(2), which fails if there is none. A store into a hole of
//! the mapping would end the process with a signal instead.

// The words of the mapped file are shared between threads as atomics.
#![allow(unsafe_code)]

use super::log::SyncStamp;
use crate::format::BLOCK;
use crate::medium::cache_lines::CacheLineFlush;
use crate::medium::memory::MappedMemory;
use memmap2::MmapOptions;
use rustix::fs::{FallocateFlags, fallocate};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// First bytes of an overlay.
const MAGIC: u64 = u64::from_le_bytes(*b"frit-ovl");
const VERSION: u64 = 1;
/// Number of header words that identify the image.
pub(super) const IMAGE_WORDS: usize = 6;
const IMAGE_AT: usize = 2;
const UUID_AT: usize = IMAGE_AT + 4;
const CURRENT_AT: usize = IMAGE_AT + IMAGE_WORDS;
const STAMPS_AT: usize = CURRENT_AT + 1;
/// Word with the ID of the file system that contains the image; 0 in overlays of older versions.
const FILE_SYSTEM_AT: usize = STAMPS_AT + 4;
/// Position of the image's path in bytes, and its maximum length.
const PATH_AT: usize = 256;
const PATH_MAX: usize = BLOCK as usize - PATH_AT - 1;

/// The overlay of an image.
#[derive(Debug)]
pub(super) struct OverlayStore {
    file: File,
    memory: MappedMemory,
    /// Number of pages of the image.
    pages: u64,
    /// Number of pages in each layer.
    counts: [AtomicU64; 2],
    /// Number of pages that it may still take, for tests of full memory.
    #[cfg(test)]
    pub(super) room: std::sync::atomic::AtomicI64,
}

/// Returns the size of a layer's bitmap in bytes.
fn bits_bytes(pages: u64) -> u64 {
    (pages.div_ceil(64) * 8).next_multiple_of(BLOCK)
}

impl OverlayStore {
    /// Creates the overlay of an image of `bytes` in an empty file in memory. `image` is the
    /// identity of the image.
    ///
    /// # Errors
    /// There is not enough memory for the bitmaps, or not enough address space for the mapping.
    pub(super) fn make(
        file: File,
        bytes: u64,
        image: [u64; IMAGE_WORDS],
        path: &[u8],
        at: SyncStamp,
    ) -> io::Result<Self> {
        let pages = bytes / BLOCK;
        let head = BLOCK + 2 * bits_bytes(pages);
        file.set_len(0)?;
        file.set_len(head + 2 * bytes)?;
        // The bitmaps are allocated, because a store into a hole without memory ends the process.
        fallocate(&file, FallocateFlags::empty(), 0, head)?;
        let store = Self::map(file, bytes)?;
        store.set_path(path);
        for (i, word) in image.into_iter().enumerate() {
            store.word(IMAGE_AT + i).store(word, Ordering::Relaxed);
        }
        store.settle(at);
        store.word(1).store(VERSION, Ordering::Relaxed);
        // The magic number is written last: a crash before this leaves a file that is not an
        // overlay.
        store.word(0).store(MAGIC, Ordering::Release);
        Ok(store)
    }

    /// Maps an existing overlay.
    ///
    /// # Errors
    /// The file is too short for an image of this size, or there is not enough address space.
    pub(super) fn map(file: File, bytes: u64) -> io::Result<Self> {
        let pages = bytes / BLOCK;
        let len = BLOCK + 2 * bits_bytes(pages) + 2 * bytes;
        if file.metadata()?.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let map = MmapOptions::new().len(len as usize).map_raw(&file)?;
        let memory = MappedMemory::new(map, CacheLineFlush::NoFlush);
        let store = Self {
            file,
            memory,
            pages,
            counts: [AtomicU64::new(0), AtomicU64::new(0)],
            #[cfg(test)]
            room: i64::MAX.into(),
        };
        for layer in 0..2 {
            let bits =
                store.bits(layer).iter().map(|word| u64::from(word.load(Ordering::Acquire).count_ones()));
            store.counts[layer].store(bits.sum(), Ordering::Relaxed);
        }
        Ok(store)
    }

    /// Returns the identity and path of the image; `None` if the creation of the overlay was
    /// interrupted, so that it contains nothing.
    ///
    /// # Errors
    /// The overlay was created by another version of the program.
    pub(super) fn image_of(file: &File) -> io::Result<Option<([u64; IMAGE_WORDS], PathBuf)>> {
        let mut head = [0_u64; BLOCK as usize / 8];
        match file.read_exact_at(bytemuck::cast_slice_mut(&mut head), 0) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        if head[0] != MAGIC {
            return Ok(None);
        }
        if head[1] != VERSION {
            return Err(io::Error::other("it was created by another version of this program"));
        }
        let image = std::array::from_fn(|i| head[IMAGE_AT + i]);
        let path: &[u8] = &bytemuck::cast_slice(&head)[PATH_AT..];
        let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
        Ok(Some((image, OsStr::from_bytes(&path[..end]).into())))
    }

    /// Returns the ID of the file system that contains the image, or 0 if unknown.
    ///
    /// # Errors
    /// A call of the operating system failed.
    pub(super) fn file_system_of(file: &File) -> io::Result<u64> {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, FILE_SYSTEM_AT as u64 * 8)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Records the path of the image.
    pub(super) fn set_path(&self, path: &[u8]) {
        let mut whole = [0; PATH_MAX];
        let len = path.len().min(PATH_MAX);
        whole[..len].copy_from_slice(&path[..len]);
        self.memory.write(PATH_AT as u64, &whole);
    }

    /// Records the ID of the file system that contains the image.
    pub(super) fn set_file_system(&self, number: u64) {
        self.word(FILE_SYSTEM_AT).store(number, Ordering::Relaxed);
    }

    /// Returns the file and drops the mapping.
    pub(super) fn into_file(self) -> File {
        self.file
    }

    /// Returns a word of the header.
    fn word(&self, i: usize) -> &AtomicU64 {
        let at = self.memory.range(i as u64 * 8, 8);
        // SAFETY: mapped and aligned, and all accesses are atomic.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// Returns the bitmap of a layer.
    fn bits(&self, layer: usize) -> &[AtomicU64] {
        let at = BLOCK + layer as u64 * bits_bytes(self.pages);
        let words = self.pages.div_ceil(64) as usize;
        let at = self.memory.range(at, words * 8);
        // SAFETY: mapped and aligned, and all accesses are atomic.
        unsafe { std::slice::from_raw_parts(at.cast(), words) }
    }

    fn layer_at(&self, layer: usize) -> u64 {
        BLOCK + 2 * bits_bytes(self.pages) + layer as u64 * self.pages * BLOCK
    }

    /// Returns the layer that receives changes.
    #[inline]
    pub(super) fn current(&self) -> usize {
        self.word(CURRENT_AT).load(Ordering::Acquire) as usize & 1
    }

    /// Makes the other layer, which is empty, the current one.
    pub(super) fn freeze(&self) {
        self.word(CURRENT_AT).store(1 - self.current() as u64, Ordering::Release);
    }

    /// Returns the number of pages in a layer.
    #[inline]
    pub(super) fn count(&self, layer: usize) -> u64 {
        self.counts[layer].load(Ordering::Acquire)
    }

    /// Returns `true` if a layer has a page.
    #[inline]
    pub(super) fn has(&self, layer: usize, page: u64) -> bool {
        self.bits(layer)[(page / 64) as usize].load(Ordering::Acquire) >> (page % 64) & 1 == 1
    }

    /// Returns the numbers of all pages in a layer, in ascending order.
    pub(super) fn pages(&self, layer: usize) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.count(layer) as usize);
        for (i, word) in self.bits(layer).iter().enumerate() {
            let mut left = word.load(Ordering::Acquire);
            while left != 0 {
                all.push(i as u64 * 64 + u64::from(left.trailing_zeros()));
                left &= left - 1;
            }
        }
        all
    }

    /// Adds pages to a layer, starting with `page`, with their contents.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn add(&self, layer: usize, page: u64, contents: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.room.fetch_sub(contents.len() as i64 / BLOCK as i64, Ordering::Relaxed) <= 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(contents, self.layer_at(layer) + page * BLOCK)?;
        let pages = contents.len() as u64 / BLOCK;
        // The bits are set after the contents, so that readers of a bit see complete pages.
        for page in page..page + pages {
            self.bits(layer)[(page / 64) as usize].fetch_or(1 << (page % 64), Ordering::Release);
        }
        self.counts[layer].fetch_add(pages, Ordering::AcqRel);
        Ok(())
    }

    /// Reads from pages of a layer, at a position of the image.
    #[inline]
    pub(super) fn read(&self, layer: usize, at: u64, into: &mut [u8]) {
        self.memory.read(self.layer_at(layer) + at, into);
    }

    /// Writes to pages that a layer has.
    #[inline]
    pub(super) fn write(&self, layer: usize, at: u64, data: &[u8]) {
        self.memory.write(self.layer_at(layer) + at, data);
    }

    /// Zeroes bytes in pages that a layer has.
    #[inline]
    pub(super) fn zero(&self, layer: usize, at: u64, len: u64) {
        self.memory.zero(self.layer_at(layer) + at, len);
    }

    /// Removes all pages from a layer. Its memory is kept until [`OverlayStore::free_memory`].
    pub(super) fn empty(&self, layer: usize) {
        for word in self.bits(layer) {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Release);
            }
        }
        self.counts[layer].store(0, Ordering::Release);
    }

    /// Frees the memory of an empty layer.
    pub(super) fn free_memory(&self, layer: usize) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // If punching is not supported, the memory is reused when the layer is current again.
        let _ = fallocate(&self.file, hole, self.layer_at(layer), self.pages * BLOCK);
        #[cfg(test)]
        self.room.store(self.room.load(Ordering::Relaxed).max(8), Ordering::Relaxed);
    }

    /// Records that the image may be at this sync or at the one before.
    pub(super) fn expect(&self, stamp: SyncStamp) {
        self.expect_in(stamp.number, stamp);
    }

    /// Records that the image is at this sync.
    pub(super) fn settle(&self, stamp: SyncStamp) {
        self.expect_in(stamp.number, stamp);
        self.expect_in(stamp.number + 1, stamp);
    }

    fn expect_in(&self, number: u64, stamp: SyncStamp) {
        let at = STAMPS_AT + 2 * (number % 2) as usize;
        self.word(at).store(stamp.number, Ordering::Release);
        self.word(at + 1).store(stamp.tag, Ordering::Release);
    }

    /// Returns the syncs that the image may be at.
    pub(super) fn expected(&self) -> [SyncStamp; 2] {
        [0, 1].map(|i| SyncStamp {
            number: self.word(STAMPS_AT + 2 * i).load(Ordering::Acquire),
            tag: self.word(STAMPS_AT + 2 * i + 1).load(Ordering::Acquire),
        })
    }

    /// Records the UUID of the file system in the image.
    pub(super) fn name(&self, uuid: [u64; 2]) {
        for (i, half) in uuid.into_iter().enumerate() {
            self.word(UUID_AT + i).store(half, Ordering::Relaxed);
        }
    }
}

const _: () = assert!((FILE_SYSTEM_AT + 1) * 8 <= PATH_AT);
