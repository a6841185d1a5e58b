//! Configuration of a solid-state cache without a manager.

use crate::ssc::SscConfig;
use frit_core::{ParamTable, Result, size};

frit_core::parameters! {
    /// Configuration of a solid-state cache without a manager, the table `[ssc]` of a stack file.
    pub struct SscBlockConfig {
        #[serde(deserialize_with = "size::deserialize")]
        "address_bytes" address_bytes: u64 as Size = 0, fixed, unit "bytes",
            "size of the disk whose addresses the device takes; 0: as much as it can hold in dirty blocks during its life";
        include ssc: SscConfig;
    }
}

impl SscBlockConfig {
    /// Checks the parameters as far as that is possible without the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.ssc.validate()
    }
}
