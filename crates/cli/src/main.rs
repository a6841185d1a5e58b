//! `frit`: storage for mixed media that can be looked into.

mod cmd;
mod output;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Storage for mixed media, software-defined, and visible inside.
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
    /// Check stacks, and say what they come to; check volumes.
    Check(cmd::check::Args),
    /// Make a volume from a stack.
    Create(cmd::create::Args),
    /// Say what a volume is and how it was left.
    Inspect(cmd::inspect::Args),
    /// Bring a volume up after a stop, and say what was found.
    Recover(cmd::recover::Args),
    /// Read and verify all data of a volume.
    Scrub(cmd::scrub::Args),
    /// Make a volume larger.
    Grow(cmd::grow::Args),
    /// Write a volume out as a raw image.
    Export(cmd::export::Args),
    /// Fill a volume from a raw image.
    Import(cmd::import::Args),
    /// List the profiles of media, and where their values come from.
    Profiles(cmd::profiles::Args),
    /// Look into disk drives: profiles, figures, and how their models compare with measurements.
    Disk(cmd::disk::Args),
    /// Count hits and misses of eviction policies on a workload.
    Cache(Box<cmd::cache::Args>),
    /// List the layers, their parameters and policies.
    Layers(cmd::layers::Args),
    /// Measure what papers report: published beside measured.
    Reproduce(cmd::reproduce::Args),
    /// Make a block device of a volume.
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
    /// Put the pieces of files together in a file system that is not mounted.
    Defrag(cmd::defrag::Args),
    /// Run a file system on modelled memory in virtual time; show the plan of an operation.
    Fsrun(Box<cmd::fsrun::Args>),
    /// Look into a volume and change its parameters, also while clients use it.
    Ctl(cmd::ctl::Args),
    /// Serve a volume to other programs.
    Serve(Box<cmd::serve::Args>),
    /// Cut the power of a stack at every media operation, damage its media, and see what holds.
    Torture(cmd::torture::Args),
    /// Look into block traces, convert them, and generate workloads.
    Trace(Box<cmd::trace::Args>),
    /// Count how a workload wears PCM under each wear leveling.
    Wear(Box<cmd::wear::Args>),
}

fn main() -> miette::Result<ExitCode> {
    miette::set_hook(Box::new(|_| Box::new(output::Teller)))?;
    match Cli::parse().command {
        Command::Run(args) => return cmd::run::run(&args),
        Command::Check(args) => return cmd::check::run(&args),
        Command::Create(args) => cmd::create::run(&args),
        Command::Inspect(args) => return cmd::inspect::run(&args),
        Command::Recover(args) => return cmd::recover::run(&args),
        Command::Scrub(args) => return cmd::scrub::run(&args),
        Command::Grow(args) => cmd::grow::run(&args),
        Command::Export(args) => return cmd::export::run(&args),
        Command::Import(args) => return cmd::import::run(&args),
        Command::Profiles(args) => cmd::profiles::run(&args),
        Command::Disk(args) => cmd::disk::run(&args),
        Command::Cache(args) => cmd::cache::run(&args),
        Command::Layers(args) => cmd::layers::run(&args),
        Command::Reproduce(args) => return cmd::reproduce::run(&args),
        Command::Attach(args) => cmd::attach::run(&args),
        Command::Detach(args) => return cmd::detach::run(&args),
        Command::Mkfs(args) => cmd::mkfs::run(&args),
        Command::Mount(args) => cmd::mount::run(&args),
        Command::Unmount(args) => cmd::unmount::run(&args),
        Command::Fsck(args) => return cmd::fsck::run(&args),
        Command::Defrag(args) => cmd::defrag::run(&args),
        Command::Fsrun(args) => return cmd::fsrun::run(&args),
        Command::Ctl(args) => cmd::ctl::run(&args),
        Command::Serve(args) => cmd::serve::run(&args),
        Command::Torture(args) => return cmd::torture::run(&args),
        Command::Trace(args) => cmd::trace::run(&args),
        Command::Wear(args) => cmd::wear::run(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}
