//! `frit isp begin`.

use frit_direct::begin_instructions;
use miette::{Result, miette};
use rustix::io::Errno;
use std::io::stdin;

/// Arguments of the command.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples, in a shell:
  exec 3<>.isp; frit isp begin <&3     opens the command file of a directory as descriptor 3
  echo '{\"words\": [\"error\"], \"file\": \"log.txt\"}' >&3; IFS= read -r line <&3; echo \"$line\"
  frit isp begin --share <&3           programs that the shell starts write to it as well

A command file takes instructions only from the process that opened it, and only after a request that no program \
sends by accident: so nobody can make a program with more rights write an instruction. This command sends the \
request for the shell that opened the file. With --share, every process that has the descriptor can write; its \
instructions have the rights that it and the shell have in common.")]
pub(crate) struct Args {
    /// Other processes that have the descriptor give instructions as well.
    #[arg(long)]
    share: bool,
}

/// Begins instructions of the command file on standard input.
pub(super) fn run(args: &Args) -> Result<()> {
    begin_instructions(stdin(), args.share).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => miette!(
            help = "begin with the user, groups and capabilities that the shell has, in its PID and user namespace",
            "the command file was opened by a process with other rights: {error}"
        ),
        Some(Errno::OPNOTSUPP) => {
            miette!(help = "mount it without --isp off", "the mount takes no instructions: {error}")
        }
        _ => miette!(
            help = "exec 3<>DIRECTORY/.isp; frit isp begin <&3",
            "standard input is not an open command file of frit: {error}"
        ),
    })
}
