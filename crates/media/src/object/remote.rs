//! The place of the objects: slots of a flat store, or a store of objects.

use crate::AnyStore;
use frit_core::{ObjectId, ObjectReader, Result};
use std::fmt::Debug;
use std::sync::Arc;

/// A store of objects that is reached by requests: a service, a directory. Calls block.
///
/// The methods are those of [`frit_core::ObjectDevice`] without virtual time, and with the same
/// guarantees and errors.
pub trait RemoteObjects: Debug + Send {
    /// Writes a new object. The bytes may be written later, up to the next [`RemoteObjects::flush`].
    ///
    /// # Errors
    /// A name that exists, a writer that was taken over, or a failure of the store.
    fn put(&mut self, id: ObjectId, data: &[u8]) -> Result<()>;

    /// Reads bytes of an object from byte `at` on.
    ///
    /// # Errors
    /// An object that does not exist, a range past its end, or a failure of the store.
    fn get(&mut self, id: ObjectId, at: u32, into: &mut [u8]) -> Result<()>;

    /// Returns a handle for reads from any thread, if there is one.
    fn reader(&self) -> Option<Arc<dyn ObjectReader>> {
        None
    }

    /// Deletes an object. An object that does not exist is no error.
    ///
    /// # Errors
    /// A newer writer, or a failure of the store.
    fn delete(&mut self, id: ObjectId) -> Result<()>;

    /// Makes all puts durable. A flush that failed can be repeated.
    ///
    /// # Errors
    /// A put that failed; a newer writer.
    fn flush(&mut self) -> Result<()>;

    /// Returns the objects and their sizes in bytes.
    ///
    /// # Errors
    /// A failure of the store.
    fn list(&mut self) -> Result<Vec<(ObjectId, u32)>>;

    /// Takes the store over: see [`frit_core::ObjectDevice::claim`].
    ///
    /// # Errors
    /// A failure of the store; another writer that claims at the same time.
    fn claim(&mut self, epoch: u32) -> Result<u32>;

    /// Gives the store back.
    ///
    /// # Errors
    /// A failure of the store.
    fn release(&mut self) -> Result<()>;

    /// Returns the reason for which the store refuses writes.
    fn refuses(&self) -> Option<String>;
}

/// The place of the objects of a device.
#[derive(Debug)]
pub enum ObjectBacking {
    /// Slots of a flat store.
    Flat(AnyStore),
    /// A store of objects.
    Remote(Box<dyn RemoteObjects>),
}
