//! Metrics of a served volume as one value, which `frit ctl stat --json` and `/visible` print.

use crate::backend::ChannelState;
use crate::pace::PaceStat;
use frit_core::visible::{LayerView, MediumView, Metric, Residence, WearSummary};
use frit_core::{Cause, Count, Counts, MediumKind, Op, StackView};
use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator;

/// Snapshot of the metrics of a served volume.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Stat {
    /// Metrics of the volume.
    pub volume: VolumeStat,
    /// The server process; `None` if the volume was opened only for inspection.
    pub server: Option<ServerStat>,
    /// Client requests by operation.
    pub requests: Vec<OpStat>,
    /// Writes with a hint, by the source of the hint; only combinations that have occurred.
    pub hints: Vec<HintStat>,
    /// Metrics of the media.
    pub media: Vec<MediumStat>,
    /// Channels of the modelled device, busy and idle; empty without `--pace model`, since files
    /// have no channels.
    pub channels: Vec<ChannelStat>,
    /// Metrics of the layers, top layer first.
    pub layers: Vec<LayerStat>,
    /// Write amplification since the volume was opened.
    pub write_amplification: Amplification,
}

/// Properties of the volume.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeStat {
    /// Directory of the volume.
    pub path: String,
    /// Name of the stack.
    pub stack: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Size of a mapped page, in bytes.
    pub page_bytes: u32,
    /// Reason why writes are refused, for example after a media error. `None`: writes are accepted.
    pub refuses: Option<String>,
}

/// Metrics of the server process.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerStat {
    /// Process ID.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Time since the start of the server, in seconds.
    pub uptime_s: f64,
    /// Number of connected clients.
    pub connections: u64,
    /// Number of clients accepted since the start.
    pub connections_accepted: u64,
    /// Number of clients refused because too many were connected.
    pub connections_refused: u64,
    /// Number of clients disconnected by the server: too slow, or idle when another client needed
    /// the slot.
    pub connections_dropped: u64,
    /// Addresses at which the volume is served: `nbd unix:/run/frit.sock`, `fuse /mnt/frit`.
    pub exports: Vec<String>,
    /// With `--pace model`: accuracy of the reply times of each operation, relative to the modelled
    /// device.
    pub pace: Option<Vec<PaceStat>>,
}

/// Requests of one operation since the start of the server.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct OpStat {
    /// `read`, `write`, `write_zeroes`, `discard`, `flush`, `extents`.
    pub op: String,
    /// Number of completed requests, including failed ones.
    pub requests: u64,
    /// Number of bytes requested.
    pub bytes: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// Time from the request's turn under the lock (for a flush: from its arrival) to the time at
    /// which its reply may be sent.
    pub latency: LatencyStat,
}

/// Writes with a hint from one source, since the start of the server.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct HintStat {
    /// Source of the hint: `range`, `detector`, `protocol`, `process`.
    pub by: String,
    /// `metadata`, `hot`, `cold`.
    pub hint: String,
    /// Number of writes with at least one marked page.
    pub requests: u64,
    /// Number of bytes in marked pages.
    pub bytes: u64,
}

/// Latency distribution.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyStat {
    /// Sum of all times, in seconds.
    pub sum_s: f64,
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// Maximum, in nanoseconds.
    pub max_ns: u64,
    /// Buckets in ascending order: upper bound in nanoseconds, and number of times above the
    /// previous bound and up to this one. The last bucket has no bound.
    pub buckets: Vec<(u64, u64)>,
}

/// Metrics of a medium.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct MediumStat {
    /// Name in the stack.
    pub name: String,
    /// `nand`, `pcm`, `dram`.
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of channels.
    pub channels: u32,
    /// Number of units; each executes one command at a time.
    pub units: u32,
    /// Geometry: names and values.
    pub geometry: Vec<(String, u64)>,
    /// Commands by operation and cause.
    pub commands: Vec<CommandStat>,
    /// Wear of the medium.
    pub wear: WearStat,
}

