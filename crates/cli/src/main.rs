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
    /// Check stacks, and say what they come to.
    Check(cmd::check::Args),
    /// List the profiles of media, and where their values come from.
    Profiles(cmd::profiles::Args),
    /// List the layers, their parameters and policies.
    Layers(cmd::layers::Args),
    /// Measure what papers report: published beside measured.
    Reproduce(cmd::reproduce::Args),
    /// Serve a volume to other programs.
    Serve(Box<cmd::serve::Args>),
    /// Look into block traces, convert them, and generate workloads.
    Trace(Box<cmd::trace::Args>),
}

fn main() -> miette::Result<ExitCode> {
    match Cli::parse().command {
        Command::Run(args) => return cmd::run::run(&args),
        Command::Check(args) => return cmd::check::run(&args),
        Command::Profiles(args) => cmd::profiles::run(&args),
        Command::Layers(args) => cmd::layers::run(&args),
        Command::Reproduce(args) => return cmd::reproduce::run(&args),
        Command::Serve(args) => cmd::serve::run(&args),
        Command::Trace(args) => cmd::trace::run(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}
