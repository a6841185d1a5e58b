//! Accesses to a slow medium that a layer leaves to its caller, so that other requests need not
//! wait for them.
//!
//! A layer in [deferred mode](crate::BlockLayer::defer) does the work in memory at once.
//! [`BlockLayer::deferred`](crate::BlockLayer::deferred) returns the remaining accesses of a
//! request. The caller releases its lock, [executes the accesses](Deferred::run), takes the lock
//! again and [completes](crate::BlockLayer::settle) them.
//! [`BlockLayer::job`](crate::BlockLayer::job) returns background work in the same way. A range
//! with accesses in flight does not change meanwhile: a request that would change it gets
//! [`Error::WouldBlock`](crate::Error::WouldBlock), and the caller repeats it after the next
//! accesses are completed.

use crate::Result;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// A medium with slow accesses, which can be made from any thread.
pub trait BlockingMedium: Debug + Send + Sync {
    /// Reads `into.len()` bytes from byte address `at`.
    ///
    /// # Errors
    /// Returns an error if the medium fails.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// Writes `data` at byte address `at`.
    ///
    /// # Errors
    /// Returns an error if the medium fails.
    fn write(&self, at: u64, data: &[u8]) -> Result<()>;

    /// Zeros a range of bytes.
    ///
    /// # Errors
    /// Returns an error if the medium fails.
    fn zero(&self, at: u64, len: u64) -> Result<()>;

    /// Makes all earlier writes survive a power loss of the machine.
    ///
    /// # Errors
    /// Returns an error if the medium fails.
    fn sync(&self) -> Result<()>;

    /// Reads like [`BlockingMedium::read`], if the bytes need not be waited for. Returns `false` if
    /// they do, or if the read fails; the buffer has any contents then.
    fn read_now(&self, _at: u64, _into: &mut [u8]) -> bool {
        false
    }

    /// Returns `true` if writes wait for the medium, and do not end in memory.
    fn writes_wait(&self) -> bool {
        true
    }

    /// Executes a background access that is ready, of a layer below the medium. Returns `true` if
    /// there was one.
    ///
    /// # Errors
    /// A failure of the layer that no request reports.
    fn run_job(&self) -> Result<bool> {
        Ok(false)
    }

    /// Does background work of the layers below the medium, as [`crate::BlockLayer::step`] does.
    /// Returns `true` if there is more to do.
    ///
    /// # Errors
    /// A medium fails in a way that the layers cannot repair.
    fn step(&self, _budget: u32) -> Result<bool> {
        Ok(false)
    }
}

/// Kind of a request that a caller intends to make
/// ([`BlockLayer::would_block`](crate::BlockLayer::would_block)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestIntent {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A discard.
    Discard,
    /// A flush; it has no range.
    Flush,
}

/// One access to a slow medium.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockingAccess {
    /// Read bytes from `at` into this part of the request's buffer.
    Read {
        /// Byte address on the medium.
        at: u64,
        /// Range in the buffer.
        into: Range<usize>,
    },
    /// Write this part of the request's buffer at `at`.
    Write {
        /// Byte address on the medium.
        at: u64,
        /// Range in the buffer.
        from: Range<usize>,
    },
    /// Write the given bytes at `at`.
    Put {
        /// Byte address on the medium.
        at: u64,
        /// Bytes to write.
        data: Vec<u8>,
    },
    /// Zero `len` bytes from `at` on.
    Zero {
        /// Byte address on the medium.
        at: u64,
        /// Length in bytes.
        len: u64,
    },
    /// Make all earlier writes survive a power loss of the machine.
    Sync,
}

/// Buffer of the request to which deferred accesses belong.
#[derive(Debug)]
pub enum Buffer<'a> {
    /// The request has no buffer.
    None,
    /// Buffer of a read, into which data is read.
    In(&'a mut [u8]),
    /// Buffer of a write, from which data is written.
    Out(&'a [u8]),
}

/// Deferred accesses to one medium, to be executed in order.
#[derive(Debug)]
pub struct DeferredPart {
    /// The medium to access.
    pub medium: Arc<dyn BlockingMedium>,
    /// The accesses.
    pub accesses: Vec<BlockingAccess>,
}

/// Deferred accesses of one request or job.
#[derive(Debug)]
pub struct Deferred {
    /// Number by which the layer identifies the accesses.
    pub id: u64,
    /// The accesses by medium.
    pub parts: Vec<DeferredPart>,
}

impl Deferred {
    /// Executes the accesses in order and stops at the first that fails.
    ///
    /// # Errors
    /// Returns the error of the medium.
    pub fn run(&self, buffer: &mut Buffer<'_>) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.run(buffer))
    }
}

impl DeferredPart {
    fn run(&self, buffer: &mut Buffer<'_>) -> Result<()> {
        let medium = &*self.medium;
        for access in &self.accesses {
            match (access, &mut *buffer) {
                (BlockingAccess::Read { at, into }, Buffer::In(b)) => medium.read(*at, &mut b[into.clone()]),
                (BlockingAccess::Write { at, from }, Buffer::Out(b)) => medium.write(*at, &b[from.clone()]),
                (BlockingAccess::Put { at, data }, _) => medium.write(*at, data),
                (BlockingAccess::Zero { at, len }, _) => medium.zero(*at, *len),
                (BlockingAccess::Sync, _) => medium.sync(),
                // A layer defers only accesses that match the buffer of the request.
                (BlockingAccess::Read { .. } | BlockingAccess::Write { .. }, _) => Ok(()),
            }?;
        }
        Ok(())
    }
}
