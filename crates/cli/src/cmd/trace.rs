//! `frit trace`: look into block traces, convert them, generate workloads.

mod convert;
mod generate;
mod head;
mod reading;
mod stat;

pub(crate) use reading::ReadArgs;
pub(crate) use stat::spinner;

use clap::Subcommand;
use miette::Result;

/// Look into block traces, convert them, and generate workloads.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A WORKLOAD is a trace file (.gz, .zst, .xz, .bz2 and tar are seen through), '-' for standard input, or \
                  gen:NAME,key=value,… (see: frit trace generate --list)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// What is in a workload: how it was read, sizes, footprint, locality, arrivals, what was wrong.
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
/// What the user has to know, in one message.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Stat(a) => stat::run(a),
        Command::Convert(a) => convert::run(a),
        Command::Head(a) => head::run(a),
        Command::Generate(a) => generate::run(a),
    }
}

/// Writes to standard output; a reader that has seen enough (`| head`) is no error.
fn show(text: &str) -> Result<()> {
    crate::output::print(text)
}

/// Writes remarks to standard error.
fn remark(lines: &[String]) -> Result<()> {
    lines.iter().try_for_each(|line| crate::output::complain(&format!("frit: {line}\n")))
}
