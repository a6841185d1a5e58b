//! Direct access of other programs to the blocks of files (`frit exec`). A program opens a file through
//! the mount, gets a lease of its written blocks, and copies between its memory and the medium itself.
//!
//! The lease ends before anything else uses the contents, or moves or frees blocks: every operation of
//! this crate on contents starts with [`Fs::end_lease`] or [`Fs::settle`], and those on the size alone with
//! [`Fs::settle_size`]: programs also extend files (`append`). The kernel holds no pages of the
//! file meanwhile: the mount drops them between [`DirectFiles::begin_lease`] and
//! [`DirectFiles::grant`], and each request that fills pages ends the lease. docs/design/direct.md has
//! the protocol.

mod append;
mod leases;
mod quiet;
mod recover;
mod shared;

pub(crate) use leases::{Leases, RetiredLeases};

use crate::contents::{FILL_BYTES, block_from, block_of};
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::medium::Medium;
use crate::permissions::{self, WRITE};
use crate::types::{Attr, Caller, Ino};
use frit_direct::messages::{EXTENTS, Extent, Lease};
use leases::HeldSpace;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// File system whose files other programs can access directly.
pub trait DirectFiles: Send + Sync {
    /// Returns the path of the image whose memory programs can map.
    ///
    /// # Errors
    /// Direct access is not possible; the error has the reason.
    fn direct_image(&self) -> Result<PathBuf>;

    /// Registers a process; returns its number as a client.
    ///
    /// # Errors
    /// As for [`DirectFiles::direct_image`].
    fn register_client(&self) -> Result<u32>;

    /// Fails if the caller may not write to the file.
    ///
    /// # Errors
    /// The caller lacks permission, or the inode does not exist.
    fn check_writer(&self, caller: &Caller, ino: Ino) -> Result<()>;

    /// Prepares a lease of a pinned file. Returns `true` if the file has a lease already. Otherwise no
    /// access is allowed before [`DirectFiles::grant`].
    ///
    /// # Errors
    /// The file cannot have a lease: it is no regular file, a map or a stopped program needs it as it is, or
    /// too many files have one.
    fn begin_lease(&self, ino: Ino) -> Result<bool>;

    /// Grants the lease that was prepared: writes the extents from `lease.from` into it. If `lease.to` is not 0,
    /// holes up to there are filled first, and a file that ends before gets append space if that is
    /// possible. Returns `false` if the lease has ended meanwhile.
    ///
    /// # Errors
    /// The inode or its extents are damaged; no space is left.
    fn grant(&self, ino: Ino, lease: &mut Lease) -> Result<bool>;

    /// Ends the lease of a file, if it has one.
    fn revoke_lease(&self, ino: Ino);

    /// Returns the size to which programs have extended a file, if it was not truncated since.
    fn grown_to(&self, ino: Ino) -> Option<u64>;

    /// Gives a file no more append space until its last close.
    fn forbid_growth(&self, ino: Ino);
}

impl<M: Medium> Fs<M> {
    /// Returns the leases, created on first use.
    fn leases(&self) -> Result<&Leases> {
        if let Some(leases) = self.leases.get() {
            return Ok(leases);
        }
        let image = self.direct_image()?;
        let _creation = self.leases_creation.lock();
        if let Some(leases) = self.leases.get() {
            return Ok(leases);
        }
        let created = Leases::create(&image, self.superblock.uuid)?;
        Ok(self.leases.get_or_init(|| created))
    }

    /// Returns the lease of a file, if it has one: its index.
    #[inline]
    fn lease_of(&self, node: &Node) -> Option<(u32, &Leases)> {
        let file = node.lease.load(Ordering::Acquire).checked_sub(1)?;
        Some((file, self.leases.get()?))
    }

    /// Ends the lease of a file before its contents are used otherwise, and notes its accesses. The caller
    /// holds no lock of the node.
    #[inline]
    pub(crate) fn settle(&self, node: &Node) {
        if node.lease.load(Ordering::Acquire) != 0 {
            self.end_lease(node, &mut node.state.write());
        }
    }

    /// Ends the lease of a file. Returns `false` if an access of a stopped program is still in progress:
    /// blocks of the file must not be freed or moved.
    pub(crate) fn end_lease(&self, node: &Node, state: &mut NodeState) -> bool {
        let Some((file, leases)) = self.lease_of(node) else { return true };
        let quiet = leases.forbid(file);
        leases.fix_size(file);
        self.note_accesses(node, state);
        if quiet {
            self.return_space(file);
            node.lease.store(0, Ordering::Release);
            leases.give_back(file);
        } else {
            leases.keep_fixed(file);
        }
        quiet
    }

