//! The overlay: pages that were changed since the last sync, in a file of memory (tmpfs) that outlives the process and
//! not the machine.
//!
//! It has two *layers*, each with room for every page of the image at the place that it has there; nearly all of it is a
//! hole. One layer is current: changes go into it. The other one is empty, or frozen while a sync writes it. Which
//! pages a layer has is a bit for each page.
//!
//! ```text
//! block 0       words: magic, version, image (device, inode, birth, bytes, UUID), current layer, two stamps,
//!               file system; path
//! behind        bits of layer 0, bits of layer 1, each to a multiple of 4096
//! behind        layer 0, layer 1, each as large as the image
//! ```
//!
//! Pages get memory by a write(2), which fails when there is none; memory of a hole that is touched would end the
//! process.

// Words of the mapped file are shared by threads as atomics.
#![allow(unsafe_code)]

use super::log::Stamp;
use crate::format::BLOCK;
use crate::medium::lines::Lines;
use crate::medium::memory::Memory;
use memmap2::MmapOptions;
use rustix::fs::{FallocateFlags, fallocate};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first bytes of an overlay.
const MAGIC: u64 = u64::from_le_bytes(*b"frit-ovl");
const VERSION: u64 = 1;
/// Words of the header that say which image it is of.
pub(super) const IMAGE_WORDS: usize = 6;
const IMAGE_AT: usize = 2;
const UUID_AT: usize = IMAGE_AT + 4;
const CURRENT_AT: usize = IMAGE_AT + IMAGE_WORDS;
const STAMPS_AT: usize = CURRENT_AT + 1;
/// The file system that the image is on; 0 in overlays of older versions.
const FILE_SYSTEM_AT: usize = STAMPS_AT + 4;
/// Where the path of the image begins, in bytes, and how long it can be.
const PATH_AT: usize = 256;
const PATH_MAX: usize = BLOCK as usize - PATH_AT - 1;

/// The overlay of an image.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    memory: Memory,
    /// Pages of the image.
    pages: u64,
    /// How many pages each layer has.
    counts: [AtomicU64; 2],
    /// Pages that it may still take, in tests of a full memory.
    #[cfg(test)]
    pub(super) room: std::sync::atomic::AtomicI64,
}

/// Bytes of the bits of a layer.
fn bits_bytes(pages: u64) -> u64 {
    (pages.div_ceil(64) * 8).next_multiple_of(BLOCK)
}

impl Store {
    /// Makes the overlay of an image of `bytes` in a file of memory that is empty. `image`: which it is of.
    ///
    /// # Errors
    /// There is no memory for the bits, or no room for the mapping.
    pub(super) fn make(
        file: File,
        bytes: u64,
        image: [u64; IMAGE_WORDS],
        path: &[u8],
        at: Stamp,
    ) -> io::Result<Self> {
        let pages = bytes / BLOCK;
        let head = BLOCK + 2 * bits_bytes(pages);
        file.set_len(0)?;
        file.set_len(head + 2 * bytes)?;
        fallocate(&file, FallocateFlags::empty(), 0, head)?;
        let store = Self::map(file, bytes)?;
        store.set_path(path);
        for (i, word) in image.into_iter().enumerate() {
            store.word(IMAGE_AT + i).store(word, Ordering::Relaxed);
        }
        store.settle(at);
        store.word(1).store(VERSION, Ordering::Relaxed);
        // Last: what a stop leaves before this is no overlay.
        store.word(0).store(MAGIC, Ordering::Release);
        Ok(store)
    }

