//! Configuration of a nameless-write device without a volume.

use crate::nameless::NamelessConfig;
use frit_core::{ParamTable, Result, size};

frit_core::parameters! {
    /// Configuration of a nameless-write device without a volume, the table `[nameless-device]` of a stack
    /// file.
    pub struct NamelessBlockConfig {
        #[serde(deserialize_with = "size::deserialize")]
        "virtual_bytes" virtual_bytes: u64 as Size = 0, fixed, unit "bytes",
            "size of the virtual address space, which is the block device; 0: a 16th of the capacity";
        include device: NamelessConfig;
    }
}

impl NamelessBlockConfig {
    /// Checks the parameters as far as that is possible without the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.device.validate()
    }

    /// Returns the parameters that have no effect, each with the reason.
    #[must_use]
    pub fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let mut unused = self.unused();
        if self.device.queue_writes > 1 {
            unused.push(("queue_writes", "the owner of the device makes its request queues"));
        }
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_device_are_checked() {
        NamelessBlockConfig::default().validate().unwrap();
        let mut config = NamelessBlockConfig::default();
        config.device.gc_low_blocks = 1;
        assert!(config.validate().unwrap_err().to_string().contains("gc_low_blocks"));
        let mut config = NamelessBlockConfig::default();
        config.device.queue_writes = 4;
        assert!(config.without_effect().iter().any(|(key, _)| *key == "queue_writes"));
    }
}
