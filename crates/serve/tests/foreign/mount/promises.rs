//! Tests of guarantees of `docs/reference/semantics.md` for the mount that the other modules do not
//! cover.

use super::{Mounted, code, error, sh_as, soon};
use frit_fs::{FileSystem, FormatOptions, Fs, Mapped, Medium};
use frit_serve::fuse::file_system::{Mount, MountOptions};
use rustix::fs::{FlockOperation, OFlags, XattrFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A script with two processes that lock ranges of one file. The kernel manages the locks.
const RANGES: &str = "
import fcntl, os
f = open('f', 'r+')
fcntl.lockf(f, fcntl.LOCK_EX, 10, 0)
child = os.fork()
if child == 0:
    g = open('f', 'r+')
    fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)
    try:
        fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)
        os._exit(1)
    except OSError:
        os._exit(0)
print('good' if os.waitpid(child, 0)[1] == 0 else 'bad')
";

#[test]
fn s84_locks_are_kept_by_the_kernel() {
    let Some(m) = Mounted::new("") else { return };
    let open = || File::options().create(true).truncate(false).write(true).open(m.path("f")).unwrap();
    let (one, other) = (open(), open());
    flock(&one, FlockOperation::LockExclusive).unwrap();
    assert_eq!(flock(&other, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
    drop(one);
    // A process that another test starts holds a copy of the descriptor until it executes its
    // program.
    soon("the lock is free", || flock(&other, FlockOperation::NonBlockingLockExclusive).is_ok());
    drop(other);
    fs::write(m._dir.path().join("ranges.py"), RANGES).unwrap();
    let said = sh_as(0, &m.at, "python3 ../ranges.py");
    assert!(said == "good" || said.contains("not found"), "{said}");
    m.stop();
}

#[test]
fn s85_a_read_from_the_page_cache_moves_no_access_time() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), vec![1; 8192]).unwrap();
    let ino = frit_fs::Ino(fs::metadata(m.path("f")).unwrap().ino());
    let atime = || m.files.attr(ino).unwrap().atime;
    let read = |flags| {
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(m.path("f")).unwrap();
        let mut room = vec![0; 8192];
        file.read_exact(&mut room).unwrap();
    };
    // The clock of the file system has a resolution of a few milliseconds.
    let wait = || std::thread::sleep(Duration::from_millis(30));
    let made = atime();
    wait();
    read(0);
    let cached = atime();
    wait();
    read(0);
    assert_eq!(atime(), cached);
    read(OFlags::DIRECT.bits() as i32);
    assert!(atime() > made, "a read that reaches the server updates it");
    m.stop();
}

#[test]
fn s86_what_is_not_done_is_refused() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), "").unwrap();
    let nameless = OpenOptions::new().write(true).custom_flags(OFlags::TMPFILE.bits() as i32).open(&m.at);
    assert_eq!(error(nameless), code(Errno::OPNOTSUPP));
    let acl =
        rustix::fs::setxattr(m.path("f"), "system.posix_acl_access", &[2, 0, 0, 0], XattrFlags::empty());
    assert_eq!(acl, Err(Errno::OPNOTSUPP));
    let flags = rustix::fs::ioctl_getflags(File::open(m.path("f")).unwrap());
    assert_eq!(flags.map(drop), Err(Errno::NOTTY));
    m.stop();
}

/// A medium that counts its syncs.
struct Counted(Mapped, AtomicU64);

impl Medium for Counted {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.0.read(at, into);
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.0.write(at, data);
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        self.0.write_data(at, data);
    }

    fn zero(&self, at: u64, len: u64) {
        self.0.zero(at, len);
    }

    fn fence(&self) {
        self.0.fence();
    }

    fn sync(&self) -> frit_fs::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.sync()
    }
}

#[test]
fn s87_fsync_reaches_the_medium_and_syncfs_does_not() {
    let Some(m) = Mounted::new("") else { return };
    let at = m._dir.path().canonicalize().unwrap().join("counted");
    fs::create_dir(&at).unwrap();
    let medium = Arc::new(Counted(Mapped::anonymous(4 << 20).unwrap(), AtomicU64::new(0)));
    let files = Arc::new(Fs::format(Arc::clone(&medium), FormatOptions::default()).unwrap());
    let mount = Mount::start(&files, &at, &MountOptions::new("counted")).unwrap();
    let synced = || medium.1.load(Ordering::Relaxed);
    let mut before = synced();
    let mut syncs = |what: &str, times| {
        assert_eq!(synced() - before, times, "{what}");
        before = synced();
    };
    let mut file = File::create(at.join("f")).unwrap();
    file.write_all(b"bytes").unwrap();
    syncs("a write", 0);
    file.sync_all().unwrap();
    syncs("fsync", 1);
    file.write_all(b"bytes").unwrap();
    file.sync_data().unwrap();
    syncs("fdatasync", 1);
    File::open(&at).unwrap().sync_all().unwrap();
    syncs("fsync of a directory", 1);
    rustix::fs::syncfs(&file).unwrap();
    syncs("syncfs", 0);
    drop(file);
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::SYNC.bits() as i32);
    let mut file = options.open(at.join("f")).unwrap();
    file.write_all(b"bytes").unwrap();
    syncs("a write with O_SYNC", 1);
    drop(file);
    assert!(!mount.unmount(Duration::from_secs(5)).unwrap());
    mount.join().unwrap();
    m.stop();
}

#[test]
fn s88_attributes_that_the_kernel_keeps_are_those_of_the_server() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), "bytes").unwrap();
    let ino = frit_fs::Ino(fs::metadata(m.path("f")).unwrap().ino());
    let same = || {
        let (seen, has) = (fs::metadata(m.path("f")).unwrap(), m.files.attr(ino).unwrap());
        (seen.len(), seen.mtime(), i64::from(seen.mtime_nsec() as i32), seen.nlink())
            == (has.size, has.mtime.split().0, i64::from(has.mtime.split().1), u64::from(has.links))
    };
    assert!(same());
    for i in 0..20 {
        let mut file = OpenOptions::new().append(true).open(m.path("f")).unwrap();
        file.write_all(b"more").unwrap();
        fs::hard_link(m.path("f"), m.path(&format!("{i}"))).unwrap();
        assert!(same(), "{i}");
    }
    soon("the size in the file system is updated", || m.files.attr(ino).unwrap().size == 85);
    m.stop();
}
