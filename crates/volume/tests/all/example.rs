//! Runs the example of `docs/guide/volumes.md`.

#[path = "../../examples/embedded.rs"]
mod embedded;

#[test]
fn the_example_runs() {
    embedded::main().unwrap();
}
