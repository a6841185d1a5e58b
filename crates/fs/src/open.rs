//! Formatting, opening and closing a file system.

use crate::clock::Clock;
use crate::content_store::{ContentStore, check_content_store};
use crate::contents::resize::AfterTruncate;
use crate::counters::Counters;
use crate::direct::retire_leases;
use crate::error::{Error, Result};
use crate::format::{BLOCK, Geometry, LINE_BLOCKS, Superblock, fresh_uuid, present, write_words};
use crate::fs::Fs;
use crate::inode::{Inode, InodeAllocator, NodeCache};
use crate::journal::{Journal, Txn, replay};
use crate::medium::Medium;
use crate::nameless::PlacedContents;
use crate::orphans::Orphans;
use crate::planted::Bug;
use crate::registers::{self, RegisterAllocator};
use crate::removed::RemovedInodes;
use crate::space::{BitmapAllocator, line};
use crate::sync::{Mutex, RwLock};
use crate::types::{Ino, InodeType};
use frit_core::planted::is_planted;
use std::sync::{Arc, OnceLock};

/// Inode number of the command file of the root directory.
const ROOT_COMMAND: u64 = 2;
/// Minimum number of words in the orphan list.
const ORPHANS_MIN: u64 = 4;

/// Options for formatting a file system.
#[derive(Debug)]
pub struct FormatOptions {
    /// Maximum number of inodes; `None`: one per 16 KiB.
    pub inodes: Option<u64>,
    /// Label for users, at most 32 bytes.
    pub label: String,
    /// `true` to overwrite existing data on the medium.
    pub force: bool,
    /// User, group and permission bits of the root directory.
    pub root: (u32, u32, u16),
    /// UUID of the file system; `None`: a random one.
    pub uuid: Option<u128>,
    /// Source of the timestamps.
    pub clock: Clock,
    /// Capacity of the orphan list, 4 or more; `None`: chosen from the size of the medium. Recovery
    /// finds further orphans by a scan of the inode table.
    pub orphans: Option<u64>,
    /// `true` to keep checksums of file contents, one word per block: 0.2 % of the medium.
    pub sums: bool,
    /// Store of the contents of regular files; `None`: on the medium. The file system takes the
    /// UUID of the store, and all content files in the store are removed.
    pub content_store: Option<Arc<dyn ContentStore>>,
    /// Contents of regular files on a nameless-write device, of which the medium is a part; `None`: on
    /// the medium. All earlier contents of the device are freed.
    pub placed: Option<Arc<PlacedContents>>,
    /// `true` for a command file in each directory, which takes an inode.
    pub command_files: bool,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self {
            inodes: None,
            label: String::new(),
            force: false,
            root: (0, 0, 0o755),
            uuid: None,
            clock: Clock::Wall,
            orphans: None,
            sums: false,
            content_store: None,
            placed: None,
            command_files: true,
        }
    }
}

/// Options for opening a file system.
#[derive(Debug)]
pub struct FsOptions {
    /// The file system is read-only, except that recovery completes interrupted operations.
    pub read_only: bool,
    /// Source of the timestamps.
    pub clock: Clock,
    /// Number of unused inodes cached in DRAM: about 700 bytes each, without extents and names.
    pub nodes: usize,
    /// Store of the contents of regular files; `None`: on the medium.
    pub content_store: Option<Arc<dyn ContentStore>>,
    /// Contents of regular files on a nameless-write device, of which the medium is a part; `None`: on
    /// the medium.
    pub placed: Option<Arc<PlacedContents>>,
}

impl Default for FsOptions {
    fn default() -> Self {
        Self { read_only: false, clock: Clock::Wall, nodes: 64 << 10, content_store: None, placed: None }
    }
}

