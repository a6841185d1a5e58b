//! Maps of file ranges: access to contents in the memory of the medium, without copies.

use super::File;
use crate::contents::{FILL_BYTES, block_of};
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::medium::Medium;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes of a file on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MappedPiece {
    at: u64,
    len: usize,
    medium: u64,
}

/// A map of a range of a file. Its blocks stay in their places until it is dropped: a truncation below
/// the end of the file, punching and zeroing are [`Error::Busy`] meanwhile, and defragmentation leaves
/// the file out. Writes of the file and other maps are allowed.
#[derive(Debug)]
pub struct FileMap<'f, 'fs, M: Medium> {
    file: &'f File<'fs, M>,
    pieces: Vec<MappedPiece>,
    range: Range<u64>,
}

impl<'fs, M: Medium> File<'fs, M> {
    /// Maps a range of the file. In a file that is open for writing, blocks that were never written are
    /// filled with zeros.
    ///
    /// # Errors
    /// The file is not open for reading; the range is not within its size; no space is left;
    /// [`Error::Unsupported`] if contents are not in memory of this process: on a medium that is not
    /// mapped, in a pool, on a nameless-write device, or with checksums.
    pub fn map<'f>(&'f self, range: Range<u64>) -> Result<FileMap<'f, 'fs, M>> {
        if !self.options.read {
            return Err(Error::Access);
        }
        // From here on the blocks stay in their places.
        let mut map = FileMap::pin(self, range)?;
        map.locate()?;
        if map.is_complete() {
            return Ok(map);
        }
        if !self.options.write || self.options.append {
            return Err(Error::Unsupported("maps for reading of ranges with holes"));
        }
        // Blocks that are written meanwhile are kept. Other threads use the file between the steps.
        for from in map.range.clone().step_by(FILL_BYTES as usize) {
            let to = (from + FILL_BYTES).min(map.range.end);
            let mut state = self.node.state.write();
            self.fs.load_map(self.node.ino, &mut state)?;
            self.fs.fill_holes(&self.node, &mut state, block_of(from) * BLOCK..to)?;
        }
        map.locate()?;
        Ok(map)
    }
}

impl<'f, 'fs, M: Medium> FileMap<'f, 'fs, M> {
    /// Keeps the blocks of a file in their places.
    fn pin(file: &'f File<'fs, M>, range: Range<u64>) -> Result<Self> {
        let (fs, node) = (file.fs, &file.node);
        let state = loop {
            fs.settle(node);
            let state = fs.loaded(node)?;
            // A lease that was granted meanwhile ends, and none is granted to a file with maps.
            if node.lease.load(Ordering::Acquire) == 0 {
                break state;
            }
        };
        let elsewhere = fs.external(&state.inode).is_some() || fs.placed.is_some();
        if elsewhere || fs.has_sums() || !fs.medium.scan(0, 0, &mut |_| ()) {
            return Err(Error::Unsupported(
                "maps of contents that are not in mapped memory without checksums",
            ));
        }
        if range.start > range.end || range.end > state.inode.size {
            return Err(Error::BeyondEnd);
        }
        node.maps.fetch_add(1, Ordering::AcqRel);
        Ok(Self { file, pieces: Vec::new(), range })
    }

    /// Finds the written blocks of the range.
    fn locate(&mut self) -> Result<()> {
        self.pieces.clear();
        self.file.pieces(self.range.start, &mut |extent| {
            let (from, to) = (extent.at.max(self.range.start), (extent.at + extent.len).min(self.range.end));
            if extent.written && from < to {
                let medium = extent.medium + (from - extent.at);
                self.pieces.push(MappedPiece { at: from, len: (to - from) as usize, medium });
            }
            to < self.range.end
        })
    }

    fn is_complete(&self) -> bool {
        self.pieces.iter().map(|piece| piece.len as u64).sum::<u64>() == self.len()
    }
}

impl<M: Medium> FileMap<'_, '_, M> {
    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns `true` if the range is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Passes the bytes to `each`, piece by piece, with the positions of the pieces in the map. Writes of
    /// the file wait meanwhile; `each` must not write to it.
    pub fn view(&self, mut each: impl FnMut(u64, &[u8])) {
        let _reading = self.file.node.state.read();
        for piece in &self.pieces {
            let at = piece.at - self.range.start;
            self.file.fs.medium.scan(piece.medium, piece.len, &mut |bytes| each(at, bytes));
        }
    }

    /// Passes the bytes to `each` for changes, piece by piece, with the positions of the pieces in the map.
    /// Other accesses to the file wait meanwhile; `each` must not access it. After a power loss before the
    /// next sync, each aligned word of 8 bytes is old or new, as after an overwrite.
    ///
    /// # Errors
    /// The file is not open for writing, or is open for appending.
    pub fn update(&self, mut each: impl FnMut(u64, &mut [u8])) -> Result<()> {
        if !self.file.options.write || self.file.options.append {
            return Err(Error::Access);
        }
        let (fs, node) = (self.file.fs, &self.file.node);
        fs.check_writable()?;
        let mut state = node.state.write();
        node.note_change();
        for piece in &self.pieces {
            let at = piece.at - self.range.start;
            fs.medium.update(piece.medium, piece.len, &mut |bytes| each(at, bytes));
        }
        let now = fs.clock.now();
        state.inode.mtime = now;
        state.inode.ctime = now;
        node.newer_times.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl<M: Medium> Drop for FileMap<'_, '_, M> {
    fn drop(&mut self) {
        self.file.node.maps.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<M: Medium> Fs<M> {
    /// Fails if a map, or an access of a stopped program, needs the blocks of a file in their places.
    pub(crate) fn check_movable(&self, node: &Node, state: &mut NodeState) -> Result<()> {
        let is_needed = node.maps.load(Ordering::Acquire) > 0 || !self.end_lease(node, state);
        if is_needed { Err(Error::Busy) } else { Ok(()) }
    }
}
