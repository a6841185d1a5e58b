//! Validation of the test harness `all/damage`: bugs of this class are planted, and the harness
//! finds each.
//!
//! This program is apart, because a planted bug affects its whole process.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "all/damage/access_paths.rs"]
mod access_paths;
#[path = "all/damage/campaign.rs"]
mod campaign;
mod common;
#[path = "all/damage/damage_kind.rs"]
mod damage_kind;
#[path = "all/damage/test_volume.rs"]
mod test_volume;

use campaign::run;
use frit_core::planted::{self, Bug};
use test_volume::{KINDS, ShutdownKind};

/// Rounds of damage after which a bug counts as missed.
const EACH: u64 = 12;

/// The planted bugs, each with the kind of volume that exposes it.
const BUGS: [(Bug, &str); 11] = [
    (Bug::HaltIgnored, "halo"),
    (Bug::HaltIgnored, "halo-start-gap"),
    (Bug::SummaryIgnored, "halo"),
    (Bug::RepairDiscards, "halo"),
    (Bug::NtlSummaryIgnored, "ntl"),
    (Bug::GrowCopiesZeros, "halo"),
    (Bug::ExportWritesZeros, "ntl"),
    (Bug::NtlDataUnchecked, "ntl"),
    (Bug::PcmDataUnchecked, "halo"),
    (Bug::NandDataUnchecked, "hfsl"),
    (Bug::LossesNotTold, "halo"),
];

#[test]
fn every_planted_bug_of_damage_is_found() {
    // A panic of a layer with a planted bug counts as a detection.
    planted::silence_panics();
    let mut missed = Vec::new();
    for (bug, name) in BUGS {
        let kind = KINDS.iter().find(|k| k.name == name).unwrap();
        let (dir, _) = common::place_in_memory();
        planted::set(Some(bug));
        let found = run(kind, ShutdownKind::Closed, 1, EACH, dir.path());
        planted::set(None);
        match found {
            Err(what) => println!("{bug:?} on {name}: {what}"),
            Ok(_) => missed.push((bug, name)),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
