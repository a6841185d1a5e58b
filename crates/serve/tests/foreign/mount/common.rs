//! Helpers of all tests through the kernel, for both kinds of storage of contents.

pub(crate) use frit_fs::{FileSystem, FormatOptions, Fs, Mapped};
use frit_serve::fuse::file_system::{IspAccess, Mount, MountOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Size of the file system in bytes.
pub(crate) const BYTES: u64 = 128 << 20;
/// Maximum number of inodes.
pub(crate) const INODES: u64 = 20_000;

/// A file system in memory.
pub(crate) type Memory = Fs<Mapped>;

/// Returns the number of inodes in use. A directory takes two, with its command file.
pub(crate) fn inodes(files: &Memory) -> u64 {
    let usage = files.usage().unwrap();
    usage.inodes - usage.inodes_free
}

/// A mounted file system in memory. Dropping it unmounts it, even after a failure.
pub(crate) struct Mounted {
    pub(crate) _dir: tempfile::TempDir,
    pub(crate) at: PathBuf,
    pub(crate) files: Arc<Memory>,
    pub(crate) mount: Option<Mount>,
}

impl Mounted {
    /// Mounts an empty file system. Returns `None` if this machine cannot mount.
    pub(crate) fn new(words: &str) -> Option<Mounted> {
        Self::of(words, super::memory)
    }

    /// Mounts the given file system.
    pub(crate) fn of(words: &str, files: impl FnOnce() -> Memory) -> Option<Mounted> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: mounting needs root and /dev/fuse");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap().join("mnt");
        std::fs::create_dir(&at).unwrap();
        // Other users need access as well.
        for path in [dir.path(), &at] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let files = Arc::new(files());
        let mut options = MountOptions::new("image of a test");
        options.writeback = words.contains("writeback");
        options.isp = match () {
            () if words.contains("isp-off") => IspAccess::Off,
            () if words.contains("isp-owner") => IspAccess::Owner,
            () => IspAccess::All,
        };
        let own = ["writeback", "isp-off", "isp-owner"];
        options.add(&own.iter().fold(words.to_owned(), |words, word| words.replace(word, ""))).unwrap();
        options.passthrough = super::POOL;
        if options.passthrough && options.writeback {
            let refused = Mount::start(&files, &at, &options).unwrap_err();
            assert!(refused.to_string().contains("--writeback"), "{refused}");
            return None;
        }
        let mount = Some(Mount::start(&files, &at, &options).unwrap());
        Some(Mounted { _dir: dir, at, files, mount })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    pub(crate) fn stop(mut self) -> Arc<Memory> {
        let mount = self.mount.take().unwrap();
        assert!(!mount.unmount(Duration::from_secs(5)).unwrap(), "the file system is not in use");
        mount.join().unwrap();
        Arc::clone(&self.files)
    }
}

/// Waits for something that happens soon.
#[track_caller]
pub(crate) fn wait_until(mut is_met: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_met() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the error number of a failed operation.
#[track_caller]
pub(crate) fn error<T>(result: io::Result<T>) -> i32 {
    result.map(drop).unwrap_err().raw_os_error().unwrap()
}

pub(crate) fn code(errno: rustix::io::Errno) -> i32 {
    errno.raw_os_error()
}

/// Waits for an asynchronous action of the kernel.
#[track_caller]
pub(crate) fn soon(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a shell script as a user, in a directory. Returns its output.
pub(crate) fn sh_as(uid: u32, dir: &Path, script: &str) -> String {
    use std::os::unix::process::CommandExt;
    let o = Command::new("sh").args(["-c", script]).current_dir(dir).uid(uid).gid(uid).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr)).trim().into()
}

/// Runs a check of the suite (scripts/fs/semantics.py) in a new directory of a mount.
#[track_caller]
pub(crate) fn conforms(m: &Mounted, check: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/fs/semantics.py");
    let at = m.path("checks");
    if !at.exists() {
        std::fs::create_dir(&at).unwrap();
    }
    let mut run = Command::new("timeout");
    run.args(["-k", "5", "120", "python3", "-B"]).arg(script).arg(&at).arg(check);
    let said = match run.output() {
        Ok(o) if o.status.code() != Some(127) => o,
        _ => {
            eprintln!("skipped: no python3, or no timeout");
            return;
        }
    };
    let words = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{check}: {words}");
    // The test runs as root, on a file system that supports everything, so no check may be skipped.
    assert!(!words.contains("skip: "), "{check}: {words}");
}
