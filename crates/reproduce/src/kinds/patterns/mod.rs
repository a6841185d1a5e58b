//! Patterns of IOzone: on the file system in virtual time, on modelled machines, and on this machine.

mod ext4;
mod live;
mod targets;

pub use live::{LivePatternRow, LivePatternsOutcome, LivePatternsPlan};

use super::machine_rules::{
    MachineRule, MachineVerdict, ModelledMachine, RuleValue, verdict_table, verdicts,
};
use super::{Measure, Present, Subject};
use crate::outcome::{Cell, Outcome, OutcomePart, OutcomeTable};
use crate::workbench::Workbench;
use crate::{Error, Result};
use frit_core::size;
use frit_fs_sim::bench::{self, BenchOptions};
use serde::{Deserialize, Serialize};

/// Patterns on modelled machines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternsPlan {
    /// Size of the file in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub file: u64,
    /// Size of the file in a quick run.
    #[serde(deserialize_with = "size::deserialize")]
    pub quick: u64,
    /// Sizes of records.
    pub records: Vec<String>,
    /// Machines.
    #[serde(rename = "machine")]
    pub machines: Vec<ModelledMachine>,
    /// Measurement on the machine that runs the program.
    pub live: Option<LivePatternsPlan>,
    /// Rules.
    #[serde(rename = "rule")]
    pub rules: Vec<MachineRule>,
}

/// Results of patterns.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PatternsOutcome {
    /// Sizes of records in bytes.
    pub records: Vec<u64>,
    /// Rows, by machine and pattern.
    pub rows: Vec<PatternRow>,
    /// Results on this machine.
    pub live: Option<LivePatternsOutcome>,
    /// Verdicts on the rules.
    pub verdicts: Vec<MachineVerdict>,
}

/// A pattern on a machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PatternRow {
    /// Name of the machine.
    pub machine: String,
    /// Name of the pattern.
    pub pattern: &'static str,
    /// Speed in MB/s, for each record size.
    pub mb_s: Vec<f64>,
}

impl Measure for PatternsPlan {
    type Data = PatternsOutcome;

    fn is_about_time(&self, _: &[crate::describe::Claim]) -> bool {
        true
    }

    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<PatternsOutcome> {
        let file = if bench.options.quick { self.quick } else { self.file };
        let bad = |why: String| Error::Description { name: subject.id.into(), why };
        let records: std::result::Result<Vec<u64>, String> =
            self.records.iter().map(|r| size::parse(r)).collect();
        let mut records = records.map_err(bad)?;
        records.retain(|record| *record <= file);
        let mut rows: Vec<PatternRow> = Vec::new();
        for machine in &self.machines {
            note(&machine.name);
            rows.extend(measure_one(machine, file, &records)?);
        }
        let is_wanted = |claim: &str| subject.claims.iter().any(|c| c.id == claim);
        let live = match &self.live {
            Some(live) => {
                Some(live.measure(&self.records, bench.options.quick.then_some(self.quick), note)?)
            }
            None => None,
        };
        let value = |machine: &str, name: &str| match &live {
            Some(live) if live.name == machine => live.value(name),
            _ => value(&rows, machine, name).map(RuleValue::Modelled),
        };
        let verdicts = verdicts(subject.id, &self.rules, is_wanted, value)?;
        Ok(PatternsOutcome { records, rows, live, verdicts })
    }
}

/// Runs the patterns on one machine.
fn measure_one(machine: &ModelledMachine, file: u64, records: &[u64]) -> Result<Vec<PatternRow>> {
    let report = bench::run(&BenchOptions {
        profile: machine.profile.clone(),
        host: machine.host.clone(),
        size: None,
        file,
        records: records.to_vec(),
        names: 0,
        seed: 1,
        sums: false,
        verify: false,
    })?;
    let mut rows: Vec<PatternRow> = Vec::new();
    for m in report.measured.iter().filter(|m| m.record.is_some()) {
        let own = rows.iter_mut().find(|r| r.pattern == m.name);
        if let Some(row) = own {
            row.mb_s.push(m.mb_s);
            continue;
        }
        rows.push(PatternRow { machine: machine.name.clone(), pattern: m.name, mb_s: vec![m.mb_s] });
    }
    Ok(rows)
}

/// Returns a value by name: a pattern, and `mean`, `smallest` (that of the smallest record) or
/// `flatness` (smallest speed by largest).
fn value(rows: &[PatternRow], machine: &str, name: &str) -> Option<f64> {
    let (pattern, of) = name.split_once('.')?;
    let row = rows.iter().find(|r| r.machine == machine && r.pattern.replace(' ', "-") == pattern)?;
    of_records(&row.mb_s, of)
}

/// Returns a value of the speeds by record size.
fn of_records(mb_s: &[f64], of: &str) -> Option<f64> {
    let (least, most) =
        mb_s.iter().fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), v| (l.min(*v), m.max(*v)));
    match of {
        "mean" => Some(mb_s.iter().sum::<f64>() / mb_s.len() as f64),
        "smallest" => mb_s.first().copied(),
        "flatness" => Some(least / most),
        _ => None,
    }
}

impl Present for PatternsOutcome {
    fn present(&self) -> Outcome {
        let mut head = vec![Cell::text("machine"), Cell::text("pattern, MB/s")];
        head.extend(self.records.iter().map(|r| Cell::Size(*r)));
        let row = |r: &PatternRow| {
            let mut cells = vec![Cell::text(&r.machine), Cell::text(r.pattern)];
            cells.extend(r.mb_s.iter().map(|v| Cell::number(*v, 1)));
            cells
        };
        let speeds = OutcomeTable { names: 2, head, rows: self.rows.iter().map(row).collect() };
        let mut parts = vec![OutcomePart::Table(verdict_table(&self.verdicts)), OutcomePart::Table(speeds)];
        parts.extend(self.live.iter().flat_map(LivePatternsOutcome::parts));
        Outcome::of(parts)
    }
}
