//! Bugs planted in how an image in an ordinary file is synced: cuts of the machine find each of them, and nothing without.

#![allow(clippy::unwrap_used)]

mod workload;

use frit_core::planted::{Bug, set};
use frit_torture::fs::crash::{Found, MachineCuts};
use frit_torture::fs::every::base;
use std::panic::{AssertUnwindSafe, catch_unwind};
use strum::IntoEnumIterator;
use workload::workload;

/// Sequences that are tried with each bug.
const SEEDS: u64 = 6;

fn hunt(seed: u64) -> Option<Found> {
    let cuts = MachineCuts { meanwhile: true, nested_one_in: u64::MAX, seed, ..MachineCuts::default() };
    // A planted bug may well make the file system panic, which is one way to be found.
    catch_unwind(AssertUnwindSafe(|| cuts.run(&base(), &workload(seed, 24)))).ok()
}

fn finds(seed: u64) -> bool {
    hunt(seed).is_none_or(|found| !found.violations.is_empty())
}

#[test]
fn every_planted_bug_of_a_sync_is_found() {
    std::panic::set_hook(Box::new(|_| {}));
    for seed in 0..SEEDS {
        let found = hunt(seed).unwrap();
        assert!(found.images > 0 && found.violations.is_empty(), "{:?}", found.violations);
    }
    // An image that was replaced is no cut: `crates/fs/tests/overlay` shows that one.
    let shown = |bug: &Bug| bug.is_of_file() && *bug != Bug::FileNumberIgnored;
    let mut missed = Vec::new();
    for bug in Bug::iter().filter(shown) {
        set(Some(bug));
        let found = (0..SEEDS).find(|seed| finds(*seed));
        set(None);
        let name: &str = bug.into();
        println!("{name}: {found:?}");
        if found.is_none() {
            missed.push(name);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