/// State of a channel of the modelled device.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelStat {
    /// Name of the medium in the stack.
    pub medium: String,
    /// Number of the channel within the medium.
    pub channel: u32,
    /// Number of units behind the channel.
    pub units: u32,
    /// Number of these units that have work; 0: the channel is idle.
    pub busy_units: u32,
    /// Time until the last of them is idle, in nanoseconds.
    pub idle_in_ns: u64,
    /// Total time of transfers over the channel since the volume was opened, in nanoseconds.
    pub busy_ns: u64,
}

impl From<ChannelState> for ChannelStat {
    fn from(c: ChannelState) -> ChannelStat {
        ChannelStat {
            medium: c.medium,
            channel: c.channel,
            units: c.units,
            busy_units: c.busy_units,
            idle_in_ns: c.idle_in_ns,
            busy_ns: c.busy_ns,
        }
    }
}

/// Commands of one operation for one cause.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandStat {
    /// Operation: `nand-program` …
    pub op: String,
    /// Cause: `host`, `gc` …
    pub cause: String,
    /// Number of commands.
    pub commands: u64,
    /// Length of the payload in bytes.
    pub bytes: u64,
}

/// Summary of the wear of a medium.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct WearStat {
    /// Unit of wear: `block`, …
    pub per: String,
    /// Number of cell groups.
    pub groups: u64,
    /// Specified number of cycles of a group.
    pub limit: u64,
    /// Number of blocks of NAND out of use, or of lines written beyond their endurance, which stay
    /// in use.
    pub bad: u32,
    /// Minimum number of cycles.
    pub min: u32,
    /// Mean number of cycles.
    pub mean: f64,
    /// Maximum number of cycles.
    pub max: u32,
    /// Standard deviation of the number of cycles.
    pub deviation: f64,
}

/// Metrics of a layer.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerStat {
    /// Name of the layer.
    pub name: String,
    /// Metrics defined by the layer.
    pub figures: Vec<LayerMetric>,
    /// Placement of pages, by equal slices of the address space.
    pub residence: Vec<PlacementCounts>,
}

/// A metric of a layer.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerMetric {
    /// Name.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: String,
    /// Description.
    pub help: String,
}

/// Number of pages of a slice of the address space, by placement.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PlacementCounts {
    /// Pages never written, or discarded.
    pub unmapped: u64,
    /// Pages in NAND.
    pub nand: u64,
    /// Pages in PCM as storage.
    pub pcm_level: u64,
    /// Pages in PCM as a cache.
    pub pcm_cache: u64,
    /// Pages only on a disk.
    pub disk: u64,
}

/// Write amplification: bytes written to media per byte written by clients. `None` before the first
/// write.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Amplification {
    /// Bytes written to NAND for all causes.
    pub nand: Option<f64>,
    /// Bytes written to PCM for all causes.
    pub pcm: Option<f64>,
}

impl Stat {
    /// Sets the metrics of media and layers from a view. `written` is the number of bytes that
    /// clients wrote since its counters were reset.
    pub fn show(&mut self, view: &StackView, written: u64) {
        self.media = view.media.iter().map(medium).collect();
        self.layers = view.layers.iter().map(layer).collect();
        let counts = view.counts();
        let ratio = |bytes: u64| (written > 0).then(|| bytes as f64 / written as f64);
        self.write_amplification = Amplification {
            nand: ratio(bytes_written(&counts, MediumKind::Nand)),
            pcm: ratio(bytes_written(&counts, MediumKind::Pcm)),
        };
    }

    /// Returns the value of a metric of any layer.
    #[must_use]
    pub fn layer_metric(&self, name: &str) -> Option<f64> {
        self.layers.iter().flat_map(|l| &l.figures).find(|f| f.name == name).map(|f| f.value)
    }

    /// Returns the metrics of one operation of clients.
    #[must_use]
    pub fn op(&self, op: &str) -> Option<&OpStat> {
        self.requests.iter().find(|o| o.op == op)
    }

    /// Returns the placement of all pages.
    #[must_use]
    pub fn residence(&self) -> PlacementCounts {
        let slices = self.layers.iter().flat_map(|l| &l.residence);
        slices.fold(PlacementCounts::default(), |a, s| PlacementCounts {
            unmapped: a.unmapped + s.unmapped,
            nand: a.nand + s.nand,
            pcm_level: a.pcm_level + s.pcm_level,
            pcm_cache: a.pcm_cache + s.pcm_cache,
            disk: a.disk + s.disk,
        })
    }
}

