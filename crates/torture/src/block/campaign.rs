//! Runs many workloads on all processor cores and sums their results.

use crate::block::options::CampaignOptions;
use crate::block::replay::run_case;
use crate::block::report::{CampaignReport, Total};
use crate::block::shrink::shrink;
use crate::block::target::TortureTarget;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

/// Runs a campaign over a target. Calls `progress` after each workload.
pub fn run(
    target: &dyn TortureTarget,
    options: &CampaignOptions,
    progress: &(dyn Fn(&CampaignReport) + Sync),
) -> CampaignReport {
    let begun = Instant::now();
    let (next, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    let total = Mutex::new(Total::default());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if options.items.is_some_and(|most| n >= most)
                || options.time.is_some_and(|t| begun.elapsed() >= t)
            {
                return;
            }
            let tally = run_case(target, options, options.case(n));
            let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            total.add(tally);
            total.report.seconds = begun.elapsed().as_secs_f64();
            if options.images.is_some_and(|n| total.report.distinct_images >= n)
                || options.first_only && !total.report.violations.is_empty()
            {
                stop.store(true, Ordering::Relaxed);
            }
            progress(&total.report);
        }
    };
    // The calling thread is one of the threads: with one, a bug planted in it holds for the campaign.
    std::thread::scope(|scope| {
        for _ in 1..options.threads {
            scope.spawn(work);
        }
        work();
    });
    let mut report = total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).report;
    // Threads finish workloads in any order; the report lists violations in the order of cases.
    report.violations.sort_by_key(|f| (f.case.number, f.case.mode.letter(), f.case.epoch, f.case.cut));
    report.seconds = begun.elapsed().as_secs_f64();
    if options.shrink {
        shrink_first(target, options, &mut report);
    }
    report
}

/// Reduces the first violation of each oracle.
fn shrink_first(target: &dyn TortureTarget, options: &CampaignOptions, report: &mut CampaignReport) {
    let mut done = Vec::new();
    for f in &mut report.violations {
        if done.contains(&f.violation.oracle) {
            continue;
        }
        done.push(f.violation.oracle);
        if let Some((case, requests)) = shrink(target, options, f) {
            f.shrunk = Some(case);
            f.requests = requests;
        }
    }
}
