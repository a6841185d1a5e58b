//! FTLs with mapping units of a page and below, with and without a merge buffer. Power cuts tear each
//! page of a program unit in its own way.

use crate::common::{FTLS, many_faults, many_images, share_of};
use frit_torture::block::case::TortureMode;

/// Returns the stacks under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    FTLS.iter().map(|name| ((*name).to_owned(), 8_000)).collect()
}

#[test]
fn distinct_images_of_ftls_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(24_000), "{distinct}");
}

/// Failing and worn-out media, and damage in them: no acknowledged data is lost, and damage is
/// reported.
#[test]
fn failing_and_damaged_ftls_cost_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 500 && seen * 4 > struck, "{struck} {seen}");
}
