//! Keys of wear leveling in the stack-file table of a layer that uses it.

use crate::{LevelerKind, WearConfig};
use frit_core::params::parse_name;
use frit_core::{Error, Result, size};

/// Declares a table of wear-leveling keys. Both tables have the same parameters under other keys.
macro_rules! wear_keys {
    (
        $(#[$meta:meta])*
        $name:ident {
            $leveling:literal, $stripe:literal, $interval:literal, $ranks:literal, $banks:literal,
            $cubes:literal ($no_cubes:literal), $region:literal, $seed:literal;
            $($own:tt)*
        }
    ) => {
        frit_core::parameters! {
            $(#[$meta])*
            pub struct $name {
                $leveling wear_leveling: String as Name<LevelerKind> = "none".into(), fixed,
                    "wear leveler of PCM";
                #[serde(deserialize_with = "size::deserialize")]
                $stripe wear_stripe: u64 as Size = u64::from(WearConfig::default().stripe_bytes), fixed,
                    unit "bytes",
                    "stripe size: the unit of a move";
                $interval wear_interval: u32 as Number = WearConfig::default().interval, fixed,
                    unit "writes",
                    "writes of 4 KiB to a region between two moves",
                    unused |c| c.wear_leveling == "none" => "wear leveling is off";
                $ranks wear_ranks: u32 as Number = WearConfig::default().ranks, fixed, unit "ranks",
                    "ranks, as levelers see PCM";
                $banks wear_banks: u32 as Number = WearConfig::default().banks, fixed, unit "banks",
                    "banks of a rank";
                $cubes wear_cubes: u32 as Number = WearConfig::default().cubes, fixed, unit "cubes",
                    "sfc: cubes",
                    unused |c| c.wear_leveling != "sfc" => $no_cubes;
                $region wear_region: u32 as Number = WearConfig::default().region_stripes, fixed,
                    unit "stripes",
                    "stripes of a region; 0: a bank",
                    unused |c| !["start-gap", "randomized-start-gap", "security-refresh"]
                        .contains(&c.wear_leveling.as_str())
                        => "only start-gap, randomized-start-gap and security-refresh have regions";
                $seed wear_seed: u64 as Number = WearConfig::default().seed, fixed,
                    "seed of the levelers' keys";
                $($own)*
            }
        }
    };
}

wear_keys! {
    /// Wear-leveling keys, as a stack file has them in the table of a layer.
    WearKeys {
        "wear_leveling", "wear_stripe", "wear_interval", "wear_ranks", "wear_banks",
        "wear_cubes" ("only `wear_leveling` = sfc has cubes"), "wear_region", "wear_seed";
        "over_files" over_files: bool as Switch = false, fixed,
            "keeps registers twice, for media in files";
    }
}

wear_keys! {
    /// Wear-leveling keys of a layer that also levels another medium. They have the prefix `pcm_`.
    /// The layer decides whether registers are kept twice.
    PcmWearKeys {
        "pcm_wear_leveling", "pcm_wear_stripe", "pcm_wear_interval", "pcm_wear_ranks", "pcm_wear_banks",
        "pcm_wear_cubes" ("only `pcm_wear_leveling` = sfc has cubes"), "pcm_wear_region", "pcm_wear_seed";
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

impl PcmWearKeys {
    /// Converts the keys to the configuration of the leveler. With `over_files` registers are kept
    /// twice, for media in files.
    ///
    /// # Errors
    /// The leveler is unknown, or the stripe size is invalid.
    pub fn config(&self, over_files: bool) -> Result<WearConfig> {
        let keys = WearKeys {
            wear_leveling: self.wear_leveling.clone(),
            wear_stripe: self.wear_stripe,
            wear_interval: self.wear_interval,
            wear_ranks: self.wear_ranks,
            wear_banks: self.wear_banks,
            wear_cubes: self.wear_cubes,
            wear_region: self.wear_region,
            wear_seed: self.wear_seed,
            over_files,
        };
        keys.config().map_err(PcmWearKeys::in_table)
    }

    /// Translates the parameter name in an error of the leveler to the key of the table.
    #[must_use]
    pub fn in_table(error: Error) -> Error {
        match WearKeys::in_table(error) {
            Error::Param { key, value, why } if key.starts_with("wear_") => {
                Error::Param { key: format!("pcm_{key}"), value, why }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::ParamTable;

    #[test]
    fn both_tables_have_the_same_parameters_and_defaults() {
        let prefixed: Vec<_> = PcmWearKeys::default().list();
        let plain = WearKeys::default().list();
        for (of_pcm, plain) in prefixed.iter().zip(&plain) {
            assert_eq!(of_pcm.key, format!("pcm_{}", plain.key));
            assert_eq!((&of_pcm.value, of_pcm.help, of_pcm.live), (&plain.value, plain.help, plain.live));
        }
        assert_eq!((plain.len() - prefixed.len(), &*plain[plain.len() - 1].key), (1, "over_files"));
        for over_files in [false, true] {
            let plain = WearKeys { over_files, ..WearKeys::default() };
            assert_eq!(PcmWearKeys::default().config(over_files).unwrap(), plain.config().unwrap());
        }
    }

    #[test]
    fn errors_name_the_key_of_their_table() {
        let said = |sets: &[(&str, &str)]| {
            let mut keys = PcmWearKeys::default();
            sets.iter().for_each(|(key, value)| assert!(keys.assign(key, value).unwrap()));
            keys.config(false).unwrap_err().to_string()
        };
        assert!(said(&[("pcm_wear_stripe", "3000")]).starts_with("pcm_wear_stripe = 3000"));
        let e = PcmWearKeys { wear_leveling: "best".into(), ..PcmWearKeys::default() }.config(false);
        assert!(e.unwrap_err().to_string().starts_with("pcm_wear_leveling = best"));
        let e = PcmWearKeys::in_table(Error::param("cubes", 9, "too many")).to_string();
        assert!(e.starts_with("pcm_wear_cubes = 9"), "{e}");
    }
}
