//! Identity of a workload, which ties a result to its input.

use serde::Serialize;
use std::fmt;

/// Origin of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// Recorded from a real system, or given as a trace file.
    Real,
    /// Produced by a generator.
    Generated,
}

/// Identity of a workload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WorkloadIdentity {
    /// File name without directory, or name of the generator.
    pub name: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// SHA-256 of the uncompressed bytes, as `zstd -dc FILE | sha256sum` prints it; known after a
    /// scan.
    pub sha256: Option<String>,
    /// Specification of the generator with all values, which reproduces the requests.
    pub generator: Option<String>,
    /// Version of frit's generators.
    pub version: Option<u32>,
}

impl fmt::Display for WorkloadIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.generator, &self.sha256) {
            (Some(spec), _) => write!(f, "{} (generated: {spec})", self.name),
            (None, Some(sha)) => write!(f, "{} (real, sha256 {})", self.name, &sha[..sha.len().min(16)]),
            (None, None) => write!(f, "{} (real)", self.name),
        }
    }
}
