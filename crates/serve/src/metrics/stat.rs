//! What can be seen of a served volume, as one value: `frit ctl stat --json` and `/visible` are this.

use crate::pace::PaceStat;
use frit_core::visible::{LayerView, MediumView, Metric, Residence, WearSummary};
use frit_core::{Cause, Count, Counts, MediumKind, Op, Visible};
use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator;

/// A served volume, at one moment.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Stat {
    /// The volume.
    pub volume: VolumeStat,
    /// The process that serves it; none when the volume was opened to be looked at.
    pub server: Option<ServerStat>,
    /// Requests of clients by operation.
    pub requests: Vec<OpStat>,
    /// Media.
    pub media: Vec<MediumStat>,
    /// Layers, top first.
    pub layers: Vec<LayerStat>,
    /// Bytes written to media for each byte that clients wrote since the volume was opened.
    pub write_amplification: Amplification,
}

/// The volume itself.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeStat {
    /// Its directory.
    pub path: String,
    /// The name of its stack.
    pub stack: String,
    /// Size, in bytes.
    pub bytes: u64,
    /// Mapped page, in bytes.
    pub page_bytes: u32,
    /// Why writes are refused, when they are: after a media error, say.
    pub refuses: Option<String>,
}

/// The process.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerStat {
    /// Its process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// How long it has served, in seconds.
    pub uptime_s: f64,
    /// Clients connected now.
    pub connections: u64,
    /// Clients connected since it started.
    pub connections_accepted: u64,
    /// Clients turned away since too many were connected.
    pub connections_refused: u64,
    /// Clients hung up on: too slow, or silent when others needed the place.
    pub connections_dropped: u64,
    /// Where it is served: `nbd unix:/run/frit.sock`, `fuse /mnt/frit`.
    pub exports: Vec<String>,
    /// With `--pace model`, by operation, how well replies take the time of the modelled device.
    pub pace: Option<Vec<PaceStat>>,
}

/// Requests of one operation since the server started.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct OpStat {
    /// `read`, `write`, `write_zeroes`, `discard`, `flush`, `extents`.
    pub op: String,
    /// Requests done, failed ones included.
    pub requests: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Time from when the request's turn came (a flush: from when it was asked for) to when its reply may
    /// go out.
    pub latency: LatencyStat,
}

/// Figures of a distribution of times.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyStat {
    /// All times together, in seconds.
    pub sum_s: f64,
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// Upper ends in nanoseconds, ascending, and how many took longer than the one before and at most so
    /// long. The last has no end.
    pub buckets: Vec<(u64, u64)>,
}

/// A medium.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct MediumStat {
    /// Its name in the stack.
    pub name: String,
    /// `nand`, `pcm`, `dram`.
    pub kind: String,
    /// Size, in bytes.
    pub bytes: u64,
    /// Channels.
    pub channels: u32,
    /// Units that do one thing at a time.
    pub units: u32,
    /// Geometry by name.
    pub geometry: Vec<(String, u64)>,
    /// Commands by operation and cause.
    pub commands: Vec<CommandStat>,
    /// Wear.
    pub wear: WearStat,
}

/// Commands of one operation for one cause.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandStat {
    /// What: `nand-program` …
    pub op: String,
    /// Why: `host`, `gc` …
    pub cause: String,
    /// How many.
    pub commands: u64,
    /// Payload, in bytes.
    pub bytes: u64,
}

/// Wear of a medium, summed up.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct WearStat {
    /// What a cycle wears: `block`, …
    pub per: String,
    /// Cell groups.
    pub groups: u64,
    /// Cycles that a group is specified for.
    pub limit: u64,
    /// Groups out of use.
    pub bad: u32,
    /// Fewest cycles.
    pub min: u32,
    /// Mean cycles.
    pub mean: f64,
    /// Most cycles.
    pub max: u32,
    /// Standard deviation.
    pub deviation: f64,
}

/// A layer.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerStat {
    /// Its name.
    pub name: String,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Pages by where they lie, over equal slices of the address space.
    pub residence: Vec<Slice>,
}

