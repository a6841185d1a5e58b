//! Check of directories, and of names against inodes.

use super::CheckContext;
use super::inodes::CheckedInodes;
use crate::dir::{DirIndex, DirInode};
use crate::extents::{self, LineReader};
use crate::format::Geometry;
use crate::inode::Inode;
use crate::medium::Medium;
use crate::types::{Ino, InodeType};
use std::collections::HashSet;

impl CheckedInodes {
    /// Walks the directory tree from the root.
    pub(super) fn follow_names<M: Medium>(&mut self, checked: &mut CheckContext<'_, M>) {
        let mut next = vec![Ino::ROOT];
        if let Some(root) = self.get(Ino::ROOT) {
            root.reached = true;
            if root.parent != Ino::ROOT {
                checked.report.add_message("the root directory is not its own parent");
            }
        }
        while let Some(dir) = next.pop() {
            let Some(index) = read(checked.medium, &checked.geometry, checked.salt, dir) else { continue };
            if let Some(names) = index.miscounted() {
                checked.report.add_message(format_args!(
                    "{} counts {names} names, but {} are found",
                    checked.place(dir),
                    index.len()
                ));
            } else if let Some(at) = index.damage() {
                checked.report.add_message(format_args!(
                    "{}: a name at byte {at:#x} does not match its checksum",
                    checked.place(dir)
                ));
            }
            let mut names = HashSet::new();
            for (_, record) in index.records(checked.medium) {
                let name = String::from_utf8_lossy(record.name()).into_owned();
                if !names.insert(record.name().to_vec()) {
                    checked
                        .report
                        .add_message(format_args!("{} has two entries `{name}`", checked.place(dir)));
                }
                if self.follow(checked, dir, &name, record.ino(), record.kind()) {
                    next.push(record.ino());
                }
            }
        }
    }

    /// Checks one name. Returns `true` if it points to a directory that was not visited before.
    fn follow<M: Medium>(
        &mut self,
        checked: &mut CheckContext<'_, M>,
        dir: Ino,
        name: &str,
        ino: Ino,
        kind: Option<InodeType>,
    ) -> bool {
        let place = checked.place(dir);
        if self.get(ino).is_some_and(|seen| seen.unreadable) {
            let inode = ino.0;
            checked.report.add_message(format_args!(
                "{place}: the name `{name}` points to inode {inode}, which is damaged"
            ));
            return false;
        }
        let Some(seen) = self.get(ino).filter(|seen| seen.kind.is_some()) else {
            checked.report.add_message(format_args!(
                "{place}: the name `{name}` points to inode {}, which is free",
                ino.0
            ));
            return false;
        };
        seen.names += 1;
        let first = !std::mem::replace(&mut seen.reached, true);
        if kind == Some(InodeType::Command) {
            checked.report.add_message(format_args!("{place}: `{name}` is a name of a command file"));
            return false;
        }
        if seen.kind != kind {
            checked.report.add_message(format_args!("{place}: `{name}` and its inode have different types"));
            return false;
        }
        if kind != Some(InodeType::Directory) {
            return false;
        }
        if !first {
            checked.report.add_message(format_args!("{place}: the directory `{name}` has two names"));
            return false;
        }
        if seen.parent != dir {
            let parent = seen.parent.0;
            checked
                .report
                .add_message(format_args!("{place}: `..` of the directory `{name}` is inode {parent}"));
        }
        if let Some(parent) = self.get(dir) {
            parent.subdirs += 1;
        }
        true
    }

    /// Checks the entries of the orphan list against the inodes.
    pub(super) fn match_orphans<M: Medium>(
        &mut self,
        checked: &mut CheckContext<'_, M>,
        orphans: &[(u32, Ino)],
    ) {
        for (slot, ino) in orphans {
            match self.get(*ino).filter(|seen| seen.kind.is_some()) {
                None => checked
                    .report
                    .add_message(format_args!("orphan {slot} is inode {}, which is free", ino.0)),
                Some(seen) if seen.orphan => {
                    checked
                        .report
                        .add_message(format_args!("inode {} is on the list of orphans twice", ino.0));
                }
                Some(seen) => {
                    seen.orphan = true;
                    checked.report.orphans += u64::from(seen.links == 0);
                }
            }
        }
    }

    /// Marks all inodes without links as orphans, because the orphan list was full.
    pub(super) fn add_orphans<M: Medium>(&mut self, checked: &mut CheckContext<'_, M>) {
        for seen in self.seen.iter_mut().filter(|seen| seen.kind.is_some() && seen.links == 0 && !seen.orphan)
        {
            seen.orphan = true;
            checked.report.orphans += 1;
        }
    }

    /// Compares link counts with the names that were found.
    pub(super) fn match_links<M: Medium>(&self, checked: &mut CheckContext<'_, M>) {
        for (i, seen) in self.seen.iter().enumerate() {
            let ino = Ino(i as u64 + 1);
            let Some(kind) = seen.kind else { continue };
            let expected = match kind {
                // A directory has one link for its name, one for `.`, and one for each
                // subdirectory.
                InodeType::Directory if seen.names > 0 || ino == Ino::ROOT => 2 + seen.subdirs,
                InodeType::Directory => 0,
                _ => seen.names,
            };
            if seen.links != expected {
                checked.report.add_message(format_args!(
                    "{} counts {} links, but there are {expected}",
                    checked.place(ino),
                    seen.links
                ));
            } else if seen.links == 0 && !seen.orphan {
                checked
                    .report
                    .add_message(format_args!("{} has no name and is not an orphan", checked.place(ino)));
            }
        }
    }
}

/// Loads the names of a directory; returns `None` if its extents are unreadable, which was reported
/// before.
pub(super) fn read<M: Medium>(medium: &M, geometry: &Geometry, salt: u32, dir: Ino) -> Option<DirIndex> {
    let inode = Inode::read(medium, geometry, salt, dir).ok()??;
    let reader = LineReader { medium, geometry, salt, ino: dir };
    let map = extents::load_uncounted(&reader, &inode).ok()?;
    let dir = DirInode { ino: dir, at: geometry.inode_at(dir.0), size: inode.size, names: inode.names };
    Some(DirIndex::load(medium, salt, &dir, &map))
}
