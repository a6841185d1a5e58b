//! Planted bugs, each of which the property test finds.

use super::Bench;
use super::model::{Model, actions};
use frit_compose::planted::MirrorBug;
use frit_core::Sink;
use frit_core::planted::{self, Found};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use strum::IntoEnumIterator;

/// Number of sequences after which a bug counts as missed.
const MOST: u64 = 20_000;

/// Returns `true` if the sequence of actions of a seed fails.
fn fails(seed: u64) -> bool {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let actions = actions(40).new_tree(&mut runner).unwrap().current();
    Model::new(Bench::new(&[1, 1]), Sink::untimed()).run(&actions).is_err()
}

#[test]
fn every_planted_bug_is_found() {
    planted::silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/mirror/planted.csv"));
    // Without virtual time, all commands take effect in the order of the program: only the
    // torture finds what does not wait.
    for bug in MirrorBug::iter().filter(|bug| *bug != MirrorBug::DataBeforeMark) {
        let sequences = (1..=MOST).map(|seed| (format!("sequence {seed}"), seed));
        found.search(bug, sequences, |seed| fails(*seed).then_some("model"));
    }
    found.finish();
}