impl<M: Medium> Fs<M> {
    /// Formats a medium with an empty file system and opens it.
    ///
    /// # Errors
    /// The medium contains data and `force` is not set, the medium is too small or too large, or it
    /// has no space for the requested number of inodes.
    pub fn format(medium: M, options: FormatOptions) -> Result<Self> {
        let inodes = options.inodes.or_else(|| options.placed.as_ref().map(|placed| placed.default_inodes()));
        let mut geometry = Geometry::divide_for(medium.bytes(), inodes, options.sums)?;
        if let Some(placed) = &options.placed {
            geometry.device_pages = placed.format_pages(&geometry)?;
            if options.sums || options.content_store.is_some() {
                let why =
                    "contents on a nameless-write device: neither in a pool, nor with checksums in the image";
                return Err(Error::Image(why.into()));
            }
        }
        geometry.orphans = options.orphans.unwrap_or(geometry.orphans).clamp(ORPHANS_MIN, geometry.orphans);
        if options.sums && options.content_store.is_some() {
            return Err(Error::Image("checksums cover contents on the medium: a pool has none".into()));
        }
        if options.label.len() > 32 {
            return Err(Error::Image(format!("the label `{}` has more than 32 bytes", options.label)));
        }
        if !options.force {
            refuse_used(&medium)?;
        }
        retire_leases(&medium, None)?;
        let uuid = options.content_store.as_ref().map(|content_store| content_store.uuid()).or(options.uuid);
        let uuid = uuid.map_or_else(fresh_uuid, |id| [id as u64, (id >> 64) as u64]);
        let external = options.content_store.is_some();
        let mut label = [0; 32];
        label[..options.label.len()].copy_from_slice(options.label.as_bytes());
        let (created, command_files) = (options.clock.now(), options.command_files);
        let superblock = Superblock { geometry, uuid, label, created, external, command_files };
        // The superblocks are written last, so that an interrupted format leaves no valid file
        // system. Those of an earlier file system are erased first for the same reason.
        medium.zero(Geometry::SUPERBLOCK_AT, BLOCK);
        medium.zero(geometry.copy_at(), BLOCK);
        medium.fence();
        if let Some(content_store) = &options.content_store {
            // Generations restart at 1: a content file of the earlier file system could match one
            // of the new.
            content_store.all()?.into_iter().try_for_each(|of| content_store.remove(of))?;
        }
        let salt = superblock.salt();
        medium.zero(Geometry::REGISTERS_AT, geometry.journal_at - Geometry::REGISTERS_AT);
        for slot in 0..geometry.slots {
            medium.zero(geometry.journal_at + slot * geometry.slot_bytes, 64);
        }
        for number in 0..geometry.lines {
            line::write(&medium, &geometry, salt, number, &[0; line::WORDS]);
        }
        if geometry.has_sums() {
            medium.zero(geometry.sums_at, geometry.data_blocks * 8);
        }
        let inodes = 1 + u64::from(command_files);
        let counters =
            Counters { inodes, highest: inodes, created: inodes, closed: true, ..Counters::default() };
        counters.write(&medium, &geometry, salt);
        let (uid, gid, mode) = options.root;
        let mut root = Inode::new(InodeType::Directory, mode, (uid, gid), 0, created);
        root.parent = Ino::ROOT;
        if command_files {
            root.command = Ino(ROOT_COMMAND);
            let command = root.new_command(Ino::ROOT, 1, created);
            write_words(&medium, geometry.inode_at(ROOT_COMMAND), &command.encode(salt, root.command));
        }
        write_words(&medium, geometry.inode_at(1), &root.encode(salt, Ino::ROOT));
        medium.fence();
        superblock.write(&medium);
        medium.sync()?;
        let (clock, content_store, placed) = (options.clock, options.content_store, options.placed);
        let fs = Self::open(medium, FsOptions { clock, content_store, placed, ..FsOptions::default() })?;
        if fs.placed.is_some() {
            fs.make_durable()?;
        }
        Ok(fs)
    }

