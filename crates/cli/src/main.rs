//! `frit`: storage for mixed media that can be looked into.

mod cmd;

use clap::{Parser, Subcommand};

/// Storage for mixed media, software-defined, and visible inside.
#[derive(Parser, Debug)]
#[command(name = "frit", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Look into block traces, convert them, and generate workloads.
    Trace(cmd::trace::Args),
}

fn main() -> miette::Result<()> {
    match Cli::parse().command {
        Command::Trace(args) => cmd::trace::run(&args),
    }
}
