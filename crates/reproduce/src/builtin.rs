//! The files that are part of the program: sweeps, studies and comparisons, over which experiments
//! are measured, and recorded workloads.

use crate::describe::{Comparison, ParameterSweep, Study};
use crate::{Error, Result};

/// Pairs each of these files with its text.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}
pub(crate) use files;

const SWEEPS: &[(&str, &str)] = files!("sweeps/hfsl");

const STUDIES: &[(&str, &str)] = files!("studies/halo");

const COMPARISONS: &[(&str, &str)] = files!(
    "comparisons/ntl",
    "comparisons/hfsl-scheduler",
    "comparisons/openssd",
    "comparisons/ftl-mapping",
    "comparisons/slc-cache",
    "comparisons/slc-dynamic",
    "comparisons/gc-pacing",
    "comparisons/suspend",
    "comparisons/streams",
    "comparisons/zns-open",
    "comparisons/openssd-caches",
    "comparisons/ssc-memory",
    "comparisons/disk-caches",
    "comparisons/nameless",
);

/// A recorded workload that is part of the program.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// File name.
    pub name: &'static str,
    /// Contents of the file.
    pub bytes: &'static [u8],
}

macro_rules! recordings {
    ($($name:literal),* $(,)?) => {
        &[$(Bundled { name: $name, bytes: include_bytes!(concat!("../../../traces/", $name)) }),*]
    };
}

/// The bundled recordings.
pub const BUNDLED: &[Bundled] = recordings!("mail-60k.csv.zst", "pgbench-60k.csv.zst");

/// Returns all sweeps.
///
/// # Errors
/// None: a test parses all of them.
pub fn sweeps() -> Result<Vec<ParameterSweep>> {
    SWEEPS.iter().map(|(file, text)| ParameterSweep::parse(file, text)).collect()
}

/// Returns a sweep by its name.
///
/// # Errors
/// No sweep has this name.
pub fn sweep(name: &str) -> Result<ParameterSweep> {
    let why = || Error::Description { name: name.into(), why: "there is no such sweep".into() };
    sweeps()?.into_iter().find(|s| s.name == name).ok_or_else(why)
}

/// Returns all studies of caches.
///
/// # Errors
/// None: a test parses all of them.
pub fn studies() -> Result<Vec<Study>> {
    STUDIES.iter().map(|(file, text)| Study::parse(file, text)).collect()
}

/// Returns a study of caches by its name.
///
/// # Errors
/// No study has this name.
pub fn study(name: &str) -> Result<Study> {
    let why = || Error::Description { name: name.into(), why: "there is no such study".into() };
    studies()?.into_iter().find(|s| s.name == name).ok_or_else(why)
}

/// Returns all comparisons.
///
/// # Errors
/// None: a test parses all of them.
pub fn comparisons() -> Result<Vec<Comparison>> {
    COMPARISONS.iter().map(|(file, text)| Comparison::parse(file, text)).collect()
}

/// Returns a comparison by its name.
///
/// # Errors
/// No comparison has this name.
pub fn comparison(name: &str) -> Result<Comparison> {
    let why = || Error::Description { name: name.into(), why: "there is no such comparison".into() };
    comparisons()?.into_iter().find(|c| c.name == name).ok_or_else(why)
}
