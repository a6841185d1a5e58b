//! Nameless-write devices with a volume over them. Power cuts interrupt migrations at every command.

use crate::common::{NAMELESS, NAMELESS_DEVICES, many_faults, many_images, sampled, share_of, torture};
use frit_torture::block::case::TortureMode;
use frit_torture::block::options::CampaignOptions;

/// Returns the stacks under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    NAMELESS.iter().map(|name| ((*name).to_owned(), 8_000)).collect()
}

#[test]
fn distinct_images_of_nameless_devices_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(24_000), "{distinct}");
}

/// Devices without a volume, through their virtual address space: after a power cut, the whole space is as
/// of one flush.
#[test]
fn distinct_images_of_devices_with_atomic_flushes_hold() {
    let devices: Vec<(String, usize)> = NAMELESS_DEVICES.map(|name| (name.to_owned(), 4_000)).into();
    let distinct = many_images(&devices);
    assert!(distinct >= share_of(8_000), "{distinct}");
    let modes = [TortureMode::Errors, TortureMode::Damage, TortureMode::Wear];
    let (struck, seen) = many_faults(&devices, &modes);
    assert!(struck > 50 && seen * 8 > struck, "{struck} {seen}");
}

/// Failing and worn-out media, and damage in them: no acknowledged data is lost, and damage is
/// reported.
#[test]
fn failing_and_damaged_nameless_devices_cost_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 125 && seen * 4 > struck, "{struck} {seen}");
}

/// Wear leveling starts a victim when a drained block is erased for a write that waits. Garbage collection
/// once finished this victim with its valid pages, where a program unit has several pages.
#[test]
fn a_victim_of_wear_leveling_is_moved_before_it_is_erased() {
    let options = CampaignOptions {
        seed: 2,
        modes: vec![TortureMode::Cuts, TortureMode::Files, TortureMode::Cuts, TortureMode::Exhaustive],
        images: Some(2_000),
        items: Some(40),
        ..CampaignOptions::default()
    };
    assert!(torture("nameless-units", sampled(options)).violations.is_empty());
}
