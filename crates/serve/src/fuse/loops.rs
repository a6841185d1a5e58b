//! Loop devices, as /sys and /proc show them: nothing here asks a file system that may hang.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A loop device that is in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// Its device file.
    pub device: PathBuf,
    /// The file behind it, as it was named when it was opened.
    pub file: PathBuf,
}

/// All loop devices that are in use.
///
/// # Errors
/// No /sys.
pub fn all() -> io::Result<Vec<Loop>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().starts_with(b"loop") {
            continue;
        }
        // A device that is free has no such file; one that is being released may lose it.
        if let Ok(mut file) = std::fs::read(sys(Path::new(&name)).join("loop/backing_file")) {
            while file.last() == Some(&b'\n') {
                file.pop();
            }
            let file = OsString::from_vec(file).into();
            found.push(Loop { device: Path::new("/dev").join(&name), file });
        }
    }
    found.sort_by(|a, b| a.device.cmp(&b.device));
    Ok(found)
}

/// Those over one file.
///
/// # Errors
/// No /sys.
pub fn over(file: &Path) -> io::Result<Vec<Loop>> {
    Ok(all()?.into_iter().filter(|l| l.file == file).collect())
}

fn sys(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default())
}

/// Where a device, or a partition of it, is mounted.
///
/// # Errors
/// No /proc.
pub fn mounted(device: &Path) -> io::Result<Vec<PathBuf>> {
    let list = std::fs::read_to_string("/proc/self/mountinfo")?;
    let mut ids = vec![std::fs::read_to_string(sys(device).join("dev"))?];
    for entry in std::fs::read_dir(sys(device))? {
        ids.extend(std::fs::read_to_string(entry?.path().join("dev")));
    }
    let name = device.as_os_str().as_encoded_bytes();
    let ours = |line: &&str| {
        let mut fields = line.split(' ');
        let id = fields.nth(2).unwrap_or("");
        // Btrfs has a number of its own: its device is named as the source, after a dash.
        let source = line.split(" - ").nth(1).and_then(|rest| rest.split(' ').nth(1)).unwrap_or("");
        let source = source.as_bytes();
        let part = source.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"p"));
        part || ids.iter().any(|i| i.trim() == id)
    };
    Ok(list.lines().filter(ours).filter_map(|l| l.split(' ').nth(4)).map(unescape).collect())
}

/// What else holds a device: mappings, RAID.
///
/// # Errors
/// No /sys.
pub fn holders(device: &Path) -> io::Result<Vec<OsString>> {
    std::fs::read_dir(sys(device).join("holders"))?.map(|e| Ok(e?.file_name())).collect()
}

/// A path of /proc/self/mountinfo, where blanks and such are octal.
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
        assert!(over(Path::new("/no/such/file")).unwrap().is_empty());
        assert_eq!(super::super::mounts_at(Path::new("/no/such/directory")).unwrap(), 0);
        assert!(super::super::mounts_at(Path::new("/proc")).unwrap() > 0);
    }
}
