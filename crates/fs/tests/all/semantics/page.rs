//! Verifies that each promise of the page has a test, and each such test a promise.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Locations of tests of promises, relative to the root of the repository.
const PLACES: [&str; 6] = [
    "crates/fs/tests/all/semantics",
    "crates/fs/tests/all/pool",
    "crates/torture/tests/all/fssemantics.rs",
    "crates/serve/tests/foreign/mount",
    "crates/serve/tests/foreign/pool",
    "crates/cli/tests/all/mount.rs",
];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(at: PathBuf) -> Vec<PathBuf> {
    if at.is_file() {
        return vec![at];
    }
    std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Parses the number at the start of a text; returns it with the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[test]
fn every_promise_has_a_test_and_every_test_a_promise() {
    let page = read_to_string(sources().join("docs/reference/semantics.md")).unwrap();
    let lines = page.lines().filter_map(|line| number(line.strip_prefix("- **S")?));
    let mut promises: Vec<u32> = lines
        .map(|(n, rest)| (n, rest.starts_with("** ")))
        .inspect(|(n, ok)| {
            assert!(ok, "S{n} is not written as `- **S{n}** …`");
        })
        .map(|(n, _)| n)
        .collect();
    // Later promises are listed where they belong, with the next free numbers.
    promises.sort_unstable();
    assert!(promises.len() > 50 && promises.iter().copied().eq(1..=promises.len() as u32), "{promises:?}");
    let mut tests: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for path in PLACES.into_iter().flat_map(|place| files(sources().join(place))) {
        let text = read_to_string(&path).unwrap();
        let mut before = "";
        for line in text.lines() {
            let name = line.strip_prefix("fn s").filter(|_| before == "#[test]");
            if let Some((n, rest)) = name.and_then(number).filter(|(_, rest)| rest.starts_with('_')) {
                tests.entry(n).or_default().push(format!("{}: s{n}{rest}", path.display()));
            }
            before = line;
        }
    }
    for promise in &promises {
        assert!(tests.contains_key(promise), "S{promise} has no test");
    }
    for (n, names) in tests {
        assert!(promises.contains(&n), "there is no S{n}: {names:?}");
        assert_eq!(names.len(), 1, "S{n} has several tests: {names:?}");
    }
}
