//! Zoned devices: program units of one block and of several, zones over all units and over one, with and
//! without limits of open zones.

use crate::common::{ZONED, many_faults, many_images, share_of};
use frit_torture::block::case::TortureMode;

/// Returns the stacks under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    ZONED.iter().map(|name| ((*name).to_owned(), 8_000)).collect()
}

#[test]
fn distinct_images_of_zoned_devices_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(24_000), "{distinct}");
}

/// Failing, damaged and worn-out media: no acknowledged data is lost, and damage is reported.
#[test]
fn failing_and_damaged_zoned_devices_cost_nothing_that_was_acknowledged() {
    let modes = [TortureMode::Errors, TortureMode::Damage, TortureMode::Wear];
    let (struck, seen) = many_faults(&variants(), &modes);
    assert!(struck > 125 && seen * 8 > struck, "{struck} {seen}");
}