    /// Notes direct writes and reads: the size, timestamps, and the count of changes.
    pub(crate) fn note_accesses(&self, node: &Node, state: &mut NodeState) {
        let Some((file, leases)) = self.lease_of(node) else { return };
        let accessed = leases.take_accessed(file);
        if self.read_only {
            return;
        }
        let now = self.clock.now();
        if let Some(at) = accessed.written_at {
            node.note_change();
            // The time comes from another process.
            let at = at.min(now);
            state.inode.mtime = state.inode.mtime.max(at);
            state.inode.ctime = state.inode.ctime.max(at);
            node.newer_times.store(true, Ordering::Relaxed);
        }
        if accessed.read {
            node.update_atime(state, now);
        }
        self.take_growth(node, state);
    }

    /// Adds the size and the times of direct writes to attributes.
    pub(crate) fn add_direct_writes(&self, node: &Node, attr: &mut Attr) {
        let Some((file, leases)) = self.lease_of(node) else { return };
        if let Some(at) = leases.written_at(file) {
            let at = at.min(self.clock.now());
            attr.mtime = attr.mtime.max(at);
            attr.ctime = attr.ctime.max(at);
        }
        if let Some((size, _)) = leases.growth(file).filter(|(size, _)| *size > attr.size) {
            let blocks = block_from(size) - block_from(attr.size);
            attr.sectors = attr.sectors.saturating_add(blocks * (BLOCK / 512));
            attr.size = size;
        }
    }

    /// Prepares a range for a write of a program: writes zeros to its holes, and to some around it, and gives
    /// append space to a file that ends before. Programs with the lease look at the extents again.
    fn prepare_write(&self, node: &Node, state: &mut NodeState, file: u32, range: Range<u64>) -> Result<()> {
        let Some(leases) = self.leases.get() else { return Ok(()) };
        if !leases.forbid(file) {
            return Err(Error::Busy);
        }
        self.note_accesses(node, state);
        let has_grown = leases.has_space(file);
        self.return_space(file);
        let size = state.inode.size;
        let fill = range_to_fill(state, &range);
        self.fill_holes(node, state, fill.start..fill.end.min(size))?;
        if range.end > size {
            // The last block may be a part of a hole.
            self.fill_holes(node, state, block_of(size) * BLOCK..size)?;
        }
        if range.end > size || has_grown {
            self.give_space(node, state, file, range.end.max(size));
        }
        Ok(())
    }

    /// Writes the written extents of a file from byte `lease.from` into the lease, and its append space if
    /// there is room.
    fn list_extents(state: &NodeState, space: Option<HeldSpace>, lease: &mut Lease) {
        let size = state.inode.size;
        let mut at = lease.from.min(size) / BLOCK * BLOCK;
        lease.from = at;
        lease.size = size;
        lease.size_max = 0;
        lease.count = 0;
        lease.to = u64::MAX;
        let Some(map) = &state.map else { return };
        while let Some(extent) = map.from(block_of(at)).filter(|extent| extent.at * BLOCK < size) {
            if lease.count as usize == EXTENTS {
                lease.to = at;
                return;
            }
            if extent.written {
                let from = (extent.at * BLOCK).max(at);
                let medium = extent.start * BLOCK + (from - extent.at * BLOCK);
                lease.extents[lease.count as usize] =
                    Extent { at: from, len: extent.end() * BLOCK - from, medium };
                lease.count += 1;
            }
            at = extent.end() * BLOCK;
        }
        let Some(space) = space else { return };
        // Blocks that were taken over are among the extents of the file.
        let from = space.at.max(block_from(size));
        if lease.count as usize == EXTENTS {
            lease.to = from * BLOCK;
            return;
        }
        let run = space.run_of(from, space.at + space.run.len);
        lease.extents[lease.count as usize] =
            Extent { at: from * BLOCK, len: run.len * BLOCK, medium: run.at() };
        lease.count += u32::from(run.len > 0);
        lease.size_max = space.size_max();
    }
}

/// Returns the range in which holes are filled for a write to `range`: around it in blocks that were allocated, and
/// behind it in a hole, as far as the extent before it is long. So a file that is written in order needs few requests,
/// and a sparse file stays sparse.
fn range_to_fill(state: &NodeState, range: &Range<u64>) -> Range<u64> {
    let (first, end) = (block_of(range.start), block_from(range.end) * BLOCK);
    let extent_of =
        |block: u64| state.map.as_ref().and_then(|map| map.from(block)).filter(|extent| extent.at <= block);
    if let Some(allocated) = extent_of(first).filter(|extent| !extent.written) {
        let around = range.start / FILL_BYTES * FILL_BYTES..end.next_multiple_of(FILL_BYTES);
        return around.start.max(allocated.at * BLOCK)..around.end.min(allocated.end() * BLOCK).max(end);
    }
    let before = first.checked_sub(1).and_then(extent_of).filter(|extent| extent.written);
    let in_order = before.map_or(0, |extent| (first - extent.at) * BLOCK).min(FILL_BYTES);
    first * BLOCK..end + in_order
}

