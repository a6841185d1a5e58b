//! Tests of a device mounted as a file, through the kernel. Skipped if mounting is not possible.

use crate::common::{stamped, version};
use frit_core::{HintKind, Hints};
use frit_serve::fuse::{BlockExport, FILE_NAME, mounts_at, volumes_at};
use frit_serve::hints::{HintOptions, HintSource};
use frit_serve::testing::MemoryBackend;
use frit_serve::{Device, DeviceOptions};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const BYTES: usize = 8 << 20;

/// A mounted memory backend. Dropping it unmounts it, even after a failure.
struct Mounted {
    _dir: tempfile::TempDir,
    at: PathBuf,
    device: Arc<Device>,
    export: Option<BlockExport>,
}

impl Mounted {
    /// Mounts a memory backend. Returns `None` if this machine cannot mount.
    fn new(memory: MemoryBackend, read_only: bool) -> Option<Mounted> {
        Mounted::with(memory, DeviceOptions { read_only, ..DeviceOptions::default() })
    }

    fn with(memory: MemoryBackend, options: DeviceOptions) -> Option<Mounted> {
        if !rustix::process::geteuid().is_root() || !std::path::Path::new("/dev/fuse").exists() {
            eprintln!("skipped: mounting needs root and /dev/fuse");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap().join("mnt");
        std::fs::create_dir(&at).unwrap();
        let device = Device::new(Box::new(memory), options);
        let export = Some(BlockExport::start(&device, &at).unwrap());
        Some(Mounted { _dir: dir, at, device, export })
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.file()).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.at.join(FILE_NAME)
    }

    fn stop(mut self) {
        self.export.take().unwrap().stop(Duration::from_secs(5)).unwrap();
        assert_eq!(mounts_at(&self.at).unwrap(), 0);
    }
}

fn error<T>(result: io::Result<T>) -> i32 {
    result.map(drop).unwrap_err().raw_os_error().unwrap()
}

fn code(errno: rustix::io::Errno) -> i32 {
    errno.raw_os_error()
}

#[test]
fn the_file_is_the_device() {
    let Some(m) = Mounted::new(MemoryBackend::new(BYTES), false) else { return };
    let names: Vec<_> = std::fs::read_dir(&m.at).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, [FILE_NAME]);
    assert_eq!((mounts_at(&m.at).unwrap(), volumes_at(&m.at).unwrap()), (1, 1));
    assert_eq!(volumes_at(std::path::Path::new("/proc")).unwrap(), 0, "this mount is not a volume");
    let file = m.open();
    assert_eq!(file.metadata().unwrap().len(), BYTES as u64);
    // Large and unaligned. Data written through the file is read through the device, and vice
    // versa.
    let bytes: Vec<u8> = (0..3_000_001u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    file.write_all_at(&bytes, 12_345).unwrap();
    let mut back = vec![0; bytes.len()];
    let _ = m.device.lock().read(12_345, &mut back).unwrap();
    assert!(back == bytes, "the data written through the file");
    let _ = m.device.lock().write(4096, &stamped(1, 7), Hints::NONE).unwrap();
    let mut block = vec![0; 4096];
    file.read_exact_at(&mut block, 4096).unwrap();
    assert_eq!(version(1, &block), 7, "the page cache is bypassed");
    // The file ends like a block device.
    assert_eq!(error(file.write_at(&[1], BYTES as u64)), code(rustix::io::Errno::NOSPC));
    assert_eq!(file.write_at(&[1; 10], BYTES as u64 - 4).unwrap(), 4);
    assert_eq!(file.read_at(&mut block, BYTES as u64 - 4).unwrap(), 4);
    assert_eq!(error(file.set_len(5)), code(rustix::io::Errno::PERM));
    drop(file);
    m.stop();
}

#[test]
fn syncs_and_holes_arrive() {
    let memory = MemoryBackend::new(BYTES);
    let knobs = memory.knobs();
    let Some(m) = Mounted::new(memory, false) else { return };
    let file = m.open();
    file.write_all_at(&[9; 64 * 1024], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(knobs.flushes.load(Ordering::Relaxed), 1);
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, hole, 8192, 4096).unwrap();
    assert_eq!(seek(&file, SeekFrom::Hole(0)).unwrap(), 8192);
    assert_eq!(seek(&file, SeekFrom::Data(8192)).unwrap(), 12288);
    assert_eq!(seek(&file, SeekFrom::Data(64 * 1024)).unwrap_err(), rustix::io::Errno::NXIO);
    fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 100).unwrap();
    let mut start = [0; 101];
    file.read_exact_at(&mut start, 0).unwrap();
    assert_eq!((start[..100].iter().all(|&b| b == 0), start[100]), (true, 9));
    let counters = m.device.counters();
    assert_eq!((counters.flush.requests, counters.write_zeroes.requests), (1, 2));
    drop(file);
    m.stop();
}

