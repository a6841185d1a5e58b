//! Parameters by name.

use super::config::ZnsConfig;
use super::layer::Zns;
use frit_core::{ParamInfo, ParamTable, Params, Result};

impl Params for Zns {
    fn list(&self) -> Vec<ParamInfo> {
        let mut all = self.config.list();
        for info in &mut all {
            match &*info.key {
                "mapping_unit" => info.value = self.sizes.page_bytes.to_string(),
                "capacity" => info.value = self.sizes.bytes().to_string(),
                "zone_blocks" => info.value = self.sizes.zone_blocks.to_string(),
                "buffer_units" => info.value = self.buffer_units().to_string(),
                _ => {}
            }
        }
        all
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        // All parameters are fixed: the error names the key.
        let changed: ZnsConfig = self.config.with_live(key, value)?;
        self.config = changed;
        Ok(())
    }
}
