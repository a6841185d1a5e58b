//! `frit disk show`.

use super::{drive, report};
use crate::output::{print, print_json, right, table, text};
use frit_core::{Error, Nanos, SECTOR_BYTES, size};
use frit_media::disk::characteristics::{self, RandomWorkload, SeekTimes, SpanIops, ZoneRate};
use frit_media::disk::score;
use frit_media::disk::{DiskProfile, DiskSpec, Drive, DriveRequestKind, DriveScheduler, WriteBack};
use miette::{Result, miette};
use serde::Serialize;
use std::fmt::Write;
use strum::IntoEnumIterator;

/// Show a drive: zones, seeks, transfer rates, random requests a second.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit disk show st3500320as-2008
  frit disk show st3500320as-2008 --span 0.25           requests to the first quarter only
  frit disk show exos-x18-2020 --write --size 64K       random writes, with the drive's write cache
  frit disk show ../shared/drives/atlas10k.diskspecs    a drive that DiskSim describes

Rates of zones are those of the media; the bus may be slower.")]
pub(crate) struct Args {
    /// Drive: a profile, or a .toml or .diskspecs file.
    drive: String,
    /// Fraction of the disk that random requests access, from its start.
    #[arg(long, default_value_t = 1.0, value_parser = fraction)]
    span: f64,
    /// Size of random requests.
    #[arg(long, default_value = "4K", value_parser = bytes)]
    size: u64,
    /// Use random writes instead of reads.
    #[arg(long)]
    write: bool,
    /// Number of requests of each measurement.
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    requests: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn fraction(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x| *x > 0.0 && *x <= 1.0).ok_or("should be a fraction above 0 up to 1".into())
}

fn bytes(text: &str) -> Result<u64, String> {
    let fits = |b: &u64| *b > 0 && b.is_multiple_of(SECTOR_BYTES) && *b <= 1 << 30;
    Some(size::parse(text)?).filter(fits).ok_or("should be a multiple of 512 bytes, up to 1G".into())
}

const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

