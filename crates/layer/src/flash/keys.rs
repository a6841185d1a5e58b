//! Parameters of the NAND side, which the tables of several layers have under the same names.

use super::{FlashConfig, Gc, Pacing, SlcFull, WearLeveling, WearPolicy};
use frit_core::params::parse_name;
use frit_core::{Error, Result};

/// Values of these parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlashKeys<'a> {
    pub(crate) over_provisioning: f64,
    pub(crate) gc: &'a str,
    pub(crate) gc_low_blocks: u32,
    pub(crate) gc_high_blocks: u32,
    pub(crate) copyback: bool,
    pub(crate) wear_leveling: &'a str,
    pub(crate) wear_threshold: u32,
}

impl FlashKeys<'_> {
    /// Checks the values as far as that is possible without the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub(crate) fn validate(&self) -> Result<()> {
        if !(0.0..=100.0).contains(&self.over_provisioning) {
            let why = "has to be from 0 to 100 (0.07 is 7 % more NAND than volume)";
            return Err(Error::param("over_provisioning", self.over_provisioning, why));
        }
        if self.gc_low_blocks < 3 {
            let why = "has to be at least 3 (two blocks are reserved for garbage collection)";
            return Err(Error::param("gc_low_blocks", self.gc_low_blocks, why));
        }
        if self.gc_high_blocks < self.gc_low_blocks {
            let why = format!("has to be at least gc_low_blocks, which is {}", self.gc_low_blocks);
            return Err(Error::param("gc_high_blocks", self.gc_high_blocks, why));
        }
        if self.wear_threshold == 0 {
            return Err(Error::param("wear_threshold", 0, "has to be above 0"));
        }
        Ok(())
    }

    /// Returns the configuration of the NAND side.
    ///
    /// # Errors
    /// The name of an unknown policy.
    pub(crate) fn config(&self) -> Result<FlashConfig> {
        Ok(FlashConfig {
            gc: parse_name::<Gc>("gc", self.gc)?,
            wear: self.wear()?,
            pacing: Pacing::default(),
            low_blocks: self.gc_low_blocks as usize,
            high_blocks: self.gc_high_blocks as usize,
            copyback: self.copyback,
            handles: 0,
            isolated: false,
            slc_full: SlcFull::default(),
            slc_idle: None,
        })
    }

    /// Returns the wear-leveling policy with its threshold.
    ///
    /// # Errors
    /// The name of an unknown policy.
    pub(crate) fn wear(&self) -> Result<WearLeveling> {
        let mut wear: WearLeveling = parse_name("wear_leveling", self.wear_leveling)?;
        wear.set_threshold(self.wear_threshold);
        Ok(wear)
    }
}
