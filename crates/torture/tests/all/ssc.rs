//! A disk behind a solid-state cache: deferred and synchronous durability, write-back and
//! write-through, and streams past the cache.

use crate::common::{SSCS, many_faults, many_images, share_of};
use frit_torture::block::case::TortureMode;

/// Returns the stacks under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    SSCS.iter().map(|name| ((*name).to_owned(), 8_000)).collect()
}

#[test]
fn distinct_images_of_solid_state_caches_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(24_000), "{distinct}");
}

/// Failing, damaged and worn-out media: no acknowledged data is lost, and damage is reported.
#[test]
fn failing_and_damaged_solid_state_caches_cost_nothing_that_was_acknowledged() {
    let modes = [TortureMode::Errors, TortureMode::Damage, TortureMode::Wear];
    let (struck, seen) = many_faults(&variants(), &modes);
    assert!(struck > 250 && seen * 8 > struck, "{struck} {seen}");
}

/// Requests as commands of the cache; a worn-out device becomes read-only and loses nothing, and damage is
/// reported.
#[test]
fn a_solid_state_cache_without_a_manager_holds() {
    let stack = [("ssc-alone".to_owned(), 2_000)];
    let distinct = many_images(&stack);
    assert!(distinct >= share_of(2_000), "{distinct}");
    let (struck, seen) = many_faults(&stack, &[TortureMode::Errors, TortureMode::Damage, TortureMode::Wear]);
    assert!(struck > 25 && seen * 8 > struck, "{struck} {seen}");
}
