//! Parameters by name.

use super::layer::NamelessBlock;
use frit_core::{NamelessDevice, ParamInfo, ParamTable, Params, Result};

impl<D: NamelessDevice> Params for NamelessBlock<D> {
    fn list(&self) -> Vec<ParamInfo> {
        let mut all = self.config.list();
        let capacity = u64::from(self.device.space().capacity) * u64::from(self.block_bytes);
        for info in &mut all {
            match &*info.key {
                "mapping_unit" => info.value = self.block_bytes.to_string(),
                "capacity" => info.value = capacity.to_string(),
                "virtual_bytes" => info.value = self.bytes().to_string(),
                _ => {}
            }
        }
        all
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        // All parameters are fixed: the error names the key.
        self.config = self.config.with_live(key, value)?;
        Ok(())
    }
}
