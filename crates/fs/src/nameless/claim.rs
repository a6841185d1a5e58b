//! Recovery: the file system claims the blocks that its extents refer to.

use super::address::{encode, owned};
use super::is_placed;
use super::place::push_block;
use super::placed::failed;
use crate::error::{Error, Result};
use crate::extents::Extent;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::medium::Medium;
use crate::planted::NamelessBug;
use crate::types::{Ino, InodeType};
use frit_core::Claimed;
use frit_core::planted::is_planted;

impl<M: Medium> Fs<M> {
    /// Claims all contents, changes the extents of blocks that the device had moved, and ends the
    /// recovery of the device.
    ///
    /// # Errors
    /// An inode or its extents are damaged: its blocks are unknown, and the device would free them. A
    /// file system that is opened read-only skips them.
    pub(crate) fn claim_contents(&self) -> Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        for ino in self.inodes() {
            match Inode::read(&self.medium, &self.geometry, self.salt, ino) {
                Ok(Some(inode)) if inode.kind == InodeType::File => {}
                Ok(_) => continue,
                Err(_) if self.read_only => continue,
                Err(error) => return Err(error),
            }
            match self.claim_file(ino) {
                Err(Error::Damaged { .. }) if self.read_only => {}
                claimed => claimed?,
            }
        }
        if self.read_only {
            return Ok(());
        }
        placed.device.lock().resume().map_err(failed)
    }

    fn claim_file(&self, ino: Ino) -> Result<()> {
        let Some(placed) = &self.placed else { return Ok(()) };
        let node = self.node(ino)?;
        let mut state = node.state.write();
        self.load_map(ino, &mut state)?;
        let extents: Vec<Extent> = state.map.iter().flat_map(crate::extents::ExtentMap::iter).collect();
        let mut moved = Vec::new();
        for extent in extents {
            if is_placed(extent.start) {
                placed.add(extent.len);
                moved.extend(self.claim_extent(ino, &extent)?);
            } else {
                placed.add(extent.len);
                placed.note_buffered(ino, extent.len);
            }
        }
        self.replace_extents(&node, &mut state, &moved, |_, _, _| ()).map(drop).map_err(|(_, error)| error)
    }

    /// Claims the blocks of an extent. Returns those that have moved.
    fn claim_extent(&self, ino: Ino, extent: &Extent) -> Result<Vec<Extent>> {
        let Some(placed) = &self.placed else { return Ok(Vec::new()) };
        let mut device = placed.device.lock();
        let mut moved: Vec<Extent> = Vec::new();
        for (at, start) in (extent.at..extent.end()).zip(extent.start..) {
            // A block that is lost keeps its address, and reads of it fail.
            if let Claimed::At(found) = device.claim(owned(ino, start)).map_err(failed)?
                && encode(found) != start
                && !is_planted(NamelessBug::ClaimNotApplied)
            {
                push_block(&mut moved, at, encode(found));
            }
        }
        Ok(moved)
    }
}
