//! Listing of directories.

use super::record::slots_for;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::Node;
use crate::medium::Medium;
use crate::planted::DamageBug;
use crate::types::{DirEntry, InodeType};
use frit_core::planted::is_planted;

/// Position of the first name after `.` and `..`.
const NAMES_FROM: u64 = 2;

impl<M: Medium> Fs<M> {
    pub(crate) fn list(
        &self,
        node: &Node,
        from: u64,
        each: &mut dyn FnMut(&DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let mut state = node.state.read();
        if state.index.is_none() {
            drop(state);
            let mut writing = node.state.write();
            self.load_index(node, &mut writing)?;
            drop(writing);
            // The lock is taken again as shared, so that other readers can proceed.
            state = node.state.read();
        }
        state.check_directory()?;
        let Some(index) = state.index.as_deref() else { return Ok(()) };
        for (at, name, ino) in [(0, &b"."[..], node.ino), (1, &b".."[..], state.inode.parent)] {
            if from <= at && !each(&DirEntry { name, ino, kind: InodeType::Directory, next: at + 1 }) {
                return Ok(());
            }
        }
        let mut damaged = index.damage();
        let mut slot = from.max(NAMES_FROM) - NAMES_FROM;
        while let Some(head) = u32::try_from(slot).ok().and_then(|slot| index.next_head(slot)) {
            let Some(record) = index.record(&self.medium, head) else {
                // The remaining names are listed before the damage is reported.
                damaged = Some(index.at(head));
                slot = u64::from(head) + 1;
                continue;
            };
            let next = u64::from(head) + u64::from(slots_for(record.name().len()));
            let entry = record.kind().map(|kind| DirEntry {
                name: record.name(),
                ino: record.ino(),
                kind,
                next: next + NAMES_FROM,
            });
            if entry.is_some_and(|entry| !each(&entry)) {
                return Ok(());
            }
            slot = next;
        }
        if !self.read_only {
            node.update_atime(&state, self.clock.now());
        }
        match damaged.filter(|_| !is_planted(DamageBug::DamagedNamesUntold)) {
            Some(at) => Err(Error::Damaged { what: "a name in a directory", at }),
            None => Ok(()),
        }
    }
}
