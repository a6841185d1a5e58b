//! State of the contents of a file system on a nameless-write device.

use super::PLACED;
use super::device::ContentDevice;
use super::virtual_blocks::VirtualBlocks;
use crate::error::{Error, Result};
use crate::format::{BLOCK, BYTES_PER_INODE, Geometry, INODE};
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::sync::{AtomicU64, Mutex, RwLock};
use crate::types::Ino;
use frit_core::PhysicalAddress;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Share of the medium that contents may use as the write buffer before a writer places them: a
/// quarter, but at most [`BUFFER_MAX`].
const BUFFER_ONE_IN: u64 = 4;
/// Maximum number of blocks in the write buffer: 64 MiB.
const BUFFER_MAX: u64 = 16 << 10;
/// Share of the capacity that freed blocks may hold until a commit. The device accepts a 32nd beyond its
/// capacity.
const HELD_ONE_IN: u64 = 64;

/// Contents of files on a nameless-write device, with the medium of the metadata.
#[derive(Debug)]
pub struct PlacedContents {
    pub(super) blocks: Arc<VirtualBlocks>,
    pub(super) device: Mutex<Box<dyn ContentDevice>>,
    capacity: u64,
    pages: u64,
    /// Exclusive while a commit copies the changed blocks, shared while a transaction is applied.
    pub(crate) snapshot: RwLock<()>,
    /// One commit at a time.
    pub(super) committing: Mutex<()>,
    /// One thread at a time applies migrations.
    pub(super) migrating: Mutex<()>,
    pub(super) held: Mutex<HeldBlocks>,
    /// Files with contents in the write buffer.
    pub(super) buffered: Mutex<BTreeSet<Ino>>,
    /// Number of blocks of contents of all files, in the buffer or placed.
    contents: AtomicU64,
    /// Number of blocks of contents in the buffer.
    buffered_blocks: AtomicU64,
    /// Number of accesses to the device so far.
    accesses: AtomicU64,
}

/// Blocks that files no longer refer to, but the durable metadata may.
#[derive(Debug, Default)]
pub(super) struct HeldBlocks {
    pub(super) runs: Vec<(Ino, BlockRun)>,
    blocks: u64,
}

impl HeldBlocks {
    pub(super) fn add(&mut self, ino: Ino, run: BlockRun) {
        self.blocks += run.len;
        self.runs.push((ino, run));
    }
}

impl PlacedContents {
    /// Loads the metadata from a device. [`Fs::format`](crate::Fs::format) or
    /// [`Fs::open`](crate::Fs::open) follows, with [`PlacedContents::medium`].
    ///
    /// # Errors
    /// A virtual block is unreadable, or not enough memory is available.
    pub fn load(mut device: Box<dyn ContentDevice>) -> Result<Arc<Self>> {
        let blocks = VirtualBlocks::new(device.virtual_blocks())?;
        let mut data = vec![0; BLOCK as usize];
        for block in 0..device.virtual_blocks() {
            device.read_virtual(block, &mut data).map_err(failed)?;
            if data.iter().any(|byte| *byte != 0) {
                blocks.load(block, &data);
            }
        }
        Ok(Arc::new(Self {
            blocks: Arc::new(blocks),
            capacity: device.capacity(),
            pages: device.pages(),
            device: Mutex::new(device),
            snapshot: RwLock::new(()),
            committing: Mutex::new(()),
            migrating: Mutex::new(()),
            held: Mutex::new(HeldBlocks::default()),
            buffered: Mutex::new(BTreeSet::new()),
            contents: AtomicU64::new(0),
            buffered_blocks: AtomicU64::new(0),
            accesses: AtomicU64::new(0),
        }))
    }

    /// Returns the medium of the metadata.
    #[must_use]
    pub fn medium(&self) -> Arc<VirtualBlocks> {
        Arc::clone(&self.blocks)
    }

    /// Returns the number of blocks of contents that fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the default number of inodes: one for each 16 KiB of contents, but at most half of the medium.
    pub(crate) fn default_inodes(&self) -> u64 {
        (self.capacity * BLOCK / BYTES_PER_INODE).min(self.blocks.bytes() / 2 / INODE)
    }

    /// Shuts the device down in order.
    pub(crate) fn close_device(&self) -> Result<()> {
        self.device.lock().close().map_err(failed)
    }

    /// Checks that a file system of this geometry can use the device. Returns the number of its pages.
    pub(crate) fn format_pages(&self, geometry: &Geometry) -> Result<u64> {
        let limits = [
            ("pages of the device", self.pages),
            ("virtual blocks", geometry.bytes / BLOCK),
            ("inodes", geometry.inodes),
        ];
        for (what, count) in limits {
            if count >= PLACED {
                return Err(Error::Image(format!("{count} {what}: a file system uses less than {PLACED}")));
            }
        }
        Ok(self.pages)
    }

