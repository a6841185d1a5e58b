//! What a client can take: a device under a name.

use crate::Device;
use std::sync::Arc;

/// A device under a name.
#[derive(Debug)]
pub struct Export {
    device: Arc<Device>,
    name: String,
    description: String,
}

impl Export {
    /// A device as an export; the empty name is the default export, which clients take who name none.
    pub fn new(device: Arc<Device>, name: &str, description: &str) -> Export {
        Export { device, name: name.into(), description: description.into() }
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, for people.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether a client that asks for `name` means it: the name itself, or none.
    pub fn is(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}
