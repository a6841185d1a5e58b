//! Interface of a file system for the processing engine.

use crate::contents::FileContents;
use crate::error::Result;
use crate::files::FileSystem;
use crate::fs::Fs;
use crate::medium::Medium;
use crate::registers::{RegisterSet, RegistersHeld};
use crate::types::{Caller, Ino};
use std::sync::Arc;

/// File system with command files, whose contents the processing engine reads.
pub trait InStorage: FileSystem {
    /// Returns the directory of a command file, to which instructions refer.
    ///
    /// # Errors
    /// The inode is not a command file, or its directory was removed.
    fn command_directory(&self, command: Ino) -> Result<Ino>;

    /// Fails if the caller may not list the names of a directory.
    ///
    /// # Errors
    /// The inode is not a directory, or the caller lacks permission.
    fn check_listing(&self, caller: &Caller, directory: Ino) -> Result<()>;

    /// Opens the contents of a regular file, for reading or for writing, with the rights of the caller.
    ///
    /// # Errors
    /// The inode is not a regular file, or the caller lacks permission.
    fn open_contents(
        self: Arc<Self>,
        caller: &Caller,
        ino: Ino,
        writes: bool,
    ) -> Result<Arc<dyn FileContents>>;

    /// Writes an instruction to the registers and sets its start register. If all sets are in use, the
    /// instruction is executed without one.
    fn start_registers(&self, set: &RegisterSet) -> RegistersHeld;

    /// Writes the results of an instruction to its registers, and releases them.
    fn finish_registers(&self, held: RegistersHeld, set: &RegisterSet);
}

impl<M: Medium + 'static> InStorage for Fs<M> {
    fn command_directory(&self, command: Ino) -> Result<Ino> {
        self.directory_of(command)
    }

    fn check_listing(&self, caller: &Caller, directory: Ino) -> Result<()> {
        self.check_readable_directory(caller, directory)
    }

    fn open_contents(
        self: Arc<Self>,
        caller: &Caller,
        ino: Ino,
        writes: bool,
    ) -> Result<Arc<dyn FileContents>> {
        self.contents_for(caller, ino, writes)
    }

    fn start_registers(&self, set: &RegisterSet) -> RegistersHeld {
        self.start_set(set)
    }

    fn finish_registers(&self, held: RegistersHeld, set: &RegisterSet) {
        self.finish_set(held, set);
    }
}
