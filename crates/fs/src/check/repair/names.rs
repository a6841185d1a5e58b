//! Repair of names, and search for inodes without names.

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
    text: String,
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
        // Names of directories whose `..` refers to another directory. They are kept if no other
        // name is found that agrees with `..`.
        let mut doubtful = VecDeque::new();
        loop {
            while let Some(dir) = next.pop() {
                self.repair_names_of(dir, &mut next, &mut doubtful);
            }
            let Some(name) = doubtful.pop_front() else { return };
            next.extend(self.assign_parent(&name));
        }
    }

    fn repair_names_of(&mut self, dir: Ino, next: &mut Vec<Ino>, doubtful: &mut VecDeque<EntryToRepair>) {
        let Some(index) = read(self.medium, &self.geometry, self.salt, dir) else { return };
        let mut texts = HashSet::new();
        for (slot, record) in index.records(self.medium) {
            let name = EntryToRepair {
                dir,
                text: String::from_utf8_lossy(record.name()).into_owned(),
                ino: record.ino(),
                slots: positions(&index, slot, record.slots()),
            };
            let twice = !texts.insert(record.name().to_vec());
            let Some(seen) = self.inodes.get(name.ino).filter(|seen| seen.kind.is_some()) else {
                self.remove(&name, "leads to a free inode");
                continue;
            };
            if twice {
                self.remove(&name, "is a duplicate");
            } else if seen.kind != record.kind() {
                self.remove(&name, "leads to an inode of another type");
            } else if seen.kind != Some(InodeType::Directory) {
                seen.names += 1;
                seen.reached = true;
            } else if seen.reached {
                self.remove(&name, "is a second name of a directory");
            } else if seen.parent == dir {
                next.push(name.ino);
                self.accept(&name);
            } else {
                doubtful.push_back(name);
            }
        }
    }

    fn accept(&mut self, name: &EntryToRepair) {
        if let Some(seen) = self.inodes.get(name.ino) {
            seen.reached = true;
            seen.names += 1;
        }
        if let Some(above) = self.inodes.get(name.dir) {
            above.below += 1;
        }
    }

    /// Assigns a directory to the directory with this name, unless a better name was found.
    fn assign_parent(&mut self, name: &EntryToRepair) -> Option<Ino> {
        let seen = self.inodes.get(name.ino)?;
        if seen.reached {
            self.remove(name, "is a second name of a directory");
            return None;
        }
        let old = std::mem::replace(&mut seen.parent, name.dir);
        let place = self.place(name.dir);
        let EntryToRepair { text, ino, dir, .. } = name;
        self.log.add_message(format_args!("{place}: `..` of the directory `{text}` was inode {}", old.0));
        self.rewrite(*ino, |inode| inode.parent = *dir);
        self.accept(name);
        Some(name.ino)
    }

    fn remove(&mut self, name: &EntryToRepair, why: &str) {
        let place = self.place(name.dir);
        self.log.add_message(format_args!(
            "{place}: the name `{}` {why}, inode {}: removed",
            name.text, name.ino.0
        ));
        for at in &name.slots {
            write_words(self.medium, *at, &[0]);
        }
    }

    /// Finds inodes without names, except those that were unlinked while open. The trees below lost
    /// directories are walked, so that their inodes do not count as lost.
    pub(super) fn find_lost(&mut self) -> Vec<Ino> {
        let mut lost = Vec::new();
        let below = self.named_by_unreached();
        // First pass: roots of lost trees alone. Second pass: directories in loops, which name each
        // other.
        for among_named in [false, true] {
            for number in 1..=self.inodes.seen.len() as u64 {
                let ino = Ino(number);
                let Some(seen) = self.inodes.get(ino) else { continue };
                let removed = seen.orphan && seen.links == 0;
                let directory = seen.kind == Some(InodeType::Directory);
                if !directory || seen.reached || removed || (below.contains(&ino) && !among_named) {
                    continue;
                }
                // No name agrees with its `..` until it is in `lost+found`.
                seen.parent = Ino(0);
                lost.push(ino);
                self.repair_names(vec![ino]);
            }
        }
        let others = self.inodes.seen.iter().enumerate().filter(|(_, seen)| {
            seen.kind.is_some_and(|kind| kind != InodeType::Directory)
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
