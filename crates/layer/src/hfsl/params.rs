//! Run-time parameters by name: readable at any time, and changeable while the layer runs.

use super::heat::HeatPolicy;
use super::{FusionMethod, Hfsl, SswCompare};
use crate::Token;
use crate::flash::{Gc, Wear};
use frit_core::param_value::{parse_bool, parse_name, parse_number, parse_size as bytes};
use frit_core::{Error, ParamInfo, Params, Result};
use frit_media::Store;
use std::fmt::Display;

fn live(key: &'static str, value: &dyn Display, help: &'static str) -> ParamInfo {
    ParamInfo { key, help, value: value.to_string(), live: true }
}

fn fixed(key: &'static str, value: &dyn Display, help: &'static str) -> ParamInfo {
    ParamInfo { key, help, value: value.to_string(), live: false }
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Parameters of placement, and the sizes named in the paper's Table 5.
    fn fusion_params(&self) -> Vec<ParamInfo> {
        let g = self.flash.nand().geometry();
        let c = &self.config;
        let method: &'static str = c.fusion_method.into();
        let compare: &'static str = c.ssw_compare.into();
        let persist: &'static str = c.map_persist.into();
        let pcm = self.map.pcm.as_ref();
        let block = u64::from(g.page_bytes) * u64::from(g.pages_per_block);
        vec![
            live("FUSION_METHOD", &method, "how PCM and NAND are fused: none, cache, same-level, both"),
            live("SSW", &c.ssw, "a write of at most this many bytes is small"),
            live("ADDR_GRAN_PCM", &c.addr_gran_pcm, "writes to PCM are rounded to this many bytes, 2 to 512"),
            fixed("ADDR_GRAN_flash", &g.page_bytes, "mapping granularity of NAND, in bytes"),
            fixed("SUBPAGE_SIZE", &pcm.map_or(0, |p| p.sub_bytes), "sub-page of PCM, in bytes"),
            fixed("FLASHSIZE", &g.bytes(), "size of NAND, in bytes"),
            fixed("PAGESIZE", &g.page_bytes, "NAND page, in bytes"),
            fixed("BLOCKSIZE", &block, "NAND block, in bytes"),
            fixed("BLOCKNUM", &g.blocks(), "NAND blocks"),
            fixed("PCMSIZE", &pcm.map_or(0, |p| p.medium.bytes()), "size of PCM, in bytes"),
            live("ssw_compare", &compare, "le: a write of exactly SSW bytes is small; lt: it is not"),
            live("cache_ratio", &c.cache_ratio, "share of PCM that is a cache under \"both\", 0 to 1"),
            fixed(
                "over_provisioning",
                &c.over_provisioning,
                "NAND pages beyond the capacity, as a fraction of it",
            ),
            fixed("capacity", &self.capacity_bytes(), "size of the volume, in bytes"),
            fixed("map_persist", &persist, "time at which map entries are written to PCM: each, halt"),
            fixed("flush_map", &c.flush_map, "a second map in PCM as of the last flush, for media in files"),
            fixed(
                "raw_access",
                &format!("{:?}", c.raw_access),
                "callers that may address media directly, a list of names",
            ),
        ]
    }

    /// Parameters of the policies, and their thresholds.
    fn module_params(&self) -> Vec<ParamInfo> {
        let c = &self.config;
        vec![
            live("gc", &c.gc, "garbage collection"),
            live(
                "gc_low_blocks",
                &c.gc_low_blocks,
                "writes pay for garbage collection at this many free blocks a unit or fewer",
            ),
            live(
                "gc_high_blocks",
                &c.gc_high_blocks,
                "idle-time garbage collection runs until a unit has this many free blocks",
            ),
            live("copyback", &c.copyback, "garbage collection moves pages inside the plane: true, false"),
            live("wear_leveling", &c.wear_leveling, "wear leveling of NAND"),
            live(
                "wear_threshold",
                &c.wear_threshold,
                "spread of erase counts that static wear leveling tolerates, in cycles",
            ),
            live("heat", &c.heat, "detector of hot and cold pages"),
            live(
                "heat_window",
                &c.heat_window,
                "window of the heat detector, in writes: a page not written again within it is cold",
            ),
            live("placement", &c.placement, "policy that selects writes for PCM as storage"),
            fixed("buffer", &c.buffer, "eviction policy of PCM and of the DRAM read buffer"),
            live("destage_run", &c.destage_run, "largest number of neighbouring pages destaged together"),
            live(
                "pcm_low",
                &c.pcm_low,
                "writes destage pages to NAND when less than this share of PCM is free",
            ),
            live("pcm_high", &c.pcm_high, "idle-time destaging runs until this share of PCM is free"),
        ]
    }
}

impl<T: Token, N: Store, P: Store> Params for Hfsl<T, N, P> {
    fn list(&self) -> Vec<ParamInfo> {
        let mut all = self.fusion_params();
        all.extend(self.module_params());
        all
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut c = self.config.clone();
        match key {
            "FUSION_METHOD" => {
                c.fusion_method = parse_name::<FusionMethod>(key, value)?;
                if self.map.pcm.is_none() && c.fusion_method != FusionMethod::None {
                    return Err(Error::param(key, value, "the stack has no PCM"));
                }
            }
            "SSW" => c.ssw = bytes(key, value)?,
            "ADDR_GRAN_PCM" => c.addr_gran_pcm = bytes(key, value)?,
            "ssw_compare" => c.ssw_compare = parse_name::<SswCompare>(key, value)?,
            "cache_ratio" => c.cache_ratio = parse_number(key, value)?,
            "gc" => c.gc = value.into(),
            "gc_low_blocks" => c.gc_low_blocks = parse_number(key, value)?,
            "gc_high_blocks" => c.gc_high_blocks = parse_number(key, value)?,
            "copyback" => c.copyback = parse_bool(key, value)?,
            "wear_leveling" => c.wear_leveling = value.into(),
            "wear_threshold" => c.wear_threshold = parse_number(key, value)?,
            "heat" => c.heat = value.into(),
            "heat_window" => c.heat_window = parse_number(key, value)?,
            "placement" => c.placement = value.into(),
            "destage_run" => c.destage_run = parse_number(key, value)?,
            "pcm_low" => c.pcm_low = parse_number(key, value)?,
            "pcm_high" => c.pcm_high = parse_number(key, value)?,
            _ if self.list().iter().any(|p| p.key == key) => {
                return Err(Error::param(key, value, "is fixed once the layer runs; set it in the stack"));
            }
            // `get` returns the error that lists the known parameters.
            _ => return self.get(key).map(|_| ()),
        }
        // Checked as a whole, before any part takes effect.
        c.validate()?;
        self.apply(key, c)
    }
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Applies a configuration in which `key` was changed. Nothing changes when a policy name is
    /// unknown.
    fn apply(&mut self, key: &str, c: super::HfslConfig) -> Result<()> {
        match key {
            "gc" => {
                let gc: Gc = parse_name(key, &c.gc)?;
                self.flash.set_gc(gc);
            }
            "wear_leveling" | "wear_threshold" => {
                let wear: Wear = parse_name("wear_leveling", &c.wear_leveling)?;
                self.flash.set_wear(wear, c.wear_threshold);
            }
            "heat" | "heat_window" => {
                let mut heat: super::heat::Heat = parse_name("heat", &c.heat)?;
                heat.set_window(c.heat_window);
                self.heat = heat;
                self.heat_on = c.heat != "off";
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
