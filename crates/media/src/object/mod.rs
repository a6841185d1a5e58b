//! An object store as a medium: immutable objects under names, and connections in virtual time.
//!
//! Rules of the device:
//!
//! - An object is written once, as a whole, under a name of the claimed epoch, and never changed.
//! - Only a flush makes puts and deletes durable. After a power loss an object that was not flushed
//!   is whole, missing, or damaged; a damaged one is refused by name when it is read.
//! - The epoch is durable before the first object of it is written.
//!
//! The objects lie in slots of a flat store (module `slots`), or in a store that the device reaches
//! through [`RemoteObjects`].

mod device;
mod remote;
mod slots;
#[cfg(test)]
mod tests;
mod url;

pub use device::ObjectMedium;
pub use remote::{ObjectBacking, RemoteObjects};
pub use url::{CloudService, ObjectUrl, StorePlace};

use crate::ObjectTiming;
use frit_core::{Error, Result};
use slots::SlotLayout;

/// Size of an object if a stack gives none: 4 MiB.
pub const DEFAULT_OBJECT_BYTES: u32 = 4 << 20;

/// The size of an object is a multiple of this number of bytes.
pub const OBJECT_ALIGN: u32 = 4096;

const OBJECT_BYTES_MAX: u32 = 1 << 30;
const OBJECTS_MAX: u32 = 1 << 24;
const CONNECTIONS_MAX: u32 = 1024;

/// Configuration of an object store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectConfig {
    /// Name of the store in the stack.
    pub name: String,
    /// Largest size of an object, in bytes: a multiple of [`OBJECT_ALIGN`].
    pub object_bytes: u32,
    /// Number of objects that the store can hold.
    pub objects: u32,
    /// Number of connections. Each executes one request at a time, and is a unit.
    pub connections: u32,
    /// Timing of its requests.
    pub timing: ObjectTiming,
    /// Serial number, kept in a flat store: the store of another device is refused. 0 if the device
    /// has none.
    pub serial: u64,
}

impl ObjectConfig {
    /// Checks that the values are possible.
    ///
    /// # Errors
    /// The first value that is wrong, and the values that are allowed.
    pub fn check(&self) -> Result<()> {
        let size = self.object_bytes;
        if size == 0 || size > OBJECT_BYTES_MAX || !size.is_multiple_of(OBJECT_ALIGN) {
            let why = "has to be a multiple of 4K, from 4K to 1G";
            return Err(Error::param("object_bytes", frit_core::size::format(size.into()), why));
        }
        if self.objects == 0 || self.objects > OBJECTS_MAX {
            return Err(Error::param("objects", self.objects, "has to be 1 to 16777216"));
        }
        if self.connections == 0 || self.connections > CONNECTIONS_MAX {
            return Err(Error::param("connections", self.connections, "has to be 1 to 1024"));
        }
        if self.timing.connection_ps_per_byte < self.timing.link_ps_per_byte {
            let mb_per_s = 1e6 / self.timing.connection_ps_per_byte.max(1) as f64;
            let why = "has to be at most link_mb_per_s: a connection cannot be faster than the link";
            return Err(Error::param("connection_mb_per_s", mb_per_s, why));
        }
        Ok(())
    }

    /// Size of all objects, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.object_bytes) * u64::from(self.objects)
    }

    /// Size of the part of a flat store that holds objects and their checksums, in bytes: its start.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        SlotLayout::new(self).data_bytes()
    }

    /// Size that a flat store must have, in bytes.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        SlotLayout::new(self).store_bytes()
    }
}
