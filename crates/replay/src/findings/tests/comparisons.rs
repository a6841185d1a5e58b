//! Findings of comparisons.

use super::options;
use crate::findings::of_comparison;
use crate::report::compare::compare;
use crate::tests::{run, small, small_without_pcm};
use frit_stack::Stack;

#[test]
fn a_comparison_in_which_nothing_differs_names_the_setting() {
    let load = "gen:uniform,count=6k,size=4K,span=512K,read=0.3";
    let one = |sets: &[&str]| run(&small(sets), load, &options(8, "fill"));
    let reports = [one(&["SSW=512"]), one(&["SSW=1024"])];
    let found = of_comparison(&reports);
    assert_eq!(found.of_runs[0].1.rule, "nothing-differs");
    let shown = compare(&reports, 2).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.starts_with("doubt"), "{shown}");
    assert!(shown.contains("hfsl.SSW (512 and 1024) has no effect on this workload"), "{shown}");
    assert!(shown.contains("No stack is better"), "{shown}");
    let differ = [one(&["SSW=512"]), one(&["SSW=4096"])];
    assert!(of_comparison(&differ).of_runs.iter().all(|f| f.1.rule != "nothing-differs"));
}

#[test]
fn a_comparison_ends_with_the_best_stack_and_its_ratio() {
    let load = "gen:zipf,count=20k,size=512,align=512,span=64K,read=0.3";
    let one = |stack: &Stack| run(stack, load, &options(4, "fill"));
    let reports = [one(&small_without_pcm(&[])), one(&small(&[]))];
    let rate = |i: usize| reports[i].throughput.requests_per_s;
    let shown = compare(&reports, 2);
    let end = shown.rsplit_once("relative to it (×)").unwrap().1;
    let ratio = crate::report::show::figure(rate(1) / rate(0));
    assert!(rate(1) > rate(0) && end.contains(&format!("{ratio}× better than no-pcm-small")), "{shown}");
    let reasons: Vec<_> = of_comparison(&reports).of_runs.iter().map(|f| f.1.rule).collect();
    assert!(reasons.contains(&"partial-writes") && reasons.contains(&"pcm-absorbs"), "{shown}");
}
