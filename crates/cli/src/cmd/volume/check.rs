//! Check of a volume, for `frit check VOLUME` and `frit scrub`.

use super::{NOT_OPENED, begin_phase, not_opened, open, warn};
use crate::output::{print, report, right, table, text};
use frit_core::{CheckCounts, CheckScope, Finding, MediumKind, size};
use frit_volume::{OpenReport, Volume, inspect};
use miette::{IntoDiagnostic, Report, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Maximum number of findings that are listed.
const SHOWN: usize = 100;

/// Options of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckOptions {
    /// Read and verify all data.
    pub(crate) data: bool,
    /// Repair damage where possible.
    pub(crate) repair: bool,
    /// Repair also with versions that may be older than the lost ones.
    pub(crate) older: bool,
    /// Print JSON instead of tables.
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct VolumeCheckJson<'a> {
    volume: &'a Path,
    /// `true` if no findings are left.
    ok: bool,
    /// The defect of one of the superblock's copies.
    superblock: Option<&'a str>,
    recovery: &'a OpenReport,
    checked: CheckCounts,
    findings: &'a [Finding],
    seconds: f64,
    /// Rate of verification, in 10⁶ bytes of data a second.
    mb_per_second: f64,
}

/// Checks the volume and reports the findings; JSON is added to `outcomes`, to be printed by the
/// caller. Returns the exit code: 0 if no findings are left, 1 if some are, 2 if the volume cannot
/// be opened.
pub(crate) fn check(dir: &Path, how: CheckOptions, outcomes: &mut Vec<Value>) -> Result<u8> {
    let superblock = match inspect(dir) {
        Ok(i) => {
            warn(i.exposed)?;
            i.damaged_copy
        }
        Err(e) => return fails(dir, how, e, outcomes),
    };
    let mut volume = match open(dir, !how.repair, how.json) {
        Ok(v) => v,
        Err(e) => return fails(dir, how, e, outcomes),
    };
    let mut findings = Vec::new();
    let start = Instant::now();
    let checked = run(&mut volume, how, &mut findings);
    let seconds = start.elapsed().as_secs_f64();
    let recovery = volume.recovery().clone();
    let page_bytes = volume.page_bytes();
    let disk = volume.stack().media().iter().any(|m| m.spec.kind() == MediumKind::Disk);
    // A repaired volume is closed in every case, so that the repairs persist.
    let closed = volume.close();
    let checked = checked.into_diagnostic()?;
    findings.sort_by(|a: &Finding, b| b.severity.cmp(&a.severity).then(a.lpn.cmp(&b.lpn)));
    // Opening for repair has rewritten the other copy.
    let copy_left = superblock.is_some() && !how.repair;
    let left = findings.iter().filter(|f| !f.repaired).count() + usize::from(copy_left);
    let ok = left == 0 && !recovery.recovery.lost_any() && closed.is_ok();
    let rate = checked.bytes_verified as f64 / 1e6 / seconds.max(1e-9);
    if how.json {
        let outcome = VolumeCheckJson {
            volume: dir,
            ok,
            superblock: superblock.as_deref(),
            recovery: &recovery,
            checked,
            findings: &findings,
            seconds,
            mb_per_second: rate,
        };
        outcomes.push(serde_json::to_value(&outcome).into_diagnostic()?);
    } else {
        let superblock = superblock.as_deref();
        let outcome = CheckSummary { superblock, recovery: &recovery, findings: &findings, disk };
        print(&shown(dir, how, &checked, &outcome, page_bytes))?;
        let rate = if how.data { format!(", {rate:.0} MB/s") } else { String::new() };
        print(&format!(
            "{} left, {seconds:.2} s{rate}\n",
            if ok { "Nothing".to_owned() } else { count(left) }
        ))?;
    }
    if let Err(e) = closed {
        report(&Report::new(e))?;
    }
    Ok(u8::from(!ok))
}

