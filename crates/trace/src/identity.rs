//! What a workload is, so that a result can be tied to it.

use serde::Serialize;
use std::fmt;

/// Whether requests were recorded or made up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Recorded from a real system (or handed in as such).
    Real,
    /// Made by a generator.
    Generated,
}

/// What a workload is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Identity {
    /// The file's name without its folder, or the generator's name.
    pub name: String,
    /// Recorded or generated.
    pub kind: Kind,
    /// SHA-256 of the uncompressed bytes, as `zstd -dc FILE | sha256sum` prints it; known after a scan.
    pub sha256: Option<String>,
    /// A generator's specification with all its values, from which the same requests come again.
    pub generator: Option<String>,
    /// The version of frit's generators.
    pub version: Option<u32>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.generator, &self.sha256) {
            (Some(spec), _) => write!(f, "{} (generated: {spec})", self.name),
            (None, Some(sha)) => write!(f, "{} (real, sha256 {})", self.name, &sha[..sha.len().min(16)]),
            (None, None) => write!(f, "{} (real)", self.name),
        }
    }
}
