//! Repair of link counts and of the orphan list.

use super::RepairRound;
use crate::check::names::read;
use crate::format::write_words;
use crate::medium::Medium;
use crate::orphans::Orphans;
use crate::planted::DamageBug;
use crate::types::{Ino, InodeType};
use frit_core::planted::is_planted;
use std::collections::HashSet;

impl<M: Medium> RepairRound<'_, M> {
    /// Removes invalid entries from the orphan list.
    pub(super) fn repair_orphans(&mut self) {
        let (list, orphans) = Orphans::read(self.medium, &self.geometry);
        for (slot, ino) in orphans {
            match self.inodes.get(ino).filter(|seen| seen.kind.is_some() && !seen.orphan) {
                Some(seen) => seen.orphan = true,
                None => {
                    self.log.add_message(format_args!(
                        "orphan {slot} was inode {}, which is free or already on the list: it was removed",
                        ino.0
                    ));
                    write_words(self.medium, self.geometry.orphans_at + u64::from(slot) * 8, &[0]);
                }
            }
        }
        if list.has_overflow() {
            // The list was full, so every inode without links counts as an orphan.
            let nameless = self.inodes.seen.iter_mut().filter(|seen| seen.kind.is_some() && seen.links == 0);
            nameless.for_each(|seen| seen.orphan = true);
        }
    }

    /// Corrects the name counts of directories and reports the differences.
    pub(super) fn repair_name_counts(&mut self) {
        for number in 1..=self.inodes.seen.len() as u64 {
            let ino = Ino(number);
            if self.inodes.get(ino).is_none_or(|seen| seen.kind != Some(InodeType::Directory)) {
                continue;
            }
            let Some(index) = read(self.medium, &self.geometry, self.salt, ino) else { continue };
            if let Some(names) = index.miscounted() {
                let (place, found) = (self.place(ino), index.len() as u64);
                if !is_planted(DamageBug::RepairUntold) {
                    self.log.add_message(format_args!("{place} counted {names} names, but has {found}"));
                }
                self.rewrite(ino, |inode| inode.names = Some(found));
            }
        }
    }

    /// Corrects link counts. Lost inodes get the counts that they will have in `lost+found`.
    pub(super) fn repair_links(&mut self, lost: &[Ino]) {
        let lost: HashSet<Ino> = lost.iter().copied().collect();
        for number in 1..=self.inodes.seen.len() as u64 {
            let ino = Ino(number);
            let Some(seen) = self.inodes.get(ino).copied() else { continue };
            let expected = match seen.kind {
                None => continue,
                Some(InodeType::Directory) if seen.reached => seen.subdirs.saturating_add(2),
                Some(InodeType::Directory) => 0,
                Some(_) if lost.contains(&ino) => 1,
                Some(_) => seen.names,
            };
            if seen.links == expected {
                continue;
            }
            let place = self.place(ino);
            if !lost.contains(&ino) {
                self.log.add_message(format_args!(
                    "{place} counted {} links, but there are {expected}",
                    seen.links
                ));
            }
            self.rewrite(ino, |inode| inode.links = expected);
        }
    }
}
