//! Reduction of a failing case to fewer requests.

use crate::block::case::{TortureCase, TortureMode};
use crate::block::options::CampaignOptions;
use crate::block::replay::replay;
use crate::block::report::FailedCase;
use crate::block::target::TortureTarget;
use crate::block::work_item::original_requests;
use crate::minimize::minimize_set;
use std::time::{Duration, Instant};

/// Time limit for reducing one violation.
const TIME: Duration = Duration::from_secs(20);

/// Removes requests from a violation's workload as long as the same oracle reports a violation.
/// Returns `None` if the mode has no requests to remove, or if none could be removed.
#[must_use]
pub(crate) fn shrink(
    target: &dyn TortureTarget,
    options: &CampaignOptions,
    found: &FailedCase,
) -> Option<(TortureCase, Vec<String>)> {
    if !matches!(
        found.case.mode,
        TortureMode::Cuts | TortureMode::Exhaustive | TortureMode::Files | TortureMode::Wear
    ) {
        return None;
    }
    let end = Instant::now() + TIME;
    let all = original_requests(target, options, &found.case)?;
    let options = CampaignOptions { first_only: true, shrink: false, threads: 1, ..options.clone() };
    let whole = TortureCase { cut: None, nested: Vec::new(), keep: Vec::new(), ..found.case.clone() };
    let fails = |keep: &[u32]| {
        let case = TortureCase { keep: keep.to_vec(), ..whole.clone() };
        let report = replay(target, &options, case);
        report.violations.iter().any(|f| f.violation.oracle == found.violation.oracle)
    };
    let keep = minimize_set(all.len(), end, &mut |keep| fails(keep));
    let lines = keep.iter().filter_map(|&i| all.get(i as usize)).map(ToString::to_string).collect();
    (keep.len() < all.len()).then_some((TortureCase { keep, ..whole }, lines))
}
