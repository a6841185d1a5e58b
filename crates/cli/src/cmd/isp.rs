//! `frit isp`: in-storage processing.

mod begin;
mod channel;
mod command_file;
mod enable;
mod program;
mod query;
mod registers;
mod run;

use clap::Subcommand;
use miette::Result;
use std::process::ExitCode;

/// Compute where files lie: search for words, and other instructions of the processing engine.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit isp query /mnt/log.txt error warn                      on a mounted file system
  frit isp query log.txt error --image img --positions 3      in an image that is not mounted
  frit isp run /mnt '{\"filter\": {\"regex\": \"^E\"}, \"limit\": 10, \"file\": \"log.txt\"}'
  frit isp run /mnt '{\"checksum\": \"sha256\", \"file\": \"data.bin\"}'
  frit isp program /mnt/top_k.wasm /mnt/numbers.txt --argument 5
  exec 3<>/mnt/.isp; frit isp begin <&3                       in a shell, for instructions
  frit isp registers img                                      instructions in progress
  frit isp enable img                                         command files for an older image

A program does the same with the command file .isp of each directory. See docs/reference/isp.md.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Count the occurrences of words in a file, and locate the first ones.
    Query(query::Args),
    /// Give an instruction in JSON, and print its result and payload.
    Run(run::Args),
    /// Run a program in WebAssembly where a file lies, and print what it emits.
    Program(program::Args),
    /// Begin instructions through a command file that a shell has opened.
    Begin(begin::Args),
    /// Show the registers of an image: the instructions since its mount.
    Registers(registers::Args),
    /// Add command files to a file system that was made without them.
    Enable(enable::Args),
}

/// Runs the command.
///
/// # Errors
/// The file is not on a file system of frit; the output cannot be written. A failed instruction is
/// reported by the exit code.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Query(args) => query::run(args),
        Command::Run(args) => run::run(args),
        Command::Program(args) => program::run(args),
        Command::Begin(args) => begin::run(args).map(|()| ExitCode::SUCCESS),
        Command::Registers(args) => registers::run(args),
        Command::Enable(args) => enable::run(args).map(|()| ExitCode::SUCCESS),
    }
}
