//! The benchmark of `frit fs-sim`: [`run`] formats a file system on modelled memory, runs IOzone's
//! patterns on one file and metadata operations (create, lookup, rename, unlink) on many, then closes,
//! reopens and checks it.

mod contents;
mod files;
mod measure;
mod names;

pub use measure::{AreaRow, PatternMetrics, Utilization};

use crate::build::Devices;
use crate::error::{Error, Result};
use crate::host::HostModel;
use crate::sim_medium::SimMedium;
use contents::ExpectedContents;
use frit_core::{Sink, size};
use frit_engine::InOrder;
use frit_fs::{Caller, Clock, FormatOptions, Fs, FsOptions, NewInode, Paths};
use measure::MetricsRecorder;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::Serialize;

/// Unit in bytes that record sizes are multiples of.
pub const UNIT: u64 = 1024;

/// Parameters of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BenchOptions {
    /// Memory: the name of a profile, or the path of a TOML file.
    pub profile: String,
    /// Host, in the form that [`HostModel::find`] reads.
    pub host: String,
    /// Size of the file system in bytes; `None` for all of the memory up to 1 GiB.
    pub size: Option<u64>,
    /// Size in bytes of the file that the patterns use.
    pub file: u64,
    /// Record sizes in bytes, each a multiple of [`UNIT`] that divides the size of the file.
    pub records: Vec<u64>,
    /// Number of files that are created, looked up, renamed and removed; 0 for none.
    pub names: u64,
    /// Seed of random orders and of contents.
    pub seed: u64,
    /// `true` if contents have checksums.
    pub sums: bool,
    /// `true` if every result is compared with a model.
    pub verify: bool,
}

/// Result of a verification.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct BenchVerification {
    /// Bytes that were read and compared.
    pub bytes: u64,
    /// Number of compared results of operations on names.
    pub names: u64,
    /// Number of results that differed, and of problems that a check of the file system found.
    pub mismatches: u64,
    /// Descriptions of the first mismatches.
    pub first: Vec<String>,
}

impl BenchVerification {
    /// Largest number of mismatches that are described.
    const SHOWN_MAX: usize = 10;

    pub(crate) fn mismatch(&mut self, what: impl FnOnce() -> String) {
        self.mismatches += 1;
        if self.first.len() < Self::SHOWN_MAX {
            self.first.push(what());
        }
    }
}

/// Report of a run: the hardware and its metrics.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BenchReport {
    /// Version of frit.
    pub version: &'static str,
    /// Profile of the memory.
    pub profile: String,
    /// Host with all its values.
    pub host: HostModel,
    /// Size of the file system in bytes.
    pub bytes: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Number of files of the operations on names.
    pub names: u64,
    /// Seed.
    pub seed: u64,
    /// `true` if contents have checksums.
    pub sums: bool,
    /// Metrics of formatting the file system and of each pattern, in order.
    pub measured: Vec<PatternMetrics>,
    /// Result of the verification, if it was requested or found mismatches.
    pub verified: Option<BenchVerification>,
}

impl BenchReport {
    /// Returns `true` if there were no mismatches.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verified.as_ref().is_none_or(|v| v.mismatches == 0)
    }
}

impl BenchOptions {
    /// Validates the parameters.
    ///
    /// # Errors
    /// The first invalid value, with the allowed values.
    pub fn check(&self) -> Result<()> {
        let wrong = |key: &str, value: u64, why: &str| {
            Err(frit_core::Error::param(key, size::format(value), why).into())
        };
        if self.records.is_empty() && self.names == 0 {
            return Err(frit_core::Error::param(
                "names",
                0,
                "there is nothing to play: give records or names",
            )
            .into());
        }
        for record in &self.records {
            if *record == 0 || !record.is_multiple_of(UNIT) {
                return wrong("records", *record, "has to be a multiple of 1 KiB");
            }
            if self.file == 0 || !self.file.is_multiple_of(*record) {
                return wrong("file", self.file, "has to be a multiple of every record, and not zero");
            }
        }
        Ok(())
    }
}

/// Returns the format of a new file system, which is the same for equal seeds.
pub(crate) fn format(seed: u64, sums: bool) -> FormatOptions {
    FormatOptions {
        uuid: Some(u128::from(seed) + 1),
        clock: Clock::counted(1),
        sums,
        ..FormatOptions::default()
    }
}

/// Runs all patterns of the parameters.
///
/// # Errors
/// Invalid parameters, or an error of the file system.
pub fn run(options: &BenchOptions) -> Result<BenchReport> {
    options.check()?;
    let mut parts = Devices::new(&options.profile, HostModel::find(&options.host)?, options.size)?;
    parts.sums = options.sums;
    let (host, bytes, units, buses) = (parts.host.clone(), parts.bytes, parts.units(), parts.buses());
    let sink = Sink::new(InOrder::new(&parts.hardware));
    let medium = SimMedium::new(parts, sink)?;
    let mut meter = MetricsRecorder::new(&medium, units, buses);
    let mut checked = BenchVerification::default();
    let mut rng = SmallRng::seed_from_u64(options.seed);

    let fs = meter.once("format", || {
        Fs::format(&medium, format(options.seed, options.sums)).map_err(Error::fs("format"))
    })?;
    let mut contents = ExpectedContents::new(options.seed, options.file);
    for record in &options.records {
        files::play(
            &fs,
            &mut meter,
            &mut contents,
            *record,
            &mut rng,
            options.verify.then_some(&mut checked),
        )?;
    }
    let left = names::play(&fs, &mut meter, options.names, &mut rng, &mut checked)?;
    meter.once("close", || fs.close().map(drop).map_err(Error::fs("close")))?;
    if options.verify {
        // The contents after a recovery are compared as well.
        let fs = Fs::open(&medium, FsOptions { clock: Clock::counted(1), ..FsOptions::default() })
            .map_err(Error::fs("open"))?;
        if !options.records.is_empty() {
            files::compare(&fs, &contents, &mut checked)?;
        }
        names::compare(&fs, &left, &mut checked)?;
        fs.close().map_err(Error::fs("close"))?;
        let report = frit_fs::check(&&medium).map_err(Error::fs("check"))?;
        report.problems.iter().for_each(|problem| checked.mismatch(|| problem.clone()));
    }
    let (profile, names, seed) = (options.profile.clone(), options.names, options.seed);
    Ok(BenchReport {
        version: env!("CARGO_PKG_VERSION"),
        profile,
        host,
        bytes,
        file_bytes: if options.records.is_empty() { 0 } else { options.file },
        names,
        seed,
        sums: options.sums,
        measured: meter.measured,
        verified: (options.verify || checked.mismatches > 0).then_some(checked),
    })
}

/// Creates a directory in the root.
pub(crate) fn directory<M: frit_fs::Medium>(fs: &Fs<M>, name: &str) -> Result<frit_fs::Ino> {
    let made = fs.make(&Caller::ROOT, name, NewInode::directory(0o755)).map_err(Error::fs("mkdir"))?;
    Ok(made.ino)
}
