//! A server with a few files that behave in their own ways.

use frit_fuse::{
    Config, Connection, ConnectionError, ConnectionOptions, Entry, Errno, FileAttr, FileHandle, FileType,
    FopenFlags, INodeNo, KernelConfig, Mountpoint, OpenFlags, Opened, Read, ReplyAttr, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyRead, ReplyWrite, Request, Rings, Server, SetAttr, Write,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Names of variables in the environment of a server.
pub(crate) const DIRECTORY: &str = "FRIT_FUSE_TEST_DIRECTORY";
pub(crate) const TRANSPORT: &str = "FRIT_FUSE_TEST_TRANSPORT";
/// Size of the file `data`.
pub(crate) const DATA_BYTES: usize = 4 << 20;

/// Files of the root, with inodes from 2 on. `data` keeps bytes. A read of `late` waits for a write
/// to `release`, and returns its bytes. A read of `lost` gets no reply, and one of `never` waits
/// forever. `stats` has counters.
const FILES: [&str; 6] = ["data", "late", "release", "lost", "never", "stats"];
const FIRST: u64 = 2;

#[derive(Debug)]
struct TestServer {
    data: Mutex<Vec<u8>>,
    late: Mutex<Vec<ReplyRead>>,
    never: Mutex<HashMap<u64, ReplyRead>>,
    interrupted: AtomicU64,
    forgotten: AtomicU64,
    rings: AtomicU64,
}

fn attr(ino: u64) -> Option<FileAttr> {
    let (mode, size) = match ino {
        1 => (0o040_755, 0),
        FIRST => (0o100_666, DATA_BYTES as u64),
        _ if ino < FIRST + FILES.len() as u64 => (0o100_666, 0),
        _ => return None,
    };
    Some(FileAttr { ino, mode, size, nlink: 1, blksize: 4096, ..FileAttr::default() })
}

impl TestServer {
    fn stats(&self) -> String {
        let waiting = self.late.lock().unwrap().len() + self.never.lock().unwrap().len();
        let count = |of: &AtomicU64| of.load(Ordering::SeqCst);
        format!(
            "waiting {waiting}\ninterrupted {}\nforgotten {}\nrings {}\n",
            count(&self.interrupted),
            count(&self.forgotten),
            count(&self.rings)
        )
    }
}

impl Server for TestServer {
    fn negotiate(&self, _: &mut KernelConfig) -> std::io::Result<()> {
        Ok(())
    }

    fn lookup(&self, _: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = FILES.iter().position(|file| name == *file).filter(|_| dir == INodeNo::ROOT);
        match found.and_then(|i| attr(FIRST + i as u64)) {
            Some(attr) => {
                let (attr_ttl, name_ttl) = (Duration::ZERO, Duration::from_secs(60));
                let node = INodeNo(attr.ino);
                reply.entry(&Entry { node, attr, generation: 0, attr_ttl, name_ttl });
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn forget(&self, _: INodeNo, _: u64) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }

    fn interrupt(&self, unique: u64) {
        if let Some(reply) = self.never.lock().unwrap().remove(&unique) {
            self.interrupted.fetch_add(1, Ordering::SeqCst);
            reply.error(Errno::EINTR);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, reply: ReplyAttr) {
        match attr(ino.0) {
            Some(attr) => reply.attr(Duration::ZERO, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(&self, _: &Request, ino: INodeNo, _: &SetAttr, reply: ReplyAttr) {
        match attr(ino.0) {
            Some(attr) => reply.attr(Duration::ZERO, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(Opened::Requests(FileHandle(0), flags));
    }

    fn read(&self, request: &Request, ino: INodeNo, read: &Read, reply: ReplyRead) {
        let file = FILES.get((ino.0 - FIRST) as usize).copied();
        match (file, read.at) {
            (Some("data"), at) => {
                let data = self.data.lock().unwrap();
                reply.fill(|buffer| {
                    let from = &data[(at as usize).min(data.len())..];
                    let len = from.len().min(buffer.len());
                    buffer[..len].copy_from_slice(&from[..len]);
                    Ok(len)
                });
            }
            (Some("late"), 0) => {
                // Meanwhile more requests come than the queue has entries.
                std::thread::sleep(Duration::from_millis(2));
                self.late.lock().unwrap().push(reply);
            }
            (Some("lost"), _) => drop(reply),
            (Some("never"), _) => drop(self.never.lock().unwrap().insert(request.unique(), reply)),
            (Some("stats"), at) => {
                let stats = self.stats();
                reply.data(&stats.as_bytes()[(at as usize).min(stats.len())..]);
            }
            // The end of a file that has something at its beginning only.
            _ => reply.data(&[]),
        }
    }

    fn write(&self, _: &Request, ino: INodeNo, write: &Write<'_>, reply: ReplyWrite) {
        match FILES.get((ino.0 - FIRST) as usize).copied() {
            Some("data") => {
                let at = write.at as usize;
                self.data.lock().unwrap()[at..at + write.data.len()].copy_from_slice(write.data);
            }
            Some("release") => {
                let late = std::mem::take(&mut *self.late.lock().unwrap());
                let data = write.data.to_vec();
                // By another thread, as late replies are.
                std::thread::spawn(move || late.into_iter().for_each(|reply| reply.data(&data)));
            }
            _ => return reply.error(Errno::EBADF),
        }
        reply.written(write.data.len() as u32);
    }

    fn flush(&self, _: &Request, _: INodeNo, reply: ReplyEmpty) {
        reply.ok();
    }

    fn opendir(&self, _: &Request, _: INodeNo, reply: ReplyOpen) {
        reply.opened(Opened::Requests(FileHandle(0), FopenFlags::empty()));
    }

    fn readdir(&self, _: &Request, _: INodeNo, from: u64, mut reply: ReplyDirectory) {
        for (i, name) in FILES.iter().enumerate().skip(from as usize) {
            if reply.add(FIRST + i as u64, i as u64 + 1, FileType::RegularFile, name.as_bytes()) {
                break;
            }
        }
        reply.ok();
    }
}

/// Mounts, says so on standard error, and serves until it is unmounted.
pub(crate) fn run(directory: &Path) {
    let server = Arc::new(TestServer {
        data: Mutex::new(vec![0; DATA_BYTES]),
        late: Mutex::default(),
        never: Mutex::default(),
        interrupted: AtomicU64::new(0),
        forgotten: AtomicU64::new(0),
        rings: AtomicU64::new(0),
    });
    let rings = match std::env::var(TRANSPORT).unwrap().as_str() {
        "on" => Rings::On,
        "off" => Rings::Off,
        _ => Rings::Auto,
    };
    // A test that has ended closes this input.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    // Programs that wait for a reply that never comes get errors then, and their test fails.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(60));
        std::process::exit(2);
    });
    let options = ConnectionOptions { config: Config::default(), threads: 4, rings };
    let held = std::fs::File::open(directory).unwrap();
    let mountpoint = Mountpoint { path: directory, directory: held.as_fd() };
    match Connection::start(&server, mountpoint, &options) {
        Ok(connection) => {
            server.rings.store(u64::from(connection.uses_rings()), Ordering::SeqCst);
            eprintln!("mounted");
            connection.join().unwrap();
            std::process::exit(0);
        }
        Err(ConnectionError::Mount(e)) => eprintln!("cannot mount: {e}"),
        Err(ConnectionError::Rings(why)) => eprintln!("cannot use rings: {why}"),
    }
}
