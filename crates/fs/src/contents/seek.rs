//! Search for data and holes, and positions of contents on the medium.

use super::block_of;
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::inode::Node;
use crate::medium::Medium;
use crate::types::{FileExtent, Seek};

impl<M: Medium> Fs<M> {
    pub(crate) fn seek_node(&self, node: &Node, what: Seek, at: u64) -> Result<u64> {
        self.settle_size(node);
        let state = self.loaded(node)?;
        if self.external(&state.inode).is_some() {
            return self.seek_external(node, &state, what, at);
        }
        let size = state.inode.size;
        if at >= size {
            return Err(Error::BeyondEnd);
        }
        let Some(map) = &state.map else { return Err(Error::BeyondEnd) };
        let mut at = at;
        while at < size {
            match map.from(block_of(at)) {
                Some(e) if e.at * BLOCK <= at => {
                    if e.written == (what == Seek::Data) {
                        return Ok(at);
                    }
                    at = e.end() * BLOCK;
                }
                Some(e) if what == Seek::Data => at = e.at * BLOCK,
                None if what == Seek::Data => return Err(Error::BeyondEnd),
                Some(_) | None => return Ok(at),
            }
        }
        if what == Seek::Hole { Ok(size) } else { Err(Error::BeyondEnd) }
    }

    pub(crate) fn pieces_of(
        &self,
        node: &Node,
        at: u64,
        each: &mut dyn FnMut(&FileExtent) -> bool,
    ) -> Result<()> {
        self.settle_size(node);
        let state = self.loaded(node)?;
        let Some(map) = &state.map else { return Ok(()) };
        let mut block = block_of(at);
        while let Some(e) = map.from(block) {
            let piece = FileExtent {
                at: e.at * BLOCK,
                len: e.len * BLOCK,
                medium: self.block_of_start(e.start) * BLOCK,
                written: e.written,
            };
            if !each(&piece) {
                break;
            }
            block = e.end();
        }
        Ok(())
    }
}
