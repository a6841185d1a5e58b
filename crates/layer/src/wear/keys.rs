//! The keys of wear leveling in the table of a layer that stands on it.

use crate::named::named;
use crate::wear::{LevelerKind, WearConfig};
use frit_core::{Error, ParamInfo, Result, size};
use serde::Deserialize;

/// Wear leveling, as a stack file has it in the table of a layer.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WearKeys {
    /// Which leveler.
    pub wear_leveling: String,
    /// What moves as one, in bytes: a power of two.
    #[serde(deserialize_with = "size::deserialize")]
    pub wear_stripe: u64,
    /// Writes of 4 KiB to a region between two of its moves.
    pub wear_interval: u32,
    /// Ranks of the PCM, as levelers see it.
    pub wear_ranks: u32,
    /// Banks of a rank.
    pub wear_banks: u32,
    /// Space-filling curve: cubes.
    pub wear_cubes: u32,
    /// Start-gap and security refresh: stripes of a region; 0: a bank.
    pub wear_region: u32,
    /// For keys of levelers that have some.
    pub wear_seed: u64,
    /// Registers of levelers are kept twice, for media in files behind a page cache.
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
    /// As levelers take it.
    ///
    /// # Errors
    /// A leveler that there is not, a stripe that is none.
    pub fn config(&self) -> Result<WearConfig> {
        let stripe = u32::try_from(self.wear_stripe).ok().filter(|s| s.is_power_of_two());
        let why = "has to be a power of two below 4 GiB";
        Ok(WearConfig {
            leveler: named::<LevelerKind>("wear_leveling", &self.wear_leveling)?,
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

    /// An error of the levelers in the words of the table: their keys have other names there.
    pub(crate) fn in_table(error: Error) -> Error {
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

    pub(crate) fn params(&self) -> Vec<ParamInfo> {
        let info = |key, value: String, help| ParamInfo { key, help, value, live: false };
        vec![
            info("wear_leveling", self.wear_leveling.clone(), "leveling of PCM's wear"),
            info("wear_stripe", size::show(self.wear_stripe), "what leveling moves as one"),
            info(
                "wear_interval",
                self.wear_interval.to_string(),
                "writes of 4 KiB to a region between two moves",
            ),
            info("wear_ranks", self.wear_ranks.to_string(), "ranks, as levelers see PCM"),
            info("wear_banks", self.wear_banks.to_string(), "banks of a rank"),
            info("wear_cubes", self.wear_cubes.to_string(), "sfc: cubes"),
            info("wear_region", self.wear_region.to_string(), "stripes of a region; 0: a bank"),
            info("wear_seed", self.wear_seed.to_string(), "for the keys of levelers"),
            info("over_files", self.over_files.to_string(), "registers twice, for media in files"),
        ]
    }
}
