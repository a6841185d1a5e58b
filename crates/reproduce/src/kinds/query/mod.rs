//! Word query by in-storage processing and by software, on modelled machines and on this machine.

mod command_file;
mod live;
mod present;
mod software;

pub use live::{EngineRun, LiveFile, LiveQueryOutcome, LiveQueryPlan, LiveRound};
pub use software::SoftwareRun;

use super::machine_rules::{MachineRule, MachineVerdict, ModelledMachine, RuleValue, verdicts};
use super::{Measure, Subject};
use crate::workbench::Workbench;
use crate::{Error, Result};
use frit_core::size;
use frit_fs_sim::isp::{self, ForegroundLoad, IspMachine, IspOptions, QueryRow};
use serde::{Deserialize, Serialize};

/// Word queries on modelled machines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryPlan {
    /// Sizes of the files.
    pub files: Vec<String>,
    /// Sizes of the files in a quick run.
    pub quick: Vec<String>,
    /// Machines.
    #[serde(rename = "machine")]
    pub machines: Vec<ModelledMachine>,
    /// Measurement on the machine that runs the program.
    pub live: Option<LiveQueryPlan>,
    /// Memory of the host in bytes, of which the programs have a share.
    #[serde(deserialize_with = "size::deserialize")]
    pub host_memory: u64,
    /// Rules.
    #[serde(rename = "rule")]
    pub rules: Vec<MachineRule>,
}

/// Results of queries.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct QueryOutcome {
    /// Rows, by machine and size.
    pub rows: Vec<MachineRow>,
    /// Results on this machine.
    pub live: Option<LiveQueryOutcome>,
    /// Verdicts on the rules.
    pub verdicts: Vec<MachineVerdict>,
}

/// A query on a machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineRow {
    /// Name of the machine.
    pub machine: String,
    /// Results.
    #[serde(flatten)]
    pub query: QueryRow,
}

impl Measure for QueryPlan {
    type Data = QueryOutcome;

    fn is_about_time(&self, _: &[crate::describe::Claim]) -> bool {
        true
    }

    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<QueryOutcome> {
        let bad = |why: String| Error::Description { name: subject.id.into(), why };
        let sizes = if bench.options.quick { &self.quick } else { &self.files };
        let files: std::result::Result<Vec<u64>, String> = sizes.iter().map(|s| size::parse(s)).collect();
        let files = files.map_err(bad)?;
        let mut rows = Vec::new();
        for machine in &self.machines {
            note(&machine.name);
            let foreground = machine.foreground.as_deref().map(ForegroundLoad::parse).transpose();
            let foreground = foreground.map_err(bad)?;
            let (profile, host) = (machine.profile.clone(), machine.host.clone());
            let machines = vec![IspMachine { profile, host, files: files.clone() }];
            let report = isp::run(&IspOptions { machines, foreground, ..IspOptions::default() })?;
            if let Some(row) = report.mismatches().next() {
                let (engine, software) = (row.isp.counts, row.software.counts);
                return Err(bad(format!("the engine counted {engine:?}, software {software:?}")));
            }
            let named = |query| MachineRow { machine: machine.name.clone(), query };
            rows.extend(report.rows.into_iter().map(named));
        }
        let is_wanted = |claim: &str| subject.claims.iter().any(|c| c.id == claim);
        let words = IspOptions::default().words;
        let live = self.live.as_ref().map(|live| live.measure(&words, &files, bench.options.quick, note));
        let live = live.transpose()?;
        let value = |machine: &str, name: &str| match &live {
            Some(live) if live.name == machine => live.value(name),
            _ => self.value(&rows, machine, name).map(RuleValue::Modelled),
        };
        let verdicts = verdicts(subject.id, &self.rules, is_wanted, value)?;
        Ok(QueryOutcome { rows, live, verdicts })
    }
}

impl QueryPlan {
    /// Returns a value of a machine: of speeds the mean over the files, of other values that of the
    /// largest file.
    fn value(&self, rows: &[MachineRow], machine: &str, name: &str) -> Option<f64> {
        let own = || rows.iter().filter(|r| r.machine == machine).map(|r| &r.query);
        let last = own().max_by_key(|q| q.file_bytes)?;
        let mean = |of: &dyn Fn(&QueryRow) -> f64| own().map(of).sum::<f64>() / own().count() as f64;
        let flat = |of: &dyn Fn(&QueryRow) -> f64| {
            let all: Vec<f64> = own().map(of).collect();
            all.iter().copied().fold(f64::INFINITY, f64::min) / all.iter().copied().fold(0.0, f64::max)
        };
        let (isp, software) = (|q: &QueryRow| q.isp.mb_s, |q: &QueryRow| q.software.mb_s);
        let memory = |bytes: u64| bytes as f64 / self.host_memory as f64;
        Some(match name {
            "engine_mb_s" => mean(&isp),
            "software_mb_s" => mean(&software),
            "ratio" => mean(&isp) / mean(&software),
            "engine_flatness" => flat(&isp),
            "software_flatness" => flat(&software),
            "program_ratio" => last.total_ratio,
            "engine_cpu" => last.isp.cpu_share,
            "software_cpu" => last.software.cpu_share,
            "engine_memory" => memory(last.isp.memory_bytes),
            "software_memory" => memory(last.software.memory_bytes),
            "engine_requests" => last.isp.requests as f64,
            "software_requests" => last.software.requests as f64,
            "fewer_requests" => 1.0 - last.isp.requests as f64 / last.software.requests as f64,
            "foreground_p99" => last.foreground.as_ref()?.p99_ratio()?,
            _ => return None,
        })
    }
}
