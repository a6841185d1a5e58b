//! Recording of the accesses to the stores of a run: every write and sync, with the number of its
//! command, and the pages that a copyback reads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An access to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedAccess {
    /// Number of commands issued before it. The access belongs to the last of them.
    pub commands: u32,
    /// Number of the medium, in the order in which the stack opens its stores.
    pub medium: u8,
    /// Kind of access.
    pub kind: LoggedAccessKind,
}

/// A kind of access to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoggedAccessKind {
    /// A write of bytes, which are stored in [`AccessRecords::bytes`].
    Write {
        /// Address in the store.
        at: u64,
        /// Position of the first byte in the log.
        from: u32,
        /// Length in bytes.
        len: u32,
    },
    /// A sync: all writes so far are durable.
    Sync,
}

/// A NAND page that a copyback reads. The command names the target only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopiedPage {
    /// Number of the copyback.
    pub command: u32,
    /// Number of the medium.
    pub medium: u8,
    /// Address of the page in the store.
    pub at: u64,
}

/// All accesses, in order.
#[derive(Clone, Default, Debug)]
pub struct AccessRecords {
    /// Accesses in order.
    pub accesses: Vec<LoggedAccess>,
    /// Bytes of all writes.
    pub bytes: Vec<u8>,
    /// Pages that copybacks read.
    pub copied: Vec<CopiedPage>,
}

impl AccessRecords {
    /// Returns the bytes of a write.
    #[must_use]
    pub fn data(&self, from: u32, len: u32) -> &[u8] {
        &self.bytes[from as usize..(from + len) as usize]
    }
}

/// Recorder shared by the sink, which counts commands, and by the stores, which log accesses.
#[derive(Default, Debug)]
pub struct AccessLog {
    commands: AtomicU32,
    log: Mutex<AccessRecords>,
    /// Reads of NAND pages since the last command: medium, address and length.
    reads: Mutex<Vec<(u8, u64, usize)>>,
}

impl AccessLog {
    /// Counts a command.
    pub fn command(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.reads().clear();
    }

    /// Counts a copyback of `bytes`. The pages that were read last are its sources: the device verifies
    /// them directly before.
    pub fn copyback(&self, bytes: usize) {
        let command = self.commands.load(Ordering::Relaxed);
        let mut left = bytes;
        for (medium, at, len) in std::mem::take(&mut *self.reads()).into_iter().rev() {
            if left == 0 {
                break;
            }
            self.log().copied.push(CopiedPage { command, medium, at });
            left = left.saturating_sub(len);
        }
        self.command();
    }

    /// Notes a read of the data of a NAND page.
    pub fn read_page(&self, medium: u8, at: u64, len: usize) {
        self.reads().push((medium, at, len));
    }

    fn reads(&self) -> MutexGuard<'_, Vec<(u8, u64, usize)>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, AccessRecords> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a write to a store.
    pub fn write(&self, medium: u8, at: u64, data: &[u8]) {
        let mut log = self.log();
        let kind = LoggedAccessKind::Write { at, from: log.bytes.len() as u32, len: data.len() as u32 };
        log.bytes.extend_from_slice(data);
        log.accesses.push(LoggedAccess { commands: self.commands.load(Ordering::Relaxed), medium, kind });
    }

    /// Records a sync of a store.
    pub fn sync(&self, medium: u8) {
        let commands = self.commands.load(Ordering::Relaxed);
        self.log().accesses.push(LoggedAccess { commands, medium, kind: LoggedAccessKind::Sync });
    }

    /// Returns the number of accesses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.log().accesses.len()
    }

    /// Returns `true` if there were no accesses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the log out.
    #[must_use]
    pub fn take(&self) -> AccessRecords {
        std::mem::take(&mut *self.log())
    }
}
