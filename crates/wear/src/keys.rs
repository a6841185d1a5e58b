//! Keys of wear leveling in the stack-file table of a layer that uses it.

use crate::{LevelerKind, WearConfig};
use frit_core::params::parse_name;
use frit_core::{Error, Result, size};

frit_core::parameters! {
    /// Wear-leveling keys, as a stack file has them in the table of a layer.
    pub struct WearKeys {
        "wear_leveling" wear_leveling: String as Name<LevelerKind> = "none".into(), fixed,
            "wear leveler of PCM";
        #[serde(deserialize_with = "size::deserialize")]
        "wear_stripe" wear_stripe: u64 as Size = u64::from(WearConfig::default().stripe_bytes), fixed,
            unit "bytes",
            "stripe size: the unit of a move";
        "wear_interval" wear_interval: u32 as Number = WearConfig::default().interval, fixed, unit "writes",
            "writes of 4 KiB to a region between two moves",
            unused |c| c.wear_leveling == "none" => "wear leveling is off";
        "wear_ranks" wear_ranks: u32 as Number = WearConfig::default().ranks, fixed, unit "ranks",
            "ranks, as levelers see PCM";
        "wear_banks" wear_banks: u32 as Number = WearConfig::default().banks, fixed, unit "banks",
            "banks of a rank";
        "wear_cubes" wear_cubes: u32 as Number = WearConfig::default().cubes, fixed, unit "cubes",
            "sfc: cubes",
            unused |c| c.wear_leveling != "sfc" => "only `wear_leveling` = sfc has cubes";
        "wear_region" wear_region: u32 as Number = WearConfig::default().region_stripes, fixed,
            unit "stripes",
            "stripes of a region; 0: a bank",
            unused |c| !["start-gap", "randomized-start-gap", "security-refresh"]
                .contains(&c.wear_leveling.as_str())
                => "only start-gap, randomized-start-gap and security-refresh have regions";
        "wear_seed" wear_seed: u64 as Number = WearConfig::default().seed, fixed,
            "seed of the levelers' keys";
        "over_files" over_files: bool as Switch = false, fixed,
            "keeps registers twice, for media in files";
    }
}

impl WearKeys {
    /// Converts the keys to the configuration of the leveler.
    ///
    /// # Errors
    /// The leveler is unknown, or the stripe size is invalid.
    pub fn config(&self) -> Result<WearConfig> {
        let stripe = u32::try_from(self.wear_stripe).ok().filter(|s| s.is_power_of_two());
        let why = "has to be a power of two below 4 GiB";
        Ok(WearConfig {
            leveler: parse_name::<LevelerKind>("wear_leveling", &self.wear_leveling)?,
            stripe_bytes: stripe.ok_or_else(|| Error::param("wear_stripe", self.wear_stripe, why))?,
            ranks: self.wear_ranks,
            banks: self.wear_banks,
            cubes: self.wear_cubes,
            region_stripes: self.wear_region,
            interval: self.wear_interval,
            seed: self.wear_seed,
            over_files: self.over_files,
            ..WearConfig::default()
        })
    }

    /// Translates the parameter name in an error of the leveler to the key of the table.
    #[must_use]
    pub fn in_table(error: Error) -> Error {
        let Error::Param { key, value, why } = error else { return error };
        let key = match &key[..] {
            "stripe_bytes" => "wear_stripe",
            "interval" => "wear_interval",
            "ranks" => "wear_ranks",
            "banks" => "wear_banks",
            "cubes" => "wear_cubes",
            "region_stripes" => "wear_region",
            _ => return Error::Param { key, value, why },
        };
        Error::Param { key: key.into(), value, why }
    }
}
