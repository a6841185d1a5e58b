//! Distinct crash images, a hundred thousand with `LONG=1`, none of which violates a promise.

use crate::common::{STACKS, complain, sampled, share_of, target};
use frit_torture::block::campaign::run;
use frit_torture::block::case::TortureMode;
use frit_torture::block::options::CampaignOptions;

/// Returns the number of distinct images for a stack; images of large pages take longer to examine.
fn wanted(name: &str) -> usize {
    match name {
        "level-16k" => 3_000,
        "both-4k" | "cache-4k" => 12_000,
        _ => 17_000,
    }
}

#[test]
fn distinct_images_hold() {
    println!(
        "| stack | workloads | requests | commands | cuts | images | of recoveries | distinct images | states | s | images/s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let (mut distinct, mut violations, mut seconds) = (0, 0, 0.0);
    for name in STACKS {
        let options = CampaignOptions {
            modes: vec![TortureMode::Cuts, TortureMode::Cuts, TortureMode::Files, TortureMode::Exhaustive],
            images: Some(share_of(wanted(name))),
            items: Some(400),
            nested_every: 256,
            alive_every: 32,
            ..CampaignOptions::default()
        };
        let r = run(&target(name), &sampled(options), &|_| {});
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.0} |",
            r.workloads,
            r.requests,
            r.commands,
            r.cuts,
            r.images,
            r.nested,
            r.distinct_images,
            r.distinct_states,
            r.seconds,
            r.images_per_second()
        );
        complain(name, &r);
        distinct += r.distinct_images;
        violations += r.violations.len();
        seconds += r.seconds;
    }
    println!("{distinct} distinct crash images, {violations} violations, {seconds:.0} s");
    assert_eq!(violations, 0);
    assert!(distinct >= share_of(100_000), "{distinct}");
}
