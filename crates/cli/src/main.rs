//! `frit`: a storage system for mixed media, whose state can be inspected at every moment.

mod cmd;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod help_text;
mod output;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Software-defined storage for mixed media (PCM, NAND, disk), with an open view of its state
#[derive(Parser, Debug)]
#[command(name = "frit", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run workloads over stacks in virtual time, and report.
    Run(Box<cmd::run::Args>),
    /// Check stacks and show their properties; check volumes.
    Check(cmd::check::Args),
    /// Make a volume from a stack.
    Create(cmd::create::Args),
    /// Show the configuration and state of a volume.
    Inspect(cmd::inspect::Args),
    /// Recover a volume after a crash or power loss, and report the result.
    Recover(cmd::recover::Args),
    /// Read and verify all data of a volume.
    Scrub(cmd::scrub::Args),
    /// Make a volume larger.
    Grow(cmd::grow::Args),
    /// Export a volume as a raw image.
    Export(cmd::export::Args),
    /// Import a raw image into a volume.
    Import(cmd::import::Args),
    /// List the profiles of media, with the sources of their values.
    Profiles(cmd::profiles::Args),
    /// Show disk drives: profiles, metrics, and models compared with measurements.
    Disk(cmd::disk::Args),
    /// Fit the latencies of a NAND profile to a trace with measured service times.
    Calibrate(Box<cmd::calibrate::Args>),
    /// Count hits and misses of eviction policies on a workload.
    Cache(Box<cmd::cache::Args>),
    /// Translate a configuration of MQSim into a stack.
    Mqsim(cmd::mqsim::Args),
    /// List the layers, their parameters and policies.
    Layers(cmd::layers::Args),
    /// Reproduce published results, and compare them with measured ones.
    Reproduce(cmd::reproduce::Args),
    /// Attach a volume as a block device.
    Attach(cmd::attach::Args),
    /// Release the block device of a volume.
    Detach(cmd::detach::Args),
    /// Make a file system in a file.
    Mkfs(cmd::mkfs::Args),
    /// Mount the file system of an image.
    Mount(cmd::mount::Args),
    /// Unmount a file system, and wait until its image is closed.
    Unmount(cmd::unmount::Args),
    /// Check a file system that is not mounted.
    Fsck(cmd::fsck::Args),
    /// Compute where files lie: search for words, and other instructions of the processing engine.
    Isp(cmd::isp::Args),
    /// Run a program that reads and writes files of a mount in the memory of their image.
    Exec(cmd::exec::Args),
    /// Defragment the files of a file system that is not mounted.
    Defrag(cmd::defrag::Args),
    /// Run a file system on modelled memory in virtual time; show the plan of an operation.
    // The former name is a hidden alias, for existing scripts.
    #[command(alias = "fsrun")]
    FsSim(Box<cmd::fs_sim::Args>),
    /// Show the state of a volume and change its parameters, also while clients use it.
    Ctl(cmd::ctl::Args),
    /// Serve a volume to other programs.
    Serve(Box<cmd::serve::Args>),
    /// Test a stack with power cuts at every media operation and with damaged media.
    Torture(cmd::torture::Args),
    /// Analyze block traces, convert them, and generate workloads.
    Trace(Box<cmd::trace::Args>),
    /// Measure the wear of PCM by a workload under each wear leveler.
    Wear(Box<cmd::wear::Args>),
}

fn main() -> miette::Result<ExitCode> {
    miette::set_hook(Box::new(|_| Box::new(output::ErrorReporter)))?;
    match Cli::parse().command {
        Command::Run(args) => return cmd::run::run(&args),
        Command::Check(args) => return cmd::check::run(&args),
        Command::Create(args) => cmd::create::run(&args),
        Command::Inspect(args) => return cmd::inspect::run(&args),
        Command::Recover(args) => return cmd::recover::run(&args),
        Command::Scrub(args) => return cmd::scrub::run(&args),
        Command::Grow(args) => cmd::grow::run(&args),
        Command::Exec(args) => match cmd::exec::run(&args)? {},
        Command::Export(args) => return cmd::export::run(&args),
        Command::Import(args) => return cmd::import::run(&args),
        Command::Profiles(args) => cmd::profiles::run(&args),
        Command::Disk(args) => cmd::disk::run(&args),
        Command::Calibrate(args) => cmd::calibrate::run(&args),
        Command::Cache(args) => cmd::cache::run(&args),
        Command::Mqsim(args) => cmd::mqsim::run(&args),
        Command::Layers(args) => cmd::layers::run(&args),
        Command::Reproduce(args) => return cmd::reproduce::run(&args),
        Command::Attach(args) => cmd::attach::run(&args),
        Command::Detach(args) => return cmd::detach::run(&args),
        Command::Mkfs(args) => cmd::mkfs::run(&args),
        Command::Mount(args) => cmd::mount::run(&args),
        Command::Unmount(args) => cmd::unmount::run(&args),
        Command::Fsck(args) => return cmd::fsck::run(&args),
        Command::Isp(args) => return cmd::isp::run(&args),
        Command::Defrag(args) => cmd::defrag::run(&args),
        Command::FsSim(args) => return cmd::fs_sim::run(&args),
        Command::Ctl(args) => return cmd::ctl::run(&args),
        Command::Serve(args) => cmd::serve::run(&args),
        Command::Torture(args) => return cmd::torture::run(&args),
        Command::Trace(args) => cmd::trace::run(&args),
        Command::Wear(args) => cmd::wear::run(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}
