//! The interface of an object store: immutable objects under names that are never used again.

use crate::{Cause, ReadTarget, Result, Sink, StackView, Tok, WriteData};
use std::fmt;
use std::sync::Arc;

/// Name of an object. A name is used once in the life of a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ObjectId {
    /// Number of the opening that wrote the object ([`ObjectDevice::claim`]); from 1.
    pub epoch: u32,
    /// Number of the object within the epoch.
    pub number: u32,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

/// Reads of objects, from any thread.
pub trait ObjectReader: fmt::Debug + Send + Sync {
    /// Reads bytes of an object from byte `at` on. A put whose upload has not ended is found.
    ///
    /// # Errors
    /// An object that does not exist, a range past its end, or a failure of the store.
    fn get(&self, id: ObjectId, at: u32, into: &mut [u8]) -> Result<()>;
}

/// A store of immutable objects, used by a layer.
///
/// A put is durable after [`ObjectDevice::flush`]. A crash before it leaves the object whole, in
/// part or missing; the layer deletes objects that it does not know.
pub trait ObjectDevice: Send {
    /// Returns the largest size of an object, in bytes: a multiple of 4 KiB.
    fn object_bytes(&self) -> u32;

    /// Returns the number of objects that the store is meant to hold.
    fn objects(&self) -> u64;

    /// Writes a new object, once `after` is done. The token is done when the store acknowledges.
    ///
    /// # Errors
    /// A name that exists, an object that is too large, a full store, or a failure of the store.
    fn put(
        &mut self,
        sink: &mut Sink,
        id: ObjectId,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok>;

    /// Reads bytes of an object from byte `at` on, once `after` is done.
    ///
    /// # Errors
    /// An object that does not exist, a range past its end, or a failure of the store.
    fn get(
        &mut self,
        sink: &mut Sink,
        id: ObjectId,
        at: u32,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok>;

    /// Deletes an object, once `after` is done. An object that does not exist is no error.
    ///
    /// # Errors
    /// A failure of the store; a newer writer ([`ObjectDevice::claim`]).
    fn delete(&mut self, sink: &mut Sink, id: ObjectId, cause: Cause, after: Tok) -> Result<Tok>;

    /// Makes the puts durable that `after` waits for, and all earlier ones. A flush that failed can
    /// be repeated: a store that acknowledges later keeps what it has not stored.
    ///
    /// # Errors
    /// A put that failed; a newer writer ([`ObjectDevice::claim`]).
    fn flush(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok>;

    /// Returns the objects of the store and their sizes in bytes, in any order.
    ///
    /// # Errors
    /// A failure of the store.
    fn list(&mut self, sink: &mut Sink) -> Result<Vec<(ObjectId, u32)>>;

    /// Takes the store over for one opening, and returns its epoch: above `epoch` and above every
    /// epoch that was claimed before. From then on the writer of an older epoch cannot delete
    /// objects, and its flushes fail.
    ///
    /// # Errors
    /// A failure of the store; another writer that claims at the same time.
    fn claim(&mut self, sink: &mut Sink, epoch: u32) -> Result<u32>;

    /// Gives the store back at an orderly shutdown, after a flush. The next writer need not wait for
    /// requests of this one.
    ///
    /// # Errors
    /// A failure of the store.
    fn release(&mut self, sink: &mut Sink) -> Result<()>;

    /// Returns a handle for reads from any thread, if the store is reached by requests that block. A
    /// [`ObjectDevice::get`] without a buffer emits and counts such a read.
    fn reader(&self) -> Option<Arc<dyn ObjectReader>> {
        None
    }

    /// Adds the store to the view.
    fn visible(&self, view: &mut StackView);

    /// Returns the reason for which the store refuses writes.
    fn refuses(&self) -> Option<String> {
        None
    }
}
