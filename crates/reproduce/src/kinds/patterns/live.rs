//! Patterns of IOzone on the machine that runs the measurement.

use super::ext4;
use super::of_records;
use super::targets::{Places, Target};
use crate::kinds::machine_rules::RuleValue;
use crate::kinds::this_machine::{Spread, ThisMachine, memory_missing};
use crate::outcome::{Cell, OutcomePart, OutcomeTable};
use crate::{Error, Result};
use frit_core::size;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Name of the library's file in memory on huge pages.
pub(super) const LIBRARY: &str = "library";
/// Name of the library's file in an image on tmpfs.
pub(super) const LIBRARY_ON_TMPFS: &str = "library, image on tmpfs";
/// Name of a file on tmpfs.
pub(super) const TMPFS: &str = "tmpfs";
/// Name of a file on EXT4.
pub(super) const EXT4: &str = "EXT4";
/// Number of rounds with `--quick`.
const QUICK_ROUNDS: u32 = 2;
/// Seed of the order of random accesses.
const SEED: u64 = 1;
/// Size of the writes that fill a file.
const FILL: u64 = 1 << 20;

/// Patterns on the machine that runs the measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LivePatternsPlan {
    /// Name in tables and rules.
    pub name: String,
    /// Size of the file in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub file: u64,
    /// Number of rounds, in which the files take turns.
    pub rounds: u32,
}

/// Results of patterns on this machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LivePatternsOutcome {
    /// Name in tables and rules.
    pub name: String,
    /// The machine.
    pub machine: ThisMachine,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Sizes of records in bytes.
    pub records: Vec<u64>,
    /// Rows, by pattern and file.
    pub rows: Vec<LivePatternRow>,
    /// Reason why nothing was measured.
    pub skipped: Option<String>,
    /// Reason why EXT4 was not measured.
    pub ext4_skipped: Option<String>,
}

/// A pattern on a file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LivePatternRow {
    /// Name of the pattern.
    pub pattern: &'static str,
    /// File: `library`, `library, image on tmpfs`, `tmpfs` or `EXT4`.
    pub file: &'static str,
    /// Speed in MB/s, by record size and round.
    pub mb_s: Vec<Vec<f64>>,
}

/// A pattern of IOzone.
struct Pattern {
    name: &'static str,
    writes: bool,
    random: bool,
}

const PATTERNS: [Pattern; 4] = [
    Pattern { name: "rewrite", writes: true, random: false },
    Pattern { name: "reread", writes: false, random: false },
    Pattern { name: "random read", writes: false, random: true },
    Pattern { name: "random write", writes: true, random: true },
];

/// Returns the speed of one pass in MB/s.
fn pass(target: &dyn Target, writes: bool, order: &[u64], buffer: &mut [u8]) -> Result<f64> {
    let start = Instant::now();
    for at in order {
        let done = if writes { target.write(*at, buffer) } else { target.read(*at, buffer) };
        done.map_err(Error::ThisMachine)?;
    }
    let seconds = start.elapsed().as_secs_f64().max(1e-9);
    Ok(order.len() as f64 * buffer.len() as f64 / 1e6 / seconds)
}

impl LivePatternsPlan {
    /// Measures the patterns. A quick run has a file of `quick` bytes, and no EXT4.
    pub(super) fn measure(
        &self,
        records: &[String],
        quick: Option<u64>,
        note: &mut dyn FnMut(&str),
    ) -> Result<LivePatternsOutcome> {
        let file = quick.unwrap_or(self.file);
        let parsed: std::result::Result<Vec<u64>, String> = records.iter().map(|r| size::parse(r)).collect();
        let mut records = parsed.map_err(|why| Error::Description { name: self.name.clone(), why })?;
        records.retain(|record| *record > 0 && file.is_multiple_of(*record));
        // Two images, a file on tmpfs, a device for EXT4 and its page cache.
        let needed = 5 * ext4::device_bytes(file);
        let mut outcome = LivePatternsOutcome {
            name: self.name.clone(),
            machine: ThisMachine::now(),
            file_bytes: file,
            records,
            rows: Vec::new(),
            skipped: memory_missing(needed),
            ext4_skipped: None,
        };
        if outcome.skipped.is_some() {
            return Ok(outcome);
        }
        let places = Places::new(file, quick.map(|_| "a quick run mounts nothing"))?;
        outcome.ext4_skipped = places.ext4_missing();
        let library = places.library_files()?;
        let rounds = if quick.is_some() { QUICK_ROUNDS } else { self.rounds };
        self.fill(&mut outcome, &places.targets(&library), rounds, note)?;
        Ok(outcome)
    }

