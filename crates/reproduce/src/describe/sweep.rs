//! Format of a sweep: workloads × states of the volume × columns. Several metrics are read from its
//! runs.

use super::CacheSize;
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// A sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterSweep {
    /// Name by which figures refer to the sweep.
    pub name: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Queue depth (closed loop).
    pub depth: u32,
    /// Overrides of every stack.
    #[serde(default)]
    pub set: Vec<String>,
    /// Assumptions where the paper leaves details open.
    pub readings: Vec<String>,
    /// Write sizes, in bytes, whose cumulative shares are reported of each workload.
    pub sizes: Vec<u32>,
    /// Variants of the stack.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// Initial states and sizes of volumes.
    #[serde(rename = "state")]
    pub states: Vec<SweepState>,
    /// Workloads.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// Reduction for `--quick`.
    pub quick: QuickPlan,
}

/// A column: a variant of the stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name and heading.
    pub name: String,
    /// Name of the stack.
    pub stack: String,
    /// Overrides. A number in braces is multiplied by the state's `times`: `hfsl.SSW={512}`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Threshold of write sizes that the column is about, in bytes (before `times`); 0: none.
    #[serde(default)]
    pub threshold: u32,
    /// Size of PCM, as a multiple of the state's.
    #[serde(default = "one")]
    pub pcm: f64,
    /// States that have the column; empty: all.
    #[serde(default)]
    pub states: Vec<String>,
}

/// Initial state and size of a volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepState {
    /// Its name.
    pub name: String,
    /// Description, in a sentence.
    pub about: String,
    /// Warm-up, in the syntax of `frit run --warm`.
    pub warm: String,
    /// Overrides of every stack.
    #[serde(default)]
    pub set: Vec<String>,
    /// Factor of the numbers in braces in the columns' overrides.
    #[serde(default = "once")]
    pub times: u32,
    /// Chunk size of the address packing, in bytes: chunks that are accessed are packed in order of
    /// address.
    #[serde(deserialize_with = "size::deserialize")]
    pub chunk: u64,
    /// Sizing of media to the workload; absent: sizes of the stacks.
    pub scale: Option<DeviceScale>,
    /// `true` if only recorded workloads are run.
    #[serde(default)]
    pub real_only: bool,
}

/// Sizing of media to a workload.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceScale {
    /// NAND pages beyond the volume's, as a share of the volume's.
    pub over_provisioning: f64,
    /// Ratio of NAND to PCM, in bytes.
    pub nand_per_pcm: f64,
    /// Size of a NAND block, in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub block: u64,
    /// Minimum number of blocks in a unit, if there is more than one unit.
    pub blocks_per_unit: u32,
}

/// Handling of the host's hints.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HintHandling {
    /// All hints are removed.
    #[default]
    Off,
    /// One row without hints, one with them.
    Both,
}

/// A workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Its name.
    pub name: String,
    /// Workload of the paper that it stands for; absent: none.
    pub stands_for: Option<String>,
    /// Description.
    pub about: String,
    /// Path of a recording in the directory of traces.
    pub file: Option<String>,
    /// Name of a bundled recording.
    pub bundled: Option<String>,
    /// Name of a workload that contains this one; this one is omitted if that one is available.
    pub unless: Option<String>,
    /// Specification of a generator, without `gen:`.
    pub generator: Option<String>,
    /// Handling of hints.
    #[serde(default)]
    pub hints: HintHandling,
    /// Ranges whose writes have a hint, as `frit run --hint` has them, in a comparison.
    #[serde(default)]
    pub hinted: Vec<String>,
    /// Overrides of every stack that this workload needs.
    #[serde(default)]
    pub set: Vec<String>,
    /// Time unit, if the format does not fix it.
    pub time_unit: Option<String>,
    /// Size unit, if the format does not fix it.
    pub size_unit: Option<String>,
    /// `true` if sizes are made multiples of pages, as with `--whole-pages`: for recordings with an
    /// extra sector.
    #[serde(default)]
    pub whole_pages: bool,
    /// Size of its cache, in a study of caches.
    pub cache: Option<CacheSize>,
}

impl WorkloadSpec {
    /// Checks that exactly one source is given.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        let ways = [self.file.is_some(), self.bundled.is_some(), self.generator.is_some()];
        match ways.iter().filter(|w| **w).count() {
            1 => Ok(()),
            _ => Err(format!("workload '{}' needs one of file, bundled, generator", self.name)),
        }
    }
}

/// Reduction for `--quick`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuickPlan {
    /// Number of first requests of each workload.
    pub requests: u64,
    /// Names of the workloads.
    pub workloads: Vec<String>,
}

fn one() -> f64 {
    1.0
}

fn once() -> u32 {
    1
}

impl ParameterSweep {
    /// Parses a sweep. Errors name it `name`.
    ///
    /// # Errors
    /// The sweep is invalid; the error contains the line.
    pub fn parse(name: &str, text: &str) -> Result<ParameterSweep> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let s: ParameterSweep = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        for w in &s.workloads {
            w.check().map_err(bad)?;
            if w.cache.is_some() {
                return Err(bad(format!("workload '{}' has a cache; that is for studies of caches", w.name)));
            }
        }
        let known = |state: &String| s.states.iter().any(|t| t.name == *state);
        if let Some(unknown) = s.columns.iter().flat_map(|c| &c.states).find(|n| !known(n)) {
            return Err(bad(format!("a column names the state '{unknown}', and there is none")));
        }
        Ok(s)
    }

    /// Returns the columns of a state.
    pub fn columns_of<'a>(&'a self, state: &'a SweepState) -> impl Iterator<Item = &'a Column> {
        self.columns.iter().filter(|c| c.states.is_empty() || c.states.contains(&state.name))
    }
}

impl SweepState {
    /// Returns `true` if sizes are the paper's, so that values can be compared, and not only
    /// directions.
    #[must_use]
    pub fn has_paper_sizes(&self) -> bool {
        self.times == 1
    }
}

impl Column {
    /// Returns the heading in a state, with the threshold scaled.
    #[must_use]
    pub fn head(&self, state: &SweepState) -> String {
        match (self.threshold, state.times) {
            (0, _) | (_, 1) => self.name.clone(),
            (t, times) => self.name.replace(&t.to_string(), &(u64::from(t) * u64::from(times)).to_string()),
        }
    }

    /// Returns the overrides in a state.
    #[must_use]
    pub fn sets(&self, state: &SweepState) -> Vec<String> {
        self.set.iter().map(|s| braces(s, state.times)).collect()
    }
}

/// Multiplies the number in braces, if there is one.
fn braces(text: &str, times: u32) -> String {
    let parts =
        text.split_once('{').and_then(|(head, rest)| rest.split_once('}').map(|(n, tail)| (head, n, tail)));
    match parts.and_then(|(head, n, tail)| Some((head, n.parse::<u64>().ok()?, tail))) {
        Some((head, n, tail)) => format!("{head}{}{tail}", n * u64::from(times)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_braces_are_multiplied() {
        assert_eq!(braces("hfsl.SSW={512}", 4), "hfsl.SSW=2048");
        assert_eq!(braces("hfsl.SSW=512", 4), "hfsl.SSW=512");
        assert_eq!(braces("a={x}", 4), "a={x}");
    }
}
