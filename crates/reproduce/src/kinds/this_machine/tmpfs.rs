//! Files in memory for measurements.

use super::memory_size;
use frit_core::size;
use rustix::fs::{FallocateFlags, fallocate};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Mount point of a tmpfs on Linux.
const TMPFS: &str = "/dev/shm";

/// Returns the directory of a tmpfs, or the directory for temporary files if there is none.
pub(crate) fn tmpfs() -> PathBuf {
    if Path::new(TMPFS).is_dir() { PathBuf::from(TMPFS) } else { std::env::temp_dir() }
}

/// Returns the reason if the machine has less unused memory than a measurement needs.
pub(crate) fn memory_missing(needed: u64) -> Option<String> {
    let available = memory_size("MemAvailable")?;
    let why = || {
        let of = |bytes: u64| size::format(bytes >> 20 << 20);
        format!("it needs {} of memory, and {} are available", of(needed), of(available))
    };
    (available < needed).then(why)
}

/// Creates a file on tmpfs with allocated memory, without a name after it is dropped. The error is the
/// reason why that is not possible.
pub(crate) fn new_file(bytes: u64) -> Result<NamedTempFile, String> {
    let place = tmpfs();
    let words = |e: std::io::Error| format!("a file of {} in {}: {e}", size::format(bytes), place.display());
    let file = tempfile::Builder::new().prefix("frit-measured").tempfile_in(&place).map_err(words)?;
    // A mapped file without memory would end the program at the access that finds none.
    fallocate(file.as_file(), FallocateFlags::empty(), 0, bytes).map_err(|e| words(e.into()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_memory_and_disappear() {
        let file = new_file(1 << 20).unwrap();
        let path = file.path().to_owned();
        assert_eq!(path.metadata().unwrap().len(), 1 << 20);
        drop(file);
        assert!(!path.exists());
        assert_eq!(memory_missing(0), None);
        assert!(memory_missing(u64::MAX).is_none_or(|why| why.contains("are available")));
    }
}
