//! Configuration of a nameless-write device, and of the block volume over it.

use crate::flash::{FlashKeys, Gc, WearLeveling};
use frit_core::{Error, ParamTable, Result, size};
use frit_media::NandGeometry;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Metadata that a recovery needs.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NamelessRecovery {
    /// No metadata is written, and nothing is recovered. For simulations.
    #[default]
    None,
    /// The owner's map in virtual blocks, and checkpoints of the device.
    Scan,
}

frit_core::parameters! {
    /// Configuration of a nameless-write device with a block volume over it, the table `[nameless]` of
    /// a stack file.
    pub struct NamelessConfig {
        /// File systems have blocks of 4 KiB, and the board virtual pages of 32 KiB (section 3.4).
        #[serde(deserialize_with = "size::deserialize")]
        "mapping_unit" mapping_unit: u64 as Bytes = 0, fixed, unit "bytes",
            "size of a block, a part of a virtual page of the NAND; 0: the whole of it";
        #[serde(deserialize_with = "size::deserialize")]
        "capacity" capacity: u64 as Bytes = 0, derived, unit "bytes",
            "size of the volume; otherwise derived from over-provisioning";
        /// 7 % as on the board (section 3.3).
        "over_provisioning" over_provisioning: f64 as Number = 0.07, fixed, unit "share of the capacity",
            "NAND pages beyond the capacity";
        /// The scheduler of the prototype merges any writes, and its queues of random writes are smaller
        /// than a virtual page (section 4.2); their size is not published.
        "queue_writes" queue_writes: u32 as Number = 1, fixed, unit "writes", within 1..=65536,
            "writes at unrelated places that the scheduler merges into one request queue; 1: none waits";
        /// 32 is the depth of the native command queue of SATA.
        "queues" queues: u32 as Number = 32, fixed, unit "virtual pages", within 1..=65536,
            "request queues that are being programmed before a write waits",
            unused |c| c.queue_writes == 1 => "no write waits in a request queue";
        /// The operations of the small device are page read, page program and block erase (section 3.4).
        "page_reads" page_reads: bool as Switch = false, fixed,
            "a read transfers a whole virtual page, and not only its blocks";
        "recovery" recovery: NamelessRecovery as Keyword = NamelessRecovery::None, fixed,
            "metadata that a recovery needs";
        /// A power loss may lose any write to a page cache that was not synced.
        "erase_after_flush" erase_after_flush: bool as Switch = false, fixed,
            "blocks that were emptied since the last flush are erased after the next one, for media in files";
        "gc" gc: String as Name<Gc> = "greedy".into(), fixed,
            "garbage-collection policy";
        "gc_low_blocks" gc_low_blocks: u32 as Number = 3, fixed, unit "blocks", within 3..=1048576,
            "free blocks of a NAND unit from which writes pay for garbage collection";
        "gc_high_blocks" gc_high_blocks: u32 as Number = 4, fixed, unit "blocks", within 3..=1048576,
            "free blocks of a NAND unit until which idle-time garbage collection runs";
        "wear_leveling" wear_leveling: String as Name<WearLeveling> = "dynamic".into(), fixed,
            "wear-leveling policy of NAND";
        "wear_threshold" wear_threshold: u32 as Number = 64, fixed, unit "cycles", within 1..=1048576,
            "spread of erase counts that static wear leveling tolerates",
            unused |c| c.wear_leveling != "static" => "only static wear leveling has a threshold";
    }
}

impl NamelessConfig {
    /// Checks everything that does not depend on the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.flash_keys().validate()?;
        if self.erase_after_flush && !self.scans() {
            return Err(Error::param("erase_after_flush", true, "requires recovery = \"scan\""));
        }
        Ok(())
    }

    /// Returns `true` if the metadata for a recovery is written.
    #[must_use]
    pub fn scans(&self) -> bool {
        self.recovery == NamelessRecovery::Scan
    }

    /// Geometry of the NAND that the device uses: its pages are divided into blocks. A device that
    /// recovers from records has two copies of each, as the FTL has.
    ///
    /// # Errors
    /// A mapping unit that does not divide a page.
    pub fn divide(&self, nand: NandGeometry) -> Result<NandGeometry> {
        let record_copies = if self.scans() { 2 } else { 1 };
        Ok(NandGeometry { record_copies, ..nand.divided(self.mapping_unit)? })
    }

    /// Checks that NAND is divided into blocks ([`NamelessConfig::divide`]).
    ///
    /// # Errors
    /// A mapping unit that is not the page of the NAND.
    pub(crate) fn check_divided(&self, g: &NandGeometry) -> Result<()> {
        if self.mapping_unit == 0 || self.mapping_unit == u64::from(g.page_bytes) {
            return Ok(());
        }
        let why = format!("the NAND is divided into pages of {} bytes", g.page_bytes);
        Err(Error::param("mapping_unit", self.mapping_unit, why))
    }

    /// Parameters of the NAND side. The host moves pages over the bus: copyback stays inside the device,
    /// which a host FTL cannot use (section 3.4).
    pub(super) fn flash_keys(&self) -> FlashKeys<'_> {
        FlashKeys {
            over_provisioning: self.over_provisioning,
            gc: &self.gc,
            gc_low_blocks: self.gc_low_blocks,
            gc_high_blocks: self.gc_high_blocks,
            copyback: false,
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
        NamelessConfig::default().validate().unwrap();
        let bad = |f: fn(&mut NamelessConfig)| {
            let mut c = NamelessConfig::default();
            f(&mut c);
            c.validate().unwrap_err().to_string()
        };
        assert!(bad(|c| c.over_provisioning = f64::NAN).contains("over_provisioning"));
        assert!(bad(|c| c.queue_writes = 0).contains("queue_writes"));
        assert!(bad(|c| c.gc_low_blocks = 1).contains("gc_low_blocks"));
        assert!(bad(|c| c.gc_low_blocks = 9).contains("gc_high_blocks"));
        assert!(bad(|c| c.erase_after_flush = true).contains("recovery"));
    }
}