#[test]
fn errors_have_their_numbers() {
    let memory = MemoryBackend::new(BYTES);
    let knobs = memory.knobs();
    let Some(m) = Mounted::new(memory, false) else { return };
    let file = m.open();
    knobs.damaged_page.store(3, Ordering::Relaxed);
    assert_eq!(error(file.read_exact_at(&mut [0; 4096], 3 * 4096)), code(rustix::io::Errno::IO));
    file.read_exact_at(&mut [0; 4096], 0).unwrap();
    knobs.broken.store(true, Ordering::Relaxed);
    assert_eq!(error(file.write_at(&[1; 512], 0)), code(rustix::io::Errno::IO));
    knobs.broken.store(false, Ordering::Relaxed);
    assert_eq!(error(file.write_at(&[1; 512], 0)), code(rustix::io::Errno::ROFS), "poisoned");
    assert_eq!(error(OpenOptions::new().write(true).open(m.file())), code(rustix::io::Errno::ROFS));
    drop(file);
    m.stop();
    let Some(m) = Mounted::new(MemoryBackend::new(BYTES), true) else { return };
    assert_eq!(error(OpenOptions::new().write(true).open(m.file())), code(rustix::io::Errno::ROFS));
    File::open(m.file()).unwrap().read_exact_at(&mut [0; 512], 0).unwrap();
    m.stop();
}

#[test]
fn many_writers_at_once_and_the_other_side() {
    let Some(m) = Mounted::new(MemoryBackend::new(BYTES), false) else { return };
    let blocks = BYTES as u64 / 4096;
    std::thread::scope(|s| {
        for writer in 0..4u64 {
            let (m, device) = (&m, &m.device);
            s.spawn(move || {
                let file = m.open();
                for round in 1..=3 {
                    for block in (writer..blocks).step_by(4) {
                        // Every other writer uses the device directly, like another protocol.
                        if writer % 2 == 0 {
                            file.write_all_at(&stamped(block, round), block * 4096).unwrap();
                        } else {
                            let bytes = stamped(block, round);
                            let _ = device.lock().write(block * 4096, &bytes, Hints::NONE).unwrap();
                        }
                    }
                    file.sync_all().unwrap();
                }
            });
        }
    });
    let file = m.open();
    let mut block = vec![0; 4096];
    for at in 0..blocks {
        file.read_exact_at(&mut block, at * 4096).unwrap();
        assert_eq!(version(at, &block), 3);
    }
    drop(file);
    m.stop();
}

#[test]
fn what_is_in_use_at_the_end_gets_errors_and_hangs_nobody() {
    let Some(mut m) = Mounted::new(MemoryBackend::new(BYTES), false) else { return };
    let file = m.open();
    let busy = m.export.take().unwrap().stop(Duration::from_millis(100)).unwrap_err();
    assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
    assert_eq!(mounts_at(&m.at).unwrap(), 0, "no new users have access");
    m.device.close().unwrap();
    assert_eq!(error(file.write_at(&[1; 512], 0)), code(rustix::io::Errno::IO), "the device is closed");
}

#[test]
fn a_mountpoint_is_an_empty_directory_that_is_there() {
    let Some(m) = Mounted::new(MemoryBackend::new(BYTES), false) else { return };
    let said = BlockExport::start(&m.device, &m.at).unwrap_err().to_string();
    assert!(said.contains("mounted there already"), "{said}");
    let said = BlockExport::start(&m.device, &m.at.join("no/such")).unwrap_err().to_string();
    assert!(said.contains("existing directory"), "{said}");
    assert!(!m.export.as_ref().unwrap().has_ended());
    frit_serve::fuse::unmount(&m.at, false).unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !m.export.as_ref().unwrap().has_ended() {
        assert!(std::time::Instant::now() < end, "the export ends when another process unmounts it");
        std::thread::sleep(Duration::from_millis(10));
    }
    m.stop();
}

#[test]
fn paced_replies_come_later_and_all_of_them() {
    let memory = MemoryBackend::new(BYTES);
    memory.knobs().pace_us.store(2_000, Ordering::Relaxed);
    let Some(m) = Mounted::new(memory, false) else { return };
    std::thread::scope(|s| {
        for i in 0..8u64 {
            let file = m.open();
            s.spawn(move || {
                let start = std::time::Instant::now();
                file.write_all_at(&stamped(i, 1), i * 4096).unwrap();
                let mut block = vec![0; 4096];
                file.read_exact_at(&mut block, i * 4096).unwrap();
                assert_eq!(version(i, &block), 1);
                file.sync_all().unwrap();
                assert!(start.elapsed() >= Duration::from_micros(6_000), "three replies, each 2 ms late");
            });
        }
    });
    m.stop();
}

#[test]
fn writes_have_the_hints_of_their_process() {
    let rule = "metadata-writer=metadata".parse().unwrap();
    let hints = HintOptions { processes: vec![rule], ..HintOptions::default() };
    let options = DeviceOptions { hints, ..DeviceOptions::default() };
    let Some(m) = Mounted::with(MemoryBackend::new(BYTES), options) else { return };
    let file = Arc::new(m.open());
    // The kernel reports the thread that writes, which has a name of its own.
    for name in ["metadata-writer", "another-writer"] {
        let file = Arc::clone(&file);
        let write = move || file.write_all_at(&[7; 8192], 4096).unwrap();
        std::thread::Builder::new().name(name.into()).spawn(write).unwrap().join().unwrap();
    }
    let marked = m.device.counters().hints.get(HintSource::Process, HintKind::Metadata);
    assert_eq!((marked.requests, marked.bytes), (1, 8192));
    drop(file);
    m.stop();
}
