//! Repair of directory entries, and search for unconnected inodes: those without a name.

use super::RepairRound;
use crate::check::names::read;
use crate::dir::{DirIndex, SLOT};
use crate::format::write_words;
use crate::medium::Medium;
use crate::types::{Ino, InodeType};
use std::collections::{HashSet, VecDeque};

/// A directory entry under examination.
struct EntryToRepair {
    dir: Ino,
    name: String,
    ino: Ino,
    /// Byte positions of its slots.
    slots: Vec<u64>,
}

impl<M: Medium> RepairRound<'_, M> {
    /// Walks the tree from the given directories, marks what it reaches, and removes invalid names.
    pub(super) fn repair_names(&mut self, from: Vec<Ino>) {
        let mut next = from;
        for ino in &next {
            if let Some(seen) = self.inodes.get(*ino) {
                seen.reached = true;
            }
        }
        // Names of directories whose `..` refers to another directory. Such a name is kept if no
        // name is found that agrees with `..`.
        let mut parent_mismatch = VecDeque::new();
        loop {
            while let Some(dir) = next.pop() {
                self.repair_names_of(dir, &mut next, &mut parent_mismatch);
            }
            let Some(entry) = parent_mismatch.pop_front() else { return };
            next.extend(self.assign_parent(&entry));
        }
    }

    fn repair_names_of(
        &mut self,
        dir: Ino,
        next: &mut Vec<Ino>,
        parent_mismatch: &mut VecDeque<EntryToRepair>,
    ) {
        let Some(index) = read(self.medium, &self.geometry, self.salt, dir) else { return };
        let mut seen_names = HashSet::new();
        for (slot, record) in index.records(self.medium) {
            let entry = EntryToRepair {
                dir,
                name: String::from_utf8_lossy(record.name()).into_owned(),
                ino: record.ino(),
                slots: positions(&index, slot, record.slots()),
            };
            let twice = !seen_names.insert(record.name().to_vec());
            let Some(seen) = self.inodes.get(entry.ino).filter(|seen| seen.kind.is_some()) else {
                self.remove(&entry, "points to a free inode");
                continue;
            };
            if twice {
                self.remove(&entry, "is a duplicate");
            } else if seen.kind != record.kind() || seen.kind == Some(InodeType::Command) {
                self.remove(&entry, "points to an inode of another type");
            } else if seen.kind != Some(InodeType::Directory) {
                seen.names += 1;
                seen.reached = true;
            } else if seen.reached {
                self.remove(&entry, "is a second name of a directory");
            } else if seen.parent == dir {
                next.push(entry.ino);
                self.accept(&entry);
            } else {
                parent_mismatch.push_back(entry);
            }
        }
    }

    fn accept(&mut self, entry: &EntryToRepair) {
        if let Some(seen) = self.inodes.get(entry.ino) {
            seen.reached = true;
            seen.names += 1;
        }
        if let Some(parent) = self.inodes.get(entry.dir) {
            parent.subdirs += 1;
        }
    }

    /// Sets the `..` of a directory to the directory with this entry, unless another entry agreed
    /// with the old `..`.
    fn assign_parent(&mut self, entry: &EntryToRepair) -> Option<Ino> {
        let seen = self.inodes.get(entry.ino)?;
        if seen.reached {
            self.remove(entry, "is a second name of a directory");
            return None;
        }
        let old = std::mem::replace(&mut seen.parent, entry.dir);
        let place = self.place(entry.dir);
        let EntryToRepair { name, ino, dir, .. } = entry;
        self.log.add_message(format_args!("{place}: `..` of the directory `{name}` was inode {}", old.0));
        self.rewrite(*ino, |inode| inode.parent = *dir);
        self.accept(entry);
        Some(entry.ino)
    }

    fn remove(&mut self, entry: &EntryToRepair, why: &str) {
        let place = self.place(entry.dir);
        self.log.add_message(format_args!(
            "{place}: the name `{}` {why}, inode {}: removed",
            entry.name, entry.ino.0
        ));
        for at in &entry.slots {
            write_words(self.medium, *at, &[0]);
        }
    }

    /// Returns the unconnected inodes, except those that were unlinked while open. The names below
    /// unconnected directories are repaired, so that their inodes do not count as unconnected.
    pub(super) fn repair_unconnected(&mut self) -> Vec<Ino> {
        let mut lost = Vec::new();
        let named = self.named_by_unreached();
        // First pass: lost directories that no lost directory names. Second pass: the rest, which
        // are in cycles.
        for among_named in [false, true] {
            for number in 1..=self.inodes.seen.len() as u64 {
                let ino = Ino(number);
                let Some(seen) = self.inodes.get(ino) else { continue };
                let removed = seen.orphan && seen.links == 0;
                let directory = seen.kind == Some(InodeType::Directory);
                if !directory || seen.reached || removed || (named.contains(&ino) && !among_named) {
                    continue;
                }
                // Its `..` is invalid until it is linked into `lost+found`.
                seen.parent = Ino(0);
                lost.push(ino);
                self.repair_names(vec![ino]);
            }
        }
        let others = self.inodes.seen.iter().enumerate().filter(|(_, seen)| {
            seen.kind.is_some_and(|kind| !matches!(kind, InodeType::Directory | InodeType::Command))
                && !seen.reached
                && !(seen.orphan && seen.links == 0)
        });
        lost.extend(others.map(|(i, _)| Ino(i as u64 + 1)));
        lost
    }

    /// Returns the directories that have a name in an unreachable directory.
    fn named_by_unreached(&mut self) -> HashSet<Ino> {
        let mut named = HashSet::new();
        for number in 1..=self.inodes.seen.len() as u64 {
            let ino = Ino(number);
            let lost =
                self.inodes.get(ino).is_some_and(|s| s.kind == Some(InodeType::Directory) && !s.reached);
            let index = lost.then(|| read(self.medium, &self.geometry, self.salt, ino)).flatten();
            if let Some(index) = index {
                let all = index.records(self.medium).map(|(_, record)| record.ino());
                named.extend(all.filter(|below| *below != ino));
            }
        }
        named
    }
}

/// Returns the byte positions of the slots of a name.
fn positions(index: &DirIndex, slot: u32, slots: u32) -> Vec<u64> {
    (0..slots).map(|i| index.at(slot) + u64::from(i) * SLOT).collect()
}
