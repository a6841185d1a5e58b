//! A layer with its sink, as the nameless-write device of a file system.

use frit_core::{Error, NamelessDevice, Result, Sink, StackDevice};
use frit_fs::{DeviceAccess, DeviceOwner, PlacedContents};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A layer and the sink that it works with.
pub(super) struct LayerWithSink {
    pub(super) layer: Box<dyn StackDevice>,
    pub(super) sink: Sink,
}

/// A layer that a file system and its test share.
pub struct DeviceUnderTest(Arc<Mutex<LayerWithSink>>);

impl fmt::Debug for DeviceUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceUnderTest").finish_non_exhaustive()
    }
}

impl Clone for DeviceUnderTest {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl DeviceUnderTest {
    /// Creates a device from a layer.
    #[must_use]
    pub fn new(layer: Box<dyn StackDevice>, sink: Sink) -> Self {
        Self(Arc::new(Mutex::new(LayerWithSink { layer, sink })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LayerWithSink> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the metadata of the file system on the device.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn load(&self) -> frit_fs::Result<Arc<PlacedContents>> {
        let owner = DeviceOwner::new(self.clone()).map_err(|e| frit_fs::Error::Image(e.to_string()))?;
        PlacedContents::load(Box::new(owner))
    }

    /// Returns the number of blocks of contents that the device stores.
    #[must_use]
    pub fn stored_blocks(&self) -> u64 {
        self.lock().layer.nameless_device().map_or(0, |device| u64::from(device.space().stored))
    }

    /// Returns the layer and the sink after all other users have dropped the device.
    pub(super) fn into_parts(self) -> Option<LayerWithSink> {
        Some(Arc::try_unwrap(self.0).ok()?.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DeviceAccess for DeviceUnderTest {
    fn access(
        &mut self,
        _changes: bool,
        f: &mut dyn FnMut(&mut dyn NamelessDevice, &mut Sink) -> Result<()>,
    ) -> Result<()> {
        let mut both = self.lock();
        let LayerWithSink { layer, sink } = &mut *both;
        let none = || Error::param("stack", "", "its upper layer is no nameless-write device");
        f(layer.nameless_device().ok_or_else(none)?, sink)
    }

    fn close(&mut self) -> Result<()> {
        let mut both = self.lock();
        let LayerWithSink { layer, sink } = &mut *both;
        layer.halt(sink)
    }
}
