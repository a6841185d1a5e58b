//! A volume whose layer is a nameless-write device, for a file system that owns its blocks.

use frit_core::{Error, NamelessDevice, Result, Sink};
use frit_fs::{DeviceAccess, DeviceOwner, PlacedContents};
use frit_volume::Volume;
use std::sync::Arc;

/// An open volume, until the file system is closed.
#[derive(Debug)]
struct VolumeAccess(Option<Volume>);

impl DeviceAccess for VolumeAccess {
    fn access(
        &mut self,
        changes: bool,
        f: &mut dyn FnMut(&mut dyn NamelessDevice, &mut Sink) -> Result<()>,
    ) -> Result<()> {
        let closed = || Error::ReadOnly { why: "the volume is closed".into() };
        self.0.as_mut().ok_or_else(closed)?.nameless_device(changes, f)
    }

    fn close(&mut self) -> Result<()> {
        let Some(volume) = self.0.take() else { return Ok(()) };
        volume.close().map_err(|e| Error::Medium { what: e.to_string() })
    }
}

/// Loads the metadata of the file system on a volume, or of one that is about to be formatted.
///
/// # Errors
/// The layer of the volume is no nameless-write device, or one that a file system cannot use; a virtual
/// block is unreadable.
pub fn load(volume: Volume) -> frit_fs::Result<Arc<PlacedContents>> {
    let owner = DeviceOwner::new(VolumeAccess(Some(volume)));
    let owner = owner.map_err(|e| frit_fs::Error::Image(e.to_string()))?;
    PlacedContents::load(Box::new(owner))
}
