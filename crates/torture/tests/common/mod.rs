//! Small stacks of every kind, and what the tests share.

#![allow(dead_code, clippy::expect_used, clippy::print_stdout)]

use frit_stack::Stack;
use frit_torture::campaign::Report;
use frit_torture::subject::StackSubject;

/// The stacks in `stacks/`, fast ones first.
pub(crate) const STACKS: [&str; 7] =
    ["none-512", "none-4k", "cache-1k", "cache-4k", "level-2k", "both-4k", "level-16k"];

fn path(name: &str) -> String {
    format!("{}/stacks/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn subject(name: &str) -> StackSubject {
    let path = path(name);
    StackSubject::new(move |sets| Stack::load(&path, sets)).expect("a stack of these tests")
}

/// Says what does not hold, with the line that reproduces it.
pub(crate) fn complain(name: &str, r: &Report) {
    for f in r.violations.iter().take(8) {
        println!("{name}: {:?}: {}", f.violation.oracle, f.violation.what);
        println!(
            "  frit torture --stack crates/torture/stacks/{name}.toml --full-size --seed 1 --replay {}",
            f.case
        );
    }
}
