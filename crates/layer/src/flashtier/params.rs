//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::layer::Flashtier;
use crate::cache::streams::Streams;
use frit_core::{BlockDevice, CacheDevice, ParamInfo, ParamTable, Params, Result};

impl<C: CacheDevice, D: BlockDevice + ?Sized> Params for Flashtier<C, D> {
    fn list(&self) -> Vec<ParamInfo> {
        let mut all = self.config.list();
        for info in &mut all {
            if &*info.key == "mapping_unit" {
                info.value = self.page.to_string();
            }
        }
        all
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let changed = self.config.with_live(key, value)?;
        changed.validate()?;
        if key == "bypass_streams" {
            self.streams = Streams::new(changed.bypass_streams);
        }
        self.config = changed;
        Ok(())
    }
}
