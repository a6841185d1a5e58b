//! Accesses to a slow medium that a layer leaves to its caller, so that nobody else waits for them.
//!
//! A layer that was told to [defer](crate::BlockLayer::defer) does at once what is in memory. What is left
//! of a request it hands out with [`BlockLayer::deferred`](crate::BlockLayer::deferred); the caller lets go of
//! its lock, [carries it out](Deferred::run), takes the lock again and [settles](crate::BlockLayer::settle) it.
//! Background work comes from [`BlockLayer::job`](crate::BlockLayer::job) in the same way. Ranges that are under way
//! stay as they are meanwhile: what would touch them gets [`Error::Later`](crate::Error::Later), and is asked for again
//! after the next one was settled.

use crate::Result;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// A medium on which accesses take long, from any thread.
pub trait SlowMedium: Debug + Send + Sync {
    /// Fills `into` from byte `at`.
    ///
    /// # Errors
    /// A medium that fails.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// Writes `data` at byte `at`.
    ///
    /// # Errors
    /// A medium that fails.
    fn write(&self, at: u64, data: &[u8]) -> Result<()>;

    /// Makes bytes read as zeros.
    ///
    /// # Errors
    /// A medium that fails.
    fn zero(&self, at: u64, len: u64) -> Result<()>;

    /// Makes all that was written outlive the machine.
    ///
    /// # Errors
    /// A medium that fails.
    fn sync(&self) -> Result<()>;
}

/// What is about to be asked of a layer ([`BlockLayer::slow`](crate::BlockLayer::slow)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A discard.
    Discard,
    /// A flush; it has no range.
    Flush,
}

/// One access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SlowAccess {
    /// Read bytes from `at` into this part of the request's buffer.
    Read {
        /// Byte address on the medium.
        at: u64,
        /// Part of the buffer.
        into: Range<usize>,
    },
    /// Write this part of the request's buffer at `at`.
    Write {
        /// Byte address on the medium.
        at: u64,
        /// Part of the buffer.
        from: Range<usize>,
    },
    /// Write these bytes at `at`.
    Put {
        /// Byte address on the medium.
        at: u64,
        /// What to write.
        data: Vec<u8>,
    },
    /// Make `len` bytes from `at` on zero.
    Zero {
        /// Byte address on the medium.
        at: u64,
        /// Length in bytes.
        len: u64,
    },
    /// Make all before it outlive the machine.
    Sync,
}

/// The buffer of the request that accesses were left of.
#[derive(Debug)]
pub enum Buffer<'a> {
    /// It has none.
    None,
    /// What is read goes here.
    In(&'a mut [u8]),
    /// What is written comes from here.
    Out(&'a [u8]),
}

/// Accesses to be carried out in order.
#[derive(Debug)]
pub struct Deferred {
    /// What the layer knows it by.
    pub id: u64,
    /// The accesses.
    pub accesses: Vec<SlowAccess>,
    /// Where.
    pub medium: Arc<dyn SlowMedium>,
}

impl Deferred {
    /// Carries the accesses out, up to the first that fails.
    ///
    /// # Errors
    /// What the medium says.
    pub fn run(&self, buffer: &mut Buffer<'_>) -> Result<()> {
        for access in &self.accesses {
            match (access, &mut *buffer) {
                (SlowAccess::Read { at, into }, Buffer::In(b)) => self.medium.read(*at, &mut b[into.clone()]),
                (SlowAccess::Write { at, from }, Buffer::Out(b)) => self.medium.write(*at, &b[from.clone()]),
                (SlowAccess::Put { at, data }, _) => self.medium.write(*at, data),
                (SlowAccess::Zero { at, len }, _) => self.medium.zero(*at, *len),
                (SlowAccess::Sync, _) => self.medium.sync(),
                // A layer leaves only accesses that fit the request.
                (SlowAccess::Read { .. } | SlowAccess::Write { .. }, _) => Ok(()),
            }?;
        }
        Ok(())
    }
}