    /// Opens a file system and runs recovery.
    ///
    /// # Errors
    /// The medium holds no file system, or one with damage that recovery cannot repair. The store
    /// of external contents is missing or belongs to another file system.
    pub fn open(medium: M, options: FsOptions) -> Result<Self> {
        let superblock = Superblock::read(&medium)?;
        check_content_store(&superblock, options.content_store.as_deref())?;
        PlacedContents::check(options.placed.as_deref(), &superblock.geometry)?;
        Self::open_any(medium, options)
    }

    /// Opens a file system without a check of its content store, for callers that do not read
    /// contents.
    pub(crate) fn open_any(medium: M, options: FsOptions) -> Result<Self> {
        let superblock = Superblock::read(&medium)?;
        let retired = retire_leases(&medium, Some(superblock.uuid))?;
        let (geometry, salt) = (superblock.geometry, superblock.salt());
        // `read` accepts either copy; a damaged first copy is restored from the second.
        if Superblock::read_at(&medium, Geometry::SUPERBLOCK_AT).as_ref() != Ok(&superblock) {
            superblock.write(&medium);
        }
        let replayed = replay(&medium, &geometry, salt)?;
        let counters = Counters::read(&medium, &geometry, salt)?;
        let (orphans, found) = Orphans::read(&medium, &geometry);
        let fs = Self {
            superblock,
            geometry,
            salt,
            journal: Journal::new(geometry, salt, replayed.next, counters),
            space: Box::new(BitmapAllocator::new(geometry, salt, counters.blocks)),
            inode_allocator: InodeAllocator::new(geometry, counters.highest),
            cache: NodeCache::new(options.nodes),
            orphans: Mutex::new(orphans),
            removed: RemovedInodes::default(),
            registers: RegisterAllocator::new(),
            leases: OnceLock::new(),
            leases_creation: Mutex::new(()),
            names: RwLock::new(()),
            clock: options.clock,
            read_only: options.read_only,
            was_closed: counters.closed,
            content_store: options.content_store,
            placed: options.placed,
            medium,
        };
        fs.claim_contents()?;
        // The flag is cleared before any change, so that a crash from here on is seen by the next
        // open.
        if !fs.read_only {
            if is_planted(Bug::RegistersClearedEarly) {
                registers::reset(&fs.medium, fs.has_command_files());
            }
            let mut txn = Txn::new();
            txn.counts.closed = Some(false);
            fs.commit(txn);
            registers::reset(&fs.medium, fs.has_command_files());
        }
        for (slot, ino) in found.into_iter().filter(|_| !is_planted(Bug::OrphansForgotten)) {
            match fs.complete_orphan(slot, ino) {
                // A damaged orphan stays on the list for `check` to report. The rest of the file
                // system is usable.
                Err(Error::Damaged { .. }) => {}
                settled => settled?,
            }
        }
        if fs.orphans.lock().has_overflow() && !is_planted(Bug::MoreOrphansForgotten) {
            fs.free_unlisted_orphans()?;
        }
        if !fs.read_only && !counters.closed {
            fs.sweep()?;
        }
        if let Some(retired) = retired {
            fs.recover_growth(retired)?;
        }
        Ok(fs)
    }

    /// Frees all inodes without links, including orphans that did not fit into the list.
    fn free_unlisted_orphans(&self) -> Result<()> {
        for ino in self.inodes() {
            // A damaged inode stays in the table for `check` to report.
            let Ok(Some(inode)) = Inode::read(&self.medium, &self.geometry, self.salt, ino) else { continue };
            if inode.links == 0 {
                let node = self.node(ino)?;
                let mut state = node.state.write();
                match self.truncate_blocks(&node, &mut state, Txn::new(), 0, AfterTruncate::Free) {
                    Err(Error::Damaged { .. }) => {}
                    freed => freed?,
                }
            }
        }
        self.clear_orphan_overflow();
        Ok(())
    }

    /// Clears the mark for orphans beyond the list: none are left.
    fn clear_orphan_overflow(&self) {
        let mut orphans = self.orphans.lock();
        let mut txn = Txn::new();
        if let Some(slot) = orphans.clear_overflow(&mut txn) {
            self.commit(txn);
            orphans.release_slot(slot);
        }
    }

