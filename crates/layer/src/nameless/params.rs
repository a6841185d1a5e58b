//! Parameters by name.

use super::layer::Nameless;
use frit_core::{NamelessDevice, ParamInfo, ParamTable, Params, Result};

impl<D: NamelessDevice> Params for Nameless<D> {
    fn list(&self) -> Vec<ParamInfo> {
        let mut all = self.config.list();
        for info in &mut all {
            match &*info.key {
                "mapping_unit" => info.value = self.page_bytes.to_string(),
                "capacity" => info.value = self.capacity_bytes().to_string(),
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
