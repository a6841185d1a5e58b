//! Counts of links, and the list of orphans.

use super::Mender;
use crate::check::names::read;
use crate::format::write_words;
use crate::medium::Medium;
use crate::orphans::Orphans;
use crate::types::{Ino, Kind};
use frit_core::planted::{Bug, is};
use std::collections::HashSet;

impl<M: Medium> Mender<'_, M> {
    /// Takes those off the list of orphans that cannot be on it.
    pub(super) fn mend_orphans(&mut self) {
        let (list, orphans) = Orphans::read(self.medium, &self.geometry);
        for (slot, ino) in orphans {
            match self.inodes.get(ino).filter(|seen| seen.kind.is_some() && !seen.orphan) {
                Some(seen) => seen.orphan = true,
                None => {
                    self.told.tell(format_args!(
                        "orphan {slot} was inode {}, which is free or on the list already: it was taken off",
                        ino.0
                    ));
                    write_words(self.medium, self.geometry.orphans_at + u64::from(slot) * 8, &[0]);
                }
            }
        }
        if list.has_more() {
            // The list had no room for all.
            let nameless = self.inodes.seen.iter_mut().filter(|seen| seen.kind.is_some() && seen.links == 0);
            nameless.for_each(|seen| seen.orphan = true);
        }
    }

    /// Corrects counts of names of directories, and says how many were lost.
    pub(super) fn mend_counts(&mut self) {
        for number in 1..=self.inodes.seen.len() as u64 {
            let ino = Ino(number);
            if self.inodes.get(ino).is_none_or(|seen| seen.kind != Some(Kind::Directory)) {
                continue;
            }
            let Some(index) = read(self.medium, &self.geometry, self.salt, ino) else { continue };
            if let Some(names) = index.miscounted() {
                let (place, found) = (self.place(ino), index.len() as u64);
                if !is(Bug::FsRepairUntold) {
                    self.told.tell(format_args!("{place} counted {names} names, and {found} are left"));
                }
                self.rewrite(ino, |inode| inode.names = Some(found));
            }
        }
    }

    /// Corrects counts of links. Those that are lost get the counts that they will have with their names.
    pub(super) fn mend_links(&mut self, lost: &[Ino]) {
        let lost: HashSet<Ino> = lost.iter().copied().collect();
        for number in 1..=self.inodes.seen.len() as u64 {
            let ino = Ino(number);
            let Some(seen) = self.inodes.get(ino).copied() else { continue };
            let expected = match seen.kind {
                None => continue,
                Some(Kind::Directory) if seen.reached => seen.below.saturating_add(2),
                Some(Kind::Directory) => 0,
                Some(_) if lost.contains(&ino) => 1,
                Some(_) => seen.names,
            };
            if seen.links == expected {
                continue;
            }
            let place = self.place(ino);
            if !lost.contains(&ino) {
                self.told
                    .tell(format_args!("{place} counted {} links, and there are {expected}", seen.links));
            }
            self.rewrite(ino, |inode| inode.links = expected);
        }
    }
}
