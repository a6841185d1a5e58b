//! Configuration of the FTL.

use super::mapping::Mapping;
use crate::flash::{FlashKeys, Gc, Pacing, PacingPolicy, SlcFull, SpareNeeds, UnitOrder, WearLeveling};
use frit_core::params::parse_name;
use frit_core::{Error, Nanos, ParamTable, Result, size};
use frit_media::NandGeometry;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Rule by which a program unit gets its NAND unit.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Allocation {
    /// The next unit in turn, or the next idle one if that is busy.
    #[default]
    Dynamic,
    /// The unit that the first logical page determines: consecutive program units are on
    /// consecutive NAND units.
    Static,
}

/// Handling of data with different placement handles by garbage collection. The names of NVMe's Flexible
/// Data Placement are "initially isolated" and "persistently isolated".
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StreamGc {
    /// Moved pages of all handles go to one block.
    #[default]
    Mixed,
    /// Moved pages of each handle go to a block of their own.
    Isolated,
}

/// Blocks of the write cache with one bit a cell.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SlcMode {
    /// The same blocks, beside the over-provisioning.
    #[default]
    Static,
    /// Free blocks of the volume, so the cache becomes smaller as the volume is filled.
    Dynamic,
}

/// Contents of NAND from which a recovery finds the map.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FtlRecovery {
    /// Records in spare areas alone: no metadata is written, and discards do not survive. For
    /// simulations.
    #[default]
    None,
    /// Records in spare areas, and pages of metadata: marks of flushes, and discards.
    Scan,
}

