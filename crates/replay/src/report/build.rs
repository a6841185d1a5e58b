//! Construction of a report from the results of a run.

use super::disk::disk;
use super::latency::classes;
use super::links::links;
use super::media::medium;
use super::{
    CauseShare, ChannelSeries, ChannelUse, CommandTimeRow, CountRow, LayerReport, MappingMemory, MetricRow,
    PagePlacement, Program, Report, RunId, SCHEMA, SoftwareTime, StackId, Throughput, WorkloadId,
    WriteAmplification,
};
use crate::host::WorkloadCounts;
use crate::options::Percentiles;
use crate::request_stats::WriteSize;
use crate::steady::SteadyState;
use frit_core::visible::{LayerView, Metric};
use frit_core::{Cause, Counts, Info, MediumKind, Nanos, Op, SECTOR_BYTES, StackView, UnitId};
use frit_engine::{DeviceUsage, DriverCounters, LatencyByClass};
use frit_media::Hardware;
use strum::IntoEnumIterator;

/// Snapshot of the layer and the engine. One is taken before the measured part and one after it.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) visible: StackView,
    pub(crate) engine: Vec<Metric>,
}

/// Data from which a report is built.
pub(crate) struct ReportInputs<'a> {
    pub(crate) stack: StackId,
    pub(crate) workload: WorkloadId,
    pub(crate) run: RunId,
    pub(crate) issued: WorkloadCounts,
    pub(crate) commands: Vec<super::CommandReport>,
    pub(crate) write_sizes: Vec<WriteSize>,
    pub(crate) arrivals: Nanos,
    pub(crate) percentiles: Percentiles,
    pub(crate) latencies: &'a LatencyByClass,
    pub(crate) counters: DriverCounters,
    pub(crate) before: &'a Snapshot,
    pub(crate) after: Snapshot,
    pub(crate) usage: &'a DeviceUsage,
    pub(crate) hardware: &'a Hardware,
    pub(crate) info: Info,
    pub(crate) steady: SteadyState,
    pub(crate) wall_ns: u64,
    pub(crate) workload_wall_ns: u64,
    pub(crate) verifying: bool,
}

/// Builds a report.
pub(crate) fn build(i: ReportInputs<'_>) -> Report {
    let (mut media, mut counts, mut all) = (Vec::new(), Vec::new(), Counts::default());
    for (k, after) in i.after.visible.media.iter().enumerate() {
        let Some(before) = i.before.visible.media.get(k) else { continue };
        let (mut report, these) = medium(before, after);
        busy(&mut report, after.first_unit, after.units, i.usage, i.hardware);
        let flushes = these.of(Op::DiskFlush).commands;
        report.disk = disk(&report, flushes, after.first_unit, i.usage, &i.issued);
        counts.extend(these.iter().map(|(op, cause, count)| CountRow {
            medium: after.name.clone(),
            op: op.into(),
            cause: cause.into(),
            count,
        }));
        all.merge(&these);
        media.push(report);
    }
    let links = links(&i.before.visible, &i.after.visible, i.issued.written_bytes, i.usage);
    let layers: Vec<LayerReport> = layers(&i.before.visible.layers, i.after.visible.layers);
    let residence = layers.first().map(|l| l.residence_total).unwrap_or_default();
    let updates = layers.iter().flat_map(|l| &l.metrics).find(|m| m.name == "flash_updates");
    Report {
        schema: SCHEMA,
        frit: Program::this(),
        findings: Vec::new(),
        throughput: throughput(&i.issued, &i.counters, i.run.speed.map(|x| (i.arrivals, x))),
        latency: classes(i.latencies, &i.percentiles),
        command_times: command_times(i.usage),
        write_amplification: write_amplification(&all, i.issued.written_bytes),
        flash_updates: updates.map(|m| m.change as u64),
        channels: series(i.usage, i.hardware),
        engine: metrics(&i.before.engine, i.after.engine),
        memory: memory(&i.info, residence.mapped()),
        steady_state: i.steady,
        software: software(&all, i.issued.requests, i.wall_ns, i.workload_wall_ns, i.verifying),
        hints: None,
        verification: None,
        stack: i.stack,
        workload: i.workload,
        run: i.run,
        asked: i.issued,
        commands: i.commands,
        write_sizes: i.write_sizes,
        counts,
        media,
        layers,
        links,
        records: Vec::new(),
    }
}

/// Rounds a share to five decimals, which is legible and keeps a report small.
fn rounded(share: f64) -> f64 {
    (share * 1e5).round() / 1e5
}

fn busy(
    report: &mut super::MediumReport,
    first: UnitId,
    units: u32,
    usage: &DeviceUsage,
    hardware: &Hardware,
) {
    let window = usage.window().0.max(1) as f64;
    let share = |n: &Nanos| rounded(n.0 as f64 / window);
    let range = first.idx()..first.idx() + units as usize;
    report.unit_busy = usage.units().get(range.clone()).unwrap_or_default().iter().map(share).collect();
    let mut channels: Vec<usize> =
        range.filter(|&u| u < hardware.units()).map(|u| hardware.channel_of(UnitId(u as u16))).collect();
    // Several units can share a channel.
    channels.sort_unstable();
    channels.dedup();
    report.channel_busy = channels.iter().filter_map(|&c| usage.channels().get(c)).map(share).collect();
}

