//! `frit create`.

use super::split_overrides;
use super::volume::{sizes, warn};
use crate::output::{print, print_json, report, table, text};
use frit_core::size;
use frit_media::FileAccess;
use frit_serve::hints::{HintFile, SavedHints};
use frit_stack::Stack;
use frit_volume::superblock::VERSION;
use frit_volume::{CreateOptions, MediumStatus, Volume, durable_stack, inspect, sized_stack};
use miette::{IntoDiagnostic, Report, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Make a volume from a stack.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit create vol --stack hfsl-small                            a built-in stack
  frit create vol --stack hfsl-paper --size 1G                  as many NAND blocks as 1 GiB needs
  frit create vol --stack halo-thin --size 100G                 a stack of several layers
  frit create vol --stack mine.toml,SSW=1024                    a file, with an override
  frit create vol --stack mine.toml --set media.nand.path=/dev/nvme1n1
  frit create vol --stack halo-small --set media.disk.path=/dev/sdb --set media.disk.access=direct
  frit create vol --stack hfsl-small --force                    replaces a volume that was closed

Everything is allocated at once. A directory that is not empty and no volume is never touched, and \
a volume that is dirty or in use is never replaced. See docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// Directory of the volume; it is created if it is missing.
    volume: PathBuf,
    /// Stack: a file or a built-in, with overrides after commas (stack.toml,SSW=1024).
    #[arg(long, value_name = "STACK[,KEY=VALUE...]")]
    stack: String,
    /// Override a key of the stack. Can be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Size of the volume: sets blocks_per_plane, or the size of disks or memory, accordingly, in all
    /// layers of the stack.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    size: Option<u64>,
    /// Replace an existing volume, unless it is dirty or in use; overwrite the contents of a block
    /// device.
    #[arg(long)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CreateJson<'a> {
    volume: &'a Path,
    uuid: String,
    format_version: u32,
    bytes: u64,
    page_bytes: u32,
    stack: &'a str,
    sha256: String,
    media: &'a [MediumStatus],
    /// Settings that were changed in the stack.
    changed: Option<&'a str>,
}

/// Loads the stack of a text such as `mine.toml,SSW=1024`, with more overrides.
pub(crate) fn load(text: &str, sets: &[String], size: Option<u64>) -> Result<Stack> {
    let (name, own) = split_overrides(text);
    let own = [own, sets.to_vec()].concat();
    let load = |more: &[String]| {
        let all: Vec<String> = own.iter().chain(more).cloned().collect();
        Stack::load(name, &all)
    };
    Ok(match size {
        Some(bytes) => sized_stack(bytes, load)?,
        None => load(&[])?,
    })
}

/// Runs the command.
///
/// # Errors
/// The volume cannot be created.
pub(crate) fn run(args: &Args) -> Result<()> {
    let stack = load(&args.stack, &args.set, args.size)?;
    let (_, changed) = durable_stack(&stack)?;
    for w in stack.warnings() {
        report(&Report::new(w.clone()))?;
    }
    let options = CreateOptions { stack, force: args.force };
    let volume = Volume::create(&args.volume, &options)?;
    let (bytes, page_bytes) = (volume.bytes(), volume.page_bytes());
    if args.force {
        // The hints of the replaced volume are those of its contents.
        HintFile::of(&args.volume).store(&SavedHints::default()).into_diagnostic()?;
    }
    volume.close()?;
    let made = inspect(&args.volume)?;
    warn(made.exposed.clone())?;
    if args.json {
        return print_json(&CreateJson {
            volume: &args.volume,
            uuid: made.superblock.uuid_text(),
            format_version: VERSION,
            bytes,
            page_bytes,
            stack: &made.superblock.name,
            sha256: made.superblock.sha256_text(),
            media: &made.media,
            changed: changed.as_deref(),
        });
    }
    let mut out = format!("{}: a volume of {}\n", args.volume.display(), sizes(bytes));
    out += &format!("stack {}, sha256 {}\n", made.superblock.name, made.superblock.sha256_text());
    out += &format!("format version {VERSION}, UUID {}\n\n", made.superblock.uuid_text());
    out += &media(&made.media);
    if let Some(changed) = changed {
        out += &format!("\nChanged in the stack: {changed}.\n");
    }
    print(&out)
}

/// Returns the media files as a table.
pub(crate) fn media(all: &[MediumStatus]) -> String {
    let mut t = table(&["medium", "kind", "size", "held by", "where"]);
    for m in all {
        let kind: &str = m.kind.into();
        let held = match m.backing {
            frit_volume::superblock::Backing::File => "file",
            frit_volume::superblock::Backing::BlockDevice => "block device",
            frit_volume::superblock::Backing::DaxFile => "DAX file",
            frit_volume::superblock::Backing::ObjectStore => "object store",
        };
        let held = match m.access {
            FileAccess::PageCache => held.to_owned(),
            access => format!("{held}, {}", <&str>::from(access)),
        };
        let place = match &m.problem {
            None => m.path.display().to_string(),
            Some(problem) => format!("{}: {problem}", m.path.display()),
        };
        t.add_row([m.name.as_str(), kind, &size::format(m.bytes), &held, &place]);
    }
    text(&t)
}
