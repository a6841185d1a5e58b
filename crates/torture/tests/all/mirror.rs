//! A mirror of two disks, alone and behind a cache, in every mode.

use crate::common::{HALO_MIRROR, many_faults, many_images};
use frit_torture::block::case::TortureMode;

/// Returns the variants under torture. A mirror reads the same metadata from most of its images, so
/// the number of distinct ones is not a goal.
fn variants() -> Vec<(String, usize)> {
    ["mirror", HALO_MIRROR].map(|name| (name.to_owned(), 1)).into()
}

#[test]
fn images_of_mirrors_hold() {
    let distinct = many_images(&variants());
    assert!(distinct > 500, "{distinct}");
}

/// A disk that fails for a while: no client sees an error, and the disk gets what it missed.
#[test]
fn disks_that_fail_cost_nothing() {
    let modes = [TortureMode::Errors, TortureMode::Damage, TortureMode::Wear];
    let (alone, behind_a_cache) = (&variants()[..1], &variants()[1..]);
    let (struck, seen) = many_faults(alone, &modes);
    assert!(struck > 7 && seen == 0, "{struck} {seen}");
    let (struck, _) = many_faults(behind_a_cache, &modes);
    assert!(struck > 50, "{struck}");
}
