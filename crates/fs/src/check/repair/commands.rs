//! Repair of command files.

use super::RepairRound;
use crate::fs::Fs;
use crate::medium::Medium;
use crate::planted::DamageBug;
use crate::types::{Ino, InodeType};
use frit_core::planted::is_planted;

impl<M: Medium> RepairRound<'_, M> {
    /// Removes references to inodes that are not the command file of their directory, and command files
    /// without a directory. Returns the directories that need a new command file.
    pub(super) fn repair_commands(&mut self) -> Vec<Ino> {
        let mut missing = Vec::new();
        for number in 1..=self.inodes.seen.len() as u64 {
            let dir = Ino(number);
            let Some(seen) = self.inodes.get(dir).copied() else { continue };
            if seen.kind != Some(InodeType::Directory) {
                continue;
            }
            // A directory that was removed while it was open has no command file. Every other one is
            // reachable, or will be in `lost+found`.
            let possible = !(seen.orphan && seen.links == 0);
            let expected = self.command_files && possible;
            if possible && self.inodes.has_command(dir, seen.command) {
                if let Some(command) = self.inodes.get(seen.command) {
                    command.names = 1;
                    command.reached = true;
                }
                continue;
            }
            let place = self.place(dir);
            if seen.command != Ino(0) {
                let other = seen.command.0;
                self.log.add_message(format_args!(
                    "{place} referred to inode {other}, which is not its command file: the reference was removed"
                ));
                self.rewrite(dir, |inode| inode.command = Ino(0));
            }
            if expected {
                missing.push(dir);
            }
        }
        if !is_planted(DamageBug::StrayCommandKept) {
            self.free_unused_commands();
        }
        missing
    }

    fn free_unused_commands(&mut self) {
        for number in 1..=self.inodes.seen.len() as u64 {
            let ino = Ino(number);
            let Some(seen) = self.inodes.get(ino).copied() else { continue };
            let removed = seen.orphan && seen.links == 0;
            if seen.kind == Some(InodeType::Command) && !seen.reached && !removed {
                let place = self.place(ino);
                self.log
                    .add_message(format_args!("{place} is a command file without a directory: it was freed"));
                self.free(ino);
                if let Some(seen) = self.inodes.get(ino) {
                    seen.kind = None;
                }
            }
        }
    }

    /// Creates missing command files, by regular transactions.
    pub(super) fn add_commands<N: Medium>(&mut self, fs: &Fs<N>, missing: &[Ino]) {
        for dir in missing {
            let place = self.place(*dir);
            self.log.add_message(match fs.add_command(*dir) {
                Ok(()) => format!("{place} had no command file: one was created"),
                Err(error) => format!("{place} has no command file, and none can be created: {error}"),
            });
        }
    }
}
