//! `frit ctl hint`: shows and changes the hints that writes get.

use super::{ask, offline, show, unexpected};
use crate::output::{print, print_json};
use frit_core::HintRange;
use frit_serve::ctl::{Client, ControlOperation, HintChange, Success};
use miette::Result;
use std::path::Path;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    what: HintCommand,
}

#[derive(clap::Subcommand, Debug)]
enum HintCommand {
    /// Show the ranges, and the file systems whose metadata is detected.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give writes to ranges a hint: metadata, hot or cold. The volume keeps the rule.
    Add {
        /// Ranges with their hints, such as 1G+64M=metadata.
        #[arg(value_name = "OFFSET+LENGTH=HINT", required = true)]
        ranges: Vec<HintRange>,
    },
    /// Remove ranges.
    Remove {
        /// Ranges, as `list` shows them.
        #[arg(value_name = "OFFSET+LENGTH=HINT", required = true)]
        ranges: Vec<HintRange>,
    },
    /// Recognise metadata of ext4, XFS and btrfs in what clients write, or stop it.
    Detect {
        /// New state.
        #[arg(value_enum)]
        state: DetectorState,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum DetectorState {
    On,
    Off,
}

/// Runs the command on a server, or on a volume that is not served.
pub(super) fn run(args: &Args, client: Option<Client>, volume: &Path) -> Result<()> {
    let change = match &args.what {
        HintCommand::List { .. } => HintChange::default(),
        HintCommand::Add { ranges } => HintChange { add: ranges.clone(), ..HintChange::default() },
        HintCommand::Remove { ranges } => HintChange { remove: ranges.clone(), ..HintChange::default() },
        HintCommand::Detect { state } => {
            HintChange { detect: Some(*state == DetectorState::On), ..HintChange::default() }
        }
    };
    let texts = |ranges: &[HintRange]| ranges.iter().map(ToString::to_string).collect();
    let operation = ControlOperation::Hint {
        add: texts(&change.add),
        remove: texts(&change.remove),
        detect: change.detect,
    };
    let list = match client {
        Some(mut client) => match ask(&mut client, operation)? {
            Success::Hints(list) => list,
            other => return Err(unexpected(&other)),
        },
        None => offline::hint(volume, &change, operation.changes())?,
    };
    match args.what {
        HintCommand::List { json: true } => print_json(&list),
        _ => print(&show::hint_list(&list)),
    }
}
