//! `frit fs-sim`: simulates a file system on modelled memory, in virtual time.

mod show;

use crate::output::{print, print_json};
use clap::builder::NonEmptyStringValueParser;
use frit_core::size;
use frit_fs_sim::bench::{self, BenchOptions};
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

Without --explain it runs the patterns of IOzone on one file, and operations on names. Operations with a plan are read,
write, append, truncate, fsync and unlink with a SIZE (4K without), create, mkdir, stat, rename and chmod. Hosts are
zedboard-2018 and direct.

Exits with 0 on success, 1 when a run failed or verification found mismatches, 2 when the command line is
wrong. See docs/guide/fs-sim.md.")]
pub(crate) struct Args {
    /// Memory: a pcm profile of `frit profiles`, or the path of a TOML file.
    #[arg(long, value_name = "PROFILE", default_value = PAPER, value_parser = NonEmptyStringValueParser::new())]
    profile: String,
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
    fn host(&self) -> &str {
        match &self.host {
            Some(host) => host,
            None if self.profile == PAPER => "zedboard-2018",
            None => "direct",
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The error that ended the run, in one message.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(asked) = args.explain {
        let plan = plan::explain(asked, &args.profile, args.host(), args.size, args.data_checksums)
            .map_err(|e| miette!("{e}"))?;
        match args.json {
            true => print_json(&plan)?,
            false => print(&show::plan(&plan, args.commands))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let options = BenchOptions {
        profile: args.profile.clone(),
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
