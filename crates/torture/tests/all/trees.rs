//! Stacks of several layers: power cuts between any two commands of any layer, and faults and damage
//! in each medium.

use crate::common::{TREES, many_faults, many_images, share_of};
use frit_torture::block::case::TortureMode;

/// Returns the trees, and the number of distinct images that each must give.
fn trees() -> Vec<(String, usize)> {
    TREES.map(|name| (name.to_owned(), 14_000)).into()
}

#[test]
fn distinct_images_of_trees_hold() {
    let distinct = many_images(&trees());
    assert!(distinct >= share_of(100_000), "{distinct}");
}

#[test]
fn faults_in_any_layer_cost_nothing_that_was_acknowledged() {
    let (struck, seen) =
        many_faults(&trees(), &[TortureMode::Errors, TortureMode::Damage, TortureMode::Wear]);
    assert!(struck > 750 && seen * 10 > struck, "{struck} struck, {seen} seen");
}