frit_core::parameters! {
    /// Configuration of an FTL, the table `[ftl]` of a stack file.
    pub struct FtlConfig {
        /// The OpenSSD board has virtual pages of 32 KiB; its mapping became one of 4 KiB with the
        /// merge buffer (section 3.1).
        #[serde(deserialize_with = "size::deserialize")]
        "mapping_unit" mapping_unit: u64 as Bytes = 0, fixed, unit "bytes",
            "size of a mapped page, a part of a NAND page; 0: the NAND page";
        #[serde(deserialize_with = "size::deserialize")]
        "capacity" capacity: u64 as Bytes = 0, derived, unit "bytes",
            "size of the volume; otherwise derived from over-provisioning";
        /// 7 % as on the board (section 3.3).
        "over_provisioning" over_provisioning: f64 as Number = 0.07, fixed, unit "share of the capacity",
            "NAND pages beyond the capacity";
        "mapping" mapping: Mapping as Keyword = Mapping::Page, fixed,
            "mapping scheme: the table of pages or blocks, and the rule for places of pages";
        "log_blocks" log_blocks: u32 as Number = 0, fixed, unit "blocks",
            "log blocks of all units together; 0: all that the over-provisioning leaves",
            unused |c| !c.mapping.has_log() => "the mapping scheme has no log blocks";
        /// The evaluation of DFTL has as much memory for its tables as FAST needs.
        "cmt_entries" cmt_entries: u32 as Number = 8192, fixed, unit "entries",
            "entries of the cached mapping table",
            unused |c| c.mapping != Mapping::Dftl => "only DFTL has a cached mapping table";
        "merge_buffer" merge_buffer: u32 as Number = 0, fixed, unit "NAND pages",
            "buffer in DRAM in which writes wait until they fill a NAND page; 0: none";
        "slc_cache" slc_cache: f64 as Number = 0.0, fixed, unit "share of the blocks", within 0.0..=0.9,
            "blocks that store one bit a cell and take the writes first, at most if dynamic; 0: none";
        "slc_mode" slc_mode: SlcMode as Keyword = SlcMode::Static, fixed,
            "these blocks are always the same, or as many as the fill level of the volume leaves free",
            unused |c| c.slc_cache == 0.0 => "there is no cache with one bit a cell";
        "slc_full" slc_full: SlcFull as Keyword = SlcFull::Direct, live,
            "writes while these blocks are full: past them, or after one is folded",
            unused |c| c.slc_cache == 0.0 => "there is no cache with one bit a cell";
        "slc_idle_fold" slc_idle_fold: bool as Switch = true, live,
            "these blocks are folded in idle time",
            unused |c| c.slc_cache == 0.0 => "there is no cache with one bit a cell";
        /// Assumed: drives do not state it. It has to exceed the time that a host takes for its next request.
        "slc_idle_us" slc_idle_us: u64 as Number = 10_000, live, unit "µs", within 0..=60_000_000,
            "time without requests after which they are folded",
            unused |c| c.slc_cache == 0.0 || !c.slc_idle_fold => "nothing is folded in idle time";
        "power_loss_protection" power_loss_protection: bool as Switch = false, fixed,
            "the merge buffer survives a power loss, so a flush programs nothing; for simulations",
            unused |c| c.merge_buffer == 0 => "there is no merge buffer";
        /// Placement as NVMe's Flexible Data Placement and its older streams have it: a handle names an open
        /// block.
        "streams" streams: u32 as Number = 1, fixed, unit "streams", within 1..=4,
            "open blocks of a unit by the hint of a write: 2: hot and metadata, others; 3: cold too; 4: metadata too",
            unused |c| c.mapping != Mapping::Page => "only the page map has streams";
        "stream_gc" stream_gc: StreamGc as Keyword = StreamGc::Mixed, fixed,
            "blocks to which garbage collection moves the data of different streams",
            unused |c| c.streams == 1 => "there is one stream only";
        "read_buffer" read_buffer: u32 as Number = 0, fixed, unit "NAND pages",
            "buffer in DRAM for NAND pages that are read as a whole; 0: none";
        "read_fill" read_fill: f64 as Number = 0.5, live, unit "share of a NAND page", within 0.0..=1.0,
            "valid share of a NAND page from which it is read as a whole into the read buffer",
            unused |c| c.read_buffer == 0 => "there is no read buffer";
        /// As in MQSim. Drives transfer whole code words of their error correction.
        "partial_transfers" partial_transfers: bool as Switch = false, fixed,
            "reads and programs transfer only the sectors that a request reads or writes, of pages that are not divided",
            unused |c| c.mapping_unit > 0 => "only whole NAND pages have partial transfers";
        "allocation" allocation: Allocation as Keyword = Allocation::Dynamic, live,
            "NAND unit of a write",
            unused |c| c.mapping.maps_blocks() => "the mapping scheme determines the places of pages";
        "unit_order" unit_order: UnitOrder as Keyword = UnitOrder::Cwdp, live,
            "order of channels, ways, dies and planes in which writes are striped over the units, fastest first",
            unused |c| c.mapping.maps_blocks() => "the mapping scheme determines the places of pages";
        "recovery" recovery: FtlRecovery as Keyword = FtlRecovery::None, fixed,
            "contents of NAND from which a recovery finds the map";
        /// A power loss may lose any write to a page cache that was not synced.
        "erase_after_flush" erase_after_flush: bool as Switch = false, fixed,
            "blocks that were emptied since the last flush are erased after the next one, for media in files";
        "gc" gc: String as Name<Gc> = "greedy".into(), live,
            "garbage-collection policy";
        "gc_low_blocks" gc_low_blocks: u32 as Number = 3, live, unit "blocks",
            "free blocks of a unit from which writes pay for garbage collection, at least 3";
        "gc_high_blocks" gc_high_blocks: u32 as Number = 4, live, unit "blocks",
            "free blocks of a unit until which idle-time garbage collection runs";
        "gc_pacing" gc_pacing: String as Name<Pacing> = "share".into(), live,
            "copies of garbage collection: a share for each write, by tokens, or a victim at once";
        /// The default of MQSim-E is a block of each plane.
        "gc_burst" gc_burst: f64 as Number = 1.0, live, unit "blocks", within 0.0..=64.0,
            "pages of a unit that are written before copies are due, with tokens",
            unused |c| c.gc_pacing != "token" => "only pacing by tokens has a burst";
        /// MQSim-E has a quarter.
        "gc_urgency" gc_urgency: f64 as Number = 0.25, live, unit "share", within 0.0..=0.9,
            "tokens that a copy earns less as free blocks fall from gc_low_blocks to none",
            unused |c| c.gc_pacing != "token" => "only pacing by tokens has an urgency";
        "copyback" copyback: bool as Switch = false, live,
            "garbage collection moves NAND pages by copyback, inside the plane, if all of a page is valid";
        "wear_leveling" wear_leveling: String as Name<WearLeveling> = "dynamic".into(), live,
            "wear-leveling policy of NAND";
        "wear_threshold" wear_threshold: u32 as Number = 64, live, unit "cycles",
            "spread of erase counts that static wear leveling tolerates",
            unused |c| c.wear_leveling != "static" => "only static wear leveling has a threshold";
    }
}

