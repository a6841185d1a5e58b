//! A study of write caches: workloads × views × policies × sizes. Several figures are read from one.

use super::WorkloadSpec;
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name, by which figures refer to it.
    pub name: String,
    /// The stack that all runs start from: a cache in PCM before a disk.
    pub stack: String,
    /// Overrides of every run.
    #[serde(default)]
    pub set: Vec<String>,
    /// How what the paper leaves open is taken.
    pub readings: Vec<String>,
    /// How runs are looked at.
    #[serde(rename = "view")]
    pub views: Vec<View>,
    /// What is compared.
    #[serde(rename = "policy")]
    pub policies: Vec<PolicySpec>,
    /// What is run; each says how large its cache is.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// What `--quick` leaves.
    pub quick: StudyQuick,
}

/// How a run is looked at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// What the host does.
    pub host: HostLoop,
    /// Overrides.
    #[serde(default)]
    pub set: Vec<String>,
}

/// What the host does, and whose time counts.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostLoop {
    /// The disk's commands one after the other; PCM takes no time (HALO paper, section V).
    DiskOnly,
    /// As that, but the disk's commands are only counted.
    Counted,
    /// So many requests outstanding; everything takes time.
    Closed(u32),
    /// Requests arrive at their times, divided by this; everything takes time.
    Open(f64),
}

/// A variant of the cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// Its name and head.
    pub name: String,
    /// Overrides.
    pub set: Vec<String>,
}

/// How large a cache is: `2G`, or a share of the bytes that the workload asks for, `2.8%`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CacheSize {
    /// Bytes.
    Bytes(u64),
    /// A share of the bytes that are read and written.
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
                _ => Err(bad(format!("'{text}' is no share: use one above 0% and up to 100%"))),
            },
        }
    }
}

/// What `--quick` leaves of a study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyQuick {
    /// The first so many requests of each workload.
    pub requests: u64,
    /// The workloads.
    pub workloads: Vec<String>,
    /// Caches are divided by this, since so few requests fill none of them.
    pub cache_by: u64,
}

/// A figure over a study: for each view and metric a table, workloads by policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachingPlan {
    /// The study, by name.
    pub study: String,
    /// Views that are shown.
    pub views: Vec<String>,
    /// Policies that are shown.
    pub policies: Vec<String>,
    /// What is shown: see [`crate::caching::Metric`].
    pub metrics: Vec<String>,
    /// Workloads that are shown; absent: all.
    pub workloads: Option<Vec<String>>,
    /// Caches, as multiples of the workload's.
    #[serde(default = "as_it_is")]
    pub sizes: Vec<f64>,
    /// The policy that the others are shown relative to, in the first metric.
    pub by: Option<String>,
    /// What is judged.
    pub judged: Option<Judged>,
}

/// A claim about the first metric of a policy against that of `by`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// The policy.
    pub policy: String,
    /// Published changes in percent, by the paper's workload.
    pub published: BTreeMap<String, f64>,
    /// Points of percent within which a value agrees.
    pub within: f64,
}

/// Wear of the cache's PCM, by wear leveling.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WearPlan {
    /// The study, by name.
    pub study: String,
    /// The policy of the cache.
    pub policy: String,
    /// Workloads.
    pub workloads: Vec<String>,
    /// Levelers.
    pub levelers: Vec<String>,
    /// Published life rates, means over the paper's traces, by leveler.
    pub published: BTreeMap<String, f64>,
    /// The leveler whose life rate is set against that of the second: the lifetime factor, published as the third.
    pub factor: (String, String, f64),
}

fn as_it_is() -> Vec<f64> {
    vec![1.0]
}

impl Study {
    /// Reads a study; `name` is what errors call it.
    ///
    /// # Errors
    /// What is no study, with the line.
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

    /// A view by name.
    #[must_use]
    pub fn view(&self, name: &str) -> Option<&View> {
        self.views.iter().find(|v| v.name == name)
    }

    /// A policy by name.
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
