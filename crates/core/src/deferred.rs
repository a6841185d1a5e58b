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

/// Deferred accesses, to be executed in order.
#[derive(Debug)]
pub struct Deferred {
    /// Number by which the layer identifies the accesses.
    pub id: u64,
    /// The accesses.
    pub accesses: Vec<BlockingAccess>,
    /// The medium to access.
    pub medium: Arc<dyn BlockingMedium>,
}

impl Deferred {
    /// Executes the accesses in order and stops at the first that fails.
    ///
    /// # Errors
    /// Returns the error of the medium.
    pub fn run(&self, buffer: &mut Buffer<'_>) -> Result<()> {
        for access in &self.accesses {
            match (access, &mut *buffer) {
                (BlockingAccess::Read { at, into }, Buffer::In(b)) => {
                    self.medium.read(*at, &mut b[into.clone()])
                }
                (BlockingAccess::Write { at, from }, Buffer::Out(b)) => {
                    self.medium.write(*at, &b[from.clone()])
                }
                (BlockingAccess::Put { at, data }, _) => self.medium.write(*at, data),
                (BlockingAccess::Zero { at, len }, _) => self.medium.zero(*at, *len),
                (BlockingAccess::Sync, _) => self.medium.sync(),
                // A layer defers only accesses that match the buffer of the request.
                (BlockingAccess::Read { .. } | BlockingAccess::Write { .. }, _) => Ok(()),
            }?;
        }
        Ok(())
    }
}