#[derive(Serialize)]
struct ShowJson {
    drive: String,
    sectors: u64,
    heads: u32,
    cylinders: u32,
    rpm: f64,
    rotational_latency_ms: f64,
    seek_single_ms: f64,
    seek_average_ms: f64,
    seek_full_ms: f64,
    zones: Vec<ZoneJson>,
    random: RandomJson,
    spans: Vec<SpanJson>,
    slow: SlowJson,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct ZoneJson {
    first_cylinder: u32,
    last_cylinder: u32,
    sectors_per_track: u32,
    first_sector: u64,
    sectors: u64,
    mb_per_s: f64,
}

#[derive(Serialize)]
struct RandomJson {
    kind: &'static str,
    bytes: u64,
    span: f64,
    rows: Vec<DepthJson>,
}

#[derive(Serialize)]
struct DepthJson {
    depth: usize,
    scheduler: &'static str,
    iops: f64,
}

/// Fractions of the disk for which small random requests are shown.
const SPANS: [f64; 5] = [0.01, 0.1, 0.25, 0.5, 1.0];

/// Requests a second to a part of the disk, by access method.
#[derive(Serialize)]
struct SpanJson {
    span: f64,
    reads: f64,
    reads_queued: f64,
    writes_through: f64,
    writes_behind: f64,
}

/// Throughput of small random requests in the HALO paper, section V, in bytes a second.
const PAPER_RANDOM_BYTES_PER_S: f64 = 0.5e6;

/// The part of the disk over which one request at a time is as slow as on the HALO paper's disk.
#[derive(Serialize)]
struct SlowJson {
    mb_per_s: f64,
    iops: f64,
    reads_span: Option<f64>,
    writes_through_span: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// The drive is invalid.
pub(super) fn run(args: &Args) -> Result<()> {
    let mut loaded = drive(&args.drive)?;
    let bus = &mut loaded.spec.bus;
    if bus.read_ps == 0 {
        (bus.read_ps, bus.write_ps) = (score::FAST_SCSI_PS, score::FAST_SCSI_PS);
        loaded.notes.push("the drive's file does not specify the bus; assumed: 10 MB/s, as fast SCSI".into());
    }
    let shown = gather(args, &loaded.spec, loaded.notes).map_err(|e| report(&e))?;
    if args.json {
        return print_json(&shown);
    }
    let mut out = text_of(&shown)?;
    if let Ok(p) = DiskProfile::builtin(&args.drive) {
        let mut t = table(&["value", "", "source"]);
        for (key, value, source) in p.rows().map_err(|e| report(&e))? {
            t.add_row([key, value, source]);
        }
        out = format!("{}\n\n{out}\n{}", p.about.trim(), text(&t));
    }
    print(&out)
}

fn ms(t: Nanos) -> f64 {
    t.0 as f64 / 1e6
}

fn gather(args: &Args, spec: &DiskSpec, notes: Vec<String>) -> Result<ShowJson, Error> {
    let seeks: SeekTimes = characteristics::seeks(spec)?;
    let zone = |z: ZoneRate| ZoneJson {
        first_cylinder: z.first_cylinder,
        last_cylinder: z.last_cylinder,
        sectors_per_track: z.sectors_per_track,
        first_sector: z.first_sector.0,
        sectors: z.sectors,
        mb_per_s: z.bytes_per_second / 1e6,
    };
    let kind = if args.write { DriveRequestKind::Write } else { DriveRequestKind::Read };
    let mut rows = Vec::new();
    for depth in DEPTHS {
        for scheduler in DriveScheduler::iter() {
            let w = RandomWorkload {
                kind,
                bytes: args.size,
                span: args.span,
                depth,
                scheduler,
                requests: args.requests,
            };
            rows.push(DepthJson {
                depth,
                scheduler: scheduler.into(),
                iops: characteristics::random_iops(spec, &w)?,
            });
        }
    }
    let span = |span| {
        let f = SpanIops::of(spec, args.size, span, args.requests)?;
        let (reads, reads_queued) = (f.reads, f.reads_queued);
        let (writes_through, writes_behind) = (f.writes_through, f.writes_behind);
        Ok(SpanJson { span, reads, reads_queued, writes_through, writes_behind })
    };
    let spans = SPANS.into_iter().map(span).collect::<Result<_, Error>>()?;
    let turn = spec.mechanics.revolution_ps as f64;
    Ok(ShowJson {
        drive: spec.name.clone(),
        sectors: Drive::new(spec)?.sectors(),
        heads: spec.geometry.heads,
        cylinders: spec.geometry.cylinders,
        rpm: 60e12 / turn,
        rotational_latency_ms: turn / 2e9,
        seek_single_ms: ms(seeks.single),
        seek_average_ms: ms(seeks.average),
        seek_full_ms: ms(seeks.full),
        zones: characteristics::zones(spec)?.into_iter().map(zone).collect(),
        random: RandomJson {
            kind: if args.write { "write" } else { "read" },
            bytes: args.size,
            span: args.span,
            rows,
        },
        spans,
        slow: slow(args, spec)?,
        notes,
    })
}

fn slow(args: &Args, spec: &DiskSpec) -> Result<SlowJson, Error> {
    let mut through = spec.clone();
    through.cache.write_back = WriteBack::Off;
    let iops = PAPER_RANDOM_BYTES_PER_S / args.size as f64;
    let span = |kind| {
        let scheduler = DriveScheduler::Fifo;
        let w = RandomWorkload {
            kind,
            bytes: args.size,
            span: 1.0,
            depth: 1,
            scheduler,
            requests: args.requests,
        };
        characteristics::span_for(&through, &w, iops)
    };
    let (reads_span, writes_through_span) = (span(DriveRequestKind::Read)?, span(DriveRequestKind::Write)?);
    Ok(SlowJson { mb_per_s: PAPER_RANDOM_BYTES_PER_S / 1e6, iops, reads_span, writes_through_span })
}

/// Returns a table of small random requests by part of the disk, and the part where they are as
/// slow as in the paper.
fn spans_of(s: &ShowJson) -> String {
    let mut t = table(&["of the disk", "reads", "reads, queued", "writes", "writes, cached"]);
    for f in &s.spans {
        let mut cells = vec![format!("{:.0} %", f.span * 100.0)];
        let characteristics = [f.reads, f.reads_queued, f.writes_through, f.writes_behind];
        cells.extend(characteristics.iter().map(|iops| format!("{iops:.0}")));
        t.add_row(cells);
    }
    (0..5).for_each(|c| right(&mut t, c));
    let slow = &s.slow;
    let part = |what: &str, span: Option<f64>| {
        span.map_or(format!("{what} nowhere"), |x| format!("{what} over the first {:.0} %", x * 100.0))
    };
    format!(
        "random requests of {} to a part of the disk, requests a second; one at a time, but for those queued:\n\n{}\n\
         {} MB/s ({:.0} requests a second, one at a time, without the write cache): {}, {}\n",
        size::format(s.random.bytes),
        text(&t),
        slow.mb_per_s,
        slow.iops,
        part("reads", slow.reads_span),
        part("writes", slow.writes_through_span)
    )
}

fn text_of(s: &ShowJson) -> Result<String> {
    let mut out = String::new();
    let gb = (s.sectors * SECTOR_BYTES) as f64 / 1e9;
    let mut line = |l: String| writeln!(out, "{l}").map_err(|e| miette!("{e}"));
    line(format!("{}: {gb:.2} GB, {} heads, {} cylinders, {:.0} rpm", s.drive, s.heads, s.cylinders, s.rpm))?;
    line(format!(
        "seek {:.2} ms to the next cylinder, {:.2} ms on average, {:.2} ms over all; rotational latency {:.2} ms\n",
        s.seek_single_ms, s.seek_average_ms, s.seek_full_ms, s.rotational_latency_ms
    ))?;
    let mut zones = table(&["zone", "cylinders", "sectors a track", "from", "sequential MB/s"]);
    let all = s.sectors.max(1) as f64;
    for (i, z) in s.zones.iter().enumerate() {
        zones.add_row([
            i.to_string(),
            format!("{}-{}", z.first_cylinder, z.last_cylinder),
            z.sectors_per_track.to_string(),
            format!("{:.0} %", z.first_sector as f64 / all * 100.0),
            format!("{:.1}", z.mb_per_s),
        ]);
    }
    for column in [0, 2, 3, 4] {
        right(&mut zones, column);
    }
    line(text(&zones))?;
    let r = &s.random;
    let span = if r.span < 1.0 { format!(" to the first {:.0} %", r.span * 100.0) } else { String::new() };
    line(format!("random {}s of {}{span}, requests a second:\n", r.kind, size::format(r.bytes)))?;
    let names: Vec<&str> = DriveScheduler::iter().map(Into::into).collect();
    let mut header = vec!["queue"];
    header.extend(&names);
    let mut random = table(&header);
    for rows in r.rows.chunks(names.len()) {
        let mut cells = vec![rows[0].depth.to_string()];
        cells.extend(rows.iter().map(|r| format!("{:.0}", r.iops)));
        random.add_row(cells);
    }
    for column in 0..=names.len() {
        right(&mut random, column);
    }
    line(text(&random))?;
    line(spans_of(s))?;
    for note in &s.notes {
        line(format!("note: {note}"))?;
    }
    Ok(out)
}
