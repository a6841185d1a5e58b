//! `frit disk score`.

use super::{drive, report};
use crate::output::{print, print_json, print_stderr, right, table, text};
use frit_core::{Nanos, files, size};
use frit_media::disk::score::{self, MeasuredRequest};
use frit_media::disk::{Bus, DiskSpec};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Compare a drive's model with measured service times.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A trace has one request in each line: R or W, hit or miss, block, blocks, measured service time (µs), \
time to the next request (µs); it may be compressed with zstd. A drive without a trace after it is compared \
with NAME.trace.zst or NAME.trace beside it. The model gets each request that long after its completion of the \
previous one. The distance is the root mean square between the two cumulative distributions, over all quantiles.

Examples:
  frit disk score atlas10k.diskspecs atlas10k.trace.zst
  frit disk score ../shared/drives/*.diskspecs --json
  frit disk score hp_c2247a.diskspecs hp_c2247a.trace.zst --bus 0.1701,0.18686

Fails when a file cannot be read, is malformed, or asks for sectors that the drive does not have."
)]
pub(crate) struct Args {
    /// Drives (.diskspecs, .toml or a profile), each with the traces measured on it.
    #[arg(required = true, value_name = "DRIVE [TRACE..]")]
    files: Vec<String>,
    /// Bus time of a sector in ms, for reads and writes, if the drive's file does not specify it.
    /// Without it, a .parv file beside the drive is used, or the reads of the trace that hit the
    /// cache.
    #[arg(long, value_name = "READ[,WRITE]", value_parser = bus)]
    bus: Option<(f64, f64)>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn bus(text: &str) -> Result<(f64, f64), String> {
    let ms = |t: &str| t.trim().parse().ok().filter(|x| (0.0..=1000.0).contains(x));
    let (read, write) = text.split_once(',').unwrap_or((text, text));
    ms(read)
        .zip(ms(write))
        .ok_or("should be one or two times in ms from 0 to 1000, such as 0.1701,0.18686".into())
}

#[derive(Serialize)]
struct ScoreJson {
    drive: String,
    file: String,
    trace: String,
    requests: usize,
    rms_ms: f64,
    measured_mean_ms: f64,
    modelled_mean_ms: f64,
    requests_per_second: f64,
    notes: Vec<String>,
}

/// Repetitions of each replay for the measurement of its speed.
const REPEATS: usize = 5;

/// Runs the command.
///
/// # Errors
/// The drive or the trace is invalid.
pub(super) fn run(args: &Args) -> Result<()> {
    let mut scores = Vec::new();
    for (file, trace) in pairs(&args.files)? {
        scores.push(one(args, &file, &trace)?);
    }
    if args.json {
        return print_json(&scores);
    }
    let mut t =
        table(&["drive", "requests", "distance ms", "measured mean ms", "modelled mean ms", "requests/s"]);
    for s in &scores {
        t.add_row([
            s.drive.clone(),
            s.requests.to_string(),
            format!("{:.3}", s.rms_ms),
            format!("{:.3}", s.measured_mean_ms),
            format!("{:.3}", s.modelled_mean_ms),
            format!("{:.0}", s.requests_per_second),
        ]);
    }
    for column in 1..6 {
        right(&mut t, column);
    }
    print(&text(&t))?;
    for s in &scores {
        for note in &s.notes {
            print_stderr(&format!("{}: {note}\n", s.drive))?;
        }
    }
    Ok(())
}

fn is_drive(name: &str) -> bool {
    let path = Path::new(name);
    let known = path.extension().is_some_and(|e| ["diskspecs", "parv", "toml"].iter().any(|k| e == *k));
    known || path.extension().is_none() && !path.is_file()
}

/// Returns the drives with their traces.
fn pairs(files: &[String]) -> Result<Vec<(String, PathBuf)>> {
    let mut out = Vec::new();
    let mut rest = files.iter().peekable();
    while let Some(file) = rest.next() {
        if !is_drive(file) {
            return Err(miette!("'{file}' comes before any drive; name the drive, then its traces"));
        }
        let before = out.len();
        while let Some(trace) = rest.next_if(|f| !is_drive(f)) {
            out.push((file.clone(), PathBuf::from(trace)));
        }
        if out.len() == before {
            drive(file)?;
            out.push((file.clone(), beside(file)?));
        }
    }
    Ok(out)
}

fn beside(file: &str) -> Result<PathBuf> {
    let path = Path::new(file);
    let all = ["trace.zst", "trace"].map(|e| path.with_extension(e));
    let none = || miette!("'{file}' has no trace after it, and there is no {} beside it", all[0].display());
    all.iter().find(|p| p.is_file()).cloned().ok_or_else(none)
}

fn one(args: &Args, file: &str, path: &Path) -> Result<ScoreJson> {
    let mut loaded = drive(file)?;
    let trace = score::parse(&read(path)?).map_err(|e| miette!("{}: {e}", path.display()))?;
    fill_bus(&mut loaded.spec, &mut loaded.notes, args.bus, &trace);
    let replay =
        || score::replay(&loaded.spec, &trace).map_err(|e| miette!("{}: {}", path.display(), report(&e)));
    let mut modelled = Vec::new();
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let begin = Instant::now();
        modelled = replay()?;
        // The fastest repetition is the one that other programs disturbed least.
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let measured: Vec<Nanos> = trace.iter().map(|m| m.service).collect();
    let s = score::compare(&measured, &modelled);
    Ok(ScoreJson {
        drive: loaded.spec.name,
        file: file.into(),
        trace: path.display().to_string(),
        requests: s.requests,
        rms_ms: s.rms_ms,
        measured_mean_ms: s.measured_ms,
        modelled_mean_ms: s.modelled_ms,
        requests_per_second: s.requests as f64 / best.max(1e-9),
        notes: loaded.notes,
    })
}

fn fill_bus(
    spec: &mut DiskSpec,
    notes: &mut Vec<String>,
    given: Option<(f64, f64)>,
    trace: &[MeasuredRequest],
) {
    if spec.bus.read_ps > 0 {
        return;
    }
    let ps = |ms: f64| (ms * 1e9).round() as u64;
    let (read_ps, write_ps, how) = match (given, score::bus_ps(trace)) {
        (Some((read, write)), _) => (ps(read), ps(write), "as given"),
        (None, Some(b)) => (b, b, "from the reads of the trace that hit the cache"),
        (None, None) => {
            let b = score::FAST_SCSI_PS;
            (b, b, "assumed: 10 MB/s, as fast SCSI")
        }
    };
    spec.bus = Bus { read_ps, write_ps, ..spec.bus };
    notes.push(format!(
        "the drive's file does not specify the bus; {:.4} ms a sector, {how}",
        read_ps as f64 / 1e9
    ));
}

/// Maximum size of a trace, in bytes: it is held in memory.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// Reads a trace, decompressing it if it is compressed with zstd.
fn read(path: &Path) -> Result<String> {
    let at = || format!("cannot read the trace {}", path.display());
    let raw = files::read(path, TRACE_BYTES_MAX).into_diagnostic().wrap_err_with(at)?;
    let bytes = if raw.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let mut out = Vec::new();
        zstd::stream::read::Decoder::new(&raw[..])
            .and_then(|d| d.take(TRACE_BYTES_MAX + 1).read_to_end(&mut out))
            .into_diagnostic()
            .wrap_err_with(at)?;
        if out.len() as u64 > TRACE_BYTES_MAX {
            let most = size::format(TRACE_BYTES_MAX);
            return Err(miette!("the trace {} is longer than {most} when unpacked", path.display()));
        }
        out
    } else {
        raw
    };
    String::from_utf8(bytes)
        .map_err(|_| miette!("{} is no text; a trace is text, or text compressed with zstd", path.display()))
}
