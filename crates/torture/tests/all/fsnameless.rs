//! File systems on nameless-write devices: differential runs, power cuts between any two commands of the
//! NAND, and planted bugs.

use crate::common::{share_of, short_or_long, target};
use frit_core::Sink;
use frit_core::planted::{self, Found};
use frit_fs::planted::NamelessBug;
use frit_fs::{Clock, FileSystem, FormatOptions, Fs};
use frit_torture::block::target::TortureTarget;
use frit_torture::fs::nameless::{DeviceUnderTest, NamelessCutReport, NamelessCuts, allocates_ahead};
use frit_torture::fs::{Rules, run};
use std::sync::Arc;
use std::time::Instant;
use strum::IntoEnumIterator;

const STACKS: [&str; 2] = ["nameless-fs", "nameless-fs-units"];

/// Thousands of operations on one file system, under garbage collection, equal those on a model.
#[test]
fn long_runs_match_the_model() {
    for (stack, seed) in [(STACKS[0], 1), (STACKS[1], 2), (STACKS[1], 3)] {
        let target = target(stack);
        let stores = target.blank_stores();
        let mut layer = target.build(&stores).unwrap();
        let mut sink = Sink::untimed();
        layer.format(&mut sink).unwrap();
        let device = DeviceUnderTest::new(layer, sink);
        let placed = device.load().unwrap();
        let clock = Clock::counted(1_000_000_000_000);
        let format = FormatOptions { placed: Some(Arc::clone(&placed)), clock, ..FormatOptions::default() };
        let fs = Fs::format(placed.medium(), format).unwrap();
        let rules = Rules { limited: true, limits: false, leave_out: allocates_ahead, ..Rules::default() };
        run(seed, share_of(6_000), &fs, &rules)
            .unwrap_or_else(|found| panic!("{stack}, seed {seed}: {found}"));
        fs.sync().unwrap();
        let used = fs.usage().unwrap();
        assert_eq!(device.stored_blocks(), used.blocks - used.blocks_free, "{stack}, seed {seed}");
    }
}

fn all(stack: &str, seeds: std::ops::Range<u64>, cuts: NamelessCuts) -> NamelessCutReport {
    let target = target(stack);
    let mut report = NamelessCutReport::default();
    for seed in seeds {
        report.add(NamelessCuts { seed, ..cuts }.run(&target));
    }
    report
}

#[test]
fn power_cuts_leave_the_state_of_a_sync_or_a_later_one() {
    for stack in STACKS {
        let begun = Instant::now();
        let seeds = 0..short_or_long(3, 12);
        let found = all(stack, seeds, NamelessCuts::default());
        println!(
            "{stack}: {} images, {} of cut recoveries, {} syncs, {} moves, {} erases, {:.1} s",
            found.images,
            found.nested,
            found.syncs,
            found.moves,
            found.erases,
            begun.elapsed().as_secs_f64()
        );
        assert!(found.violations.is_empty(), "{:#?}", found.violations);
        assert!(found.moves > 0 && found.erases > 0, "{found:?}");
        assert!(
            found.images > short_or_long(300, 1_200) && found.nested > short_or_long(30, 120),
            "{found:?}"
        );
    }
}

#[test]
fn planted_bugs_of_the_file_system_are_found() {
    planted::silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/planted/fsnameless.csv"));
    for bug in NamelessBug::iter() {
        // Tests of `frit-fs` find the others: one needs threads that change the file system during a sync,
        // the other leaves blocks that are never freed.
        if matches!(bug, NamelessBug::FreeBlocksForgotten | NamelessBug::HeldNotMoved) {
            continue;
        }
        let cases = STACKS
            .into_iter()
            .flat_map(|stack| (0..40).map(move |seed| (format!("{stack} {seed}"), (stack, seed))));
        found.search(bug, cases, |&(stack, seed)| {
            let cuts = NamelessCuts { cuts: 120, nested_every: 1000, ..NamelessCuts::default() };
            (!all(stack, seed..seed + 1, cuts).violations.is_empty()).then_some("cuts")
        });
    }
    found.finish();
}