    /// Fails if a file system and a device do not belong together, or if one of them is missing.
    pub(crate) fn check(placed: Option<&Self>, geometry: &Geometry) -> Result<()> {
        match placed {
            None if geometry.device_pages > 0 => Err(Error::Image(
                "the contents of its files are on a nameless-write device: open it with this device".into(),
            )),
            Some(_) if geometry.device_pages == 0 => Err(Error::Image(
                "it has the contents of its files: it is not the file system of a nameless-write device"
                    .into(),
            )),
            Some(placed) if placed.pages != geometry.device_pages => Err(Error::Image(format!(
                "it was formatted for a device of {} pages, and this one has {}",
                geometry.device_pages, placed.pages
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the number of blocks of contents that still fit.
    pub(crate) fn free_blocks(&self) -> u64 {
        self.capacity.saturating_sub(self.contents.load(Ordering::Relaxed))
    }

    /// Counts up to `want` new blocks of a file in the buffer. Returns their number.
    ///
    /// # Errors
    /// The device is full.
    pub(super) fn reserve(&self, ino: Ino, want: u64) -> Result<u64> {
        let add = |now: u64| Some(now + want.min(self.capacity.saturating_sub(now)));
        let (order, failed) = (Ordering::Relaxed, Error::NoSpace);
        let before = self.contents.fetch_update(order, order, add).map_err(|_| failed)?;
        let got = want.min(self.capacity.saturating_sub(before));
        if got == 0 {
            return Err(Error::NoSpace);
        }
        self.note_buffered(ino, got);
        Ok(got)
    }

    /// Notes that blocks of a file are in the buffer.
    pub(super) fn note_buffered(&self, ino: Ino, blocks: u64) {
        self.buffered_blocks.fetch_add(blocks, Ordering::Relaxed);
        self.buffered.lock().insert(ino);
    }

    /// Counts blocks of files at recovery.
    pub(super) fn add(&self, blocks: u64) {
        self.contents.fetch_add(blocks, Ordering::Relaxed);
    }

    /// Counts blocks that left the buffer.
    pub(super) fn sub_buffered(&self, blocks: u64) {
        self.buffered_blocks.fetch_sub(blocks, Ordering::Relaxed);
    }

    /// Counts blocks that a file no longer has.
    pub(super) fn sub(&self, blocks: u64, placed: bool) {
        self.contents.fetch_sub(blocks, Ordering::Relaxed);
        if !placed {
            self.sub_buffered(blocks);
        }
    }

    /// Returns `true` if so much is buffered, or so many blocks are held, that the writer has to place
    /// contents or commit.
    pub(crate) fn is_pressed(&self, data_blocks: u64) -> bool {
        let limit = (data_blocks / BUFFER_ONE_IN).min(BUFFER_MAX);
        self.buffered_blocks.load(Ordering::Relaxed) > limit || self.is_held_full()
    }

    /// Returns `true` if a commit has to free blocks before more are written.
    pub(super) fn is_held_full(&self) -> bool {
        self.held.lock().blocks > self.capacity / HELD_ONE_IN
    }

    /// Holds blocks until the next commit.
    pub(crate) fn hold(&self, ino: Ino, run: BlockRun) {
        self.held.lock().add(ino, run);
    }

    /// Takes all blocks that are held.
    pub(super) fn take_held(&self) -> Vec<(Ino, BlockRun)> {
        let mut held = self.held.lock();
        held.blocks = 0;
        std::mem::take(&mut held.runs)
    }

    /// Reads bytes of consecutive placed blocks from byte `offset` of the first one on.
    ///
    /// # Errors
    /// A block is damaged or lost, or the device fails.
    pub(crate) fn read(&self, ino: Ino, start: u64, offset: u64, into: &mut [u8]) -> Result<()> {
        let (first, offset) = (start + offset / BLOCK, offset % BLOCK);
        let count = (offset + into.len() as u64).div_ceil(BLOCK);
        let blocks: Vec<_> = (first..first + count).map(|word| super::address::owned(ino, word)).collect();
        self.accesses.fetch_add(1, Ordering::Relaxed);
        self.device.lock().read(&blocks, offset as u32, into).map_err(failed)
    }

    /// Writes blocks of a file to the device, and returns the words of their addresses.
    pub(super) fn write(&self, ino: Ino, data: &[u8]) -> Result<Vec<u64>> {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        let mut placed: Vec<PhysicalAddress> = Vec::new();
        let written = self.device.lock().write(ino.0 as u32, data, &mut placed);
        let words: Vec<u64> = placed.into_iter().map(super::address::encode).collect();
        match written {
            Ok(()) => Ok(words),
            Err(error) => {
                // No metadata refers to the blocks that were written before the error.
                for word in words {
                    self.hold(ino, BlockRun { start: word, len: 1 });
                }
                Err(failed(error))
            }
        }
    }

    /// Returns the number of accesses to the device so far. If it stays the same, the device is idle.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses.load(Ordering::Relaxed)
    }

    /// Does background work of an idle device. Returns `false` if there is none.
    ///
    /// # Errors
    /// The device fails, or is read-only.
    pub fn step(&self, budget: u32) -> Result<bool> {
        self.device.lock().step(budget).map_err(failed)
    }

    /// Verifies the record of a placed block, and with `data` its contents.
    ///
    /// # Errors
    /// The block is damaged or lost.
    pub fn verify(&self, ino: Ino, start: u64, data: bool) -> Result<()> {
        self.device.lock().verify(super::address::owned(ino, start), data).map_err(failed)
    }
}

/// Converts an error of the device.
pub(super) fn failed(error: frit_core::Error) -> Error {
    match error {
        frit_core::Error::NoSpace { .. } => Error::NoSpace,
        other => Error::Image(format!("the nameless-write device: {other}")),
    }
}