impl FtlConfig {
    /// Checks everything that does not depend on the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.flash_keys().validate()?;
        self.check_mapping()?;
        let most = 1 << 16;
        for (key, pages) in [("merge_buffer", self.merge_buffer), ("read_buffer", self.read_buffer)] {
            if pages > most {
                return Err(Error::param(key, pages, format!("has to be at most {most}")));
            }
        }
        if self.power_loss_protection && self.scans() {
            let why = "requires recovery = \"none\": the memory of this program is lost in a crash";
            return Err(Error::param("power_loss_protection", true, why));
        }
        if self.streams > 1 && self.slc_cache > 0.0 {
            let why = "has to be 1 with slc_cache, whose blocks take the writes of all streams";
            return Err(Error::param("streams", self.streams, why));
        }
        if self.erase_after_flush && !self.scans() {
            return Err(Error::param("erase_after_flush", true, "requires recovery = \"scan\""));
        }
        Ok(())
    }

    /// Checks the parameters that a mapping scheme does not permit.
    fn check_mapping(&self) -> Result<()> {
        let name: &'static str = self.mapping.into();
        if self.mapping == Mapping::Page {
            return Ok(());
        }
        if self.mapping_unit != 0 {
            let why = format!("has to be 0 with mapping = \"{name}\", which maps NAND pages");
            return Err(Error::param("mapping_unit", self.mapping_unit, why));
        }
        if self.merge_buffer != 0 {
            let why = format!("has to be 0 with mapping = \"{name}\", which has no merge buffer");
            return Err(Error::param("merge_buffer", self.merge_buffer, why));
        }
        if self.mapping.maps_blocks() && self.wear_leveling == "static" {
            let why = format!(
                "has to be \"none\" or \"dynamic\" with mapping = \"{name}\": its blocks are not moved"
            );
            return Err(Error::param("wear_leveling", &self.wear_leveling, why));
        }
        if self.slc_cache > 0.0 {
            let why = format!("has to be 0 with mapping = \"{name}\", which has no such cache");
            return Err(Error::param("slc_cache", self.slc_cache, why));
        }
        if self.streams > 1 {
            let why = format!("has to be 1 with mapping = \"{name}\", which places pages by other rules");
            return Err(Error::param("streams", self.streams, why));
        }
        if self.cmt_entries < 2 {
            return Err(Error::param("cmt_entries", self.cmt_entries, "has to be at least 2"));
        }
        Ok(())
    }

    /// Returns `true` if pages of metadata are written.
    #[must_use]
    pub fn scans(&self) -> bool {
        self.recovery == FtlRecovery::Scan
    }

    /// Geometry of the NAND that the layer uses: its pages are divided into mapping units. A layer
    /// that recovers from records has two copies of each, because a single damaged one could not be
    /// told from one of an interrupted program.
    ///
    /// # Errors
    /// A mapping unit that does not divide a page, or a cache that the NAND cannot have.
    pub fn divide(&self, nand: NandGeometry) -> Result<NandGeometry> {
        let record_copies = if self.scans() { 2 } else { 1 };
        let nand = match self.slc_mode {
            _ if self.slc_cache == 0.0 => nand,
            SlcMode::Static => nand.with_slc_share("slc_cache", self.slc_cache)?,
            SlcMode::Dynamic => nand.with_dynamic_slc("slc_cache", self.slc_cache)?,
        };
        Ok(NandGeometry { record_copies, ..nand.divided(self.mapping_unit)? })
    }

    /// Placement handles, beside data without one.
    pub(super) fn handles(&self) -> usize {
        self.streams as usize - 1
    }

    /// Returns `true` if garbage collection keeps streams apart.
    pub(super) fn isolates(&self) -> bool {
        self.streams > 1 && self.stream_gc == StreamGc::Isolated
    }

    /// Blocks of a unit that the layer needs beside those of its data.
    pub(super) fn spare_needs(&self) -> SpareNeeds {
        let handles = self.handles() * (1 + usize::from(self.isolates()));
        // A dynamic cache has an open block in the common pool.
        SpareNeeds { lasting: self.scans(), handles: handles + usize::from(self.has_dynamic_cache()) }
    }

    /// Returns `true` if the cache with one bit a cell takes free blocks of the volume.
    pub(super) fn has_dynamic_cache(&self) -> bool {
        self.slc_cache > 0.0 && self.slc_mode == SlcMode::Dynamic
    }

    /// Time without requests after which the cache with one bit a cell is folded.
    pub(super) fn slc_idle(&self) -> Option<Nanos> {
        self.slc_idle_fold.then_some(Nanos(self.slc_idle_us * 1_000))
    }

    /// Pacing policy with its parameters.
    ///
    /// # Errors
    /// The name of an unknown policy.
    pub(super) fn pacing(&self) -> Result<Pacing> {
        let mut pacing: Pacing = parse_name("gc_pacing", &self.gc_pacing)?;
        pacing.set_limits(self.gc_burst, self.gc_urgency);
        Ok(pacing)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_nonsense_is_refused_by_key() {
        FtlConfig::default().validate().unwrap();
        let bad = |f: fn(&mut FtlConfig)| {
            let mut c = FtlConfig::default();
            f(&mut c);
            c.validate().unwrap_err().to_string()
        };
        assert!(bad(|c| c.over_provisioning = f64::NAN).contains("over_provisioning"));
        assert!(bad(|c| c.gc_low_blocks = 1).contains("gc_low_blocks"));
        assert!(bad(|c| c.gc_high_blocks = 2).contains("gc_high_blocks"));
        assert!(bad(|c| c.merge_buffer = 1 << 20).contains("merge_buffer"));
        assert!(bad(|c| (c.mapping, c.mapping_unit) = (Mapping::Fast, 4096)).contains("mapping_unit"));
        assert!(bad(|c| (c.mapping, c.merge_buffer) = (Mapping::Dftl, 1)).contains("merge_buffer"));
        assert!(bad(|c| (c.mapping, c.cmt_entries) = (Mapping::Dftl, 1)).contains("cmt_entries"));
        assert!(
            bad(|c| (c.mapping, c.wear_leveling) = (Mapping::Block, "static".into()))
                .contains("wear_leveling")
        );
        assert!(bad(|c| (c.mapping, c.slc_cache) = (Mapping::Dftl, 0.1)).contains("slc_cache"));
        assert!(bad(|c| (c.streams, c.slc_cache) = (2, 0.1)).contains("streams"));
        assert!(bad(|c| c.streams = 5).contains("streams"));
        assert!(bad(|c| (c.mapping, c.streams) = (Mapping::Fast, 2)).contains("streams"));
        assert!(bad(|c| c.slc_cache = 1.0).contains("slc_cache"));
        assert!(
            bad(|c| (c.power_loss_protection, c.recovery) = (true, FtlRecovery::Scan))
                .contains("power_loss_protection")
        );
        assert!(bad(|c| c.erase_after_flush = true).contains("recovery"));
    }
}
