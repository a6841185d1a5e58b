//! `frit inspect`.

use super::create::media;
use super::volume::{NOT_OPENED, not_opened, sizes, when};
use crate::output::{print, print_json, right, table, text};
use frit_core::visible::WearSummary;
use frit_core::{MediumKind, ParamInfo, size};
use frit_volume::superblock::{Features, RecoveryRecord, VERSION, VolumeState};
use frit_volume::{Inspection, MediumStatus, OpenOptions, OpenReport, Volume, inspect};
use miette::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show the configuration and state of a volume, without changing it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit inspect vol
  frit inspect vol --stack > same.toml           its stack, to make another one
  frit inspect vol --json

For a volume in use only the superblock is shown; frit ctl shows the rest. Exits with 0, or with 2 when there is no \
volume that can be opened. See docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// The volume.
    volume: PathBuf,
    /// Print the stack only: a stack file.
    #[arg(long)]
    stack: bool,
    /// Print JSON.
    #[arg(long, conflicts_with = "stack")]
    json: bool,
}

#[derive(Serialize)]
struct InspectJson<'a> {
    volume: &'a Path,
    uuid: String,
    format_version: u32,
    features: Features,
    state: VolumeState,
    in_use_by: Option<&'a str>,
    damaged_copy: Option<&'a str>,
    sequence: u64,
    created_unix: u64,
    created_by: &'a str,
    stack_name: &'a str,
    stack: &'a str,
    sha256: String,
    media: &'a [MediumStatus],
    changed_parameters: BTreeMap<&'a str, &'a str>,
    last_recovery: Option<RecoveryRecord>,
    /// Properties of the open volume; null if it cannot be opened now.
    inside: Option<&'a OpenedJson>,
    why_closed: Option<&'a str>,
}

/// Properties that are known only of an open volume.
#[derive(Serialize)]
struct OpenedJson {
    bytes: u64,
    page_bytes: u32,
    /// Bytes of the volume by their location.
    nand_bytes: u64,
    pcm_bytes: u64,
    disk_bytes: u64,
    object_store_bytes: u64,
    unwritten_bytes: u64,
    wear: Vec<MediumWearJson>,
    parameters: BTreeMap<String, String>,
    /// Result of the recovery that an opening would run now.
    recovery: OpenReport,
}

#[derive(Serialize)]
struct MediumWearJson {
    medium: String,
    per: String,
    limit: u64,
    bad: u32,
    #[serde(flatten)]
    cycles: WearSummary,
}

/// Runs the command.
///
/// # Errors
/// Output that cannot be written.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let found = match inspect(&args.volume) {
        Ok(i) => i,
        Err(e) => return not_opened(e),
    };
    if args.stack {
        print(&found.superblock.stack)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut in_use = found.in_use.is_some();
    let inside = match in_use {
        true => Err("it is in use; frit ctl shows its contents".to_owned()),
        false => read_opened(&args.volume).map_err(|e| {
            // Another process has opened the volume in the meantime.
            in_use = matches!(e, frit_volume::Error::InUse { .. });
            e.to_string()
        }),
    };
    if args.json {
        print_json(&shown(&args.volume, &found, &inside))?;
    } else {
        print(&told(&args.volume, &found, &inside))?;
    }
    let fails = inside.is_err() && !in_use;
    Ok(if fails { ExitCode::from(NOT_OPENED) } else { ExitCode::SUCCESS })
}

fn read_opened(dir: &Path) -> frit_volume::Result<OpenedJson> {
    let mut v = Volume::open(dir, &OpenOptions { read_only: true, crash: None })?;
    let mut by = [0u64; 5];
    v.extents(0, v.bytes(), &mut |len, place| match place {
        None => by[0] += len,
        Some(MediumKind::Pcm) => by[1] += len,
        Some(MediumKind::Disk) => by[3] += len,
        Some(MediumKind::Object) => by[4] += len,
        Some(_) => by[2] += len,
    })?;
    let wear = v
        .visible()
        .media
        .into_iter()
        .filter(|m| !matches!(m.kind, MediumKind::Dram | MediumKind::Disk | MediumKind::Object));
    let worn = wear.map(|m| MediumWearJson {
        medium: m.name,
        cycles: m.wear.summary(),
        per: m.wear.per,
        limit: m.wear.limit,
        bad: m.wear.bad,
    });
    Ok(OpenedJson {
        bytes: v.bytes(),
        page_bytes: v.page_bytes(),
        nand_bytes: by[2],
        pcm_bytes: by[1],
        disk_bytes: by[3],
        object_store_bytes: by[4],
        unwritten_bytes: by[0],
        wear: worn.collect(),
        parameters: v.params().into_iter().map(|p: ParamInfo| (p.key.into_owned(), p.value)).collect(),
        recovery: v.recovery().clone(),
    })
}

