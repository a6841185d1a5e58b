//! `frit isp run`.

use super::channel::{ImageArgs, ask};
use crate::output::print_bytes;
use miette::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of the command.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Directory to which the files of the instruction are relative.
    directory: PathBuf,
    /// Instruction in JSON, on one line (docs/reference/isp.md).
    instruction: String,
    #[command(flatten)]
    image: ImageArgs,
}

/// Prints the line of the result and its payload.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let answered = ask(&args.directory, &args.instruction.replace('\n', " "), &args.image)?;
    print_bytes(&answered.bytes)?;
    let (line, _) = answered.parts();
    let status: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    Ok(if status["status"] == "ok" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
