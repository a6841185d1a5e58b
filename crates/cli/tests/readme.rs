//! The commands that the README shows do what it says.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

#[test]
fn commands_in_the_readme_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut ran = 0;
    for line in readme.lines().filter_map(|l| l.strip_prefix("target/release/frit ")) {
        let command = line.split('#').next().unwrap_or(line).trim();
        // It has tests of its own, and takes minutes without optimisation.
        if command.starts_with("reproduce") {
            continue;
        }
        let args = command.split_whitespace().map(|a| match a.ends_with(".html") {
            true => out.path().join(a).to_string_lossy().into_owned(),
            false => a.trim_matches('\'').to_owned(),
        });
        let run = Command::new(env!("CARGO_BIN_EXE_frit")).args(args).current_dir(&root).output().unwrap();
        assert!(run.status.success(), "{command}\n{}", String::from_utf8_lossy(&run.stderr));
        ran += 1;
    }
    assert!(ran >= 4, "{ran} commands in README.md");
    for link in readme.split("](").skip(1).filter_map(|l| l.split(')').next()) {
        assert!(root.join(link).exists(), "README.md links to {link}");
    }
}
