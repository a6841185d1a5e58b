//! An export: a device that clients select by name.

use crate::Device;
use std::sync::Arc;

/// A device that clients select by name.
#[derive(Debug)]
pub struct Export {
    device: Arc<Device>,
    name: String,
    description: String,
}

impl Export {
    /// Creates an export of a device. The empty name is the default export, for clients that name
    /// none.
    pub fn new(device: Arc<Device>, name: &str, description: &str) -> Export {
        Export { device, name: name.into(), description: description.into() }
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description for human readers.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns `true` if a client that requests `name` means this export: `name` is equal or empty.
    pub fn matches(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}
