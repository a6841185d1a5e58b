//! Faults without power cuts, and media that wear out under power cuts.

use crate::common::{STACKS, complain, short_or_long, target};
use frit_torture::block::campaign::run;
use frit_torture::block::case::TortureMode;
use frit_torture::block::options::CampaignOptions;
use frit_torture::block::report::CampaignReport;

fn torture(mode: TortureMode, stacks: &[&str], items: u32, cuts_most: Option<usize>) -> CampaignReport {
    let mut all = CampaignReport::default();
    for name in stacks {
        let options = CampaignOptions {
            modes: vec![mode],
            items: Some(items),
            cuts_most,
            ..CampaignOptions::default()
        };
        let r = run(&target(name), &options, &|_| {});
        println!(
            "{name} {mode:?}: {} faults planned, {} struck, {} reported, {} images, {:.1} s",
            r.faults, r.faults_struck, r.faults_seen, r.images, r.seconds
        );
        complain(name, &r);
        all.faults_struck += r.faults_struck;
        all.faults_seen += r.faults_seen;
        all.images += r.images;
        all.violations.extend(r.violations);
    }
    assert!(all.violations.is_empty(), "{} violations", all.violations.len());
    all
}

/// Flipped bits, and lost, misplaced and stale accesses: data is never wrong, and a check finds old
/// data.
#[test]
fn damage_is_seen_or_harmless() {
    let r = torture(TortureMode::Damage, &STACKS, short_or_long(3, 12), None);
    assert!(r.faults_struck > 2_500 && r.faults_seen * 4 > r.faults_struck, "{r:?}");
}

/// EIO and ENOSPC at any access: the client receives the error, and no acknowledged data is lost.
#[test]
fn errors_reach_the_client_and_nothing_is_lost() {
    let r = torture(TortureMode::Errors, &STACKS, short_or_long(4, 16), None);
    assert!(r.faults_struck > 500 && r.faults_seen * 2 > r.faults_struck, "{r:?}");
}

/// Programs and erases fail until no spare block is left: the volume becomes read-only and loses no
/// data, with power cuts on the way.
#[test]
fn worn_media_lose_nothing() {
    let r = torture(
        TortureMode::Wear,
        &["none-512", "array-4k", "level-2k", "both-4k"],
        short_or_long(2, 8),
        Some(400),
    );
    assert!(r.faults_struck > 10 && r.images > 500, "{r:?}");
}
