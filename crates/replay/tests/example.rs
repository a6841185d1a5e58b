//! Runs the example of `docs/guide/run.md`.

#![allow(clippy::unwrap_used)]

#[path = "../examples/compare.rs"]
mod compare;

#[test]
fn the_example_runs() {
    compare::main().unwrap();
}
