//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::layer::Cache;
use super::streams::Streams;
use frit_core::{BlockDevice, ParamInfo, ParamTable, Params, Result};

impl<D: BlockDevice + ?Sized> Params for Cache<D> {
    fn list(&self) -> Vec<ParamInfo> {
        self.config.list()
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
