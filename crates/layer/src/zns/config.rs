//! Configuration of a zoned device.

use frit_core::{Error, ParamTable, Result, size};
use frit_media::NandGeometry;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Contents of NAND from which a recovery finds the zones.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ZnsRecovery {
    /// No table of zones is written, and nothing is recovered. For simulations.
    #[default]
    None,
    /// The table of zones, and a scan of the spare areas.
    Scan,
}

frit_core::parameters! {
    /// Configuration of a zoned device, the table `[zns]` of a stack file.
    pub struct ZnsConfig {
        #[serde(deserialize_with = "size::deserialize")]
        "mapping_unit" mapping_unit: u64 as Bytes = 0, fixed, unit "bytes",
            "size of a logical block, a part of a NAND page; 0: the whole of it";
        #[serde(deserialize_with = "size::deserialize")]
        "capacity" capacity: u64 as Bytes = 0, derived, unit "bytes",
            "size of the volume, in whole zones; otherwise as many zones as the NAND has blocks for";
        "zone_blocks" zone_blocks: u32 as Number = 0, fixed, unit "erase blocks", within 0..=65536,
            "erase blocks of a zone, on consecutive units of the NAND; 0: one of every unit";
        /// The limits of the Western Digital Ultrastar DC ZN540: 14 open and 14 active zones.
        "max_open" max_open: u32 as Number = 14, fixed, unit "zones", within 0..=65536,
            "zones that are open at the same time, each with a write buffer; 0: no limit";
        "max_active" max_active: u32 as Number = 14, fixed, unit "zones", within 0..=65536,
            "zones that are open or closed at the same time; 0: no limit";
        "buffer_units" buffer_units: u32 as Number = 0, fixed, unit "program units", within 0..=65536,
            "write buffer of an open zone; 0: one program unit for each erase block of a zone";
        /// A host does this by a reset of the zone. For traces of hosts that know no zones.
        "reset_on_rewrite" reset_on_rewrite: bool as Switch = false, fixed,
            "a write at the start of a zone resets it, and a write can continue in the next zone";
        /// Assumed. Nothing is moved inside a zone, so only bad blocks need it.
        "over_provisioning" over_provisioning: f64 as Number = 0.02, fixed, unit "share of the blocks",
            within 0.0..=0.9, "erase blocks of a unit that replace bad ones, at least one";
        "power_loss_protection" power_loss_protection: bool as Switch = false, fixed,
            "the write buffers survive a power loss, so a flush programs nothing; for simulations";
        "recovery" recovery: ZnsRecovery as Keyword = ZnsRecovery::None, fixed,
            "contents of NAND from which a recovery finds the zones";
    }
}

impl ZnsConfig {
    /// Checks everything that does not depend on the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        if self.max_active != 0 && self.max_open > self.max_active {
            let why = format!("has to be at most max_active = {}: open zones are active", self.max_active);
            return Err(Error::param("max_open", self.max_open, why));
        }
        if self.power_loss_protection && self.scans() {
            let why = "requires recovery = \"none\": the memory of this program is lost in a crash";
            return Err(Error::param("power_loss_protection", true, why));
        }
        Ok(())
    }

    /// Returns `true` if the table of zones is written.
    #[must_use]
    pub fn scans(&self) -> bool {
        self.recovery == ZnsRecovery::Scan
    }

    /// Largest number of open zones.
    pub(super) fn open_limit(&self) -> u32 {
        match (self.max_open, self.max_active) {
            (0, 0) => u32::MAX,
            (0, active) => active,
            (open, _) => open,
        }
    }

    /// Largest number of active zones.
    pub(super) fn active_limit(&self) -> u32 {
        if self.max_active == 0 { u32::MAX } else { self.max_active }
    }

    /// Geometry of the NAND that the layer uses: its pages are divided into logical blocks. A layer that
    /// recovers from records has two copies of each, as the FTL has.
    ///
    /// # Errors
    /// A mapping unit that does not divide a page.
    pub fn divide(&self, nand: NandGeometry) -> Result<NandGeometry> {
        let record_copies = if self.scans() { 2 } else { 1 };
        Ok(NandGeometry { record_copies, ..nand.divided(self.mapping_unit)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_nonsense_is_refused_by_key() {
        ZnsConfig::default().validate().unwrap();
        let bad = |f: fn(&mut ZnsConfig)| {
            let mut c = ZnsConfig::default();
            f(&mut c);
            c.validate().unwrap_err().to_string()
        };
        assert!(bad(|c| c.max_open = 15).contains("max_open"));
        assert!(bad(|c| c.over_provisioning = 1.0).contains("over_provisioning"));
        assert!(
            bad(|c| (c.power_loss_protection, c.recovery) = (true, ZnsRecovery::Scan))
                .contains("power_loss_protection")
        );
        let unlimited = ZnsConfig { max_open: 0, max_active: 0, ..ZnsConfig::default() };
        unlimited.validate().unwrap();
        assert_eq!((unlimited.open_limit(), unlimited.active_limit()), (u32::MAX, u32::MAX));
        let open = ZnsConfig { max_open: 0, max_active: 3, ..ZnsConfig::default() };
        assert_eq!((open.open_limit(), open.active_limit()), (3, 3));
    }
}