    /// Measures the patterns on files, which take turns.
    fn fill(
        &self,
        outcome: &mut LivePatternsOutcome,
        targets: &[(&'static str, &dyn Target)],
        rounds: u32,
        note: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let chunk = vec![7; FILL.min(outcome.file_bytes) as usize];
        for (_, target) in targets {
            for at in (0..outcome.file_bytes).step_by(chunk.len()) {
                let len = chunk.len().min((outcome.file_bytes - at) as usize);
                target.write(at, &chunk[..len]).map_err(Error::ThisMachine)?;
            }
        }
        for pattern in &PATTERNS {
            let row = |(file, _): &(&'static str, _)| LivePatternRow {
                pattern: pattern.name,
                file,
                mb_s: Vec::new(),
            };
            let mut rows: Vec<LivePatternRow> = targets.iter().map(row).collect();
            for record in &outcome.records {
                note(&format!("{}, {}, records of {}", self.name, pattern.name, size::format(*record)));
                let mut order: Vec<u64> = (0..outcome.file_bytes).step_by(*record as usize).collect();
                if pattern.random {
                    order.shuffle(&mut SmallRng::seed_from_u64(SEED));
                }
                let mut buffer = vec![3; *record as usize];
                rows.iter_mut().for_each(|row| row.mb_s.push(Vec::new()));
                for _ in 0..rounds {
                    for (row, (_, target)) in rows.iter_mut().zip(targets) {
                        let speed = pass(*target, pattern.writes, &order, &mut buffer)?;
                        row.mb_s.last_mut().into_iter().for_each(|all| all.push(speed));
                    }
                }
            }
            outcome.rows.extend(rows);
        }
        Ok(())
    }
}

impl LivePatternsOutcome {
    fn row(&self, pattern: &str, file: &str) -> Option<&LivePatternRow> {
        self.rows.iter().find(|r| r.pattern.replace(' ', "-") == pattern && r.file == file)
    }

    /// Returns a value by name over the rounds: a pattern, and `mean`, `smallest` or `flatness` of the
    /// library, or its ratio to another file over the record sizes (`ext4`, `tmpfs`: mean; `ext4-least`,
    /// `ext4-most`).
    pub(super) fn value(&self, name: &str) -> Option<RuleValue> {
        let (pattern, of) = name.split_once('.')?;
        if !PATTERNS.iter().any(|p| p.name.replace(' ', "-") == pattern) {
            return None;
        }
        if let Some(why) = &self.skipped {
            return Some(RuleValue::NotMeasured(why.clone()));
        }
        if let (Some(why), true) = (&self.ext4_skipped, of.starts_with("ext4")) {
            return Some(RuleValue::NotMeasured(why.clone()));
        }
        let own = self.row(pattern, LIBRARY)?;
        let rounds = own.mb_s.first()?.len();
        let other = match of {
            "tmpfs" => Some(self.row(pattern, TMPFS)?),
            "ext4" | "ext4-least" | "ext4-most" => Some(self.row(pattern, EXT4)?),
            _ => None,
        };
        let of_round = |round: usize| {
            let speeds = |row: &LivePatternRow| row.mb_s.iter().map(|all| all[round]).collect::<Vec<f64>>();
            let Some(other) = other else { return of_records(&speeds(own), of) };
            let ratios: Vec<f64> = speeds(own).iter().zip(speeds(other)).map(|(a, b)| a / b).collect();
            Some(match of {
                "ext4-least" => ratios.iter().copied().fold(f64::INFINITY, f64::min),
                "ext4-most" => ratios.iter().copied().fold(0.0, f64::max),
                _ => ratios.iter().sum::<f64>() / ratios.len() as f64,
            })
        };
        let all: Option<Vec<f64>> = (0..rounds).map(of_round).collect();
        Some(RuleValue::Measured(Spread::of(all?)))
    }

    /// Returns the description of the machine, and the table of speeds.
    pub(super) fn parts(&self) -> Vec<OutcomePart> {
        let mut parts = vec![OutcomePart::Text(self.machine.words(&self.name))];
        if let Some(why) = &self.skipped {
            parts.push(OutcomePart::Text(format!("It was not measured: {why}.")));
            return parts;
        }
        if let Some(why) = &self.ext4_skipped {
            parts.push(OutcomePart::Text(format!("EXT4 was not measured: {why}.")));
        }
        let mut head = vec![Cell::text("pattern, MB/s (range)"), Cell::text("file")];
        head.extend(self.records.iter().map(|r| Cell::Size(*r)));
        let row = |r: &LivePatternRow| {
            let mut cells = vec![Cell::text(r.pattern), Cell::text(r.file)];
            cells.extend(r.mb_s.iter().map(|all| Cell::Text(Spread::of(all.iter().copied()).text(0))));
            cells
        };
        parts.push(OutcomePart::Table(OutcomeTable {
            names: 2,
            head,
            rows: self.rows.iter().map(row).collect(),
        }));
        parts
    }
}
