//! Check of command files against the directories that refer to them.

use super::CheckContext;
use super::inodes::CheckedInodes;
use crate::medium::Medium;
use crate::planted::DamageBug;
use crate::types::{Ino, InodeType};
use frit_core::planted::is_planted;

impl CheckedInodes {
    /// Returns `true` if the inode that a directory refers to is its command file.
    pub(super) fn has_command(&mut self, dir: Ino, command: Ino) -> bool {
        self.get(command).is_some_and(|seen| {
            seen.kind == Some(InodeType::Command) && seen.parent == dir && seen.names == 0
        })
    }

    /// Checks that each directory with a name has one command file, and counts that as its name. A
    /// removed directory has none. In a file system without the feature, a directory may have one: another call
    /// of [`crate::Fs::enable_command_files`] adds those that are missing.
    pub(super) fn match_commands<M: Medium>(&mut self, checked: &mut CheckContext<'_, M>) {
        for number in 1..=self.seen.len() as u64 {
            let dir = Ino(number);
            let Some(seen) = self.get(dir).copied() else { continue };
            if seen.kind != Some(InodeType::Directory) {
                continue;
            }
            let expected = checked.command_files && seen.links > 0;
            let possible = seen.links > 0;
            let place = checked.place(dir);
            match (expected, seen.command) {
                (false, Ino(0)) => {}
                (true, Ino(0)) if is_planted(DamageBug::MissingCommandIgnored) => {}
                (true, Ino(0)) => {
                    checked.report.add_message(format_args!("{place} has no command file"));
                }
                (_, command) if possible && self.has_command(dir, command) => {
                    if let Some(command) = self.get(command) {
                        command.names = 1;
                        command.reached = true;
                    }
                }
                (_, Ino(other)) => checked.report.add_message(format_args!(
                    "{place} refers to inode {other}, which is not its command file"
                )),
            }
        }
    }
}
