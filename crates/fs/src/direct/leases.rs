//! Leases: files to whose data programs have direct access.

use super::quiet::{Patience, WAIT, free_slots, wait_quiet};
use super::recover::{LeftGrowth, left_growth, stamp};
use super::shared::SharedSegment;
use crate::contents::block_from;
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::journal::BlockRun;
use crate::planted::DirectBug;
use crate::sync::Mutex;
use crate::types::{Ino, Time};
use frit_core::planted::is_planted;
use frit_direct::segment::{FILES, FileState, SIZE_FIXED, SLOTS, Segment};
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What direct accesses left to be noted.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Accessed {
    /// Time of the last write.
    pub(super) written_at: Option<Time>,
    pub(super) read: bool,
}

/// Append space of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeldSpace {
    /// First block in the file: that at the end of the file when it got the space.
    pub(super) at: u64,
    pub(super) run: BlockRun,
    /// Size of the file that was taken over last.
    pub(super) size: u64,
}

impl HeldSpace {
    /// Size of the file with the whole space.
    pub(super) fn size_max(&self) -> u64 {
        (self.at + self.run.len) * BLOCK
    }

    /// Returns the blocks of a part of the file.
    pub(super) fn run_of(&self, from: u64, end: u64) -> BlockRun {
        BlockRun { start: self.run.start + (from - self.at), len: end - from }
    }

    /// Splits the space at a size: what is behind is returned.
    fn split(&mut self, size: u64) -> Option<BlockRun> {
        let used = block_from(size).saturating_sub(self.at).min(self.run.len);
        let rest = BlockRun { start: self.run.start + used, len: self.run.len - used };
        self.run.len = used;
        (rest.len > 0).then_some(rest)
    }
}

/// The shared memory of a mount, and what is in use of it.
///
/// Other processes write to the shared memory what they like, so what the mount decides is in fields of its own:
/// generations, identity, append space. The words are only what it tells programs.
#[derive(Debug)]
pub(crate) struct Leases {
    shared: SharedSegment,
    identity: u64,
    /// Generation that each file has, or 0.
    granted: Vec<AtomicU64>,
    /// Highest number of slots in use that was ever seen.
    slots_seen: AtomicU32,
    /// Time at which it was noticed that the shared memory is lost.
    lost_at: OnceLock<Instant>,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    /// Generation of the next lease. None is ever used again.
    next_generation: u64,
    next_client: u32,
    /// Indexes of files that are not in use: those that were, and all from `never_used` on.
    free: Vec<u32>,
    never_used: u32,
    /// Append space of files.
    spaces: HashMap<u32, HeldSpace>,
    /// Append space of files whose size is fixed, until no access is in progress.
    fixed: HashMap<u32, HeldSpace>,
}