    /// Maps an overlay that was made before.
    ///
    /// # Errors
    /// It is shorter than an overlay of so many bytes, or there is no room for the mapping.
    pub(super) fn map(file: File, bytes: u64) -> io::Result<Self> {
        let pages = bytes / BLOCK;
        let len = BLOCK + 2 * bits_bytes(pages) + 2 * bytes;
        if file.metadata()?.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let map = MmapOptions::new().len(len as usize).map_raw(&file)?;
        let memory = Memory::new(map, Lines::Stay);
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

    /// Which image it is of; `None`: its making was cut off, and it has nothing.
    ///
    /// # Errors
    /// It was made by another version.
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
            return Err(io::Error::other("it was made by another version of this program"));
        }
        let image = std::array::from_fn(|i| head[IMAGE_AT + i]);
        let path: &[u8] = &bytemuck::cast_slice(&head)[PATH_AT..];
        let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
        Ok(Some((image, OsStr::from_bytes(&path[..end]).into())))
    }

    /// The file system that its image is on; 0: not known.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) fn file_system_of(file: &File) -> io::Result<u64> {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, FILE_SYSTEM_AT as u64 * 8)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Notes where the image is.
    pub(super) fn set_path(&self, path: &[u8]) {
        let mut whole = [0; PATH_MAX];
        let len = path.len().min(PATH_MAX);
        whole[..len].copy_from_slice(&path[..len]);
        self.memory.write(PATH_AT as u64, &whole);
    }

    /// Notes the file system that the image is on.
    pub(super) fn set_file_system(&self, number: u64) {
        self.word(FILE_SYSTEM_AT).store(number, Ordering::Relaxed);
    }

    /// The file, without its mapping.
    pub(super) fn into_file(self) -> File {
        self.file
    }

    /// A word of the header.
    fn word(&self, i: usize) -> &AtomicU64 {
        let at = self.memory.range(i as u64 * 8, 8);
        // SAFETY: mapped, aligned, and used as an atomic by everybody.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// The bits of a layer.
    fn bits(&self, layer: usize) -> &[AtomicU64] {
        let at = BLOCK + layer as u64 * bits_bytes(self.pages);
        let words = self.pages.div_ceil(64) as usize;
        let at = self.memory.range(at, words * 8);
        // SAFETY: mapped, aligned, and used as atomics by everybody.
        unsafe { std::slice::from_raw_parts(at.cast(), words) }
    }

    fn layer_at(&self, layer: usize) -> u64 {
        BLOCK + 2 * bits_bytes(self.pages) + layer as u64 * self.pages * BLOCK
    }

    /// The layer that changes go into.
    #[inline]
    pub(super) fn current(&self) -> usize {
        self.word(CURRENT_AT).load(Ordering::Acquire) as usize & 1
    }

    /// Makes the other layer, which is empty, the current one.
    pub(super) fn freeze(&self) {
        self.word(CURRENT_AT).store(1 - self.current() as u64, Ordering::Release);
    }

    /// Pages of a layer.
    #[inline]
    pub(super) fn count(&self, layer: usize) -> u64 {
        self.counts[layer].load(Ordering::Acquire)
    }

    /// Whether a layer has a page.
    #[inline]
    pub(super) fn has(&self, layer: usize, page: u64) -> bool {
        self.bits(layer)[(page / 64) as usize].load(Ordering::Acquire) >> (page % 64) & 1 == 1
    }

    /// Numbers of all pages of a layer, in order.
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

    /// Gives a layer pages that it has not, from `page` on, with their contents.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(super) fn add(&self, layer: usize, page: u64, contents: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.room.fetch_sub(contents.len() as i64 / BLOCK as i64, Ordering::Relaxed) <= 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(contents, self.layer_at(layer) + page * BLOCK)?;
        let pages = contents.len() as u64 / BLOCK;
        for page in page..page + pages {
            self.bits(layer)[(page / 64) as usize].fetch_or(1 << (page % 64), Ordering::Release);
        }
        self.counts[layer].fetch_add(pages, Ordering::AcqRel);
        Ok(())
    }

    /// Reads of a layer what it has, at a position of the image.
    #[inline]
    pub(super) fn read(&self, layer: usize, at: u64, into: &mut [u8]) {
        self.memory.read(self.layer_at(layer) + at, into);
    }

    /// Writes in a layer what it has.
    #[inline]
    pub(super) fn write(&self, layer: usize, at: u64, data: &[u8]) {
        self.memory.write(self.layer_at(layer) + at, data);
    }

    /// Zeroes in a layer what it has.
    #[inline]
    pub(super) fn zero(&self, layer: usize, at: u64, len: u64) {
        self.memory.zero(self.layer_at(layer) + at, len);
    }

    /// Empties a layer. Its memory stays until [`Store::give_back`].
    pub(super) fn empty(&self, layer: usize) {
        for word in self.bits(layer) {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Release);
            }
        }
        self.counts[layer].store(0, Ordering::Release);
    }

    /// Gives back the memory of a layer that is empty.
    pub(super) fn give_back(&self, layer: usize) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Where that is not done, the memory is used again by the next sync but one.
        let _ = fallocate(&self.file, hole, self.layer_at(layer), self.pages * BLOCK);
        #[cfg(test)]
        self.room.store(self.room.load(Ordering::Relaxed).max(8), Ordering::Relaxed);
    }

    /// From now on the image may be at this sync, or at the one before.
    pub(super) fn expect(&self, stamp: Stamp) {
        self.expect_in(stamp.number, stamp);
    }

    /// The image is at this sync, and at no other.
    pub(super) fn settle(&self, stamp: Stamp) {
        self.expect_in(stamp.number, stamp);
        self.expect_in(stamp.number + 1, stamp);
    }

    fn expect_in(&self, number: u64, stamp: Stamp) {
        let at = STAMPS_AT + 2 * (number % 2) as usize;
        self.word(at).store(stamp.number, Ordering::Release);
        self.word(at + 1).store(stamp.tag, Ordering::Release);
    }

    /// The syncs that the image may be at.
    pub(super) fn expected(&self) -> [Stamp; 2] {
        [0, 1].map(|i| Stamp {
            number: self.word(STAMPS_AT + 2 * i).load(Ordering::Acquire),
            tag: self.word(STAMPS_AT + 2 * i + 1).load(Ordering::Acquire),
        })
    }

    /// The file system of the image has this UUID.
    pub(super) fn name(&self, uuid: [u64; 2]) {
        for (i, half) in uuid.into_iter().enumerate() {
            self.word(UUID_AT + i).store(half, Ordering::Relaxed);
        }
    }
}

const _: () = assert!((FILE_SYSTEM_AT + 1) * 8 <= PATH_AT);
