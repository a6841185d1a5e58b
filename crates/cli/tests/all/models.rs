//! Runs of the independent models in `scripts/models`.

use super::direct::short_or_long;
use std::path::PathBuf;
use std::process::Command;

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the output of a command that has to succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let out = command.current_dir(root()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Returns every nth case, and all with `LONG=1`, which `make explore` sets.
pub(crate) fn one_in<T>(n: usize, cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().step_by(short_or_long(n, 1))
}

/// Returns `true` if the model can run, or reports that the test is skipped.
pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: no python3");
    }
    found
}

/// Returns a file with the text of a compressed trace: the model needs no program to read it.
pub(crate) fn decompressed(trace: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::with_suffix(".txt").unwrap();
    let packed = std::fs::File::open(root().join(trace)).unwrap();
    zstd::stream::copy_decode(packed, file.as_file_mut()).unwrap();
    file
}
