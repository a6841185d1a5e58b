//! Format of a comparison: variants of a stack × workloads × views, with any metric of the runs.
//! Several experiments use one comparison.

use super::WorkloadSpec;
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// A comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Name by which experiments refer to the comparison.
    pub name: String,
    /// Base stack of all runs.
    pub stack: String,
    /// Overrides of every run.
    #[serde(default)]
    pub set: Vec<String>,
    /// Assumptions where the paper leaves details open.
    pub readings: Vec<String>,
    /// Number of first requests of each workload; absent: all.
    pub limit: Option<u64>,
    /// Page size in bytes, for the detection of partial writes.
    #[serde(deserialize_with = "size::deserialize")]
    pub page: u64,
    /// Write sizes, in bytes, whose cumulative shares are reported of each workload.
    pub sizes: Vec<u32>,
    /// Methods of running.
    #[serde(rename = "view")]
    pub views: Vec<RunView>,
    /// Variants that are compared.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// Workloads.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// Reduction for `--quick`.
    pub quick: super::QuickPlan,
}

/// A method of running.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunView {
    /// Its name.
    pub name: String,
    /// Description, in a sentence.
    pub about: String,
    /// Queue depth.
    pub depth: u32,
    /// Requests arrive at the times of the workload, at most `depth` at once (open loop).
    #[serde(default)]
    pub open: bool,
    /// Initial state of the volume, in the syntax of `frit run --warm`; absent: new.
    pub warm: Option<String>,
    /// Overrides.
    #[serde(default)]
    pub set: Vec<String>,
    /// Sizing of PCM to the workload; absent: size of the stack.
    pub packed: Option<PackedSpace>,
}

/// Packing of addresses, with PCM sized to them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedSpace {
    /// Chunk size in bytes: chunks that are accessed are packed in order of address.
    #[serde(deserialize_with = "size::deserialize")]
    pub chunk: u64,
    /// Bytes of PCM for each byte of the chunks.
    pub times: f64,
}

/// A variant of the stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name and heading.
    pub name: String,
    /// Its stack; absent: that of the comparison.
    pub stack: Option<String>,
    /// Overrides.
    #[serde(default)]
    pub set: Vec<String>,
}

impl Comparison {
    /// Parses a comparison. Errors name it `name`.
    ///
    /// # Errors
    /// The comparison is invalid; the error contains the line.
    pub fn parse(name: &str, text: &str) -> Result<Comparison> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let c: Comparison = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        for w in &c.workloads {
            w.check().map_err(bad)?;
        }
        Ok(c)
    }

    /// Returns a view by name.
    ///
    /// # Errors
    /// No view has this name.
    pub fn view(&self, name: &str) -> Result<&RunView> {
        self.views.iter().find(|v| v.name == name).ok_or_else(|| self.unknown("view", name))
    }

    /// Returns a variant by name.
    ///
    /// # Errors
    /// No variant has this name.
    pub fn variant(&self, name: &str) -> Result<&Variant> {
        self.variants.iter().find(|v| v.name == name).ok_or_else(|| self.unknown("variant", name))
    }

    fn unknown(&self, what: &str, name: &str) -> Error {
        Error::Description { name: self.name.clone(), why: format!("there is no {what} '{name}'") }
    }
}
