//! Runs the examples of `docs/design/fs.md`.

#[path = "../../examples/embedded.rs"]
mod embedded;
#[path = "../../examples/mapped.rs"]
mod mapped;

#[test]
fn the_example_runs() {
    embedded::main().unwrap();
}

#[test]
fn the_example_of_maps_runs() {
    mapped::main().unwrap();
}
