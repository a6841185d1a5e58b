//! Metrics of a run by name: the possible values of an experiment's `metric`.

use frit_core::{MediumKind, Op};
use frit_replay::Report;
use frit_replay::findings::{Finding, FindingKind};
use std::collections::BTreeMap;
use strum::IntoEnumIterator;

/// Metrics of the measured part of a run:
///
/// - `commands.OP`, `commands.OP.CAUSE`: commands to media (`nand-program`, `pcm-write`, …; `host`, `gc`, …);
/// - `layer.NAME`: change of a layer's metric, and `now.NAME`: its final value;
/// - `latency.CLASS.mean_ns`, `.p50_ns`, `.p99_ns`, `.p999_ns`: of `read`, `write`, `flush`, `discard`, `all`;
/// - `throughput.requests_per_s`, `throughput.mb_per_s`;
/// - `asked.requests`, `asked.writes`, `asked.reads`, `asked.written_bytes`, `asked.read_bytes`;
/// - `time.duration_s`: virtual time from the first arrival to the last acknowledgement;
/// - `busy.MEDIUM.mean`, `busy.MEDIUM.max`: utilization of its units in that time, over units;
/// - `wear.MEDIUM.max`, `wear.MEDIUM.mean`: cycles in the run; `life.MEDIUM`: bytes that the host
///   can write in this way until the most worn group of cells is worn out (0 without wear);
/// - `days.MEDIUM.max`, `days.MEDIUM.mean`: days until the most worn and the mean group of cells are
///   worn out at the rate of the run (0 without wear);
/// - `bytes.MEDIUM`, `bytes.volume`: sizes; `memory.dram_bytes`: of the mapping;
///   `memory.durable_bytes`: of its durable copy;
/// - `write_amplification`: NAND bytes programmed for each byte that the host wrote.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct RunMetrics {
    values: BTreeMap<String, f64>,
    doubts: Vec<Finding>,
}

impl RunMetrics {
    /// Returns the metrics of a report.
    #[must_use]
    pub fn of(report: &Report) -> RunMetrics {
        let doubts = report.findings.iter().filter(|f| f.kind == FindingKind::Doubt);
        let mut f = RunMetrics { values: BTreeMap::new(), doubts: doubts.cloned().collect() };
        for row in &report.counts {
            let n = row.count.commands as f64;
            f.add(format!("commands.{}", row.op), n);
            f.add(format!("commands.{}.{}", row.op, row.cause), n);
        }
        for m in report.layers.iter().flat_map(|l| &l.metrics) {
            f.add(format!("layer.{}", m.name), m.change);
            f.add(format!("now.{}", m.name), m.value);
        }
        for l in &report.latency {
            let (name, s) = (l.class, &l.response.figures);
            f.add(format!("latency.{name}.mean_ns"), s.mean_ns);
            for (what, at) in [("p50_ns", s.p50_ns), ("p99_ns", s.p99_ns), ("p999_ns", s.p999_ns)] {
                f.add(format!("latency.{name}.{what}"), at.0 as f64);
            }
        }
        for m in &report.media {
            let kind: &str = m.kind.into();
            f.add(format!("wear.{kind}.max"), f64::from(m.wear.run.max));
            f.add(format!("wear.{kind}.mean"), m.wear.run.mean);
            f.add(format!("bytes.{kind}"), m.bytes as f64);
            let written = report.asked.written_bytes as f64;
            let life =
                if m.wear.run.max == 0 { 0.0 } else { m.wear.limit as f64 / f64::from(m.wear.run.max) };
            f.add(format!("life.{kind}"), life * written);
            let days = report.throughput.duration_ns as f64 / 86_400e9;
            for (what, cycles) in [("max", f64::from(m.wear.run.max)), ("mean", m.wear.run.mean)] {
                let runs = if cycles > 0.0 { m.wear.limit as f64 / cycles } else { 0.0 };
                f.add(format!("days.{kind}.{what}"), runs * days);
            }
            let busy = m.unit_busy.iter().sum::<f64>() / m.unit_busy.len().max(1) as f64;
            f.add(format!("busy.{kind}.mean"), busy);
            f.add(format!("busy.{kind}.max"), m.unit_busy.iter().copied().fold(0.0, f64::max));
        }
        f.add("time.duration_s".into(), report.throughput.duration_ns as f64 / 1e9);
        f.add("memory.dram_bytes".into(), report.memory.dram_bytes as f64);
        f.add("memory.durable_bytes".into(), report.memory.durable_map_bytes as f64);
        f.add("bytes.volume".into(), report.stack.volume_bytes as f64);
        f.add("throughput.requests_per_s".into(), report.throughput.requests_per_s);
        f.add("throughput.mb_per_s".into(), report.throughput.mb_per_s);
        f.add("write_amplification".into(), report.write_amplification.nand.unwrap_or(0.0));
        let a = &report.asked;
        for (name, n) in [
            ("requests", a.requests),
            ("writes", a.writes),
            ("reads", a.reads),
            ("written_bytes", a.written_bytes),
            ("read_bytes", a.read_bytes),
        ] {
            f.add(format!("asked.{name}"), n as f64);
        }
        f
    }

    fn add(&mut self, name: String, value: f64) {
        *self.values.entry(name).or_insert(0.0) += value;
    }

    /// Returns a metric; 0 if it did not occur.
    #[must_use]
    pub fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(0.0)
    }

    /// Doubts about the run.
    #[must_use]
    pub fn doubts(&self) -> &[Finding] {
        &self.doubts
    }

    /// Returns `true` if a metric of this name is a time, or depends on one.
    #[must_use]
    pub fn is_about_time(name: &str) -> bool {
        ["latency.", "throughput.", "time.", "busy."].iter().any(|group| name.starts_with(group))
    }

    /// Returns `true` if a metric of this name can exist.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        let Some((group, rest)) = name.split_once('.') else { return name == "write_amplification" };
        match group {
            "commands" => {
                let op = rest.split('.').next().unwrap_or(rest);
                Op::iter().any(|o| op == <&str>::from(o))
            }
            "layer" | "now" | "bytes" | "asked" => !rest.is_empty(),
            "latency" => ["read", "write", "flush", "discard", "all"]
                .iter()
                .any(|c| rest.starts_with(&format!("{c}."))),
            "time" => rest == "duration_s",
            "memory" => ["dram_bytes", "durable_bytes"].contains(&rest),
            "wear" | "busy" | "life" | "days" => {
                MediumKind::iter().any(|m| rest.starts_with(<&str>::from(m)))
            }
            "throughput" => ["requests_per_s", "mb_per_s"].contains(&rest),
            _ => false,
        }
    }
}
