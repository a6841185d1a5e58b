//! Busy times of units and channels, and waiting and service times of commands.

use crate::arm_stats::ArmStats;
use crate::latency::LatencyHistogram;
use crate::links::LinkTimes;
use frit_core::{Cause, Cmd, MediumKind, Nanos, Op, Sink, UnitId};
use frit_media::{Hardware, TimingModel};
use serde::Serialize;
use strum::{EnumCount, IntoEnumIterator};

/// Usage of the devices of a sink, which the engines of this crate count.
pub trait SinkUsage {
    /// Returns the usage; `None` without time, or with an engine that counts none.
    fn usage(&self) -> Option<&DeviceUsage>;

    /// Mutable usage, to reset it or to enable further statistics.
    fn usage_mut(&mut self) -> Option<&mut DeviceUsage>;

    /// Resets all statistics; measurement restarts at `now`.
    fn reset_usage(&mut self, now: Nanos) {
        if let Some(usage) = self.usage_mut() {
            usage.reset(now);
        }
    }
}

impl SinkUsage for Sink {
    fn usage(&self) -> Option<&DeviceUsage> {
        self.statistics()?.downcast_ref()
    }

    fn usage_mut(&mut self) -> Option<&mut DeviceUsage> {
        self.statistics_mut()?.downcast_mut()
    }
}

/// Total time of the commands of one operation and cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CommandTime {
    /// Number of commands.
    pub commands: u64,
    /// Waiting time: from the completion of their `after` to the grant of the unit, in nanoseconds.
    pub waited: Nanos,
    /// Service time: from the grant of the unit to their end, in nanoseconds.
    pub served: Nanos,
}

/// Busy times of units and channels, and the times of commands by operation and cause.
#[derive(Clone, Debug)]
pub struct DeviceUsage {
    since: Nanos,
    last: Nanos,
    unit_busy: Vec<Nanos>,
    channel_busy: Vec<Nanos>,
    /// For each unit whose commands have no bus phase: its channel, which counts as busy while the
    /// unit works (published latencies of PCM include the transfer).
    implicit_channel: Vec<Option<u16>>,
    /// Arm statistics of the disks, by unit.
    arms: Vec<(UnitId, ArmStats)>,
    times: [[CommandTime; Cause::COUNT]; Op::COUNT],
    /// Suspensions by operation and cause.
    suspensions: [[u64; Cause::COUNT]; Op::COUNT],
    series: Option<Box<UtilizationSeries>>,
    histograms: Option<Box<Histograms>>,
}

/// Histograms that are not enabled in most runs, behind one test for each command.
#[derive(Clone, Default, Debug)]
struct Histograms {
    by_op: Option<Box<[LatencyHistogram; Op::COUNT]>>,
    links: Option<LinkTimes>,
}

impl Histograms {
    fn command(&mut self, cmd: &Cmd, time: Nanos) {
        if let Some(h) = &mut self.by_op {
            h[cmd.op as usize].record(time);
        }
        if let Some(links) = &mut self.links {
            links.command(cmd.op, cmd.unit, time);
        }
    }
}

impl DeviceUsage {
    /// Creates empty statistics for these devices.
    #[must_use]
    pub fn new(hardware: &Hardware) -> DeviceUsage {
        let implicit_channel = (0..hardware.units()).map(|u| UnitId(u as u16)).map(|u| {
            let bus = match &hardware.devices()[hardware.device_of(u)].model {
                TimingModel::Nand(_)
                | TimingModel::NandCells(_)
                | TimingModel::Object(_)
                | TimingModel::SolidState(_) => true,
                TimingModel::Pcm(timing) => timing.bus_ps_per_byte > 0,
                TimingModel::Dram(_) | TimingModel::Disk(_) => false,
            };
            (!bus).then(|| hardware.channel_of(u) as u16)
        });
        let is_disk =
            |u: &UnitId| matches!(hardware.devices()[hardware.device_of(*u)].model, TimingModel::Disk(_));
        let units = (0..hardware.units()).map(|u| UnitId(u as u16));
        DeviceUsage {
            implicit_channel: implicit_channel.collect(),
            arms: units.filter(is_disk).map(|u| (u, ArmStats::default())).collect(),
            since: Nanos::ZERO,
            last: Nanos::ZERO,
            unit_busy: vec![Nanos::ZERO; hardware.units()],
            channel_busy: vec![Nanos::ZERO; hardware.channels()],
            times: Default::default(),
            suspensions: Default::default(),
            series: None,
            histograms: None,
        }
    }

