//! `frit grow`.

use super::create::load;
use super::volume::{ByteProgress, sizes};
use crate::output::{print, print_json};
use frit_core::{size, text::shown};
use frit_stack::Stack;
use frit_volume::{grow, inspect, sized_stack, stack_with_overrides, volume_bytes};
use miette::{Result, bail, miette};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Make a volume larger, or change its stack, keeping its contents.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit grow vol --size 2G
  frit grow vol --set media.nand.blocks_per_plane=512
  frit grow vol --stack bigger.toml

A copy with the new stack is made beside the volume (vol.growing), compared with it, and exchanged for it in one step; the \
disk needs space for both. A crash at any moment leaves the old or the new volume. UUID and parameters are \
kept. A smaller size is refused; with --shrink, only if the stored data does not fit. See docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// The volume.
    volume: PathBuf,
    /// New stack; without it the volume's own stack, with the overrides.
    #[arg(long, value_name = "STACK[,KEY=VALUE...]")]
    stack: Option<String>,
    /// Override a key of the stack. Can be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// New size.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    size: Option<u64>,
    /// Let the volume become smaller, if the stored data fits.
    #[arg(long)]
    shrink: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn stack(args: &Args) -> Result<Stack> {
    if let Some(stack) = &args.stack {
        return load(stack, &args.set, args.size);
    }
    let superblock = inspect(&args.volume)?.superblock;
    let load = |more: &[String]| {
        let sets: Vec<String> = args.set.iter().chain(more).cloned().collect();
        stack_with_overrides(&superblock, &sets)
    };
    Ok(match args.size {
        Some(bytes) => sized_stack(bytes, load)?,
        None => load(&[])?,
    })
}

/// Refuses a stack whose volume is smaller than the existing one.
fn refuse_smaller(dir: &Path, stack: &Stack) -> Result<()> {
    let has = volume_bytes(&stack_with_overrides(&inspect(dir)?.superblock, &[])?)?;
    let wanted = volume_bytes(stack)?;
    if wanted >= has {
        return Ok(());
    }
    Err(miette!(
        help = "--shrink makes it smaller, if nothing is stored behind the new end",
        "{} has {}, and would have {}: growing does not make it smaller",
        shown(dir),
        sizes(has),
        sizes(wanted)
    ))
}

/// Runs the command.
///
/// # Errors
/// The volume cannot grow; it is unchanged then.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.stack.is_none() && args.set.is_empty() && args.size.is_none() {
        bail!("how large? give --size, --set media.<nand>.blocks_per_plane=N, or --stack");
    }
    let stack = stack(args)?;
    if !args.shrink {
        refuse_smaller(&args.volume, &stack)?;
    }
    let bar = ByteProgress::bytes(args.json, "opening", None);
    let mut now = String::new();
    let grown = grow(&args.volume, &stack, &mut |what, length, done| {
        if now != what {
            now = what.to_owned();
            bar.begin(what, (length > 0).then_some(length));
        }
        bar.at(done);
    })?;
    drop(bar);
    if args.json {
        return print_json(&grown);
    }
    let mut out = format!(
        "{}: {} before, {} now; {} copied and compared\n",
        args.volume.display(),
        sizes(grown.before),
        sizes(grown.now),
        size::format(grown.data_bytes)
    );
    if let Some(area) = &grown.raw_area {
        out += &format!(
            "area for physical addresses: PCM {} before, {} now; offsets in it are unchanged\n",
            addresses(&area.before),
            addresses(&area.now)
        );
    }
    for left in grown.left {
        out += &format!("{} is no longer used; it still holds the old data\n", left.display());
    }
    print(&out)
}

/// Returns an area of PCM as text.
fn addresses(area: &Range<u64>) -> String {
    if area.is_empty() { "none".to_owned() } else { format!("{}+{}", area.start, area.end - area.start) }
}
