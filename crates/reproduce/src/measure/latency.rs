//! Comparison of a profile's latencies with the published ones that are its input.

use crate::describe::{LatencyPlan, LatencyPoint};
use crate::outcome::LatencyRow;
use crate::{Error, Result};
use frit_core::{Cause, Cmd, UnitId};
use frit_media::{MediumConfig, MediumSpec};
use std::path::Path;

pub(super) fn latency(id: &str, plan: &LatencyPlan) -> Result<Vec<LatencyRow>> {
    let config = MediumConfig { profile: Some(plan.profile.clone()), ..MediumConfig::default() };
    let spec = config.resolve("medium", Path::new(""))?;
    plan.points.iter().map(|p| row(id, plan, &spec, p)).collect()
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
