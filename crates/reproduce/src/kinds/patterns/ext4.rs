//! A file on EXT4 without a journal, on a loop device over a file on tmpfs.

use crate::kinds::this_machine::new_file;
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Space for a file system of EXT4 beside a file: its tables, and unused space for allocation.
const TABLES: u64 = 32 << 20;

/// Size of the file system for a file of this size.
pub(super) fn device_bytes(file: u64) -> u64 {
    (file + file / 4 + TABLES) / 4096 * 4096
}

/// Runs a program. The error is its message.
fn run(name: &str, arguments: &[&OsStr]) -> Result<(), String> {
    let out = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    let out = out.map_err(|e| format!("{name} cannot be run: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    Err(format!("{name}: {said}"))
}

/// A mount, which loses its place in the directory tree when this is dropped.
struct MountGuard<'p>(&'p Path);

impl Drop for MountGuard<'_> {
    fn drop(&mut self) {
        // A failure cannot be handled: the mount stays, and `findmnt` shows it.
        let _ = run("umount", &["--lazy".as_ref(), self.0.as_os_str()]);
    }
}

/// Creates a file on a new EXT4. Neither the file system nor its loop device has a name any more: the
/// kernel releases both when the file is closed, also if the program is killed. The error is the reason
/// why that is not possible.
pub(super) fn file(bytes: u64) -> Result<File, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("EXT4 needs root, for a loop device and a mount".into());
    }
    let device = new_file(device_bytes(bytes))?;
    // Blocks of 4 KiB, as on any larger disk. Initialization in the background would take time of the
    // measurement.
    let options =
        ["-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0"].map(OsStr::new);
    run("mkfs.ext4", &[&options[..], &[device.path().as_os_str()]].concat())?;
    let words = |e: std::io::Error| format!("a file on EXT4: {e}");
    let place = tempfile::Builder::new().prefix("frit-ext4").tempdir().map_err(words)?;
    let options = ["-t", "ext4", "-o", "loop"].map(OsStr::new);
    run("mount", &[&options[..], &[device.path().as_os_str(), place.path().as_os_str()]].concat())?;
    let _mounted = MountGuard(place.path());
    File::options().read(true).write(true).create_new(true).open(place.path().join("file")).map_err(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_of_ext4_leaves_nothing() {
        let file = match file(1 << 20) {
            Ok(file) => file,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        file.write_all_at(b"contents", 5000).unwrap();
        let mut read = [0; 8];
        file.read_exact_at(&mut read, 5000).unwrap();
        assert_eq!(&read, b"contents");
        let magic = rustix::fs::fstatfs(&file).unwrap().f_type;
        assert_eq!(magic, 0xef53, "EXT4_SUPER_MAGIC of linux/magic.h");
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains("frit-ext4"), "{mounts}");
    }
}