/// Returns the throughput; `arrivals` are the time from the first to the latest arrival as recorded,
/// and the speed of an open loop.
fn throughput(
    issued: &WorkloadCounts,
    counters: &DriverCounters,
    arrivals: Option<(Nanos, f64)>,
) -> Throughput {
    let duration = counters.last_ack.since(counters.first_arrival);
    let rate = |n: u64| if duration == Nanos::ZERO { 0.0 } else { n as f64 / duration.as_secs() };
    Throughput {
        duration_ns: duration.0,
        arrivals_ns: arrivals.map(|(time, speed)| (time.0 as f64 / speed) as u64),
        requests_per_s: rate(issued.requests),
        mb_per_s: rate(issued.read_bytes + issued.written_bytes) / 1e6,
        read_mb_per_s: rate(issued.read_bytes) / 1e6,
        write_mb_per_s: rate(issued.written_bytes) / 1e6,
    }
}

fn command_times(usage: &DeviceUsage) -> Vec<CommandTimeRow> {
    let mean = |t: Nanos, n: u64| t.0 as f64 / n.max(1) as f64;
    let row = |(op, cause, t): (Op, Cause, frit_engine::usage::CommandTime)| CommandTimeRow {
        op: op.into(),
        cause: cause.into(),
        commands: t.commands,
        waited_mean_ns: mean(t.waited, t.commands),
        served_mean_ns: mean(t.served, t.commands),
        suspensions: usage.suspensions(op, cause),
    };
    usage.commands().map(row).collect()
}

fn ratio(n: u64, d: u64) -> Option<f64> {
    (d > 0).then(|| n as f64 / d as f64)
}

/// Returns the bytes written to a kind of medium for a cause.
fn written(counts: &Counts, kind: MediumKind, cause: Cause) -> u64 {
    Op::iter().filter(|op| op.medium() == kind && op.is_write()).map(|op| counts.get(op, cause).bytes).sum()
}

fn write_amplification(counts: &Counts, host: u64) -> WriteAmplification {
    let nand = |cause| written(counts, MediumKind::Nand, cause);
    let total = Cause::iter().map(nand).sum::<u64>();
    // Cleaning, wear leveling and metadata are left out: they are writes that flash itself adds.
    let came: u64 = [Cause::Host, Cause::Merge, Cause::Migrate, Cause::Destage].into_iter().map(nand).sum();
    let share = |cause: Cause| Some(CauseShare { cause: cause.into(), ratio: ratio(nand(cause), host)? });
    WriteAmplification {
        nand: ratio(total, host),
        nand_by_cause: Cause::iter().filter(|c| nand(*c) > 0).filter_map(share).collect(),
        flash: ratio(total, came),
        pcm: ratio(Cause::iter().map(|c| written(counts, MediumKind::Pcm, c)).sum(), host),
    }
}

fn series(usage: &DeviceUsage, hardware: &Hardware) -> ChannelSeries {
    let Some(series) = usage.series() else { return ChannelSeries::default() };
    // The engine numbers channels over all devices, a report numbers them within a medium.
    let mut first = vec![usize::MAX; hardware.devices().len()];
    let mut channels = Vec::with_capacity(hardware.channels());
    for unit in (0..hardware.units()).map(|u| UnitId(u as u16)) {
        let (device, channel) = (hardware.device_of(unit), hardware.channel_of(unit));
        first[device] = first[device].min(channel);
        channels.push((channel, device));
    }
    channels.sort_unstable();
    channels.dedup();
    let one = |&(channel, device): &(usize, usize)| ChannelUse {
        medium: hardware.devices()[device].name.clone(),
        channel: (channel - first[device]) as u32,
        busy: series.channel(channel).map(|b| rounded(b) as f32).collect(),
    };
    ChannelSeries { bin_ns: series.width().0, channels: channels.iter().map(one).collect() }
}

fn metrics(before: &[Metric], after: Vec<Metric>) -> Vec<MetricRow> {
    let row = |m: Metric| {
        let old = before.iter().find(|b| b.name == m.name).map_or(0.0, |b| b.value);
        MetricRow { name: m.name, value: m.value, change: m.value - old, unit: m.unit, help: m.help }
    };
    after.into_iter().map(row).collect()
}

fn layers(before: &[LayerView], after: Vec<LayerView>) -> Vec<LayerReport> {
    let old = before.iter().map(|l| l.metrics.as_slice()).chain(std::iter::repeat(&[][..]));
    let one = |(l, old): (LayerView, &[Metric])| LayerReport {
        residence_total: l.residence.iter().fold(PagePlacement::default(), |t, r| PagePlacement {
            unmapped: t.unmapped + u64::from(r.unmapped),
            nand: t.nand + u64::from(r.nand),
            pcm_level: t.pcm_level + u64::from(r.pcm_level),
            pcm_cache: t.pcm_cache + u64::from(r.pcm_cache),
            disk: t.disk + u64::from(r.disk),
        }),
        name: l.name,
        metrics: metrics(old, l.metrics),
        residence: l.residence,
    };
    after.into_iter().zip(old).map(one).collect()
}

fn memory(info: &Info, mapped: u64) -> MappingMemory {
    let pages = info.sectors * SECTOR_BYTES / u64::from(info.page_bytes.max(1));
    MappingMemory {
        dram_bytes: info.dram_bytes,
        durable_map_bytes: info.durable_map_bytes,
        page_bytes: info.page_bytes,
        pages,
        mapped_pages: mapped,
        dram_bytes_a_page: info.dram_bytes as f64 / pages.max(1) as f64,
        dram_bytes_a_mapped_page: ratio(info.dram_bytes, mapped),
    }
}

fn software(
    counts: &Counts,
    requests: u64,
    wall_ns: u64,
    workload_wall_ns: u64,
    verifying: bool,
) -> SoftwareTime {
    let commands = counts.iter().map(|(_, _, c)| c.commands).sum();
    SoftwareTime {
        ns_per_request: wall_ns as f64 / requests.max(1) as f64,
        ns_per_command: ratio(wall_ns, commands),
        wall_ns,
        workload_wall_ns,
        includes_verification: verifying,
    }
}
