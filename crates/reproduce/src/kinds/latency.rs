//! Comparison of a profile's latencies with the published ones that are its input.

use super::{Measure, Present, Subject};
use crate::outcome::{Cell, JudgedAspect, Judgement, Outcome, OutcomePart, OutcomeTable};
use crate::workbench::Workbench;
use crate::{Error, Result};
use frit_core::{Cause, Cmd, UnitId};
use frit_media::{MediumConfig, MediumSpec};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Published latencies that a profile takes as its input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPlan {
    /// Name of the profile.
    pub profile: String,
    /// Published latencies.
    #[serde(rename = "point")]
    pub points: Vec<LatencyPoint>,
}

/// One published latency.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPoint {
    /// The command.
    pub op: frit_core::Op,
    /// Size in bytes.
    pub bytes: u32,
    /// Latency in microseconds.
    pub us: f64,
    /// `true` if the published value is a lower bound.
    #[serde(default)]
    pub or_more: bool,
}

/// Latencies: an input, not a result.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub struct LatencyOutcome {
    /// Rows, one for each published latency.
    pub rows: Vec<LatencyRow>,
}

/// A latency of a profile and the published one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LatencyRow {
    /// The profile.
    pub profile: String,
    /// The command.
    pub op: &'static str,
    /// Size of the command, in bytes.
    pub bytes: u32,
    /// Published latency, in microseconds.
    pub published_us: f64,
    /// `true` if the published value is a lower bound.
    pub or_more: bool,
    /// Latency of the profile, in microseconds.
    pub profile_us: f64,
    /// `true` if both are equal to half of the last published digit.
    pub agrees: bool,
}

impl Measure for LatencyPlan {
    type Data = LatencyOutcome;

    fn measure(
        &self,
        subject: Subject<'_>,
        _: &mut Workbench,
        _: &mut dyn FnMut(&str),
    ) -> Result<LatencyOutcome> {
        let config = MediumConfig { profile: Some(self.profile.clone()), ..MediumConfig::default() };
        let spec = config.resolve("medium", Path::new(""))?;
        let rows: Result<Vec<_>> = self.points.iter().map(|p| row(subject.id, self, &spec, p)).collect();
        Ok(LatencyOutcome { rows: rows? })
    }
}

fn row(id: &str, plan: &LatencyPlan, spec: &MediumSpec, p: &LatencyPoint) -> Result<LatencyRow> {
    let cmd = Cmd { addr: 0, len: p.bytes, hazard: 0, unit: UnitId(0), op: p.op, cause: Cause::Host };
    let phases = match spec {
        MediumSpec::Nand(c) if p.op.medium() == spec.kind() => c.timing.phases(&cmd),
        MediumSpec::Pcm(c) if p.op.medium() == spec.kind() => c.timing.phases(&cmd),
        _ => {
            let op: &str = p.op.into();
            return Err(Error::Description { name: id.into(), why: format!("{} has no {op}", plan.profile) });
        }
    };
    let profile_us = phases.total().0 as f64 / 1000.0;
    Ok(LatencyRow {
        profile: plan.profile.clone(),
        op: p.op.into(),
        bytes: p.bytes,
        published_us: p.us,
        or_more: p.or_more,
        profile_us,
        agrees: if p.or_more { profile_us > p.us } else { (profile_us - p.us).abs() < 0.05 },
    })
}

impl Present for LatencyOutcome {
    fn present(&self) -> Outcome {
        let row = |r: &LatencyRow| {
            vec![
                Cell::text(r.op),
                if r.bytes == 0 { Cell::Missing } else { Cell::number(f64::from(r.bytes), 0) },
                Cell::Text(format!("{}{} µs", if r.or_more { "more than " } else { "" }, r.published_us)),
                Cell::with_unit(r.profile_us, 1, " µs"),
                Cell::verdict(vec![Judgement::of(JudgedAspect::Input, Some(r.agrees))]),
            ]
        };
        let profile = self.rows.first().map_or("", |r| r.profile.as_str());
        let profile = format!("profile `{profile}`");
        let head = ["command", "bytes", "published", &profile, ""];
        Outcome::of(vec![OutcomePart::Table(OutcomeTable::new(
            1,
            &head,
            self.rows.iter().map(row).collect(),
        ))])
    }
}
