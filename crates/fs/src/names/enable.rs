//! Command files for a file system that was made without them.
//!
//! Each directory gets its command file in a transaction of its own. The feature in the superblock follows when
//! all have one. A power loss before leaves a file system without the feature, some of whose directories have a
//! command file already; it is sound, and another call continues.

use crate::error::{Error, Result};
use crate::files::FileSystem;
use crate::format::{Geometry, Superblock};
use crate::fs::Fs;
use crate::medium::Medium;
use crate::registers;
use crate::types::{COMMAND_NAME, Caller, Ino, InodeType};

/// Number of files that a message names.
const CONFLICTS_SHOWN: usize = 10;
/// Number of directories of a path in a message, at most.
const DEPTH_MAX: u32 = 1000;

impl<M: Medium> Fs<M> {
    /// Adds a command file to each directory, and the feature to the superblock. Returns the number of command
    /// files that were added. A file system with the feature does not change.
    ///
    /// # Errors
    /// Nothing was changed: too few inodes are free, a file has the name of command files, or an inode is
    /// damaged. Or a sync of the medium failed.
    pub fn enable_command_files(&mut self) -> Result<u64> {
        self.check_writable()?;
        let mut added = 0;
        if !self.has_command_files() {
            let directories = self.directories_without_command()?;
            let free = self.geometry.inodes - self.journal.counters().inodes;
            added = directories.len() as u64;
            if added > free {
                return Err(Error::Image(format!(
                    "{added} directories need an inode each for their command files, and {free} are free: \
                     remove files, or copy the contents to a file system with more inodes"
                )));
            }
            for dir in directories {
                self.add_command(dir)?;
            }
            self.make_durable()?;
        }
        let with = Superblock { command_files: true, ..self.superblock.clone() };
        // A power loss may have left one of the copies.
        let copies = [Geometry::SUPERBLOCK_AT, self.geometry.copy_at()];
        if copies.iter().any(|at| Superblock::read_at(&self.medium, *at).as_ref() != Ok(&with)) {
            with.write(&self.medium);
            self.superblock = with;
            registers::reset(&self.medium, true);
            self.make_durable()?;
        }
        Ok(added)
    }

    /// Returns the directories without a command file.
    fn directories_without_command(&self) -> Result<Vec<Ino>> {
        let mut missing = Vec::new();
        let (mut named, mut conflicts) = (Vec::new(), 0);
        for ino in self.inodes() {
            let node = match self.node(ino) {
                Err(Error::Stale) => continue,
                node => node?,
            };
            let state = node.state.read();
            if state.inode.kind != InodeType::Directory || state.inode.links == 0 {
                continue;
            }
            let command = state.inode.command;
            drop(state);
            match self.lookup_attr(&Caller::ROOT, ino, COMMAND_NAME) {
                Err(Error::NotFound) => {}
                Ok(_) => {
                    conflicts += 1;
                    if named.len() < CONFLICTS_SHOWN {
                        named.push(self.path_of_command(ino)?);
                    }
                }
                Err(error) => return Err(error),
            }
            if command == Ino(0) {
                missing.push(ino);
            }
        }
        if conflicts == 0 {
            return Ok(missing);
        }
        let more = match conflicts - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Err(Error::Image(format!(
            "these files have the name of command files, `.isp`: {}{more}. Mount the file system, and rename them",
            named.join(", ")
        )))
    }

    /// Returns the path that the command file of a directory will have, for messages.
    fn path_of_command(&self, dir: Ino) -> Result<String> {
        let mut path = format!("/{}", String::from_utf8_lossy(COMMAND_NAME));
        let mut at = dir;
        // A damaged file system may have a cycle.
        for _ in 0..DEPTH_MAX {
            if at == Ino::ROOT {
                break;
            }
            let parent = self.node(at)?.state.read().inode.parent;
            let mut name = Vec::new();
            self.read_dir(parent, 2, &mut |entry| {
                if entry.ino == at {
                    name = entry.name.to_vec();
                }
                name.is_empty()
            })?;
            path.insert_str(0, &format!("/{}", String::from_utf8_lossy(&name)));
            at = parent;
        }
        Ok(path)
    }
}
