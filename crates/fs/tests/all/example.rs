//! Runs the examples of `docs/design/fs.md`.

#[path = "../../examples/files.rs"]
mod files;
#[path = "../../examples/mapped.rs"]
mod mapped;

#[test]
fn the_example_runs() {
    files::main().unwrap();
}

#[test]
fn the_example_of_maps_runs() {
    mapped::main().unwrap();
}