    /// Completes the deletion or truncation of an orphan. No process has it open at this point.
    fn complete_orphan(&self, slot: u32, ino: Ino) -> Result<()> {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(Error::Stale) => {
                let mut txn = Txn::new();
                self.orphans.lock().remove(&mut txn, slot);
                self.commit(txn);
                self.orphans.lock().release_slot(slot);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut state = node.state.write();
        state.orphan = Some(slot);
        if state.inode.kind == InodeType::Command && is_planted(Bug::CommandOrphanStays) {
            return Ok(());
        }
        if state.inode.links == 0 {
            return self.truncate_blocks(&node, &mut state, Txn::new(), 0, AfterTruncate::Free);
        }
        // An inode with links is a file whose truncation was interrupted: its blocks behind the end
        // are freed, and the inode is kept.
        let from = crate::contents::block_from(state.inode.size);
        self.truncate_blocks(&node, &mut state, Txn::new(), from, AfterTruncate::Keep)
    }

    /// Writes timestamps that are held in DRAM only, and checksums of contents that have none.
    pub(crate) fn save_all(&self) {
        for node in self.cache.all() {
            if self.has_sums() {
                self.write_missing_checksums(&mut node.state.write());
            }
            let has_lease = node.lease.load(std::sync::atomic::Ordering::Acquire) != 0;
            if node.newer_times.load(std::sync::atomic::Ordering::Relaxed) || has_lease {
                self.save_times(&node, &mut node.state.write());
            }
        }
    }

    /// Makes all changes durable.
    ///
    /// # Errors
    /// A sync of the medium or of the content store failed.
    pub fn sync_all(&self) -> Result<()> {
        self.save_all();
        self.medium.fence();
        if let Some(content_store) = &self.content_store {
            content_store.sync()?;
        }
        self.make_durable()
    }

    /// Closes the file system cleanly and returns the medium. A file system that is dropped instead
    /// loses only the timestamps of reads, listings and overwrites since the last sync.
    ///
    /// # Errors
    /// As [`Fs::sync_all`].
    pub fn close(self) -> Result<M> {
        self.cache.all().iter().for_each(|node| self.settle(node));
        self.save_all();
        // Files that were unlinked while they were open are freed now.
        let mut all_freed = true;
        for node in self.cache.all() {
            let mut state = node.state.write();
            if state.inode.links == 0 && !state.dead && !self.read_only {
                node.pins.store(0, std::sync::atomic::Ordering::Release);
                match self.truncate_blocks(&node, &mut state, Txn::new(), 0, AfterTruncate::Free) {
                    Err(Error::Damaged { .. }) => all_freed = false,
                    freed => freed?,
                }
            }
        }
        // A damaged orphan keeps the mark, so that the next open scans the table again.
        if all_freed && !self.read_only {
            self.clear_orphan_overflow();
        }
        if let Some(content_store) = self.content_store.as_ref().filter(|_| !self.read_only) {
            content_store.sync()?;
        }
        if !self.read_only {
            let mut txn = Txn::new();
            txn.counts.closed = Some(true);
            self.commit(txn);
        }
        self.make_durable()?;
        if let Some(placed) = self.placed.as_ref().filter(|_| !self.read_only) {
            placed.close_device()?;
        }
        Ok(self.medium)
    }
}

/// Fails if the medium contains a file system or any other data in its first blocks.
fn refuse_used<M: Medium>(medium: &M) -> Result<()> {
    if present(medium) {
        return Err(Error::Image(
            "the medium already contains a frit file system; --force overwrites it".into(),
        ));
    }
    let mut first = [0; BLOCK as usize];
    for at in [0, BLOCK] {
        medium.read(at, &mut first);
        if first.iter().any(|byte| *byte != 0) {
            return Err(Error::Image(
                "the medium already contains other data; --force overwrites that data".into(),
            ));
        }
    }
    Ok(())
}

const _: () = assert!(LINE_BLOCKS == line::WORDS as u64 * 64);
