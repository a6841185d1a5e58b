//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::config::FtlConfig;
use super::layer::Ftl;
use crate::flash::Gc;
use frit_core::params::parse_name;
use frit_core::{ParamInfo, ParamTable, Params, Result};

impl Params for Ftl {
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
        let changed: FtlConfig = self.config.with_live(key, value)?;
        // Checked as a whole, before any part takes effect.
        changed.validate()?;
        let wear = changed.flash_keys().wear()?;
        let pacing = changed.pacing()?;
        if key == "gc" {
            self.flash.set_gc(parse_name::<Gc>(key, &changed.gc)?);
        }
        if key.starts_with("gc_") {
            self.flash.set_pacing(pacing);
        }
        self.flash.set_wear(wear, changed.wear_threshold);
        self.flash.set_thresholds(changed.gc_low_blocks as usize, changed.gc_high_blocks as usize);
        self.flash.stripe_over(changed.unit_order);
        self.flash.config_mut().copyback = changed.copyback;
        self.flash.set_cache_rules(changed.slc_full, changed.slc_idle());
        self.config = changed;
        Ok(())
    }
}
