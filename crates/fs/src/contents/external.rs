//! Operations on contents outside the medium, which are in a content file. The times of the last
//! read and change are those of the content file, because other processes may have it open and
//! change it.

use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::{Allocate, FILE_MAX, Seek, Time};
use std::ops::Range;

/// Times that a content file gets; `None`: the time stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewTimes {
    pub(crate) atime: Option<Time>,
    pub(crate) mtime: Option<Time>,
}

impl<M: Medium> Fs<M> {
    pub(super) fn read_external(
        &self,
        node: &Node,
        state: &NodeState,
        at: u64,
        into: &mut [u8],
    ) -> Result<usize> {
        match self.content_file(node, state)? {
            Some(content_file) => content_file.read(at, into),
            None => Ok(0),
        }
    }

    /// Writes to the content file. `at` and the end of `data` are within the maximum file size.
    pub(super) fn write_external(
        &self,
        node: &Node,
        state: &mut NodeState,
        at: u64,
        data: &[u8],
    ) -> Result<usize> {
        self.open_or_create_body(node, state)?.write(at, data)
    }

    /// Returns the size of a file.
    pub(super) fn end_of(&self, node: &Node, state: &NodeState) -> Result<u64> {
        if self.external(&state.inode).is_none() {
            return Ok(state.inode.size);
        }
        self.attr_in(node, state).map(|attr| attr.size)
    }

    /// Changes the size and times of a content file, before the inode is changed. A file that stays
    /// empty needs no content file.
    pub(crate) fn change_body(
        &self,
        node: &Node,
        state: &mut NodeState,
        size: Option<u64>,
        times: NewTimes,
    ) -> Result<()> {
        let content_file = match size {
            Some(to) if to > FILE_MAX => return Err(Error::TooLarge),
            Some(1..) => Some(self.open_or_create_body(node, state)?),
            _ => self.content_file(node, state)?,
        };
        let Some(content_file) = content_file else { return Ok(()) };
        if let Some(to) = size {
            content_file.resize(to)?;
        }
        let NewTimes { atime, mtime } = times;
        if atime.is_some() || mtime.is_some() { content_file.set_times(atime, mtime) } else { Ok(()) }
    }

    pub(super) fn allocate_external(
        &self,
        node: &Node,
        state: &mut NodeState,
        mode: Allocate,
        range: Range<u64>,
    ) -> Result<()> {
        let content_file = self.open_or_create_body(node, state)?;
        content_file.allocate(mode, range.start, range.end - range.start)?;
        let now = self.clock.now();
        if !matches!(mode, Allocate::Keep) {
            // Some file systems do not update the mtime on fallocate(2).
            content_file.set_times(None, Some(now))?;
        }
        state.inode.ctime = now;
        let mut txn = Txn::new();
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
        Ok(())
    }

    pub(super) fn seek_external(&self, node: &Node, state: &NodeState, what: Seek, at: u64) -> Result<u64> {
        self.content_file(node, state)?.ok_or(Error::BeyondEnd)?.seek(what, at)
    }
}
