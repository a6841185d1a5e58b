//! Planted bugs, each of which the property test finds.

use super::Bench;
use super::model::{Model, actions};
use frit_compose::planted::MirrorBug;
use frit_core::Sink;
use frit_core::planted::{self, PlantedBug};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use strum::IntoEnumIterator;

/// Number of sequences after which a bug counts as missed.
const MOST: usize = 20_000;

/// Returns the number of sequences of actions until one fails.
fn sequences_until_found() -> Option<usize> {
    let mut runner = TestRunner::deterministic();
    let strategy = actions(40);
    (1..=MOST).find(|_| {
        let actions = strategy.new_tree(&mut runner).unwrap().current();
        Model::new(Bench::new(&[1, 1]), Sink::untimed()).run(&actions).is_err()
    })
}

#[test]
fn every_planted_bug_is_found() {
    planted::silence_panics();
    let mut missed = Vec::new();
    for bug in MirrorBug::iter() {
        // Without virtual time, all commands take effect in the order of the program: only the
        // torture finds what does not wait.
        if bug == MirrorBug::DataBeforeMark {
            continue;
        }
        planted::set(Some(bug.id()));
        let found = sequences_until_found();
        planted::set(None);
        println!("{:<32} {found:?}", bug.name());
        missed.extend(found.is_none().then(|| bug.name()));
    }
    assert!(missed.is_empty(), "{missed:?}");
}
