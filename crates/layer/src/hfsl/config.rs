//! User configuration of HFSL: the parameters of the paper's Table 5 under their own names, and
//! those of frit.

use super::buffer::PcmBuffer;
use super::heat::Heat;
use super::placement::Placement;
use super::redo::LINES_MOST;
use crate::flash::{FlashKeys, Gc, WearLeveling};
use frit_core::{Error, ParamTable, Result, size};
use frit_wear::{LevelerKind, PcmWearKeys, WearConfig};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Method by which PCM and NAND are fused (HFSL paper, section 2.3).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FusionMethod {
    /// PCM holds no data (it may still hold the map): the baseline.
    None,
    /// PCM is a durable write buffer of NAND.
    Cache,
    /// PCM and NAND form one tier; small writes and metadata go to PCM.
    #[default]
    SameLevel,
    /// Part of PCM is a storage tier, the rest is a cache.
    Both,
}

/// Time at which a changed map entry is written to PCM.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MapPersist {
    /// With each change, before the write is acknowledged.
    Each,
    /// When the layer halts (the paper, section 2.6.1).
    #[default]
    Halt,
}

/// Treatment of a request of exactly SSW bytes.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SswCompare {
    /// The request is small, so that SSW = 512 has an effect on a device with 512-byte sectors.
    #[default]
    Le,
    /// The request is large: the literal reading of the paper's "smaller than SSW".
    Lt,
}

frit_core::parameters! {
    /// Configuration of an HFSL layer: the table `[hfsl]` of a stack file. Names in capitals are
    /// those of the paper's Table 5.
    pub struct HfslConfig {
        "FUSION_METHOD" fusion_method: FusionMethod as Keyword = FusionMethod::SameLevel, live,
            "method by which PCM and NAND are fused";
        #[serde(deserialize_with = "size::deserialize")]
        "SSW" ssw: u64 as Bytes = 2048, live, unit "bytes",
            "largest size of a small write; 0: no write is small",
            unused |c| !c.places_by_policy() => "only the methods same-level and both use it",
            unused |c| c.places_by_policy() && c.placement != "ssw" => "only the placement ssw uses it";
        #[serde(deserialize_with = "size::deserialize")]
        "ADDR_GRAN_PCM" addr_gran_pcm: u64 as Bytes = 512, live, unit "bytes",
            "granularity to which writes to PCM are rounded, 2 to 512";
        #[serde(deserialize_with = "size::deserialize")]
        "ADDR_GRAN_flash" addr_gran_flash: u64 as Bytes = 0, derived, unit "bytes",
            "mapping granularity of NAND, which must be the page size";
        #[serde(deserialize_with = "size::deserialize")]
        "SUBPAGE_SIZE" subpage_size: u64 as Bytes = 0, derived, unit "bytes",
            "sub-page of PCM: 512, or an eighth of a page if that is larger";
        /// Checked against the media when given, as are the next four.
        #[serde(deserialize_with = "size::deserialize")]
        "FLASHSIZE" flashsize: u64 as Bytes = 0, derived, unit "bytes",
            "size of NAND";
        #[serde(deserialize_with = "size::deserialize")]
        "PAGESIZE" pagesize: u64 as Bytes = 0, derived, unit "bytes",
            "size of a NAND page";
        #[serde(deserialize_with = "size::deserialize")]
        "BLOCKSIZE" blocksize: u64 as Bytes = 0, derived, unit "bytes",
            "size of a NAND block";
        "BLOCKNUM" blocknum: u64 as Number = 0, derived, unit "blocks",
            "number of NAND blocks";
        #[serde(deserialize_with = "size::deserialize")]
        "PCMSIZE" pcmsize: u64 as Bytes = 0, derived, unit "bytes",
            "size of PCM";
        "ssw_compare" ssw_compare: SswCompare as Keyword = SswCompare::Le, live,
            "le: a write of exactly SSW bytes is small; lt: it is not",
            unused |c| !c.places_by_policy() => "only the methods same-level and both use it",
            unused |c| c.places_by_policy() && c.placement != "ssw" => "only the placement ssw uses it";
        "cache_ratio" cache_ratio: f64 as Number = 0.5, live, unit "share of PCM", within 0.0..=1.0,
            "share of PCM's data space that is a cache under the method both",
            unused |c| c.fusion_method != FusionMethod::Both => "only the method both divides PCM";
        "over_provisioning" over_provisioning: f64 as Number = 0.07, fixed, unit "share of the capacity",
            "NAND pages beyond the capacity";
        #[serde(deserialize_with = "size::deserialize")]
        "capacity" capacity: u64 as Bytes = 0, derived, unit "bytes",
            "size of the volume; otherwise derived from over-provisioning";
        "map_persist" map_persist: MapPersist as Keyword = MapPersist::Halt, fixed,
            "time at which map entries are written to PCM: with each change, or at a halt";
        /// A power loss may lose any write to a page cache that was not synced.
        "flush_map" flush_map: bool as Switch = false, fixed,
            "second map in PCM, as of the last flush, for media in files";
        "redo_lines" redo_lines: u32 as Number = 0, fixed, unit "lines",
            "lines of the ring of redo records; 0: 64, or fewer that take 1/64 of PCM",
            unused |c| c.map_persist == MapPersist::Halt => "only map_persist = each has redo records";
        "raw_access" raw_access: Vec<String> as List = Vec::new(), fixed,
            "names of the callers that may use physical addresses";
        #[serde(deserialize_with = "size::deserialize")]
        "raw_bytes" raw_bytes: u64 as Bytes = 0, fixed, unit "bytes",
            "end of PCM that the layer leaves free for writes by physical address",
            unused |c| c.raw_bytes > 0 && c.raw_access.is_empty() => "raw_access names no caller";
        "gc" gc: String as Name<Gc> = "greedy".into(), live,
            "garbage-collection policy";
        "gc_low_blocks" gc_low_blocks: u32 as Number = 3, live, unit "blocks",
            "free blocks of a unit from which writes pay for garbage collection, at least 3";
        "gc_high_blocks" gc_high_blocks: u32 as Number = 4, live, unit "blocks",
            "free blocks of a unit until which idle-time garbage collection runs";
        "copyback" copyback: bool as Switch = false, live,
            "garbage collection moves pages by copyback, inside the plane";
        "wear_leveling" wear_leveling: String as Name<WearLeveling> = "dynamic".into(), live,
            "wear-leveling policy of NAND";
        "wear_threshold" wear_threshold: u32 as Number = 64, live, unit "cycles",
            "spread of erase counts that static wear leveling tolerates",
            unused |c| c.wear_leveling != "static" => "only static wear leveling has a threshold";
        "heat" heat: String as Name<Heat> = "bloom".into(), live,
            "detector of hot and cold pages";
        "heat_window" heat_window: u64 as Number = 65_536, live, unit "writes",
            "window of the detector: a page that is not written again within it is cold",
            unused |c| c.heat == "off" => "the heat module is off";
        "placement" placement: String as Name<Placement> = "ssw".into(), live,
            "placement policy: selects the writes that go to PCM as storage",
            unused |c| !c.places_by_policy() => "only the methods same-level and both use it";
        "buffer" buffer: String as Name<PcmBuffer> = "lru".into(), fixed,
            "eviction policy of PCM and of the DRAM read buffer";
        "destage_run" destage_run: u32 as Number = 8, live, unit "pages",
            "largest number of neighbouring pages that a cache destages together";
        "pcm_low" pcm_low: f64 as Number = 0.02, live, unit "share of PCM", within 0.0..=1.0,
            "free share below which writes destage pages",
            unused |c| c.fusion_method == FusionMethod::None => "PCM holds no data";
        "pcm_high" pcm_high: f64 as Number = 0.05, live, unit "share of PCM", within 0.0..=1.0,
            "free share until which idle-time destaging runs",
            unused |c| c.fusion_method == FusionMethod::None => "PCM holds no data";
        "pcm_slot_spread" pcm_slot_spread: u32 as Number = 1000, live, unit "cycles",
            "cycles by which a sub-page updated in place may exceed the next free one before it moves; 0: any",
            unused |c| c.map_persist == MapPersist::Each => "map_persist = each updates no sub-page in place";
        include pcm_wear: PcmWearKeys;
    }
}