/// Returns the number of bytes written to a kind of medium for all causes.
fn bytes_written(counts: &Counts, kind: MediumKind) -> u64 {
    use Op::{DramWrite, NandCopyback, NandProgram, PcmWrite, PcmWriteClean};
    let writes = |op: &Op| matches!(op, NandProgram | NandCopyback | PcmWrite | PcmWriteClean | DramWrite);
    let all = Op::iter().filter(|op| op.medium() == kind && writes(op));
    all.flat_map(|op| Cause::iter().map(move |cause| counts.get(op, cause).bytes)).sum()
}

fn medium(m: &MediumView) -> MediumStat {
    let command = |(op, cause, count): (Op, Cause, Count)| CommandStat {
        op: <&str>::from(op).into(),
        cause: <&str>::from(cause).into(),
        commands: count.commands,
        bytes: count.bytes,
    };
    let WearSummary { mean, min, max, deviation } = m.wear.summary();
    MediumStat {
        name: m.name.clone(),
        kind: <&str>::from(m.kind).into(),
        bytes: m.bytes,
        channels: m.channels,
        units: m.units,
        geometry: m.geometry.iter().map(|&(k, v)| (k.into(), v)).collect(),
        commands: m.counts.iter().map(command).collect(),
        wear: WearStat {
            per: m.wear.per.clone(),
            groups: m.wear.cycles.len() as u64,
            limit: m.wear.limit,
            bad: m.wear.bad,
            min,
            mean,
            max,
            deviation,
        },
    }
}

fn layer(l: &LayerView) -> LayerStat {
    let layer_metric = |m: &Metric| LayerMetric {
        name: m.name.into(),
        value: m.value,
        unit: m.unit.into(),
        help: m.help.into(),
    };
    let slice = |r: &Residence| PlacementCounts {
        unmapped: u64::from(r.unmapped),
        nand: u64::from(r.nand),
        pcm_level: u64::from(r.pcm_level),
        pcm_cache: u64::from(r.pcm_cache),
        disk: u64::from(r.disk),
    };
    LayerStat {
        name: l.name.clone(),
        figures: l.metrics.iter().map(layer_metric).collect(),
        residence: l.residence.iter().map(slice).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::visible::Wear;

    #[test]
    fn a_view_is_shown_with_its_amplification() {
        let mut counts = Counts::default();
        counts.add(Op::NandProgram, Cause::Host, 4096);
        counts.add(Op::NandProgram, Cause::Gc, 2048);
        counts.add(Op::NandRead, Cause::Gc, 2048);
        counts.add(Op::PcmWrite, Cause::Meta, 512);
        let medium = MediumView {
            layer: String::new(),
            name: "flash".into(),
            kind: MediumKind::Nand,
            bytes: 1 << 20,
            channels: 2,
            first_unit: frit_core::UnitId(0),
            units: 4,
            geometry: vec![("page_bytes", 2048)],
            counts,
            wear: Wear { per: "block".into(), cycles: vec![1, 3], limit: 10, ..Wear::default() },
        };
        let metric = Metric { name: "gc_victims", value: 2.0, unit: "blocks", help: "blocks cleaned" };
        let slice = Residence { unmapped: 1, nand: 2, ..Residence::default() };
        let layer = LayerView {
            name: "hfsl".into(),
            metrics: vec![metric],
            residence: vec![slice; 2],
            ..LayerView::default()
        };
        let mut s = Stat::default();
        s.show(&StackView { media: vec![medium], layers: vec![layer] }, 3072);
        assert_eq!(s.write_amplification.nand, Some(2.0));
        assert_eq!(s.media[0].commands.len(), 4);
        assert_eq!((s.media[0].wear.max, s.media[0].wear.mean), (3, 2.0));
        assert_eq!(s.layer_metric("gc_victims"), Some(2.0));
        assert_eq!((s.residence().nand, s.residence().unmapped), (4, 2));
        s.show(&StackView::default(), 0);
        assert_eq!(s.write_amplification, Amplification::default(), "no writes, no ratio");
    }
}
