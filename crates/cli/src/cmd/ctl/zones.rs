//! `frit ctl zones`: shows the zones of a zoned device, and manages them.

use super::{Args, ask, client, offline, unexpected};
use crate::output::{print, print_json, right, table, text};
use frit_core::size;
use frit_serve::ctl::wire::{ReportedZone, ZONES_MAX, ZoneState, ZonedAnswer, ZonedInfo, ZonedOperation};
use frit_serve::ctl::{Client, ControlOperation, Success};
use miette::{Result, miette};
use serde::Serialize;
use std::fmt::Write;

/// Arguments of `zones`.
#[derive(clap::Args, Debug)]
pub(super) struct ZonesArgs {
    #[command(subcommand)]
    what: Option<ZoneCommand>,
    /// Show only zones in this state, for example full or implicitly-open.
    #[arg(long, value_parser = state)]
    state: Option<ZoneState>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand, Debug)]
enum ZoneCommand {
    /// Open zones explicitly.
    Open(ZoneNumbers),
    /// Close open zones.
    Close(ZoneNumbers),
    /// Make zones full.
    Finish(ZoneNumbers),
    /// Make zones empty. Their data are lost.
    Reset(ZoneNumbers),
}

#[derive(clap::Args, Debug)]
struct ZoneNumbers {
    /// Numbers of the zones.
    #[arg(value_name = "ZONE", required = true)]
    zones: Vec<u32>,
}

/// Zones of a device with its sizes and limits, as `--json` prints them.
#[derive(Serialize)]
struct ZoneReport {
    #[serde(flatten)]
    info: ZonedInfo,
    list: Vec<ReportedZone>,
}

/// Parses the name of a state.
fn state(text: &str) -> Result<ZoneState, String> {
    let all: Vec<&str> = ZoneState::ALL.iter().map(|state| state.name()).collect();
    let found = ZoneState::ALL.into_iter().find(|state| state.name() == text);
    found.ok_or_else(|| format!("a zone is {}", all.join(", ")))
}

/// Runs the command.
pub(super) fn run(args: &Args, zones: &ZonesArgs) -> Result<()> {
    if let Some(command) = &zones.what {
        return manage(args, command);
    }
    let (info, mut list) = match client(args)? {
        Some(mut client) => report(&mut client)?,
        None => offline::zones(&args.volume)?,
    };
    list.retain(|zone| zones.state.is_none_or(|state| zone.state == state));
    if zones.json { print_json(&ZoneReport { info, list }) } else { print(&shown(&info, &list)) }
}

fn give(client: &mut Client, command: ZonedOperation) -> Result<ZonedAnswer> {
    match ask(client, ControlOperation::Zoned { command })? {
        Success::Zoned(answer) => Ok(answer),
        other => Err(unexpected(&other)),
    }
}

fn no_report() -> miette::Report {
    miette!("the server sent an unexpected reply instead of a report of zones")
}

fn report(client: &mut Client) -> Result<(ZonedInfo, Vec<ReportedZone>)> {
    let ZonedAnswer::Info(info) = give(client, ZonedOperation::Info {})? else { return Err(no_report()) };
    let mut list = Vec::new();
    while list.len() < info.zones as usize {
        let report = ZonedOperation::Report { first: list.len() as u32, most: ZONES_MAX as u32 };
        match give(client, report)? {
            ZonedAnswer::Zones(zones) if !zones.is_empty() => list.extend(zones),
            _ => return Err(no_report()),
        }
    }
    Ok((info, list))
}

/// Manages zones in the order in which they are given, up to the first that fails.
fn manage(args: &Args, command: &ZoneCommand) -> Result<()> {
    let Some(mut client) = client(args)? else {
        let volume = args.volume.display();
        return Err(miette!(
            help = format!("start a server: frit serve {volume} --nbd unix:{volume}/nbd.sock"),
            "{volume} is not served: its zones can only be shown"
        ));
    };
    let (numbers, done, operation): (_, _, fn(u32) -> ZonedOperation) = match command {
        ZoneCommand::Open(n) => (n, "opened", |zone| ZonedOperation::Open { zone }),
        ZoneCommand::Close(n) => (n, "closed", |zone| ZonedOperation::Close { zone }),
        ZoneCommand::Finish(n) => (n, "finished", |zone| ZonedOperation::Finish { zone }),
        ZoneCommand::Reset(n) => (n, "reset", |zone| ZonedOperation::Reset { zone }),
    };
    for &zone in &numbers.zones {
        give(&mut client, operation(zone))?;
        print(&format!("zone {zone}: {done}\n"))?;
    }
    Ok(())
}

/// Returns the zones as a table, below the sizes and the limits.
fn shown(info: &ZonedInfo, list: &[ReportedZone]) -> String {
    let limit = |n: u32| if n == 0 { "no limit".to_owned() } else { format!("of {n}") };
    let zone_bytes = info.zone_sectors * frit_core::SECTOR_BYTES;
    let mut out = format!(
        "{} zones of {} ({} sectors), blocks of {} bytes; {} open ({}), {} active ({})\n",
        info.zones,
        size::format(zone_bytes),
        info.zone_sectors,
        info.block_bytes,
        info.open,
        limit(info.max_open),
        info.active,
        limit(info.max_active),
    );
    let mut t = table(&["zone", "state", "first sector", "write pointer", "written"]);
    for zone in list {
        let written = (zone.write_pointer - zone.start) * frit_core::SECTOR_BYTES;
        t.add_row([
            zone.zone.to_string(),
            zone.state.name().to_owned(),
            zone.start.to_string(),
            zone.write_pointer.to_string(),
            size::format(written),
        ]);
    }
    [0, 2, 3, 4].into_iter().for_each(|column| right(&mut t, column));
    let _ = write!(out, "{}", text(&t));
    out
}
