//! Runs of single cases.

use crate::block::case::TortureCase;
use crate::block::options::CampaignOptions;
use crate::block::report::{CampaignReport, Tally, Total};
use crate::block::target::TortureTarget;
use crate::block::work_item::WorkItem;
use std::cell::RefCell;
use std::time::Instant;

/// Runs a single case.
#[must_use]
pub fn replay(target: &dyn TortureTarget, options: &CampaignOptions, case: TortureCase) -> CampaignReport {
    let begun = Instant::now();
    let mut total = Total::default();
    total.add(run_case(target, options, case));
    total.report.seconds = begun.elapsed().as_secs_f64();
    total.report
}

thread_local! {
    static CURRENT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the case that this thread runs, for the message of a program that aborts.
#[must_use]
pub fn current() -> String {
    CURRENT.with(|c| c.try_borrow().map(|c| c.clone()).unwrap_or_default())
}

/// Runs a case and returns its counts.
pub(crate) fn run_case(target: &dyn TortureTarget, options: &CampaignOptions, case: TortureCase) -> Tally {
    CURRENT.with(|c| *c.borrow_mut() = case.to_string());
    let mut item = WorkItem { target, options, case, tally: Tally::default() };
    item.run();
    item.tally
}
