//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::layer::Ntl;
use frit_core::{ParamInfo, ParamTable, Params, Result};

impl Params for Ntl {
    fn list(&self) -> Vec<ParamInfo> {
        self.config.list()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let changed = self.config.with_live(key, value)?;
        changed.validate()?;
        self.config = changed;
        Ok(())
    }
}
