//! Small stacks of every kind, and what the tests share.

#![allow(dead_code, clippy::expect_used, clippy::print_stdout)]

use frit_stack::Stack;
use frit_torture::campaign::Report;
use frit_torture::scale;
use frit_torture::subject::StackSubject;

/// The stacks in `stacks/`, fast ones first.
pub(crate) const STACKS: [&str; 7] =
    ["none-512", "none-4k", "cache-1k", "cache-4k", "level-2k", "both-4k", "level-16k"];

/// The builtin stack of a disk behind a cache, changed: names, and overrides.
pub(crate) const HALO: &str = "halo-small";

/// Half a region of the disk: quick to look at.
const HALF: &str = "media.disk.bytes=640K";

/// Variants of [`HALO`] by name: its modes. Policies and levelers are variants by their own names.
const MODES: [(&str, &str); 8] = [
    ("halo", ""),
    ("halo-half", HALF),
    ("cleaning", "cache.dirty_low=0 cache.flying=0.2"),
    ("read-caching", "cache.read_caching=true"),
    ("write-through", "cache.mode=write-through"),
    ("write-around", "cache.mode=write-around cache.dirty_low=0"),
    ("around-read-caching", "cache.mode=write-around cache.read_caching=true"),
    ("bypass", "cache.bypass_bytes=8K cache.policy=lru"),
];

fn path(name: &str) -> String {
    format!("{}/stacks/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn subject(name: &str) -> StackSubject {
    let Some(sets) = sets_of(name) else {
        let path = path(name);
        return StackSubject::new(move |sets| Stack::load(&path, sets)).expect("a stack of these tests");
    };
    let given = Stack::load(HALO, &sets).expect("a variant of these tests");
    let small: Vec<String> = scale::overrides(&given).into_iter().chain(sets).collect();
    StackSubject::new(move |more| Stack::load(HALO, &small.iter().chain(more).cloned().collect::<Vec<_>>()))
        .expect("a variant of these tests")
}

/// The overrides of a variant of [`HALO`].
fn sets_of(name: &str) -> Option<Vec<String>> {
    let text = if let Some(policy) = name.strip_prefix("policy-") {
        format!("{HALF} cache.policy={policy} cache.flying=0")
    } else if let Some(leveler) = name.strip_prefix("leveler-") {
        format!("{HALF} cache.wear_leveling={leveler}")
    } else {
        let (_, sets) = MODES.iter().find(|(n, _)| *n == name)?;
        if name == "halo" { (*sets).to_owned() } else { format!("{HALF} {sets}") }
    };
    Some(text.split_whitespace().map(str::to_owned).collect())
}

/// Says what does not hold, with the line that reproduces it.
pub(crate) fn complain(name: &str, r: &Report) {
    let stack = match sets_of(name) {
        Some(sets) => sets.iter().fold(HALO.to_owned(), |s, set| format!("{s} --set {set}")),
        None => format!("crates/torture/stacks/{name}.toml --full-size"),
    };
    for f in r.violations.iter().take(8) {
        println!("{name}: {:?}: {}", f.violation.oracle, f.violation.what);
        println!("  frit torture --stack {stack} --seed 1 --replay {}", f.case);
    }
}