/// A figure of a layer.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// What it counts.
    pub help: String,
}

/// Pages of a slice of the address space by where they lie.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Slice {
    /// Never written, or discarded.
    pub unmapped: u64,
    /// In NAND.
    pub nand: u64,
    /// In PCM as storage.
    pub pcm_level: u64,
    /// In PCM as a cache.
    pub pcm_cache: u64,
    /// On a disk alone.
    pub disk: u64,
}

/// Bytes written to media for each byte that clients wrote; none before the first write.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Amplification {
    /// To NAND, for all causes.
    pub nand: Option<f64>,
    /// To PCM, for all causes.
    pub pcm: Option<f64>,
}

impl Stat {
    /// Takes over what a view shows, where clients wrote `written` bytes since its counts began.
    pub fn show(&mut self, view: &Visible, written: u64) {
        self.media = view.media.iter().map(medium).collect();
        self.layers = view.layers.iter().map(layer).collect();
        let counts = view.counts();
        let ratio = |bytes: u64| (written > 0).then(|| bytes as f64 / written as f64);
        self.write_amplification = Amplification {
            nand: ratio(bytes_written(&counts, MediumKind::Nand)),
            pcm: ratio(bytes_written(&counts, MediumKind::Pcm)),
        };
    }

    /// A figure of any layer.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.layers.iter().flat_map(|l| &l.figures).find(|f| f.name == name).map(|f| f.value)
    }

    /// One operation of clients.
    #[must_use]
    pub fn op(&self, op: &str) -> Option<&OpStat> {
        self.requests.iter().find(|o| o.op == op)
    }

    /// Where all pages lie.
    #[must_use]
    pub fn residence(&self) -> Slice {
        let slices = self.layers.iter().flat_map(|l| &l.residence);
        slices.fold(Slice::default(), |a, s| Slice {
            unmapped: a.unmapped + s.unmapped,
            nand: a.nand + s.nand,
            pcm_level: a.pcm_level + s.pcm_level,
            pcm_cache: a.pcm_cache + s.pcm_cache,
            disk: a.disk + s.disk,
        })
    }
}

/// Bytes that commands for any cause wrote to a kind of medium.
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
    let figure =
        |m: &Metric| Figure { name: m.name.into(), value: m.value, unit: m.unit.into(), help: m.help.into() };
    let slice = |r: &Residence| Slice {
        unmapped: u64::from(r.unmapped),
        nand: u64::from(r.nand),
        pcm_level: u64::from(r.pcm_level),
        pcm_cache: u64::from(r.pcm_cache),
        disk: u64::from(r.disk),
    };
    LayerStat {
        name: l.name.clone(),
        figures: l.metrics.iter().map(figure).collect(),
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
            name: "flash".into(),
            kind: MediumKind::Nand,
            bytes: 1 << 20,
            channels: 2,
            first_unit: frit_core::UnitId(0),
            units: 4,
            geometry: vec![("page_bytes", 2048)],
            counts,
            wear: Wear { per: "block".into(), cycles: vec![1, 3], limit: 10, bad: 0 },
        };
        let metric = Metric { name: "gc_victims", value: 2.0, unit: "blocks", help: "blocks cleaned" };
        let slice = Residence { unmapped: 1, nand: 2, ..Residence::default() };
        let layer = LayerView { name: "hfsl".into(), metrics: vec![metric], residence: vec![slice; 2] };
        let mut s = Stat::default();
        s.show(&Visible { media: vec![medium], layers: vec![layer] }, 3072);
        assert_eq!(s.write_amplification.nand, Some(2.0));
        assert_eq!(s.media[0].commands.len(), 4);
        assert_eq!((s.media[0].wear.max, s.media[0].wear.mean), (3, 2.0));
        assert_eq!(s.figure("gc_victims"), Some(2.0));
        assert_eq!((s.residence().nand, s.residence().unmapped), (4, 2));
        s.show(&Visible::default(), 0);
        assert_eq!(s.write_amplification, Amplification::default(), "no writes, no ratio");
    }
}
