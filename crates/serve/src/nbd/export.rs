//! Exports: a device, or ranges of it, that clients select by name.

use crate::Device;
use std::ops::Range;
use std::sync::Arc;

/// A device, or a range of it, that clients select by name.
#[derive(Debug)]
pub struct Export {
    device: Arc<Device>,
    name: String,
    description: String,
    /// Bytes of the device that the export consists of; `None`: all of them.
    range: Option<Range<u64>>,
}

impl Export {
    /// Creates an export of a whole device. The empty name is the default export, for clients that name
    /// none.
    pub fn new(device: Arc<Device>, name: &str, description: &str) -> Export {
        Export { device, name: name.into(), description: description.into(), range: None }
    }

    /// Creates an export of a range of a device. Its clients cannot reach other bytes of the device, and
    /// have to name it.
    pub fn of_range(device: Arc<Device>, name: &str, description: &str, range: Range<u64>) -> Export {
        Export { range: Some(range), ..Export::new(device, name, description) }
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

    /// Returns the address of the first byte in the device.
    pub fn start(&self) -> u64 {
        self.range.as_ref().map_or(0, |range| range.start)
    }

    /// Returns the size in bytes. A range behind the end of the device has no bytes.
    pub fn bytes(&self) -> u64 {
        let device = self.device.bytes();
        self.range.as_ref().map_or(device, |range| range.end.min(device).saturating_sub(range.start))
    }

    /// Returns `true` if a client that requests `name` means this export: `name` is equal, or empty and
    /// the export is a whole device.
    pub fn matches(&self, name: &[u8]) -> bool {
        name == self.name.as_bytes() || name.is_empty() && self.range.is_none()
    }
}

/// The exports of a server, all of one device.
#[derive(Clone, Debug)]
pub struct Exports {
    device: Arc<Device>,
    all: Vec<Arc<Export>>,
}

impl Exports {
    /// Creates the exports of a device: ranges with their names. Without ranges, no client can select one.
    pub fn of_ranges(device: Arc<Device>, description: &str, ranges: &[(String, Range<u64>)]) -> Exports {
        let export = |(name, range): &(String, Range<u64>)| {
            Arc::new(Export::of_range(Arc::clone(&device), name, description, range.clone()))
        };
        Exports { all: ranges.iter().map(export).collect(), device }
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the exports, in the order in which clients list them.
    pub fn all(&self) -> &[Arc<Export>] {
        &self.all
    }

    /// Returns the export that a client means by a name.
    pub(super) fn find(&self, name: &[u8]) -> Option<&Arc<Export>> {
        self.all.iter().find(|export| export.matches(name))
    }

    /// Returns an export without bytes, which a client has until it selects one.
    pub(super) fn none(&self) -> Arc<Export> {
        Arc::new(Export::of_range(Arc::clone(&self.device), "", "", 0..0))
    }
}

impl From<Arc<Export>> for Exports {
    fn from(export: Arc<Export>) -> Exports {
        Exports { device: Arc::clone(&export.device), all: vec![export] }
    }
}
