//! Rules about the state of the volume and the length of the run.

use super::{Evidence, FindingKind, Rule, share};
use crate::report::Report;
use crate::report::show::{count, figure, percent};
use crate::steady::{RANGE_MAX, SLOPE_MAX, SteadyVerdict, Test, WINDOW};
use frit_core::{MediumKind, Op, size};

/// Smallest share of cleaning in the programmed NAND bytes that dominates them.
const CLEANING_SHARE_MIN: f64 = 0.50;

pub(super) const VERIFICATION: Rule = Rule {
    name: "verification-failed",
    kind: FindingKind::Doubt,
    condition: || "`--verify` found a mismatch".into(),
    reason: "The stack lost data: no metric of it counts.",
    find: |r| {
        let v = r.verification.as_ref().filter(|v| !v.passed())?;
        Some(
            Evidence::new(format!(
                "Verification failed: {} sectors have wrong contents.",
                count(v.mismatches)
            ))
            .with("mismatches", v.mismatches as f64, "sectors"),
        )
    },
};

pub(super) const WRAPPED: Rule = Rule {
    name: "wrapped",
    kind: FindingKind::Doubt,
    condition: || "`--wrap`, and the trace touches more chunks of 1 MiB than the volume has".into(),
    reason: "Data that is unrelated in the trace shares addresses, which adds overwrites and locality.",
    find: |r| {
        let w = r.run.wrapped.filter(|w| w.touched_bytes > r.stack.volume_bytes)?;
        let times = share(w.touched_bytes, r.stack.volume_bytes);
        Some(
            Evidence::new(format!(
                "--wrap folded {} of touched data onto a volume of {} ({}×): unrelated data shares addresses, \
                 which adds overwrites that the trace does not have. Use a larger volume with --compact.",
                size::format(w.touched_bytes),
                size::format(r.stack.volume_bytes),
                figure(times)
            ))
            .with("touched_bytes", w.touched_bytes as f64, "bytes")
            .with("volume_bytes", r.stack.volume_bytes as f64, "bytes"),
        )
    },
};

pub(super) const NO_CLEANING: Rule = Rule {
    name: "no-cleaning",
    kind: FindingKind::Doubt,
    condition: || "NAND pages were programmed, and no block was erased".into(),
    reason: "A volume that is new, or hardly overwritten, has no garbage collection, which flatters it.",
    find: |r| {
        let written = r.media.iter().filter(|m| m.kind == MediumKind::Nand);
        let programmed: u64 = written.map(|m| m.writes.bytes).sum();
        (programmed > 0 && r.of(Op::NandErase).commands == 0).then(|| {
            let nand: u64 =
                r.media.iter().filter(|m| m.kind == MediumKind::Nand).map(|m| m.bytes).sum();
            Evidence::new(format!(
                "No garbage collection: {} of NAND was programmed, of {} in all, and no block was erased. Write \
                 amplification and latency are those of an empty volume: --warm steady, or a longer run.",
                size::format(programmed),
                size::format(nand)
            ))
            .with("programmed", programmed as f64, "bytes")
            .with("nand_size", nand as f64, "bytes")
            .with("erases", 0.0, "")
        })
    },
};

pub(super) const TOO_SHORT: Rule = Rule {
    name: "too-short",
    kind: FindingKind::Doubt,
    condition: || {
        format!("fewer than {WINDOW} rounds of requests ([steady state](../guide/run.md#steady-state))")
    },
    reason: "A run of this length shows the state it began with, and its rare events by chance.",
    find: |r| {
        let s = &r.steady_state;
        (s.verdict == SteadyVerdict::TooShort).then(|| {
            let least = s.requests_a_round * WINDOW as u64;
            Evidence::new(format!(
                "Too short to tell a steady state: {} requests, at least {} are needed.",
                count(r.asked.requests),
                count(least)
            ))
            .with("requests", r.asked.requests as f64, "")
            .with("requests_needed", least as f64, "")
        })
    },
};

pub(super) const NOT_STEADY: Rule = Rule {
    name: "not-steady",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "in the last {WINDOW} rounds a range above {} or a trend above {}, in requests/s or write \
             amplification",
            percent(RANGE_MAX),
            percent(SLOPE_MAX)
        )
    },
    reason: "The means depend on the length of the run.",
    find: not_steady,
};

pub(super) const CLEANING_DOMINATES: Rule = Rule {
    name: "cleaning-dominates",
    kind: FindingKind::Explanation,
    condition: || {
        format!("garbage collection programmed at least {} of the NAND bytes", percent(CLEANING_SHARE_MIN))
    },
    reason: "Over-provisioning, the cleaning policy and hot data decide the results.",
    find: |r| {
        let w = &r.write_amplification;
        let gc = w.nand_by_cause.iter().find(|c| c.cause == "gc")?.ratio;
        let all = w.nand.filter(|all| *all > 0.0 && gc / all >= CLEANING_SHARE_MIN)?;
        Some(
            Evidence::new(format!(
                "Cleaning dominates the writes to NAND: {} of them are for garbage collection (write \
                 amplification {all:.3}, of which {gc:.3}).",
                percent(gc / all)
            ))
            .with("write_amplification", all, "")
            .with("write_amplification_gc", gc, ""),
        )
    },
};

fn not_steady(r: &Report) -> Option<Evidence> {
    let s = &r.steady_state;
    let w = s.window.filter(|_| s.verdict == SteadyVerdict::NotReached)?;
    let mut figures = Vec::new();
    let mut broken = |name: &str, names: [&'static str; 2], t: Option<Test>| {
        let t = t.filter(|t| t.range > RANGE_MAX || t.slope > SLOPE_MAX)?;
        figures.extend([(names[0], t.range), (names[1], t.slope)]);
        Some(format!("{name} varies by {} with a trend of {}", percent(t.range), percent(t.slope)))
    };
    let mut parts: Vec<String> = [
        broken("requests/s", ["rate_range", "rate_slope"], w.requests_per_s),
        broken("write amplification", ["amplification_range", "amplification_slope"], w.write_amplification),
    ]
    .into_iter()
    .flatten()
    .collect();
    if w.writes && w.write_amplification.is_none() {
        parts.push("the host wrote in only some of them".into());
    }
    // Without a time or a write in any round, there is no value to judge.
    if parts.is_empty() {
        return None;
    }
    let remedy = match r.run.mode {
        "open" => "In an open loop requests/s follows the arrivals.",
        _ => "Use a longer run or a warm-up, such as --warm steady+25%.",
    };
    let text = format!(
        "Not steady: in the last {WINDOW} of {} rounds {} (limits {} and {}). {remedy}",
        s.rounds.len(),
        parts.join(", "),
        percent(RANGE_MAX),
        percent(SLOPE_MAX)
    );
    Some(figures.into_iter().fold(Evidence::new(text), |e, (name, v)| e.with(name, v, "share of the mean")))
}