/// Reports a volume that cannot be opened on standard error and in the JSON.
fn fails(dir: &Path, how: CheckOptions, e: frit_volume::Error, outcomes: &mut Vec<Value>) -> Result<u8> {
    if how.json {
        outcomes.push(json!({ "volume": dir, "ok": false, "error": e.to_string() }));
    }
    not_opened(e).map(|_| NOT_OPENED)
}

fn count(left: usize) -> String {
    if left == 1 { "1 finding is".into() } else { format!("{left} findings are") }
}

fn run(v: &mut Volume, how: CheckOptions, findings: &mut Vec<Finding>) -> frit_core::Result<CheckCounts> {
    let length = if how.data {
        let mut mapped = 0;
        v.extents(0, v.bytes(), &mut |len, place| mapped += if place.is_some() { len } else { 0 })?;
        Some(mapped)
    } else {
        None
    };
    begin_phase(v, "checking", length);
    let scope = CheckScope { data: how.data, repair: how.repair, older: how.older };
    v.check(scope, &mut |f| findings.push(f))
}

struct CheckSummary<'a> {
    superblock: Option<&'a str>,
    recovery: &'a OpenReport,
    findings: &'a [Finding],
    /// `true` for a cache in front of a disk, which has records of blocks and no map.
    disk: bool,
}

fn shown(
    dir: &Path,
    how: CheckOptions,
    checked: &CheckCounts,
    found: &CheckSummary<'_>,
    page_bytes: u32,
) -> String {
    let (entries, records) = if found.disk {
        ("blocks in the cache", "records")
    } else {
        ("map entries", "spare areas and descriptors")
    };
    let mut out = format!(
        "{}: {} {entries}, {} {records} checked; {}\n",
        dir.display(),
        checked.entries,
        checked.records,
        if how.data {
            format!("{} pages read, {} verified", checked.pages_read, size::format(checked.bytes_verified))
        } else {
            "data not read (use --data)".into()
        }
    );
    if let Some(why) = found.superblock {
        let mended =
            if how.repair { "; it was rewritten" } else { "; the next opening for writing repairs it" };
        out += &format!("one copy of the superblock is damaged ({why}){mended}\n");
    }
    for note in &found.recovery.access_notes {
        out += &format!("{note}\n");
    }
    if !found.recovery.recovery.clean {
        out += &super::recovery(found.recovery, page_bytes);
    }
    if found.findings.is_empty() {
        return out;
    }
    // In a stack of one layer, the name of the layer says nothing.
    let layered = found.findings.iter().any(|f| !f.layer.is_empty());
    let head = ["severity", "kind", "page", "from byte", "medium", "address", "what", "repaired", "layer"];
    let columns = if layered { head.len() } else { head.len() - 1 };
    let mut t = table(&head[..columns]);
    // Pages of a layer below have no address in the volume.
    let from =
        |f: &Finding| f.lpn.filter(|_| f.layer.is_empty()).map(|l| u64::from(l) * u64::from(page_bytes));
    for f in found.findings.iter().take(SHOWN) {
        let kind: &str = f.medium.into();
        let severity = if f.severity == frit_core::Severity::Major { "major" } else { "minor" };
        let row = [
            severity.to_owned(),
            f.kind.to_owned(),
            f.lpn.map(|l| l.to_string()).unwrap_or_default(),
            from(f).map(|at| at.to_string()).unwrap_or_default(),
            kind.to_owned(),
            f.at.to_string(),
            f.what.clone(),
            if f.repaired { "yes" } else { "no" }.to_owned(),
            f.layer.clone(),
        ];
        t.add_row(&row[..columns]);
    }
    for column in [2, 3, 5] {
        right(&mut t, column);
    }
    out += &text(&t);
    if found.findings.len() > SHOWN {
        out += &format!("... and {} more; --json lists all\n", found.findings.len() - SHOWN);
    }
    let left = found.findings.iter().any(|f| f.severity == frit_core::Severity::Major && !f.repaired);
    if left && how.repair {
        out += "A page that could not be repaired reads as an error until its bytes are rewritten or discarded; frit \
                export --rescue copies the rest.\n";
    } else if left {
        out += "frit check --repair repairs what it can.\n";
    }
    out
}