    /// Resets all statistics; measurement restarts at `now`. Enabled series and histograms stay
    /// enabled.
    pub fn reset(&mut self, now: Nanos) {
        self.since = now;
        self.last = now;
        self.unit_busy.fill(Nanos::ZERO);
        self.channel_busy.fill(Nanos::ZERO);
        self.times = Default::default();
        self.suspensions = Default::default();
        self.arms.iter_mut().for_each(|(_, a)| a.reset());
        if let Some(s) = &mut self.series {
            **s = UtilizationSeries::new(now, s.channels, s.bins);
        }
        let Some(histograms) = &mut self.histograms else { return };
        if let Some(h) = &mut histograms.by_op {
            h.iter_mut().for_each(LatencyHistogram::reset);
        }
        if let Some(links) = &mut histograms.links {
            links.reset();
        }
    }

    /// Enables the time series of channel utilization, with at most `bins` equal bins per channel
    /// (at least 2).
    pub fn enable_series(&mut self, bins: usize) {
        self.series =
            Some(Box::new(UtilizationSeries::new(self.since, self.channel_busy.len(), bins.max(2))));
    }

    /// Enables a histogram of command times (waiting plus service) for each operation.
    pub fn enable_histograms(&mut self) {
        let by_op = Box::new(std::array::from_fn(|_| LatencyHistogram::new()));
        self.histograms.get_or_insert_default().by_op = Some(by_op);
    }

    /// Enables the histograms of the requests between layers, and of those to each medium.
    pub fn enable_links(&mut self, hardware: &Hardware) {
        self.histograms.get_or_insert_default().links = Some(LinkTimes::new(hardware));
    }

    /// Times of the requests between layers and to media, if [`DeviceUsage::enable_links`] enabled
    /// them.
    #[must_use]
    pub fn links(&self) -> Option<&LinkTimes> {
        self.histograms.as_ref()?.links.as_ref()
    }

    #[inline]
    pub(crate) fn links_mut(&mut self) -> Option<&mut LinkTimes> {
        self.histograms.as_mut()?.links.as_mut()
    }

    /// Counts one command.
    #[inline]
    pub(crate) fn count_command(&mut self, cmd: &Cmd, ready: Nanos, start: Nanos, end: Nanos) {
        self.unit_busy[cmd.unit.idx()] += end - start;
        if let Some(channel) = self.implicit_channel[cmd.unit.idx()] {
            self.count_bus_phase(channel, start, end - start);
            if cmd.op.medium() == MediumKind::Disk {
                self.count_disk_command(cmd, end - start);
            }
        }
        self.last = self.last.max(end);
        let t = &mut self.times[cmd.op as usize][cmd.cause as usize];
        t.commands += 1;
        t.waited += start - ready;
        t.served += end - start;
        if let Some(h) = &mut self.histograms {
            h.command(cmd, end - ready);
        }
    }

    /// Counts a suspension of an operation by a read.
    pub(crate) fn count_suspension(&mut self, cmd: &Cmd) {
        self.suspensions[cmd.op as usize][cmd.cause as usize] += 1;
    }

    /// Number of suspensions, by reads, of the commands of an operation and a cause.
    #[must_use]
    pub fn suspensions(&self, op: Op, cause: Cause) -> u64 {
        self.suspensions[op as usize][cause as usize]
    }

    /// Counts a command of a disk. A disk serves its commands one after the other, so the calls for
    /// a unit are in the order of service.
    fn count_disk_command(&mut self, cmd: &Cmd, took: Nanos) {
        if let Some((_, arm)) = self.arms.iter_mut().find(|(u, _)| *u == cmd.unit) {
            arm.command(cmd, took);
        }
    }

    /// Counts one bus phase.
    #[inline]
    pub(crate) fn count_bus_phase(&mut self, channel: u16, start: Nanos, len: Nanos) {
        self.channel_busy[usize::from(channel)] += len;
        if let Some(s) = &mut self.series {
            s.add(usize::from(channel), start, len);
        }
    }

    /// Length of the measurement: from the last reset to the end of the last command.
    #[must_use]
    pub fn window(&self) -> Nanos {
        self.last.since(self.since)
    }

    /// Busy time of each unit.
    #[must_use]
    pub fn units(&self) -> &[Nanos] {
        &self.unit_busy
    }

    /// Arm statistics of a unit; `None` if it is not a disk.
    #[must_use]
    pub fn arm_of(&self, unit: UnitId) -> Option<&ArmStats> {
        self.arms.iter().find(|(u, _)| *u == unit).map(|(_, a)| a)
    }

    /// Total time of the bus phases of each channel.
    #[must_use]
    pub fn channels(&self) -> &[Nanos] {
        &self.channel_busy
    }

