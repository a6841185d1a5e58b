//! Composers with a table of their own, over a disk and behind a cache.

use crate::common::{many_faults, many_images, share_of};
use frit_torture::block::case::TortureMode;

/// Returns the stacks under torture, and the number of distinct images that each must give.
fn stacks() -> Vec<(String, usize)> {
    [
        ("thin", 6_000),
        ("cache-thin", 4_000),
        ("thin-cache", 6_000),
        ("compress", 6_000),
        ("cache-compress", 4_000),
        ("segments", 6_000),
    ]
    .map(|(name, images)| (name.to_owned(), images))
    .to_vec()
}

#[test]
fn distinct_images_of_composers_hold() {
    let distinct = many_images(&stacks());
    // The recovery of thin reads its table only, so it tells few images apart.
    assert!(distinct >= share_of(16_000), "{distinct}");
}

/// A failing disk, and damage: the client receives an error, and no acknowledged data is lost.
#[test]
fn failing_and_damaged_devices_of_composers_cost_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&stacks(), &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 250 && seen * 4 > struck);
}
