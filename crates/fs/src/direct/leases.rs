//! Leases: files to whose data programs have direct access.

use super::quiet::{WAIT, free_slots, wait_quiet};
use super::shared::SharedSegment;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::types::Time;
use frit_direct::segment::{FILES, FileState, Segment};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What direct accesses left to be noted.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Accessed {
    /// Time of the last write.
    pub(super) written_at: Option<Time>,
    pub(super) read: bool,
}

/// The shared memory of a mount, and what is in use of it.
#[derive(Debug)]
pub(crate) struct Leases {
    shared: SharedSegment,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    /// Generation of the next lease. None is ever used again.
    next_generation: u64,
    next_client: u32,
    /// Indexes of files that are not in use: those that were, and all from `never_used` on.
    free: Vec<u32>,
    never_used: u32,
}

impl Leases {
    /// Creates the shared memory beside the image.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn create(image: &Path) -> Result<Self> {
        let table = Table { next_generation: 1, next_client: 1, free: Vec::new(), never_used: 0 };
        Ok(Self { shared: SharedSegment::create(image)?, table: Mutex::new(table) })
    }

    fn segment(&self) -> &Segment {
        self.shared.get()
    }

    fn file(&self, file: u32) -> &FileState {
        &self.segment().files[file as usize]
    }

    /// Returns a number for a new client.
    pub(super) fn register(&self) -> u32 {
        free_slots(self.segment());
        let mut table = self.table.lock();
        let client = table.next_client;
        table.next_client = table.next_client.wrapping_add(1).max(1);
        client
    }

    /// Takes an index for a file, without access yet.
    ///
    /// # Errors
    /// Too many files have direct access.
    pub(super) fn take(&self) -> Result<u32> {
        let mut table = self.table.lock();
        let file = match table.free.pop() {
            Some(file) => file,
            None if (table.never_used as usize) < FILES => {
                table.never_used += 1;
                table.never_used - 1
            }
            None => return Err(Error::Busy),
        };
        drop(table);
        let state = self.file(file);
        state.generation.store(0, Ordering::SeqCst);
        state.written_at.store(0, Ordering::Relaxed);
        state.read.store(0, Ordering::Relaxed);
        state.writer.store(0, Ordering::Relaxed);
        Ok(file)
    }

    /// Allows access to a file; returns the generation.
    pub(super) fn allow(&self, file: u32) -> u64 {
        let mut table = self.table.lock();
        let generation = table.next_generation;
        table.next_generation += 1;
        drop(table);
        self.file(file).generation.store(generation, Ordering::SeqCst);
        generation
    }

    /// Returns the generation of a file, or `None` if access is not allowed.
    pub(super) fn generation(&self, file: u32) -> Option<u64> {
        Some(self.file(file).generation.load(Ordering::SeqCst)).filter(|generation| *generation != 0)
    }

    /// Forbids access to a file, and waits for accesses in progress. Returns `false` if one is still in
    /// progress: its program is stopped.
    pub(super) fn forbid(&self, file: u32) -> bool {
        let allowed = self.file(file).generation.swap(0, Ordering::SeqCst) != 0;
        // Accesses were awaited already if access was forbidden before.
        let wait = if allowed { WAIT } else { Duration::ZERO };
        wait_quiet(self.segment(), Some(file), wait).is_ok()
    }

    /// Gives an index back.
    pub(super) fn give_back(&self, file: u32) {
        self.table.lock().free.push(file);
    }

    /// Returns what is to be noted, and marks it as noted.
    pub(super) fn take_accessed(&self, file: u32) -> Accessed {
        let state = self.file(file);
        Accessed {
            written_at: Some(state.written_at.swap(0, Ordering::SeqCst)).filter(|at| *at != 0).map(Time),
            read: state.read.swap(0, Ordering::SeqCst) != 0,
        }
    }

    /// Returns the time of the last write that was not noted.
    pub(super) fn written_at(&self, file: u32) -> Option<Time> {
        Some(self.file(file).written_at.load(Ordering::SeqCst)).filter(|at| *at != 0).map(Time)
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        self.shared.close();
        // A program that is stopped in an access keeps the file as a warning for the next mount.
        if wait_quiet(self.segment(), None, WAIT).is_ok() {
            let _ = self.shared.remove();
        }
    }
}

/// Ends the accesses that a killed mount of an image left behind, and removes its shared memory.
///
/// # Errors
/// A program is stopped in an access; the file cannot be opened or removed.
pub(super) fn retire(image: &Path) -> Result<()> {
    let Some(shared) = SharedSegment::left(image)? else { return Ok(()) };
    shared.close();
    if let Err(busy) = wait_quiet(shared.get(), None, WAIT) {
        return Err(Error::Image(format!(
            "{}: process {} still accesses it directly, from a mount that has ended; continue or kill it",
            image.display(),
            busy.process
        )));
    }
    shared.remove()
}
