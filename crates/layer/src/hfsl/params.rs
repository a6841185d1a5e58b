//! Parameters by name, which can be read at any time and changed while the layer runs.

use super::buffer::BufferPolicy;
use super::heat::{Heat, HeatPolicy};
use super::{FusionMethod, Hfsl, HfslConfig};
use crate::flash::Gc;
use frit_core::params::parse_name;
use frit_core::{Error, ParamInfo, ParamTable, Params, Result};

impl Hfsl {
    /// Returns the value of a parameter that is derived from the media, or `None` for others.
    fn derived(&self, key: &str) -> Option<u64> {
        let g = self.flash.nand().geometry();
        let pcm = self.map.pcm.as_ref();
        Some(match key {
            "ADDR_GRAN_flash" | "PAGESIZE" => u64::from(g.page_bytes),
            "SUBPAGE_SIZE" => pcm.map_or(0, |p| u64::from(p.layout.sub_bytes)),
            "FLASHSIZE" => g.bytes(),
            "BLOCKSIZE" => u64::from(g.page_bytes) * u64::from(g.pages_per_block),
            "BLOCKNUM" => u64::from(g.blocks()),
            "PCMSIZE" => pcm.map_or(0, |p| p.medium.pcm().bytes()),
            "redo_lines" => pcm.map_or(0, |p| u64::from(p.layout.redo.lines())),
            "capacity" => self.capacity_bytes(),
            _ => return None,
        })
    }
}

impl Params for Hfsl {
    fn list(&self) -> Vec<ParamInfo> {
        let mut all = self.config.list();
        for info in &mut all {
            if let Some(value) = self.derived(&info.key) {
                info.value = value.to_string();
            }
        }
        all
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let changed = self.config.with_live(key, value)?;
        if key == "FUSION_METHOD" && self.map.pcm.is_none() && changed.fusion_method != FusionMethod::None {
            return Err(Error::param(key, value, "the stack has no PCM"));
        }
        // Checked as a whole, before any part takes effect.
        changed.validate()?;
        self.apply(key, changed)
    }
}

impl Hfsl {
    /// Applies a configuration in which `key` was changed. Nothing changes when a policy name is
    /// unknown.
    fn apply(&mut self, key: &str, c: HfslConfig) -> Result<()> {
        match key {
            "gc" => {
                let gc: Gc = parse_name(key, &c.gc)?;
                self.flash.set_gc(gc);
            }
            "wear_leveling" | "wear_threshold" => {
                self.flash.set_wear(c.flash_keys().wear()?, c.wear_threshold);
            }
            "heat" | "heat_window" => {
                let mut heat: Heat = parse_name("heat", &c.heat)?;
                heat.set_window(c.heat_window);
                self.heat = heat;
                self.heat_on = c.heat != "off";
                // The new detector knows nothing of the pages that the last one called hot.
                for r in self.map.pcm.iter_mut().flat_map(|pcm| &mut pcm.regions) {
                    r.buffer.cooled();
                }
            }
            "placement" => self.placement = parse_name(key, &c.placement)?,
            _ => {}
        }
        self.flash.set_thresholds(c.gc_low_blocks as usize, c.gc_high_blocks as usize);
        self.flash.config_mut().copyback = c.copyback;
        self.config = c;
        self.apply_fusion();
        Ok(())
    }
}
