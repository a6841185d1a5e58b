//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::layer::Flashcache;
use crate::cache::streams::Streams;
use frit_core::{BlockDevice, ParamInfo, ParamTable, Params, Result};

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Params for Flashcache<C, D> {
    fn list(&self) -> Vec<ParamInfo> {
        self.config.list()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let changed = self.config.with_live(key, value)?;
        changed.validate()?;
        if key == "streams" {
            self.streams = Streams::new(changed.streams);
        }
        self.config = changed;
        Ok(())
    }
}
