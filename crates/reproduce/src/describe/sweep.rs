//! A sweep: workloads × states of the volume × columns. Several figures are read from one.

use super::CacheSize;
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// A sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Its name, by which figures refer to it.
    pub name: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Requests outstanding (closed loop).
    pub depth: u32,
    /// Overrides of every stack.
    #[serde(default)]
    pub set: Vec<String>,
    /// How what the paper leaves open is taken.
    pub readings: Vec<String>,
    /// Write sizes, in bytes, whose shares are told of each workload.
    pub sizes: Vec<u32>,
    /// What is varied.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// What volumes have gone through, and their size.
    #[serde(rename = "state")]
    pub states: Vec<State>,
    /// What is run.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// What `--quick` leaves.
    pub quick: Quick,
}

/// One column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name and head.
    pub name: String,
    /// The stack.
    pub stack: String,
    /// Overrides. A number in braces is multiplied by the state's `times`: `hfsl.SSW={512}`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Writes up to so many bytes are what the column is about (before `times`); 0: it is about none.
    #[serde(default)]
    pub threshold: u32,
    /// PCM, as a multiple of the state's.
    #[serde(default = "one")]
    pub pcm: f64,
    /// The states that have it; empty: all.
    #[serde(default)]
    pub states: Vec<String>,
}

/// What a volume has gone through, and its size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// As `frit run --warm` takes it.
    pub warm: String,
    /// Overrides of every stack.
    #[serde(default)]
    pub set: Vec<String>,
    /// What numbers in braces in the columns' overrides are multiplied by.
    #[serde(default = "once")]
    pub times: u32,
    /// How addresses are packed: the chunks of this many bytes that are touched, in order of address.
    #[serde(deserialize_with = "size::deserialize")]
    pub chunk: u64,
    /// Media sized to the workload; absent: as the stacks have them.
    pub scale: Option<Scale>,
    /// Whether only recorded workloads are run.
    #[serde(default)]
    pub real_only: bool,
}

/// Media sized to a workload.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// NAND pages beyond the volume's, as a share of them.
    pub over_provisioning: f64,
    /// Bytes of NAND for each byte of PCM.
    pub nand_per_pcm: f64,
    /// Bytes of a NAND block.
    #[serde(deserialize_with = "size::deserialize")]
    pub block: u64,
    /// Blocks that a unit has at least, when there is more than one.
    pub blocks_per_unit: u32,
}

/// Whether the host's hints are seen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hints {
    /// They are taken away.
    #[default]
    Off,
    /// A row without, and one with.
    Both,
}

/// One workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Its name.
    pub name: String,
    /// The workload of the paper that it stands for; absent: none.
    pub stands_for: Option<String>,
    /// What it is.
    pub about: String,
    /// A recording: its path in the directory of traces.
    pub file: Option<String>,
    /// A recording that comes with frit.
    pub bundled: Option<String>,
    /// Left out when this workload can be had, of which it is a part.
    pub unless: Option<String>,
    /// A generator, without `gen:`.
    pub generator: Option<String>,
    /// Hints.
    #[serde(default)]
    pub hints: Hints,
    /// Overrides of every stack, for what the workload asks of it.
    #[serde(default)]
    pub set: Vec<String>,
    /// Time unit, where the format does not fix it.
    pub time_unit: Option<String>,
    /// Size unit, where the format does not fix it.
    pub size_unit: Option<String>,
    /// Whether sizes are made whole pages, as `--whole-pages` does: for recordings with a sector too much.
    #[serde(default)]
    pub whole_pages: bool,
    /// How large a cache it gets, in a study of caches.
    pub cache: Option<CacheSize>,
}

impl WorkloadSpec {
    /// Whether it says where it comes from, once.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        let ways = [self.file.is_some(), self.bundled.is_some(), self.generator.is_some()];
        match ways.iter().filter(|w| **w).count() {
            1 => Ok(()),
            _ => Err(format!("workload '{}' needs one of file, bundled, generator", self.name)),
        }
    }
}

/// What `--quick` leaves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// The first so many requests of each workload.
    pub requests: u64,
    /// The workloads.
    pub workloads: Vec<String>,
}

fn one() -> f64 {
    1.0
}

fn once() -> u32 {
    1
}

impl Sweep {
    /// Reads a sweep; `name` is what errors call it.
    ///
    /// # Errors
    /// What is no sweep, with the line.
    pub fn parse(name: &str, text: &str) -> Result<Sweep> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let s: Sweep = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
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

    /// The columns of a state.
    pub fn columns_of<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a Column> {
        self.columns.iter().filter(|c| c.states.is_empty() || c.states.contains(&state.name))
    }
}

impl State {
    /// Whether sizes are the paper's, so that its values can be compared, and not only directions.
    #[must_use]
    pub fn has_paper_sizes(&self) -> bool {
        self.times == 1
    }
}

impl Column {
    /// Its head in a state: with the threshold as it is there.
    #[must_use]
    pub fn head(&self, state: &State) -> String {
        match (self.threshold, state.times) {
            (0, _) | (_, 1) => self.name.clone(),
            (t, times) => self.name.replace(&t.to_string(), &(u64::from(t) * u64::from(times)).to_string()),
        }
    }

    /// Its overrides in a state.
    #[must_use]
    pub fn sets(&self, state: &State) -> Vec<String> {
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
