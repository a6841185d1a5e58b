//! Tables of queries.

use super::live::{LiveQueryOutcome, LiveRound, mb_s};
use super::software::SoftwareRun;
use super::{MachineRow, QueryOutcome};
use crate::kinds::Present;
use crate::kinds::machine_rules::verdict_table;
use crate::kinds::this_machine::Spread;
use crate::outcome::{Cell, Outcome, OutcomePart, OutcomeTable};
use frit_core::size;
use frit_fs_sim::isp;

impl Present for QueryOutcome {
    fn present(&self) -> Outcome {
        let mut parts = vec![
            OutcomePart::Table(verdict_table(&self.verdicts)),
            OutcomePart::Table(speeds(&self.rows)),
            OutcomePart::Table(resources(&self.rows)),
        ];
        if let Some(live) = &self.live {
            parts.push(OutcomePart::Text(live.machine.words(&live.name)));
            match &live.skipped {
                Some(why) => parts.push(OutcomePart::Text(format!("It was not measured: {why}."))),
                None => parts.push(OutcomePart::Table(live_table(live))),
            }
        }
        Outcome::of(parts)
    }
}

fn speeds(rows: &[MachineRow]) -> OutcomeTable {
    let head =
        ["machine", "file", "engine", "MB/s", "program", "MB/s", "software", "MB/s", "engine ×", "program ×"];
    let seconds = |ns: frit_core::Nanos| Cell::Duration(ns.as_secs());
    let row = |r: &MachineRow| {
        let q = &r.query;
        vec![
            Cell::text(&r.machine),
            Cell::Size(q.file_bytes),
            seconds(q.isp.engine_ns),
            Cell::number(q.isp.mb_s, 1),
            seconds(q.isp.total_ns),
            Cell::number(q.isp.total_mb_s, 1),
            seconds(q.software.total_ns),
            Cell::number(q.software.mb_s, 1),
            Cell::number(q.ratio, 2),
            Cell::number(q.total_ratio, 2),
        ]
    };
    OutcomeTable::new(1, &head, rows.iter().map(row).collect())
}

fn resources(rows: &[MachineRow]) -> OutcomeTable {
    let head = [
        "machine",
        "file",
        "calls, ISP",
        "calls, software",
        "CPU, ISP",
        "CPU, software",
        "link bytes, ISP",
        "link bytes, software",
        "p99 of host reads, ×",
    ];
    let bytes = |bytes: Option<u64>| bytes.map_or(Cell::Missing, Cell::Count);
    let row = |r: &MachineRow| {
        let q = &r.query;
        let p99 = q.foreground.as_ref().and_then(isp::ForegroundReport::p99_ratio);
        vec![
            Cell::text(&r.machine),
            Cell::Size(q.file_bytes),
            Cell::Count(q.isp.requests),
            Cell::Count(q.software.requests),
            Cell::percent(q.isp.cpu_share, 3),
            Cell::percent(q.software.cpu_share, 0),
            bytes(q.isp.link_bytes),
            bytes(q.software.link_bytes),
            p99.map_or(Cell::Missing, |p| Cell::number(p, 3)),
        ]
    };
    OutcomeTable::new(1, &head, rows.iter().map(row).collect())
}

/// Returns the table of this machine: a row for each file and program, with medians and ranges.
fn live_table(live: &LiveQueryOutcome) -> OutcomeTable {
    let head = [
        "file",
        "program",
        "MB/s (range)",
        "of which search, MB/s",
        "CPU of the caller, µs",
        "CPU of the engine, µs",
        "calls",
    ];
    let rows = live.files.iter().flat_map(|file| {
        let over = |decimals: usize, of: &dyn Fn(&LiveRound) -> f64| {
            Cell::Text(Spread::of(file.rounds.iter().map(of)).text(decimals))
        };
        let speed = |of: fn(&LiveRound) -> u64| over(1, &|r| mb_s(file.file_bytes, of(r)));
        let cpu = |of: fn(&LiveRound) -> u64| over(0, &|r| of(r) as f64 / 1e3);
        let calls =
            |of: fn(&LiveRound) -> u64| file.rounds.first().map_or(Cell::Missing, |r| Cell::Count(of(r)));
        let name = |words: &str| vec![Cell::Text(size::format(file.file_bytes)), Cell::text(words)];
        let software = |words: &str, of: fn(&LiveRound) -> &SoftwareRun| {
            let mut row = name(words);
            row.extend([over(1, &|r| mb_s(file.file_bytes, of(r).total_ns)), Cell::Missing]);
            row.extend([over(0, &|r| of(r).cpu_ns as f64 / 1e3), Cell::Missing]);
            row.push(file.rounds.first().map_or(Cell::Missing, |r| Cell::Count(of(r).requests)));
            row
        };
        let mut engine = name("engine, through a command file");
        engine.extend([
            speed(|r| r.engine.total_ns),
            speed(|r| r.engine.engine_ns),
            cpu(|r| r.engine.caller_cpu_ns),
            cpu(|r| r.engine.engine_cpu_ns),
            calls(|r| r.engine.requests),
        ]);
        let block = size::format(live.block_bytes);
        [
            engine,
            software(&format!("software: reads of {block}, comparison at every position"), |r| &r.software),
            software(&format!("software: reads of {block}, search of the engine"), |r| &r.vector),
        ]
    });
    OutcomeTable::new(2, &head, rows.collect())
}
