//! Promises of `docs/reference/semantics.md` about power cuts between any two words. The test of
//! each promise has its number and the few operations that concern it.

use frit_torture::fs::FsOp;
use frit_torture::fs::crash::{Density, FsCuts, PowerLossCuts};
use frit_torture::fs::every::base;

fn cuts() -> FsCuts {
    FsCuts { density: Density::FINE, ..FsCuts::default() }
}

fn ops(lines: &[&str]) -> Vec<FsOp> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

/// Runs a sequence of operations on the base tree, with power cuts everywhere.
#[track_caller]
fn survives(cuts: FsCuts, lines: &[&str]) {
    let found = cuts.run(&base(), &ops(lines));
    assert!(found.images > 0, "{lines:?}");
    assert!(found.violations.is_empty(), "{}", found.violations[0]);
}

#[test]
fn s67_changes_of_names_and_attributes_are_whole_or_not_at_all() {
    for line in [
        "root create dir n*200 755 0",
        "root symlink n t*3000",
        "root link a/f n",
        "root unlink b/h",
        "root rmdir a/d",
        "root rename a/f b/h replace",
        "root rename a/d b/n replace",
        "root rename a/d b/p exchange",
        "root chmod a/f 6711",
        "root set-xattr a/f user.x 5000 5 any",
        "root truncate a/f 1",
        "root truncate b/p 1099511627776",
    ] {
        survives(cuts(), &[line]);
    }
}

#[test]
fn s68_overwritten_bytes_tear_between_aligned_words_only() {
    for line in ["root write a/f 3 4093 11", "root write a/f 4095 2 11", "root allocate a/f zero 100 3000"] {
        survives(cuts(), &[line]);
    }
}

#[test]
fn s69_what_a_file_gains_is_the_new_bytes_or_zeros() {
    // The truncated blocks keep their former contents on the medium.
    let first = ["root write a/e 0 20000 5", "root truncate a/e 0"];
    for last in [
        "root write a/f 4999 9000 11",
        "root append b/p 4097 13",
        "root write b/p 50000 300 11",
        "root allocate a/f extend 0 30000",
        "root truncate a/f 9000",
        "root create dir x 755 0",
    ] {
        survives(cuts(), &[first[0], first[1], last]);
    }
}

#[test]
fn s70_what_is_found_is_a_beginning_of_what_was_done() {
    let lines = [
        "root create file n 640 0",
        "root append n 5000 3",
        "root rename n a/f replace",
        "root create dir m 755 0",
        "root rename m b/n replace",
        "root unlink b/h",
        "root create file b/h 600 0",
    ];
    survives(FsCuts::default(), &lines);
}

#[test]
fn s90_contents_with_checksums_are_sound_or_in_flux() {
    let summed = FsCuts { sums: true, ..cuts() };
    for line in [
        "root write a/f 3 4093 11",
        "root write b/g 0 12288 11",
        "root append a/f 10 11",
        "root truncate a/f 100",
        "root allocate b/g punch 100 9000",
        "root gather b/g",
    ] {
        survives(summed, &[line]);
    }
    survives(FsCuts { sums: true, ..FsCuts::default() }, &["root truncate b/g 1", "root append b/g 9000 3"]);
}

#[test]
fn s71_a_start_that_is_cut_is_done_again() {
    let always = FsCuts { nested_one_in: 1, ..FsCuts::default() };
    survives(always, &["root open #0 a/f", "root unlink a/f", "root unlink b/h", "root create file n 600 0"]);
}

#[test]
fn s91_a_cut_of_the_machine_leaves_an_image_on_a_disk_as_of_a_sync() {
    let lines = [
        "root write a/f 100 3000 5",
        "root create file n 640 0",
        "root append n 9000 3",
        "root rename n a/f replace",
        "root truncate b/p 10",
        "root unlink b/h",
        "root create dir b/h 700 0",
    ];
    for (meanwhile, bound) in [(false, 1 << 30), (true, 1 << 30), (false, 8 * 4096)] {
        let cuts = PowerLossCuts { meanwhile, bound, sync_one_in: 2, cuts: 12, ..PowerLossCuts::default() };
        let found = cuts.run(&base(), &ops(&lines));
        assert!(found.images > 20, "{}", found.images);
        assert!(found.violations.is_empty(), "{}", found.violations[0]);
    }
}
