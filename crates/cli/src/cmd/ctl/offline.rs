//! Access to a volume without a server: it is opened for one request.

use crate::cmd::serve::defaults;
use frit_serve::ctl::wire::{IspAnswer, ReportedZone, ZonedInfo};
use frit_serve::ctl::{
    self, ChangeAuthor, ChangeLog, HintChange, HintList, Param, ParamChange, RawMedium, Setting, apply,
    apply_saved, params as shown,
};
use frit_serve::hints::HintFile;
use frit_serve::metrics::{Stat, VolumeStat};
use frit_serve::{Device, DeviceOptions};
use frit_volume::{OpenOptions, Volume};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde_json::Value;
use std::path::Path;
use std::time::SystemTime;

fn open(dir: &Path, read_only: bool) -> Result<Volume> {
    Ok(Volume::open(dir, &OpenOptions { read_only, crash: None })?)
}

/// Returns the parameters of the volume.
pub(super) fn params(dir: &Path) -> Result<Vec<Param>> {
    let mut volume = open(dir, true)?;
    let defaults = defaults(volume.stack())?;
    Ok(shown(volume.params(), &defaults))
}

/// Changes parameters, and records them in the volume and its change log.
pub(super) fn set(dir: &Path, settings: &[Setting]) -> Result<Vec<ParamChange>> {
    let mut volume = open(dir, false)?;
    let changed = apply(&mut volume, settings);
    volume.close()?;
    let changed = changed.map_err(|refused| miette!("{refused}"))?;
    log(dir, &changed)?;
    Ok(changed)
}

/// Changes the hints that the volume keeps for its next server.
pub(super) fn hint(dir: &Path, change: &HintChange, changes: bool) -> Result<HintList> {
    // The lock of the open volume excludes a server and another change.
    let volume = open(dir, !changes)?;
    let (list, changed) =
        apply_saved(&HintFile::of(dir), volume.bytes(), change).map_err(|refused| miette!("{refused}"))?;
    volume.close()?;
    log(dir, &changed)?;
    Ok(list)
}

fn log(dir: &Path, changed: &[ParamChange]) -> Result<()> {
    let who = ChangeAuthor { uid: rustix::process::geteuid().as_raw(), pid: std::process::id() as i32 };
    ChangeLog::of(dir)
        .append(SystemTime::now(), who, changed)
        .into_diagnostic()
        .wrap_err_with(|| format!("changed, but {} cannot be written", ChangeLog::NAME))
}

/// Returns the statistics of the volume's media.
pub(super) fn stat(dir: &Path) -> Result<Stat> {
    let volume = open(dir, true)?;
    let mut stat = Stat {
        volume: VolumeStat {
            path: dir.display().to_string(),
            stack: volume.stack().name().into(),
            bytes: volume.bytes(),
            page_bytes: volume.page_bytes(),
            refuses: None,
        },
        ..Stat::default()
    };
    stat.show(&volume.visible(), 0);
    Ok(stat)
}

/// Returns the sizes and the limits of a zoned device, and its zones.
pub(super) fn zones(dir: &Path) -> Result<(ZonedInfo, Vec<ReportedZone>)> {
    let device = Device::new(Box::new(open(dir, true)?), DeviceOptions::default());
    let zones = ctl::zones(&device);
    device.close().into_diagnostic()?;
    zones.map_err(|refused| miette!("{refused}"))
}

/// Executes an instruction of the processing engine.
pub(super) fn isp(dir: &Path, instruction: &Value) -> Result<IspAnswer> {
    let volume = open(dir, true)?;
    let namespaces: Vec<_> =
        volume.stack().namespaces().iter().map(|n| (n.name.clone(), n.range.clone())).collect();
    let device = Device::new(Box::new(volume), DeviceOptions::default());
    let done = ctl::Queries::new(&device).execute(&namespaces, instruction, &|| false);
    device.close().into_diagnostic()?;
    done.map_err(|refused| miette!("{refused}"))
}

/// Reads bytes of the volume, or of a medium.
pub(super) fn peek(dir: &Path, at: u64, len: u32, raw: Option<RawMedium>) -> Result<Vec<u8>> {
    let device = Device::new(Box::new(open(dir, true)?), DeviceOptions::default());
    let uid = rustix::process::geteuid().as_raw();
    let read = ctl::peek(&device, &ctl::raw_names(uid), at, len, raw);
    device.close().into_diagnostic()?;
    read.map_err(|refused| miette!("{refused}"))
}

/// Writes bytes of the volume, or of a medium, and returns their number.
pub(super) fn poke(dir: &Path, at: u64, data: &str, raw: Option<RawMedium>) -> Result<u64> {
    let device = Device::new(Box::new(open(dir, false)?), DeviceOptions::default());
    let uid = rustix::process::geteuid().as_raw();
    let written = ctl::poke(&device, &ctl::raw_names(uid), at, data, raw);
    device.close().into_diagnostic()?;
    written.map_err(|refused| miette!("{refused}"))
}