impl Leases {
    /// Creates the shared memory beside the image.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn create(image: &Path, uuid: [u64; 2]) -> Result<Self> {
        let table = Table {
            next_generation: 1,
            next_client: 1,
            free: Vec::new(),
            never_used: 0,
            spaces: HashMap::new(),
            fixed: HashMap::new(),
        };
        let shared = SharedSegment::create(image, |segment| stamp(segment, uuid))?;
        let identity = shared.get().head.identity.load(Ordering::Relaxed);
        let granted = (0..FILES).map(|_| AtomicU64::new(0)).collect();
        let (slots_seen, lost_at) = (AtomicU32::new(0), OnceLock::new());
        Ok(Self { shared, identity, granted, slots_seen, lost_at, table: Mutex::new(table) })
    }

    fn segment(&self) -> &Segment {
        self.shared.get()
    }

    /// Returns the identity of the shared memory.
    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the number of slots that may be in use. A word that is too large, or smaller than it was, was not
    /// written by the protocol, and then all slots may be.
    fn slots_used(&self) -> usize {
        let used = self.segment().head.slots_used.load(Ordering::SeqCst);
        let seen = self.slots_seen.fetch_max(used, Ordering::SeqCst);
        if used < seen || used as usize > SLOTS { SLOTS } else { used as usize }
    }

    /// Returns `true` if the shared memory is lost. Programs find no lease valid there any more.
    fn is_lost(&self) -> bool {
        self.shared.is_lost()
    }

    fn granted(&self, file: u32) -> &AtomicU64 {
        &self.granted[file as usize]
    }

    fn file(&self, file: u32) -> &FileState {
        &self.segment().files[file as usize]
    }

    /// Returns a number for a new client.
    pub(super) fn register(&self) -> u32 {
        free_slots(&self.shared, self.slots_used());
        let mut table = self.table.lock();
        let client = table.next_client;
        table.next_client = table.next_client.wrapping_add(1).max(1);
        client
    }

    /// Takes an index for a file, without access yet.
    ///
    /// # Errors
    /// Too many files have direct access.
    pub(super) fn take(&self) -> Result<u32> {
        if self.is_lost() {
            return Err(Error::Unsupported(
                "direct access after the shared memory was truncated; mount again",
            ));
        }
        let mut table = self.table.lock();
        let file = match table.free.pop() {
            Some(file) => file,
            None if (table.never_used as usize) < FILES => {
                table.never_used += 1;
                table.never_used - 1
            }
            None => return Err(Error::Busy),
        };
        drop(table);
        let state = self.file(file);
        self.granted(file).store(0, Ordering::SeqCst);
        state.generation.store(0, Ordering::SeqCst);
        state.written_at.store(0, Ordering::Relaxed);
        state.read.store(0, Ordering::Relaxed);
        state.writer.store(0, Ordering::Relaxed);
        state.size.store(SIZE_FIXED, Ordering::Relaxed);
        Ok(file)
    }

    /// Allows access to a file with this size and append space; returns the generation. `None`: the file has
    /// lost append space meanwhile.
    pub(super) fn allow(&self, file: u32, size: u64, space: Option<HeldSpace>) -> Option<u64> {
        let mut table = self.table.lock();
        if table.spaces.get(&file) != space.as_ref() || self.is_lost() {
            return None;
        }
        let generation = table.next_generation;
        table.next_generation += 1;
        self.file(file).size.store(size, Ordering::SeqCst);
        self.granted(file).store(generation, Ordering::SeqCst);
        self.file(file).generation.store(generation, Ordering::SeqCst);
        Some(generation)
    }

    /// Returns the append space of a file.
    pub(super) fn space(&self, file: u32) -> Option<HeldSpace> {
        self.table.lock().spaces.get(&file).copied()
    }

    /// Returns `true` if a file has append space.
    pub(super) fn has_space(&self, file: u32) -> bool {
        self.table.lock().spaces.contains_key(&file)
    }

    /// Notes append space of a file to which no access is allowed.
    pub(super) fn hold(&self, file: u32, inode: (Ino, u32), space: HeldSpace) {
        let mut table = self.table.lock();
        let record = &self.segment().appends[file as usize];
        record.inode.store(0, Ordering::SeqCst);
        self.file(file).size.store(space.size | SIZE_FIXED, Ordering::SeqCst);
        record.generation.store(u64::from(inode.1), Ordering::SeqCst);
        record.size.store(space.size, Ordering::SeqCst);
        record.at.store(space.at, Ordering::SeqCst);
        record.start.store(space.run.start, Ordering::SeqCst);
        record.blocks.store(space.run.len, Ordering::SeqCst);
        record.inode.store(inode.0.0, Ordering::SeqCst);
        table.spaces.insert(file, space);
    }

    /// Returns the size to which programs have extended a file, and its append space, if that size is possible
    /// and was not taken over.
    pub(super) fn growth(&self, file: u32) -> Option<(u64, HeldSpace)> {
        let table = self.table.lock();
        let space = *table.spaces.get(&file)?;
        self.size_in(file, &space).map(|size| (size, space))
    }

    /// Returns the size in the shared memory if it is one that programs may have extended the file to.
    fn size_in(&self, file: u32, space: &HeldSpace) -> Option<u64> {
        let size = self.file(file).size.load(Ordering::SeqCst) & !SIZE_FIXED;
        let is_checked = !is_planted(DirectBug::SizeUnchecked);
        (size > space.size && (!is_checked || size <= space.size_max())).then_some(size)
    }

    /// Notes that growth was taken over.
    pub(super) fn note_taken(&self, file: u32, size: u64) {
        if let Some(space) = self.table.lock().spaces.get_mut(&file) {
            space.size = size;
        }
    }

    /// Forgets append space, whose blocks stay in use.
    pub(super) fn give_up(&self, file: u32) {
        self.segment().appends[file as usize].inode.store(0, Ordering::SeqCst);
        self.table.lock().spaces.remove(&file);
    }

    /// Fixes the size of a file to which no access is allowed: a stopped program that is about to extend it finds
    /// that it cannot.
    pub(super) fn fix_size(&self, file: u32) {
        if !is_planted(DirectBug::SizeNotFixed) {
            self.file(file).size.fetch_or(SIZE_FIXED, Ordering::SeqCst);
        }
    }

    /// Keeps append space, whose growth was taken over, from the allocator until no access is in progress.
    pub(super) fn keep_fixed(&self, file: u32) {
        let mut table = self.table.lock();
        self.segment().appends[file as usize].inode.store(0, Ordering::SeqCst);
        if let Some(space) = table.spaces.remove(&file) {
            table.fixed.insert(file, space);
        }
    }

    /// Forgets the append space of a file without access; returns the unused part.
    pub(super) fn drop_space(&self, file: u32) -> Option<BlockRun> {
        let mut table = self.table.lock();
        self.segment().appends[file as usize].inode.store(0, Ordering::SeqCst);
        let mut space = table.spaces.remove(&file).or_else(|| table.fixed.remove(&file))?;
        space.split(space.size)
    }

    /// Ends access to all files with append space, and returns the unused parts of it. What programs wrote there
    /// stays to be taken over.
    pub(super) fn retract(&self) -> Vec<BlockRun> {
        let mut table = self.table.lock();
        let mut returned = Vec::new();
        // For all files together: each could have a program that is stopped.
        let mut patience = Patience::of(WAIT);
        for (file, space) in &mut table.spaces {
            if self.forbid_within(*file, &mut patience) || is_planted(DirectBug::RetractedInUse) {
                let size = self.size_in(*file, space).unwrap_or(space.size);
                returned.extend(space.split(size));
            }
        }
        returned
    }

    /// Returns the number of blocks of append space that belong to no file.
    pub(super) fn unused_blocks(&self) -> u64 {
        let table = self.table.lock();
        let unused = |(file, space): (&u32, &HeldSpace)| {
            let size = self.size_in(*file, space).unwrap_or(space.size);
            { *space }.split(size).map_or(0, |rest| rest.len)
        };
        table.spaces.iter().map(unused).sum()
    }

    /// Returns `true` if programs have extended a file, and that was not taken over.
    fn has_growth(&self) -> bool {
        let table = self.table.lock();
        table.spaces.iter().any(|(file, space)| self.size_in(*file, space).is_some())
    }

    /// Returns the generation of a file, or `None` if access is not allowed, or programs cannot see that it is.
    pub(super) fn generation(&self, file: u32) -> Option<u64> {
        let granted = self.granted(file).load(Ordering::SeqCst);
        let shown = self.file(file).generation.load(Ordering::SeqCst);
        Some(granted).filter(|granted| *granted != 0 && *granted == shown)
    }

    /// Forbids access to a file, and waits for accesses in progress. Returns `false` if one is still in
    /// progress: its program is stopped.
    pub(super) fn forbid(&self, file: u32) -> bool {
        self.forbid_within(file, &mut Patience::of(WAIT))
    }

    fn forbid_within(&self, file: u32, patience: &mut Patience) -> bool {
        self.file(file).generation.store(0, Ordering::SeqCst);
        // Accesses were awaited already if access was forbidden before.
        let mut none = Patience::of(Duration::ZERO);
        let allowed = self.granted(file).swap(0, Ordering::SeqCst) != 0;
        let patience = if allowed { patience } else { &mut none };
        let quiet = wait_quiet(&self.shared, self.slots_used(), Some(file), patience).is_ok();
        if self.is_lost() {
            // Announcements were lost, too. Accesses of that time end as soon as others.
            let since = self.lost_at.get_or_init(Instant::now).elapsed();
            std::thread::sleep(WAIT.saturating_sub(since));
            return true;
        }
        quiet
    }

    /// Gives an index back.
    pub(super) fn give_back(&self, file: u32) {
        self.table.lock().free.push(file);
    }

    /// Returns what is to be noted, and marks it as noted.
    pub(super) fn take_accessed(&self, file: u32) -> Accessed {
        let state = self.file(file);
        Accessed {
            written_at: Some(state.written_at.swap(0, Ordering::SeqCst)).filter(|at| *at != 0).map(Time),
            read: state.read.swap(0, Ordering::SeqCst) != 0,
        }
    }

    /// Returns the time of the last write that was not noted.
    pub(super) fn written_at(&self, file: u32) -> Option<Time> {
        Some(self.file(file).written_at.load(Ordering::SeqCst)).filter(|at| *at != 0).map(Time)
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        self.shared.close();
        // A program that is stopped in an access keeps the file as a warning for the next mount.
        // Growth that was not taken over is left to the next open.
        let quiet = wait_quiet(&self.shared, self.slots_used(), None, &mut Patience::of(WAIT));
        if self.is_lost() || (quiet.is_ok() && !self.has_growth()) {
            let _ = self.shared.remove();
        }
    }
}

