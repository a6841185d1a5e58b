//! Keys of wear leveling in the stack-file table of a layer that uses it.

use crate::{LevelerKind, WearConfig};
use frit_core::param_value::parse_name;
use frit_core::{Error, ParamInfo, Result, size};
use serde::Deserialize;

/// Wear-leveling keys, as a stack file has them in the table of a layer.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WearKeys {
    /// Name of the leveler.
    pub wear_leveling: String,
    /// Stripe size in bytes: the unit of a move, a power of two.
    #[serde(deserialize_with = "size::deserialize")]
    pub wear_stripe: u64,
    /// Interval of the moves of a region, in writes of 4 KiB to it.
    pub wear_interval: u32,
    /// Number of ranks of the PCM, as seen by levelers.
    pub wear_ranks: u32,
    /// Number of banks in a rank.
    pub wear_banks: u32,
    /// Space-filling curve: number of cubes.
    pub wear_cubes: u32,
    /// Start-gap and security refresh: stripes of a region. 0: a bank.
    pub wear_region: u32,
    /// Seed of the levelers' keys.
    pub wear_seed: u64,
    /// Registers of the leveler are kept twice, for media in files behind a page cache.
    pub over_files: bool,
}

impl Default for WearKeys {
    fn default() -> Self {
        let c = WearConfig::default();
        WearKeys {
            wear_leveling: "none".into(),
            wear_stripe: u64::from(c.stripe_bytes),
            wear_interval: c.interval,
            wear_ranks: c.ranks,
            wear_banks: c.banks,
            wear_cubes: c.cubes,
            wear_region: c.region_stripes,
            wear_seed: c.seed,
            over_files: false,
        }
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

    /// The keys as parameters, with their values. None of them changes while the layer runs.
    #[must_use]
    pub fn params(&self) -> Vec<ParamInfo> {
        let info = |key, value: String, help| ParamInfo { key, help, value, live: false };
        vec![
            info("wear_leveling", self.wear_leveling.clone(), "wear leveler of PCM"),
            info("wear_stripe", size::format(self.wear_stripe), "stripe size: the unit of a move"),
            info(
                "wear_interval",
                self.wear_interval.to_string(),
                "writes of 4 KiB to a region between two moves",
            ),
            info("wear_ranks", self.wear_ranks.to_string(), "ranks, as levelers see PCM"),
            info("wear_banks", self.wear_banks.to_string(), "banks of a rank"),
            info("wear_cubes", self.wear_cubes.to_string(), "sfc: cubes"),
            info("wear_region", self.wear_region.to_string(), "stripes of a region; 0: a bank"),
            info("wear_seed", self.wear_seed.to_string(), "seed of the levelers' keys"),
            info("over_files", self.over_files.to_string(), "keeps registers twice, for media in files"),
        ]
    }
}
