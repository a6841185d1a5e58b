//! In-storage processing: an engine beside the controllers of the memory counts words in a file, and
//! only instruction, status and results cross the link. [`run`] compares it with software on the host.

mod engine;
mod foreground;
mod params;
mod report;
mod run;
mod session;
mod text;
mod walk;
mod words;

pub use foreground::{ForegroundLatency, ForegroundLoad};
pub(crate) use params::REQUEST_MAX;
pub use params::{IspHost, IspParams};
pub use report::{ForegroundReport, IspQuery, IspReport, MachineReport, QueryRow, SoftwareQuery};
pub use words::{WORD_MAX, WORDS};

use crate::error::Result;
use crate::sim_medium::SimMedium;
use frit_core::Error;

/// A medium whose engine yields to the host.
pub(crate) type IspMedium = SimMedium;

/// A machine of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IspMachine {
    /// Memory: a profile, or the path of a TOML file, with changed values after commas.
    pub profile: String,
    /// Host, in the form that [`HostModel::find`](crate::HostModel::find) reads.
    pub host: String,
    /// Sizes of the queried files in bytes.
    pub files: Vec<u64>,
}

impl IspMachine {
    /// Returns the board of the ISPFS paper, with files of 0.1 to 100 MiB.
    #[must_use]
    pub fn paper() -> IspMachine {
        let (profile, host) = ("lpddr2-nvm-ispfs-2018".into(), "zedboard-2018".into());
        IspMachine { profile, host, files: vec![100 << 10, 1 << 20, 10 << 20, 100 << 20] }
    }

    /// Returns a memory expander with modules like Intel's Optane, with files of 1 MiB to 512 MiB.
    #[must_use]
    pub fn modern() -> IspMachine {
        let (profile, host) = ("dimm-optane-2019,channels=4,chip_bytes=4G".into(), "cxl-compute-2023".into());
        IspMachine { profile, host, files: vec![1 << 20, 10 << 20, 100 << 20, 512 << 20] }
    }
}

/// Parameters of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IspOptions {
    /// Machines.
    pub machines: Vec<IspMachine>,
    /// Size of the file system in bytes; `None` for all of the memory up to 1 GiB.
    pub size: Option<u64>,
    /// Words of the query.
    pub words: [String; WORDS],
    /// Seed of contents and of the foreground load.
    pub seed: u64,
    /// Reads of the host while the engine runs.
    pub foreground: Option<ForegroundLoad>,
}

impl Default for IspOptions {
    fn default() -> Self {
        IspOptions {
            machines: vec![IspMachine::paper(), IspMachine::modern()],
            size: None,
            words: ["storage", "phase", "change", "latency"].map(str::to_owned),
            seed: 1,
            foreground: None,
        }
    }
}

impl IspOptions {
    /// Validates the parameters.
    ///
    /// # Errors
    /// The first invalid value, with the allowed values.
    pub fn check(&self) -> Result<()> {
        for word in &self.words {
            if word.is_empty() || word.len() > WORD_MAX || word.contains('\0') {
                let why = format!("has to have 1 to {WORD_MAX} bytes, and no zero byte");
                return Err(Error::param("words", word, why).into());
            }
        }
        Ok(())
    }
}

/// Compares in-storage processing with software on each machine and file size.
///
/// # Errors
/// Invalid parameters, a host without an engine, or an error of the file system.
pub fn run(options: &IspOptions) -> Result<IspReport> {
    options.check()?;
    let (mut machines, mut rows) = (Vec::new(), Vec::new());
    for machine in &options.machines {
        for (i, bytes) in machine.files.iter().enumerate() {
            let (report, row) = run::run_one(options, machine, *bytes)?;
            if i == 0 {
                machines.push(report);
            }
            rows.push(row);
        }
    }
    let (words, seed) = (options.words.clone(), options.seed);
    Ok(IspReport { version: env!("CARGO_PKG_VERSION"), words, seed, machines, rows })
}
