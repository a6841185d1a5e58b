//! Fewer requests that still fail.

use crate::campaign::{Found, Options, replay};
use crate::case::{Case, Mode};
use crate::cuts::planned;
use crate::subject::Subject;
use std::time::{Duration, Instant};

/// How long one violation is worked on.
const TIME: Duration = Duration::from_secs(20);

/// Drops requests of a violation's workload while the same oracle still objects. Nothing when the
/// kind of case has no requests of its own to drop.
#[must_use]
pub(crate) fn shrink(subject: &dyn Subject, options: &Options, found: &Found) -> Option<(Case, Vec<String>)> {
    if !matches!(found.case.mode, Mode::Cuts | Mode::Exhaustive | Mode::Files | Mode::Wear) {
        return None;
    }
    let end = Instant::now() + TIME;
    let all = planned(subject, options, &found.case)?;
    let options = Options { first_only: true, shrink: false, threads: 1, ..options.clone() };
    let whole = Case { cut: None, nested: Vec::new(), keep: Vec::new(), ..found.case.clone() };
    let fails = |keep: &[u32]| {
        let case = Case { keep: keep.to_vec(), ..whole.clone() };
        let report = replay(subject, &options, case);
        report.violations.iter().any(|f| f.violation.oracle == found.violation.oracle)
    };
    let keep = fewest(all.len(), end, &mut |keep| fails(keep));
    let lines = keep.iter().filter_map(|&i| all.get(i as usize)).map(ToString::to_string).collect();
    (keep.len() < all.len()).then_some((Case { keep, ..whole }, lines))
}

/// Which of so many things still fail together, when others are left out: in halves first, one by one at last,
/// until `end`. At least one is left.
pub(crate) fn fewest(count: usize, end: Instant, fails: &mut dyn FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut keep: Vec<u32> = (0..count as u32).collect();
    let mut chunk = keep.len().div_ceil(2).max(1);
    while Instant::now() < end {
        let mut at = 0;
        while at < keep.len() && keep.len() > 1 && Instant::now() < end {
            let mut less = keep.clone();
            less.drain(at..(at + chunk).min(keep.len()));
            if !less.is_empty() && fails(&less) {
                keep = less;
            } else {
                at += chunk;
            }
        }
        if chunk == 1 {
            break;
        }
        chunk = chunk.div_ceil(2);
    }
    keep
}