/// Ends the accesses that a killed mount of an image left behind. Without the UUID of a file system, what the
/// mount left is removed; else [`Fs::recover_growth`] follows.
///
/// # Errors
/// A program is stopped in an access; the file of the shared memory is another one, or cannot be removed.
pub(crate) fn retire_leases<M: Medium>(medium: &M, uuid: Option<[u64; 2]>) -> Result<Option<RetiredLeases>> {
    let Some(image) = medium.file() else { return Ok(None) };
    let retired = leases::retire(&image, uuid.unwrap_or_default())?;
    match (retired, uuid) {
        (Some(retired), None) => retired.remove().map(|()| None),
        (retired, _) => Ok(retired),
    }
}

/// Ends the accesses that a killed mount of an image left behind. Its shared memory stays for the next open.
///
/// # Errors
/// As for [`retire_leases`].
pub(crate) fn end_left_accesses<M: Medium>(medium: &M) -> Result<()> {
    medium.file().map_or(Ok(()), |image| leases::retire(&image, [0; 2]).map(drop))
}

impl<M: Medium> DirectFiles for Fs<M> {
    fn direct_image(&self) -> Result<PathBuf> {
        if self.content_store.is_some() {
            return Err(Error::Unsupported(
                "direct access to a pool, whose files the kernel accesses itself",
            ));
        }
        if self.placed.is_some() {
            return Err(Error::Unsupported("direct access to contents on a nameless-write device"));
        }
        if self.has_sums() {
            return Err(Error::Unsupported("direct access to an image with checksums"));
        }
        if self.read_only {
            return Err(Error::Unsupported("direct access to a read-only mount"));
        }
        let Some(image) = self.medium.file() else {
            return Err(Error::Unsupported("direct access to an image that is not on tmpfs or DAX"));
        };
        let os = |error| Error::Os { what: "cannot find", path: image.clone(), error };
        image.canonicalize().map_err(os)
    }

    fn register_client(&self) -> Result<u32> {
        Ok(self.leases()?.register())
    }

    fn check_writer(&self, caller: &Caller, ino: Ino) -> Result<()> {
        let node = self.node(ino)?;
        let state = node.state.read();
        state.check_file()?;
        permissions::check_access(caller, &state.inode, WRITE)
    }

    fn begin_lease(&self, ino: Ino) -> Result<bool> {
        let leases = self.leases()?;
        let node = self.node(ino)?;
        let mut state = node.state.write();
        state.check_file()?;
        if !node.pinned() {
            return Err(Error::Stale);
        }
        if node.maps.load(Ordering::Acquire) > 0 {
            return Err(Error::Busy);
        }
        if let Some((file, _)) = self.lease_of(&node) {
            if leases.generation(file).is_some() {
                return Ok(true);
            }
            if !self.end_lease(&node, &mut state) {
                return Err(Error::Busy);
            }
        }
        self.load_map(ino, &mut state)?;
        node.lease.store(leases.take()? + 1, Ordering::Release);
        Ok(false)
    }

    fn grant(&self, ino: Ino, lease: &mut Lease) -> Result<bool> {
        let (leases, node) = (self.leases()?, self.node(ino)?);
        let mut state = node.state.write();
        state.check_file()?;
        if node.maps.load(Ordering::Acquire) > 0 {
            self.end_lease(&node, &mut state);
            return Ok(false);
        }
        let Some((file, _)) = self.lease_of(&node) else { return Ok(false) };
        if lease.to > lease.from {
            self.prepare_write(&node, &mut state, file, lease.from..lease.to)?;
        }
        self.note_accesses(&node, &mut state);
        // In this order: append space that is returned meanwhile ends the generation.
        let (generation, space) = (leases.generation(file), leases.space(file));
        Self::list_extents(&state, space, lease);
        lease.segment = leases.identity();
        lease.file = file;
        let generation = generation.or_else(|| leases.allow(file, state.inode.size, space));
        lease.generation = generation.unwrap_or(0);
        Ok(generation.is_some())
    }

    fn revoke_lease(&self, ino: Ino) {
        if let Ok(node) = self.node(ino) {
            self.settle(&node);
        }
    }

    fn grown_to(&self, ino: Ino) -> Option<u64> {
        let node = self.node(ino).ok()?;
        Some(node.grown_to.load(Ordering::Acquire)).filter(|size| *size > 0)
    }

    fn forbid_growth(&self, ino: Ino) {
        if let Ok(node) = self.node(ino) {
            node.grows_no_more.store(true, Ordering::Release);
            self.end_growth(&node);
        }
    }
}
