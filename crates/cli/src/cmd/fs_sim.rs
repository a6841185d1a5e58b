//! `frit fs-sim`: simulates a file system on modelled memory, in virtual time.

mod isp;
mod show;

use crate::output::{print, print_json};
use clap::builder::NonEmptyStringValueParser;
use frit_core::size;
use frit_fs_sim::bench::{self, BenchOptions};
use frit_fs_sim::isp::{ForegroundLoad, IspOptions, WORDS};
use frit_fs_sim::plan::{self, OperationSpec};
use miette::{Result, miette};
use std::process::ExitCode;

/// Run a file system on modelled memory in virtual time; show the plan of an operation.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit fs-sim                                  the hardware of the ISPFS paper
  frit fs-sim --file 256M --records 1K,4K,16K,64K,256K,1M,4M,16M --names 0
  frit fs-sim --profile dimm-optane-2019 --verify
  frit fs-sim --host zedboard-2018,software=2us
  frit fs-sim --explain \"write 4K\"             its memory commands and their times
  frit fs-sim --explain create --commands
  frit fs-sim --isp                            a query inside the memory, and by software
  frit fs-sim --isp --foreground 4K@10000      with reads of the host beside it

Without --explain it runs the patterns of IOzone on one file, and operations on names. Operations with a plan are read, \
write, append, truncate, fsync and unlink with a SIZE (4K without), create, mkdir, stat, rename and chmod. Hosts are \
zedboard-2018, cxl-compute-2023 and direct. With --isp the hardware is that of the paper and a memory expander of \
today, unless --profile or --host is given.

Exits with 0 on success, 1 when a run failed or verification found mismatches, 2 when the command line is \
wrong. See docs/guide/fs-sim.md.")]
pub(crate) struct Args {
    /// Memory: a pcm profile of `frit profiles`, or the path of a TOML file, with overrides after commas
    /// (NAME,key=value,…). [default: lpddr2-nvm-ispfs-2018]
    #[arg(long, value_name = "PROFILE", value_parser = NonEmptyStringValueParser::new())]
    profile: Option<String>,
    /// Host model, with overrides after commas (NAME,key=value,…). [default: zedboard-2018 for the
    /// hardware of the paper, direct for others]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Size of the file system. [default: all of the memory, up to 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    size: Option<u64>,
    /// Size of the file that is written and read.
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = size::parse)]
    file: u64,
    /// Sizes of records, each a multiple of 1K that divides the file.
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', default_value = "1K,4K,64K,1M", value_parser = size::parse)]
    records: Vec<u64>,
    /// Do not write or read a file.
    #[arg(long, conflicts_with = "records")]
    no_records: bool,
    /// Number of files to create, look up, rename and remove; 0: none.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    names: u64,
    /// Keep checksums of file contents, as `frit mkfs` does.
    #[arg(long)]
    data_checksums: bool,
    /// Seed of random orders and of contents.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Compare every result with a model, also after a remount, and check the file system.
    #[arg(long)]
    verify: bool,
    /// Show the plan of one operation instead: its name, and its size in bytes if it has one.
    #[arg(long, value_name = "OPERATION", value_parser = OperationSpec::parse,
          conflicts_with_all = ["file", "records", "no_records", "names", "seed", "verify"])]
    explain: Option<OperationSpec>,
    /// Count words in a file by in-storage processing and by software instead, and compare both.
    #[arg(long, conflicts_with_all = ["explain", "file", "records", "no_records", "names", "data_checksums", "verify"])]
    isp: bool,
    /// Sizes of the queried files. [default: 100K,1M,10M,100M; a memory expander: 1M,10M,100M,512M]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', requires = "isp", value_parser = size::parse)]
    query_files: Vec<u64>,
    /// The four words of the query, of at most 16 bytes. [default: storage,phase,change,latency]
    #[arg(long, value_name = "WORD,…", value_delimiter = ',', requires = "isp")]
    words: Vec<String>,
    /// Random reads of the host, at random times, while the engine runs: their size, and how many a second.
    #[arg(long, value_name = "SIZE@RATE", requires = "isp", value_parser = ForegroundLoad::parse)]
    foreground: Option<ForegroundLoad>,
    /// Also list every command of the plan.
    #[arg(long, requires = "explain")]
    commands: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Profile of the ISPFS paper's hardware.
const PAPER: &str = "lpddr2-nvm-ispfs-2018";

impl Args {
    fn profile(&self) -> &str {
        self.profile.as_deref().unwrap_or(PAPER)
    }

    fn host(&self) -> &str {
        match &self.host {
            Some(host) => host,
            None if self.profile() == PAPER => "zedboard-2018",
            None => "direct",
        }
    }

    fn isp_options(&self) -> Result<IspOptions> {
        let mut options = IspOptions { size: self.size, seed: self.seed, ..IspOptions::default() };
        options.foreground = self.foreground;
        let given = self.profile.is_some() || self.host.is_some();
        options.machines = isp::machines(given.then(|| (self.profile(), self.host())), &self.query_files);
        if !self.words.is_empty() {
            let words = self.words.clone().try_into();
            options.words = words.map_err(|_| miette!("--words: has to be {WORDS} words"))?;
        }
        Ok(options)
    }
}

/// Runs the command.
///
/// # Errors
/// The error that ended the run, in one message.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.isp {
        return isp::run(&args.isp_options()?, args.json);
    }
    if let Some(asked) = args.explain {
        let plan = plan::explain(asked, args.profile(), args.host(), args.size, args.data_checksums)
            .map_err(|e| miette!("{e}"))?;
        match args.json {
            true => print_json(&plan)?,
            false => print(&show::plan(&plan, args.commands))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let options = BenchOptions {
        profile: args.profile().into(),
        host: args.host().into(),
        size: args.size,
        file: args.file,
        records: if args.no_records { Vec::new() } else { args.records.clone() },
        names: args.names,
        seed: args.seed,
        sums: args.data_checksums,
        verify: args.verify,
    };
    let report = bench::run(&options).map_err(|e| miette!("{e}"))?;
    match args.json {
        true => print_json(&report)?,
        false => print(&show::report(&report))?,
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
