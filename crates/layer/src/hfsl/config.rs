//! User configuration of HFSL: the parameters of the paper's Table 5 under their own names, and
//! those of frit.

use frit_core::{Error, Result, size};
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

/// Configuration of an HFSL layer: the table `[hfsl]` of a stack file.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HfslConfig {
    /// Table 5: method by which PCM and NAND are fused.
    #[serde(rename = "FUSION_METHOD")]
    pub fusion_method: FusionMethod,
    /// Table 5: largest size of a small write, in bytes. 0: no write is small.
    #[serde(rename = "SSW", deserialize_with = "size::deserialize")]
    pub ssw: u64,
    /// Table 5: sub-page size of PCM, in bytes. 0: 512, or an eighth of a page where that is
    /// larger.
    #[serde(rename = "SUBPAGE_SIZE", deserialize_with = "size::deserialize")]
    pub subpage_size: u64,
    /// Table 5: granularity to which writes to PCM are rounded, in bytes (2 to 512).
    #[serde(rename = "ADDR_GRAN_PCM", deserialize_with = "size::deserialize")]
    pub addr_gran_pcm: u64,
    /// Table 5: mapping granularity of NAND, in bytes; must be the page size. 0: the page size.
    #[serde(rename = "ADDR_GRAN_flash", deserialize_with = "size::deserialize")]
    pub addr_gran_flash: u64,
    /// Table 5, checked against the media when given: size of NAND in bytes.
    #[serde(rename = "FLASHSIZE", deserialize_with = "size::deserialize")]
    pub flashsize: u64,
    /// Table 5, checked: size of a NAND page in bytes.
    #[serde(rename = "PAGESIZE", deserialize_with = "size::deserialize")]
    pub pagesize: u64,
    /// Table 5, checked: size of a NAND block in bytes.
    #[serde(rename = "BLOCKSIZE", deserialize_with = "size::deserialize")]
    pub blocksize: u64,
    /// Table 5, checked: number of NAND blocks.
    #[serde(rename = "BLOCKNUM")]
    pub blocknum: u64,
    /// Table 5, checked: size of PCM in bytes.
    #[serde(rename = "PCMSIZE", deserialize_with = "size::deserialize")]
    pub pcmsize: u64,
    /// Comparison of a request size with SSW: `le` (a write of exactly SSW bytes is small) or `lt`.
    pub ssw_compare: SswCompare,
    /// Share of PCM's data space that is a cache under `both` (0 to 1).
    pub cache_ratio: f64,
    /// Over-provisioning: NAND pages beyond the volume's capacity, as a fraction of that capacity.
    pub over_provisioning: f64,
    /// Capacity of the volume in bytes. 0: derived from over-provisioning.
    #[serde(deserialize_with = "size::deserialize")]
    pub capacity: u64,
    /// Time at which map entries are written to PCM.
    pub map_persist: MapPersist,
    /// Keeps a second map in PCM, as of the last flush. Needed for media in files behind a page
    /// cache: a power loss may lose any write that was not synced.
    pub flush_map: bool,
    /// Garbage-collection policy.
    pub gc: String,
    /// Writes pay for garbage collection when a unit has this many free blocks or fewer.
    pub gc_low_blocks: u32,
    /// Idle-time garbage collection runs until a unit has this many free blocks.
    pub gc_high_blocks: u32,
    /// Garbage collection moves pages by copyback.
    pub copyback: bool,
    /// Wear-leveling policy of NAND.
    pub wear_leveling: String,
    /// Static wear leveling: tolerated spread of erase counts, in cycles.
    pub wear_threshold: u32,
    /// Detector of hot and cold pages.
    pub heat: String,
    /// Window of the heat detector, in writes. A page that is not written again within it is cold.
    pub heat_window: u64,
    /// Placement policy: selects the writes that go to PCM as storage.
    pub placement: String,
    /// Eviction policy of PCM and of the DRAM read buffer.
    pub buffer: String,
    /// Largest number of neighbouring pages that a cache destages together.
    pub destage_run: u32,
    /// Writes destage pages when less than this share of PCM is free.
    pub pcm_low: f64,
    /// Idle-time destaging runs until this share of PCM is free.
    pub pcm_high: f64,
    /// Names of the callers that may use physical addresses.
    pub raw_access: Vec<String>,
}

impl Default for HfslConfig {
    fn default() -> Self {
        HfslConfig {
            fusion_method: FusionMethod::SameLevel,
            ssw: 2048,
            subpage_size: 0,
            addr_gran_pcm: 512,
            addr_gran_flash: 0,
            flashsize: 0,
            pagesize: 0,
            blocksize: 0,
            blocknum: 0,
            pcmsize: 0,
            ssw_compare: SswCompare::Le,
            cache_ratio: 0.5,
            over_provisioning: 0.07,
            capacity: 0,
            map_persist: MapPersist::Halt,
            flush_map: false,
            gc: "greedy".into(),
            gc_low_blocks: 3,
            gc_high_blocks: 4,
            copyback: false,
            wear_leveling: "dynamic".into(),
            wear_threshold: 64,
            heat: "bloom".into(),
            heat_window: 65_536,
            placement: "ssw".into(),
            buffer: "lru".into(),
            destage_run: 8,
            pcm_low: 0.02,
            pcm_high: 0.05,
            raw_access: Vec::new(),
        }
    }
}

impl HfslConfig {
    /// Checks everything that does not depend on the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        let unit = |key: &str, v: f64| {
            (0.0..=1.0)
                .contains(&v)
                .then_some(())
                .ok_or_else(|| Error::param(key, v, "has to be from 0 to 1"))
        };
        unit("cache_ratio", self.cache_ratio)?;
        unit("pcm_low", self.pcm_low)?;
        unit("pcm_high", self.pcm_high)?;
        if self.pcm_high < self.pcm_low {
            return Err(Error::param("pcm_high", self.pcm_high, "has to be at least pcm_low"));
        }
        if !(0.0..=100.0).contains(&self.over_provisioning) {
            let why = "has to be from 0 to 100 (0.07 is 7 % more NAND than volume)";
            return Err(Error::param("over_provisioning", self.over_provisioning, why));
        }
        let gran = self.addr_gran_pcm;
        if !(2..=512).contains(&gran) || !gran.is_power_of_two() {
            return Err(Error::param("ADDR_GRAN_PCM", gran, "has to be a power of two from 2 to 512"));
        }
        if self.gc_low_blocks < 3 {
            let why = "has to be at least 3 (two blocks are reserved for garbage collection)";
            return Err(Error::param("gc_low_blocks", self.gc_low_blocks, why));
        }
        if self.gc_high_blocks < self.gc_low_blocks {
            let why = format!("has to be at least gc_low_blocks, which is {}", self.gc_low_blocks);
            return Err(Error::param("gc_high_blocks", self.gc_high_blocks, why));
        }
        let counts = [
            ("heat_window", self.heat_window == 0),
            ("destage_run", self.destage_run == 0),
            ("wear_threshold", self.wear_threshold == 0),
        ];
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