impl HfslConfig {
    /// Returns `true` if a placement policy selects the writes that go to PCM.
    fn places_by_policy(&self) -> bool {
        matches!(self.fusion_method, FusionMethod::SameLevel | FusionMethod::Both)
    }

    /// Returns `true` if a wear leveler of PCM is selected.
    pub(crate) fn levels_pcm(&self) -> bool {
        self.pcm_wear.wear_leveling != <&str>::from(LevelerKind::NoLeveling)
    }

    /// Returns the configuration of the wear leveler of PCM. Where a second map is kept as of the
    /// last flush, the registers are kept as of that flush too.
    pub(crate) fn wear_of_pcm(&self) -> Result<WearConfig> {
        self.pcm_wear.config(self.flush_map)
    }

    /// Parameters of the NAND side.
    pub(super) fn flash_keys(&self) -> FlashKeys<'_> {
        FlashKeys {
            over_provisioning: self.over_provisioning,
            gc: &self.gc,
            gc_low_blocks: self.gc_low_blocks,
            gc_high_blocks: self.gc_high_blocks,
            copyback: self.copyback,
            wear_leveling: &self.wear_leveling,
            wear_threshold: self.wear_threshold,
        }
    }

    /// Checks everything that does not depend on the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.wear_of_pcm()?;
        if self.pcm_high < self.pcm_low {
            return Err(Error::param("pcm_high", self.pcm_high, "has to be at least pcm_low"));
        }
        self.flash_keys().validate()?;
        let gran = self.addr_gran_pcm;
        if !(2..=512).contains(&gran) || !gran.is_power_of_two() {
            return Err(Error::param("ADDR_GRAN_PCM", gran, "has to be a power of two from 2 to 512"));
        }
        if self.redo_lines > LINES_MOST {
            let why = format!("has to be at most {LINES_MOST}");
            return Err(Error::param("redo_lines", self.redo_lines, why));
        }
        let counts = [("heat_window", self.heat_window == 0), ("destage_run", self.destage_run == 0)];
        match counts.iter().find(|(_, zero)| *zero) {
            Some((key, _)) => Err(Error::param(key, 0, "has to be above 0")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_nonsense_is_not() {
        HfslConfig::default().validate().unwrap();
        let bad = |f: fn(&mut HfslConfig)| {
            let mut c = HfslConfig::default();
            f(&mut c);
            c.validate().unwrap_err().to_string()
        };
        assert!(bad(|c| c.cache_ratio = 1.5).contains("cache_ratio"));
        assert!(bad(|c| c.over_provisioning = f64::NAN).contains("over_provisioning"));
        assert!(bad(|c| c.addr_gran_pcm = 3).contains("ADDR_GRAN_PCM"));
        assert!(bad(|c| c.gc_low_blocks = 1).contains("gc_low_blocks"));
    }
}