fn shown<'a>(dir: &'a Path, i: &'a Inspection, inside: &'a Result<OpenedJson, String>) -> InspectJson<'a> {
    let s = &i.superblock;
    InspectJson {
        volume: dir,
        uuid: s.uuid_text(),
        format_version: VERSION,
        features: s.features,
        state: s.state,
        in_use_by: i.in_use.as_deref(),
        damaged_copy: i.damaged_copy.as_deref(),
        sequence: s.sequence,
        created_unix: s.created_unix,
        created_by: &s.created_by,
        stack_name: &s.name,
        stack: &s.stack,
        sha256: s.sha256_text(),
        media: &i.media,
        changed_parameters: s.params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
        last_recovery: s.recovery,
        inside: inside.as_ref().ok(),
        why_closed: inside.as_ref().err().map(String::as_str),
    }
}

fn told(dir: &Path, i: &Inspection, inside: &Result<OpenedJson, String>) -> String {
    let s = &i.superblock;
    let mut out = String::new();
    let mut row = |name: &str, value: &str| out += &format!("{name:<12} {value}\n");
    row("volume", &dir.display().to_string());
    let state = match (&i.in_use, s.state) {
        (Some(by), _) if by.is_empty() => "in use".to_owned(),
        (Some(by), _) => format!("in use by {by}"),
        (None, VolumeState::Clean) => "clean".to_owned(),
        (None, VolumeState::Dirty) => "dirty: it was not closed; the next opening recovers it".to_owned(),
        (None, VolumeState::Creating) => "its creation was not finished; run frit create again".to_owned(),
    };
    row("state", &state);
    if let Ok(inside) = inside {
        let pages = inside.bytes / u64::from(inside.page_bytes);
        row(
            "size",
            &format!("{}, {pages} pages of {}", sizes(inside.bytes), size::format(inside.page_bytes.into())),
        );
        let has = |kind| i.media.iter().any(|m| m.kind == kind);
        // A disk has no map, so no part of it is known to be unwritten.
        let disk = has(MediumKind::Disk);
        let data = [
            (has(MediumKind::Nand), inside.nand_bytes, "NAND"),
            (has(MediumKind::Pcm), inside.pcm_bytes, "PCM"),
            (disk, inside.disk_bytes, "disk"),
            (has(MediumKind::Object), inside.object_store_bytes, "object store"),
            (!disk, inside.unwritten_bytes, "unwritten"),
        ];
        let data = data.iter().filter(|(shown, ..)| *shown);
        let data: Vec<String> = data.map(|(_, n, what)| format!("{} {what}", size::format(*n))).collect();
        row("occupancy", &data.join(", "));
    }
    row("UUID", &s.uuid_text());
    row("made", &format!("{} by frit {}, format version {VERSION}", when(s.created_unix), s.created_by));
    row("stack", &format!("{}, sha256 {}", s.name, s.sha256_text()));
    // A stack of a later version is shown by its text only.
    let stack = frit_stack::Stack::parse(&s.name, &s.stack, &[]);
    let namespaces = stack.iter().flat_map(frit_stack::Stack::namespaces);
    let namespaces: Vec<String> =
        namespaces.map(|n| format!("{} {}", n.name, size::format(n.bytes()))).collect();
    if !namespaces.is_empty() {
        row("name spaces", &namespaces.join(", "));
    }
    let copies = match &i.damaged_copy {
        None => format!("update {}", s.sequence),
        Some(why) => format!("update {}; the other copy is damaged: {why}", s.sequence),
    };
    row("superblock", &copies);
    let params: Vec<String> = s.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    row("changed", if params.is_empty() { "no parameter" } else { "" }.to_owned().as_str());
    params.iter().for_each(|p| row("", p));
    row("recovered", &s.recovery.map_or("never: always closed properly".into(), |r| last(&r)));
    out += &format!("\n{}", media(&i.media));
    match inside {
        Ok(inside) => out += &format!("\n{}", wear(&inside.wear)),
        Err(why) => out += &format!("\nNot opened: {why}\n"),
    }
    out
}

fn last(r: &RecoveryRecord) -> String {
    let what = if r.power_loss { "a power loss" } else { "a crash of the program" };
    format!(
        "{}, after {what}: {} pages, {} redone, {} padded, {} suspect blocks, {} lost, {:.3} s",
        when(r.unix),
        r.pages,
        r.redone,
        r.padded,
        r.suspect_blocks,
        r.lost,
        r.micros as f64 / 1e6
    )
}

fn wear(all: &[MediumWearJson]) -> String {
    let mut t = table(&["wear", "per", "mean", "least", "most", "specified", "bad or over"]);
    for w in all {
        let c = &w.cycles;
        t.add_row([
            w.medium.clone(),
            w.per.clone(),
            format!("{:.2}", c.mean),
            c.min.to_string(),
            c.max.to_string(),
            w.limit.to_string(),
            w.bad.to_string(),
        ]);
    }
    (2..7).for_each(|column| right(&mut t, column));
    text(&t)
}