    /// Returns the operations and causes that occurred, with their times.
    pub fn commands(&self) -> impl Iterator<Item = (Op, Cause, CommandTime)> + '_ {
        Op::iter().flat_map(move |op| {
            Cause::iter().filter_map(move |cause| {
                let t = self.times[op as usize][cause as usize];
                (t.commands > 0).then_some((op, cause, t))
            })
        })
    }

    /// Histogram of an operation, if [`DeviceUsage::enable_histograms`] enabled it.
    #[must_use]
    pub fn histogram(&self, op: Op) -> Option<&LatencyHistogram> {
        self.histograms.as_ref()?.by_op.as_ref().map(|h| &h[op as usize])
    }

    /// Time series of channel utilization, if [`DeviceUsage::enable_series`] enabled it.
    #[must_use]
    pub fn series(&self) -> Option<&UtilizationSeries> {
        self.series.as_deref()
    }
}

/// Time series of channel utilization in equal bins. When time exceeds the last bin, bins are
/// merged in pairs, so that the length of the run need not be known in advance.
#[derive(Clone, Debug)]
pub struct UtilizationSeries {
    origin: Nanos,
    /// The width of a bin is 2^shift nanoseconds, so that a bus phase needs no division.
    shift: u32,
    bins: usize,
    channels: usize,
    used: usize,
    busy: Vec<u64>,
}

impl UtilizationSeries {
    fn new(origin: Nanos, channels: usize, bins: usize) -> UtilizationSeries {
        UtilizationSeries { origin, shift: 10, bins, channels, used: 0, busy: vec![0; bins * channels] }
    }

    /// Start of the first bin.
    #[must_use]
    pub fn origin(&self) -> Nanos {
        self.origin
    }

    /// Width of a bin.
    #[must_use]
    pub fn width(&self) -> Nanos {
        Nanos(1 << self.shift)
    }

    /// Returns the utilization of a channel, from 0 to 1, for each bin.
    pub fn channel(&self, channel: usize) -> impl Iterator<Item = f64> + '_ {
        let row = &self.busy[channel * self.bins..][..self.used];
        row.iter().map(|&b| b as f64 / self.width().0 as f64)
    }

    fn add(&mut self, channel: usize, start: Nanos, len: Nanos) {
        let start = start.since(self.origin).0;
        let (mut at, end) = (start, start + len.0);
        while end > (self.bins as u64) << self.shift {
            self.halve();
        }
        while at < end {
            let bin = at >> self.shift;
            let stop = end.min((bin + 1) << self.shift);
            self.busy[channel * self.bins + bin as usize] += stop - at;
            self.used = self.used.max(bin as usize + 1);
            at = stop;
        }
    }

    fn halve(&mut self) {
        for row in self.busy.chunks_exact_mut(self.bins) {
            for i in 0..row.len() {
                let pair = row[2 * i..].iter().take(2).sum();
                row[i] = pair;
                if 2 * i + 2 >= row.len() {
                    row[i + 1..].fill(0);
                    break;
                }
            }
        }
        self.used = self.used.div_ceil(2);
        self.shift += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_merges_bins_and_loses_nothing() {
        for bins in [2, 5, 8] {
            let mut s = UtilizationSeries::new(Nanos(500), 2, bins);
            let mut sum = [0, 0];
            for i in 0..200u64 {
                let c = (i % 2) as usize;
                s.add(c, Nanos(500 + i * 700), Nanos(300 + i));
                sum[c] += 300 + i;
            }
            for (c, &want) in sum.iter().enumerate() {
                let got: f64 = s.channel(c).map(|u| u * s.width().0 as f64).sum();
                assert_eq!(got.round() as u64, want, "{bins} bins, channel {c}");
                assert!(s.channel(c).count() <= bins);
            }
            assert!(s.width().0 * bins as u64 >= 199 * 700);
        }
    }

    #[test]
    fn series_puts_time_where_it_belongs() {
        let mut s = UtilizationSeries::new(Nanos::ZERO, 1, 4);
        s.add(0, Nanos(512), Nanos(1024)); // half of bin 0, half of bin 1
        assert_eq!(s.channel(0).collect::<Vec<_>>(), [0.5, 0.5]);
        s.add(0, Nanos(6144), Nanos(2048)); // past 4 bins of 1024 ns: now 4 of 2048 ns
        assert_eq!(s.width(), Nanos(2048));
        assert_eq!(s.channel(0).collect::<Vec<_>>(), [0.5, 0.0, 0.0, 1.0]);
    }
}
