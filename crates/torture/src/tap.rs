//! What a recorded run did to its stores: every write and sync, under the number of the command that it
//! belongs to.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One access to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The commands that were given before it: it belongs to the last of them.
    pub commands: u32,
    /// The medium, in the order in which the stack opens its stores.
    pub medium: u8,
    /// What was done.
    pub kind: AccessKind,
}

/// What was done to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Bytes were written: address, and their place in [`Log::bytes`].
    Write {
        /// Address in the store.
        at: u64,
        /// First byte in the log.
        from: u32,
        /// Length in bytes.
        len: u32,
    },
    /// All that was written outlives the machine from here on.
    Sync,
}

/// All accesses, in order.
#[derive(Clone, Default, Debug)]
pub struct Log {
    /// One entry an access.
    pub accesses: Vec<Access>,
    /// The bytes of all writes.
    pub bytes: Vec<u8>,
}

impl Log {
    /// The bytes of a write.
    #[must_use]
    pub fn data(&self, from: u32, len: u32) -> &[u8] {
        &self.bytes[from as usize..(from + len) as usize]
    }
}

/// Shared by the sink, which counts commands, and the stores, which log.
#[derive(Default, Debug)]
pub struct Tap {
    commands: AtomicU32,
    log: Mutex<Log>,
}

impl Tap {
    /// A command was given.
    pub fn command(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes are written to a store.
    pub fn write(&self, medium: u8, at: u64, data: &[u8]) {
        let mut log = self.log();
        let kind = AccessKind::Write { at, from: log.bytes.len() as u32, len: data.len() as u32 };
        log.bytes.extend_from_slice(data);
        log.accesses.push(Access { commands: self.commands.load(Ordering::Relaxed), medium, kind });
    }

    /// A store is synced.
    pub fn sync(&self, medium: u8) {
        let commands = self.commands.load(Ordering::Relaxed);
        self.log().accesses.push(Access { commands, medium, kind: AccessKind::Sync });
    }

    /// How many accesses there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.log().accesses.len()
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands the log over.
    #[must_use]
    pub fn take(&self) -> Log {
        std::mem::take(&mut *self.log())
    }
}
