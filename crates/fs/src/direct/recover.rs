//! Growth of files that a killed mount did not take over: the next open does.
//!
//! Any process that may write the image may have written any record, so that each is compared with the file
//! system: the inode, its size and its extents, and the blocks, which must be free.

use super::leases::{HeldSpace, RetiredLeases};
use crate::contents::{block_from, block_of};
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::NodeState;
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::planted::DirectBug;
use crate::types::{FILE_MAX, Ino, InodeType, Time};
use frit_core::planted::is_planted;
use frit_direct::segment::{SIZE_FIXED, Segment};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Growth of a file, as the shared memory describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftGrowth {
    ino: Ino,
    generation: u64,
    size: u64,
    space: HeldSpace,
    written_at: Time,
}

/// Writes the identity of the boot and of the file system to the shared memory.
pub(super) fn stamp(segment: &Segment, uuid: [u64; 2]) {
    for (to, word) in segment.head.boot.iter().zip(boot()).chain(segment.head.uuid.iter().zip(uuid)) {
        to.store(word, Ordering::SeqCst);
    }
    segment.head.identity.store(kernel_uuid("uuid")[0], Ordering::SeqCst);
}

/// Returns the identity of the boot of this machine, or zeros if it is not known.
fn boot() -> [u64; 2] {
    kernel_uuid("boot_id")
}

/// Returns a UUID of the kernel (random(4)): `boot_id`, or `uuid` for a new one; zeros if it cannot be read.
fn kernel_uuid(name: &str) -> [u64; 2] {
    let path = Path::new("/proc/sys/kernel/random").join(name);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let id = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [id as u64, (id >> 64) as u64]
}

/// Returns the growth that a mount of this file system left, if the machine was not booted since: contents of
/// an earlier boot may be older than the sizes.
pub(super) fn left_growth(segment: &Segment, uuid: [u64; 2]) -> Vec<LeftGrowth> {
    let words = |at: &[std::sync::atomic::AtomicU64; 2]| [0, 1].map(|i| at[i].load(Ordering::SeqCst));
    let boot = boot();
    let is_same_boot = boot != [0; 2] && words(&segment.head.boot) == boot;
    if !(is_same_boot || is_planted(DirectBug::BootIgnored)) || words(&segment.head.uuid) != uuid {
        return Vec::new();
    }
    let left = segment.files.iter().zip(&segment.appends).filter_map(|(file, record)| {
        let word = |at: &std::sync::atomic::AtomicU64| at.load(Ordering::SeqCst);
        let space = HeldSpace {
            at: word(&record.at),
            run: BlockRun { start: word(&record.start), len: word(&record.blocks) },
            size: word(&record.size),
        };
        Some(LeftGrowth {
            ino: Some(Ino(word(&record.inode))).filter(|ino| ino.0 != 0)?,
            generation: word(&record.generation),
            size: word(&file.size) & !SIZE_FIXED,
            space,
            written_at: Time(file.written_at.load(Ordering::SeqCst)),
        })
    });
    left.collect()
}

impl LeftGrowth {
    /// Returns `true` if the record is possible for the state of its inode.
    fn fits(&self, state: &NodeState) -> bool {
        let (inode, space) = (&state.inode, &self.space);
        let has_file = !state.dead && inode.kind == InodeType::File && inode.links > 0;
        let has_generation = u64::from(inode.generation) == self.generation;
        // The mount may have taken over a part.
        let has_sizes = space.size <= inode.size && inode.size < self.size && self.size <= FILE_MAX;
        let has_blocks = space.at == block_from(space.size)
            && space.run.start <= FILE_MAX
            && block_from(self.size).checked_sub(space.at).is_some_and(|blocks| blocks <= space.run.len);
        has_file && has_generation && has_sizes && has_blocks
    }

    /// Returns `true` if the file has the blocks that were taken over, and none behind them.
    fn has_taken(&self, state: &NodeState) -> bool {
        let Some(map) = &state.map else { return false };
        let (size, space) = (state.inode.size, &self.space);
        let has_last = size.is_multiple_of(BLOCK) || map.at(block_of(size)).is_some_and(|e| e.written);
        let mut at = space.at;
        while let Some(extent) = map.from(at) {
            let is_taken = extent.at <= at
                && extent.written
                && extent.end() <= block_from(size)
                && extent.start + (at - extent.at) == space.run.start + (at - space.at);
            if !is_taken {
                return false;
            }
            at = extent.end();
        }
        has_last && at == block_from(size)
    }
}

impl<M: Medium> Fs<M> {
    /// Takes over the growth that a killed mount left, and removes its shared memory. Records that do not
    /// match the file system are ignored.
    ///
    /// # Errors
    /// The shared memory cannot be removed.
    pub(crate) fn recover_growth(&self, retired: RetiredLeases) -> Result<()> {
        for growth in &retired.growth {
            match self.recover_one(growth) {
                // A damaged file keeps its size.
                Ok(()) | Err(Error::Stale | Error::Damaged { .. } | Error::NoSpace) => {}
                Err(error) => return Err(error),
            }
        }
        retired.remove()
    }

    fn recover_one(&self, growth: &LeftGrowth) -> Result<()> {
        if growth.ino.0 > self.geometry.inodes {
            return Ok(());
        }
        let node = self.node(growth.ino)?;
        let mut state = node.state.write();
        if !growth.fits(&state) {
            return Ok(());
        }
        self.load_map(growth.ino, &mut state)?;
        if !growth.has_taken(&state) || state.map.as_ref().is_none_or(|map| !map.has_free_slot()) {
            return Ok(());
        }
        let space = &growth.space;
        let rest = space.run_of(block_from(state.inode.size), block_from(growth.size));
        if !self.allocate_exactly(rest) && !is_planted(DirectBug::LeftBlocksUnchecked) {
            return Ok(());
        }
        let at = growth.written_at.min(self.clock.now());
        state.inode.mtime = state.inode.mtime.max(at);
        state.inode.ctime = state.inode.ctime.max(at);
        self.extend(&node, &mut state, space, growth.size)
    }

    /// Allocates a run in DRAM. Returns `false` if a part of it is in use.
    fn allocate_exactly(&self, run: BlockRun) -> bool {
        if run.len > 0 && !self.geometry.holds(run.start, run.len) {
            return false;
        }
        match (run.len > 0).then(|| self.contiguous(Some(run.start), run.len)) {
            None => true,
            Some(Some(found)) if found == run => true,
            Some(found) => {
                found.into_iter().for_each(|other| self.space.release(other));
                false
            }
        }
    }
}
