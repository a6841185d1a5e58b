//! Object stores of a stack.

use crate::stack::Stack;
use crate::stores::Bytes;
use frit_core::{Error, ObjectDevice, Result};
use frit_media::{Hardware, MediumSpec, ObjectConfig, ObjectMedium};

/// Opens an object store as the device below a layer.
pub(crate) fn open(
    mut config: ObjectConfig,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn ObjectDevice>> {
    config.serial = stores.serial(&config.name);
    let backing = stores.open_objects(&config)?;
    let medium = ObjectMedium::new(config, backing, hardware).map_err(|what| Error::Medium { what })?;
    Ok(Box::new(medium))
}

impl Stack {
    /// Opens one object store of the stack, by its name, without a layer. Its connections are the
    /// only units of the hardware.
    ///
    /// # Errors
    /// No object store has the name, or it cannot be opened.
    pub fn open_objects(&self, name: &str, bytes: &Bytes) -> Result<(Box<dyn ObjectDevice>, Hardware)> {
        let config = self.media().iter().find(|m| m.name == name).and_then(|m| match &m.spec {
            MediumSpec::Object(config) => Some(config.clone()),
            _ => None,
        });
        let Some(config) = config else {
            return Err(Error::param("medium", name, "is not the name of an object store of the stack"));
        };
        let mut hardware = Hardware::new();
        let device = open(config, bytes, &mut hardware)?;
        Ok((device, hardware))
    }
}
