//! Contents after any sequence of requests, crashes and failures.

use super::Bench;
use super::model::{Action, Model, actions};
use frit_core::Sink;
use frit_engine::{AnyScheduler, Event, InOrder};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn contents_are_those_of_a_plain_array(actions in actions(40)) {
        let done = Model::new(Bench::new(&[1, 1]), Sink::untimed()).run(&actions);
        prop_assert!(done.is_ok(), "{}", done.unwrap_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn engines_change_no_contents(actions in actions(40)) {
        let bench = Bench::new(&[100, 300]);
        let engine = Sink::new(InOrder::new(&bench.hardware));
        let done = Model::new(bench, engine).run(&actions);
        prop_assert!(done.is_ok(), "{}", done.unwrap_err());
        let bench = Bench::new(&[100, 300]);
        let fifo: AnyScheduler = "fifo".parse().unwrap();
        let engine = Sink::new(Event::new(&bench.hardware, fifo));
        let done = Model::new(bench, engine).run(&actions);
        prop_assert!(done.is_ok(), "{}", done.unwrap_err());
    }
}

#[test]
fn a_side_that_comes_back_after_a_crash_gets_what_only_it_had_marked() {
    let done = Model::new(Bench::new(&[1, 1]), Sink::untimed()).run(&[
        Action::Write(0, 1),
        Action::Flush,
        Action::Kill(1),
        Action::Write(60, 4),
        Action::Flush,
        Action::Crash { within: None, revive: true, seed: 5 },
        Action::StepAll,
        Action::Kill(0),
        Action::Read(0, 120),
    ]);
    assert_eq!(done, Ok(()));
}
