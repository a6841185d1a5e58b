//! Validation of these tests of damage: bugs of this class are planted, and the tests find each.

use super::campaign::run;
use super::test_volume::{KINDS, ShutdownKind};
use crate::common;
use frit_core::planted::{self, BugId, Find, Found, PlantedBug};
use frit_layer::planted::{CacheBug, NtlBug, SscBug};
use frit_media::planted::Bug as MediaBug;
use frit_volume::planted::Bug;

/// Rounds of damage after which a bug counts as missed.
const EACH: u64 = 12;

/// A planted bug with its name, and the kind of volume that exposes it.
type Plant = (BugId, &'static str, &'static str);

fn plant(bug: impl PlantedBug, kind: &'static str) -> Plant {
    (bug.id(), bug.name(), kind)
}

fn plants() -> [Plant; 12] {
    [
        plant(CacheBug::HaltIgnored, "halo"),
        plant(CacheBug::HaltIgnored, "halo-start-gap"),
        plant(CacheBug::SummaryIgnored, "halo"),
        plant(CacheBug::RepairDiscards, "halo"),
        plant(SscBug::RepairDiscards, "ssc"),
        plant(NtlBug::SummaryIgnored, "ntl"),
        plant(Bug::GrowCopiesZeros, "halo"),
        plant(Bug::ExportWritesZeros, "ntl"),
        plant(NtlBug::DataUnchecked, "ntl"),
        plant(CacheBug::PcmDataUnchecked, "halo"),
        plant(MediaBug::NandDataUnchecked, "hfsl"),
        plant(Bug::LossesNotTold, "halo"),
    ]
}

#[test]
fn every_planted_bug_of_damage_is_found() {
    // A panic of a layer with a planted bug counts as a detection.
    planted::silence_panics();
    let noted = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/damage/planted.csv"));
    for (bug, bug_name, kind_name) in plants() {
        let kind = KINDS.iter().find(|k| k.name == kind_name).unwrap();
        let (dir, _) = common::place_in_memory();
        planted::set(Some(bug));
        let found = run(kind, ShutdownKind::Closed, 1, EACH, dir.path());
        planted::set(None);
        let case = format!("{EACH} damages of each kind of {kind_name}");
        let find = |_| Find { case, found_by: "damage".into(), searched: 1 };
        noted.note(&format!("{bug_name} on {kind_name}"), found.err().map(find));
    }
    noted.finish();
}
