//! Parameters by name.

use super::layer::SscBlock;
use frit_core::{CacheDevice, ParamInfo, ParamTable, Params, Result};

impl<C: CacheDevice> Params for SscBlock<C> {
    fn list(&self) -> Vec<ParamInfo> {
        let mut all = self.config.list();
        for info in &mut all {
            match &*info.key {
                "mapping_unit" => info.value = self.page.to_string(),
                "address_bytes" => info.value = self.bytes().to_string(),
                _ => {}
            }
        }
        all
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let changed = self.config.with_live(key, value)?;
        changed.validate()?;
        self.config = changed;
        Ok(())
    }
}
