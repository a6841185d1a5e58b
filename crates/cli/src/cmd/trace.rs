//! `frit trace`: analyzes block traces, converts them, generates workloads.

mod convert;
mod generate;
mod head;
mod read_args;
mod stat;

pub(crate) use read_args::ReadArgs;
pub(crate) use stat::spinner;

use clap::Subcommand;
use miette::Result;

/// Analyze block traces, convert them, and generate workloads.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A WORKLOAD is a trace file (.gz, .zst, .xz, .bz2 and tar are decompressed), '-' for standard input, or \
                  gen:NAME,key=value,… (see: frit trace generate --list)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the statistics of a workload: format, sizes, footprint, locality, arrivals, problems.
    Stat(stat::Args),
    /// Write a workload in another format.
    Convert(convert::Args),
    /// Show the first requests.
    Head(head::Args),
    /// Write a generated workload, or list the generators.
    Generate(generate::Args),
}

/// Runs the command.
///
/// # Errors
/// An error message for the user.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Stat(a) => stat::run(a),
        Command::Convert(a) => convert::run(a),
        Command::Head(a) => head::run(a),
        Command::Generate(a) => generate::run(a),
    }
}

/// Writes to standard output. A reader that closes the pipe (`| head`) is no error.
fn show(text: &str) -> Result<()> {
    crate::output::print(text)
}

/// Writes notes to standard error.
fn remark(lines: &[String]) -> Result<()> {
    lines.iter().try_for_each(|line| crate::output::print_stderr(&format!("frit: {line}\n")))
}
