//! `frit mqsim`: translates a configuration of MQSim into a stack.

mod channel;
mod parameters;
mod stack;

use crate::output::print;
use frit_core::text::shown;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use parameters::Parameters;
use std::path::PathBuf;

/// Largest file that is read: MQSim's own files have 4 KB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Translate a configuration of the simulator MQSim into a stack.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit mqsim ssdconfig.xml > ssd.toml
  frit run ssd.toml trace.txt --warm fill

The stack has the geometry, the times and the policies of the file. A parameter that frit models \
differently or not at all is a comment of the stack. See docs/guide/from-mqsim.md.")]
pub(crate) struct Args {
    /// Configuration of the device: MQSim's ssdconfig.xml.
    config: PathBuf,
    /// Device_Level_Data_Caching_Mode of the flow, which MQSim has in the definition of its workloads.
    #[arg(long, value_enum, default_value = "write-cache")]
    caching: Caching,
}

/// Caching modes of MQSim, by its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Caching {
    WriteCache,
    ReadCache,
    WriteReadCache,
    TurnedOff,
}

impl Caching {
    /// Returns the `mode` of a `dram-cache`, if there is one.
    fn mode(self) -> Option<&'static str> {
        match self {
            Caching::WriteCache => Some("write"),
            Caching::ReadCache => Some("read"),
            Caching::WriteReadCache => Some("read-write"),
            Caching::TurnedOff => None,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The file cannot be read, or is no configuration of MQSim that frit can express.
pub(crate) fn run(args: &Args) -> Result<()> {
    let cannot = || format!("cannot read {}", shown(&args.config));
    let bytes = std::fs::metadata(&args.config).into_diagnostic().wrap_err_with(cannot)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(miette!(
            help = "give the ssdconfig.xml, which is MQSim's first file (-i)",
            "{} is no configuration of MQSim: it has {bytes} bytes",
            shown(&args.config)
        ));
    }
    let text = std::fs::read_to_string(&args.config).into_diagnostic().wrap_err_with(cannot)?;
    let name = args.config.display().to_string();
    let mut parameters = Parameters::parse(&name, &text)?;
    print(&stack::translate(&mut parameters, args.caching)?)
}
