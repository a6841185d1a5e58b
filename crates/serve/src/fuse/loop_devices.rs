//! List of loop devices, read from /sys and /proc. No function here accesses a file system that
//! may hang.

use super::mounts::mount_list;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A loop device in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopDevice {
    /// Path of the device file.
    pub device: PathBuf,
    /// Backing file, by the path with which it was opened.
    pub file: PathBuf,
}

/// Returns all loop devices in use.
///
/// # Errors
/// /sys cannot be read.
pub fn all() -> io::Result<Vec<LoopDevice>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().starts_with(b"loop") {
            continue;
        }
        // Unused devices have no such file, and a device that is being released may lose it.
        if let Ok(mut file) = std::fs::read(sys(Path::new(&name)).join("loop/backing_file")) {
            while file.last() == Some(&b'\n') {
                file.pop();
            }
            let file = OsString::from_vec(file).into();
            found.push(LoopDevice { device: Path::new("/dev").join(&name), file });
        }
    }
    found.sort_by(|a, b| a.device.cmp(&b.device));
    Ok(found)
}

/// Returns the loop devices with the given backing file.
///
/// # Errors
/// /sys cannot be read.
pub fn with_backing_file(file: &Path) -> io::Result<Vec<LoopDevice>> {
    Ok(all()?.into_iter().filter(|l| l.file == file).collect())
}

fn sys(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default())
}

/// Returns the mountpoints of a device and its partitions.
///
/// # Errors
/// /proc cannot be read.
pub fn mounted(device: &Path) -> io::Result<Vec<PathBuf>> {
    let list = mount_list()?;
    let mut ids = vec![std::fs::read_to_string(sys(device).join("dev"))?];
    for entry in std::fs::read_dir(sys(device))? {
        ids.extend(std::fs::read_to_string(entry?.path().join("dev")));
    }
    let name = device.as_os_str().as_encoded_bytes();
    let ours = |line: &&str| {
        let mut fields = line.split(' ');
        let id = fields.nth(2).unwrap_or("");
        // Btrfs has a device number of its own. There the device is identified by the mount source,
        // the second field after a dash.
        let source = line.split(" - ").nth(1).and_then(|rest| rest.split(' ').nth(1)).unwrap_or("");
        let source = source.as_bytes();
        let part = source.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"p"));
        part || ids.iter().any(|i| i.trim() == id)
    };
    Ok(list.lines().filter(ours).filter_map(|l| l.split(' ').nth(4)).map(unescape).collect())
}

/// Returns other holders of a device: device mappings, RAID.
///
/// # Errors
/// /sys cannot be read.
pub fn holders(device: &Path) -> io::Result<Vec<OsString>> {
    std::fs::read_dir(sys(device).join("holders"))?.map(|e| Ok(e?.file_name())).collect()
}

/// Decodes a path of /proc/self/mountinfo, in which blanks and other special characters are octal.
pub(super) fn unescape(path: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|_| first == b'\\').and_then(|c| std::str::from_utf8(c).ok());
        match code.and_then(|c| u8::from_str_radix(c, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_unescaped() {
        assert_eq!(unescape(r"/mnt/a\040b\134c"), Path::new(r"/mnt/a b\c"));
        assert_eq!(unescape(r"/mnt/a\9\04"), Path::new(r"/mnt/a\9\04"));
    }

    #[test]
    fn the_kernel_lists_loops_and_mounts() {
        let all = all().unwrap();
        assert!(all.iter().all(|l| l.device.starts_with("/dev")));
        assert!(with_backing_file(Path::new("/no/such/file")).unwrap().is_empty());
        assert_eq!(super::super::mounts_at(Path::new("/no/such/directory")).unwrap(), 0);
        assert!(super::super::mounts_at(Path::new("/proc")).unwrap() > 0);
    }
}
