//! Format of a study of write caches: workloads × views × policies × sizes. Several metrics are
//! read from its runs.

use super::WorkloadSpec;
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// A study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name by which figures refer to the study.
    pub name: String,
    /// Base stack of all runs: a cache in PCM in front of a disk.
    pub stack: String,
    /// Overrides of every run.
    #[serde(default)]
    pub set: Vec<String>,
    /// Assumptions where the paper leaves details open.
    pub readings: Vec<String>,
    /// Methods of running and timing.
    #[serde(rename = "view")]
    pub views: Vec<View>,
    /// Variants of the cache that are compared.
    #[serde(rename = "policy")]
    pub policies: Vec<PolicySpec>,
    /// Workloads, each with the size of its cache.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// Reduction for `--quick`.
    pub quick: StudyQuick,
}

/// A method of running and timing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Description, in a sentence.
    pub about: String,
    /// Behavior of the host.
    pub host: HostLoop,
    /// Overrides.
    #[serde(default)]
    pub set: Vec<String>,
}

/// Behavior of the host, and the media whose time counts.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostLoop {
    /// Closed loop of disk commands, one at a time; PCM takes no time (HALO paper, section V).
    DiskOnly,
    /// As `DiskOnly`, but the disk's commands are only counted.
    Counted,
    /// Closed loop with this queue depth; all media take time.
    Closed(u32),
    /// Open loop: requests arrive at their times, divided by this; all media take time.
    Open(f64),
}

/// A variant of the cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// Name and heading.
    pub name: String,
    /// Overrides.
    pub set: Vec<String>,
}

/// Size of a cache: `2G`, or a share of the bytes that the workload reads and writes, `2.8%`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CacheSize {
    /// Size in bytes.
    Bytes(u64),
    /// Share of the bytes that are read and written.
    Share(f64),
}

impl<'de> Deserialize<'de> for CacheSize {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> std::result::Result<CacheSize, D::Error> {
        let text = String::deserialize(d)?;
        let bad = serde::de::Error::custom;
        match text.strip_suffix('%') {
            None => size::parse(&text).map(CacheSize::Bytes).map_err(bad),
            Some(n) => match n.trim().parse::<f64>() {
                Ok(p) if p > 0.0 && p <= 100.0 => Ok(CacheSize::Share(p / 100.0)),
                _ => Err(bad(format!("'{text}' is not a share: use one above 0% and up to 100%"))),
            },
        }
    }
}

/// Reduction of a study for `--quick`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyQuick {
    /// Number of first requests of each workload.
    pub requests: u64,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Divisor of cache sizes, since so few requests would not fill a cache.
    pub cache_by: u64,
}

impl Study {
    /// Parses a study. Errors name it `name`.
    ///
    /// # Errors
    /// The study is invalid; the error contains the line.
    pub fn parse(name: &str, text: &str) -> Result<Study> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let s: Study = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        for w in &s.workloads {
            w.check().map_err(bad)?;
            if w.cache.is_none() {
                return Err(bad(format!("workload '{}' does not say how large its cache is", w.name)));
            }
        }
        if s.quick.cache_by == 0 {
            return Err(bad("cache_by has to be above 0".into()));
        }
        Ok(s)
    }

    /// Returns a view by name.
    #[must_use]
    pub fn view(&self, name: &str) -> Option<&View> {
        self.views.iter().find(|v| v.name == name)
    }

    /// Returns a policy by name.
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<&PolicySpec> {
        self.policies.iter().find(|p| p.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_a_size_or_a_share() {
        #[derive(Deserialize)]
        struct T {
            cache: CacheSize,
        }
        let of = |text: &str| toml::from_str::<T>(&format!("cache = \"{text}\"")).map(|t| t.cache);
        assert_eq!(of("2G").unwrap(), CacheSize::Bytes(2 << 30));
        assert_eq!(of("25 %").unwrap(), CacheSize::Share(0.25));
        for wrong in ["0%", "101%", "x%", "2Q"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