/// Shared memory that a killed mount left, after its accesses have ended.
#[derive(Debug)]
pub(crate) struct RetiredLeases {
    shared: SharedSegment,
    /// Growth of files that the mount did not take over.
    pub(super) growth: Vec<LeftGrowth>,
}

impl RetiredLeases {
    /// Removes the shared memory.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(super) fn remove(self) -> Result<()> {
        self.shared.remove()
    }
}

/// Ends the accesses that a killed mount of an image left behind, and finds growth that it did not take over.
/// The shared memory is removed later.
///
/// # Errors
/// A program is stopped in an access; the file cannot be opened.
pub(super) fn retire(image: &Path, uuid: [u64; 2]) -> Result<Option<RetiredLeases>> {
    let Some(shared) = SharedSegment::left(image)? else { return Ok(None) };
    shared.close();
    if let Err(busy) = wait_quiet(&shared, SLOTS, None, &mut Patience::of(WAIT)) {
        return Err(Error::Image(format!(
            "{}: process {} still accesses it directly, from a mount that has ended; continue or kill it",
            image.display(),
            busy.process
        )));
    }
    let growth = left_growth(shared.get(), uuid);
    if shared.is_lost() {
        return Err(Error::Image(format!(
            "{}: truncated by a program; move it away",
            shared.path().display()
        )));
    }
    Ok(Some(RetiredLeases { shared, growth }))
}
