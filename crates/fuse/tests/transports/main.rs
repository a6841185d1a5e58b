//! Both transports against the kernel: a mounted server answers programs.
//!
//! The server is a process of its own, so that the end of a test ends its mount: a process that waits
//! for its own mount cannot be killed.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::print_stdout)]

mod client;
mod server;

use client::{Place, each_transport};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Waits for a condition, which the kernel or the server fulfils soon.
fn wait_for(what: &str, mut is_met: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_met() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Binds the calling thread to the first processor it may use.
fn bind_to_one() {
    let all = rustix::thread::sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&i| all.is_set(i)).unwrap());
    sched_setaffinity(None, &one).unwrap();
}

#[test]
fn bytes_come_back_as_they_were_written() {
    each_transport(|place| {
        let file = OpenOptions::new().read(true).write(true).open(place.path("data")).unwrap();
        let pattern = |seed: usize, len: usize| -> Vec<u8> {
            (0..len).map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed) as u8).collect()
        };
        // Also more than the largest request, and ranges that cross pages.
        for (seed, (at, len)) in
            [(0, 1), (1, 4095), (4096, 4096), (5000, 1 << 20), (7, 3 << 20)].iter().enumerate()
        {
            let written = pattern(seed, *len);
            file.write_all_at(&written, *at).unwrap();
            let mut read = vec![0; *len];
            file.read_exact_at(&mut read, *at).unwrap();
            assert!(read == written, "{len} bytes at {at}");
        }
        let end = server::DATA_BYTES as u64;
        assert_eq!(file.read_at(&mut [0; 10], end).unwrap(), 0);
        assert_eq!(file.read_at(&mut [0; 10], end - 3).unwrap(), 3);
    });
}

#[test]
fn threads_on_all_processors_are_served_at_a_time() {
    each_transport(|place| {
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                scope.spawn(move || {
                    let file = OpenOptions::new().read(true).write(true).open(place.path("data")).unwrap();
                    for round in 0..300u64 {
                        let (at, value) = (thread * 8192, [(thread * 31 + round) as u8; 5000]);
                        file.write_all_at(&value, at).unwrap();
                        let mut read = [0; 5000];
                        file.read_exact_at(&mut read, at).unwrap();
                        assert!(read == value);
                    }
                });
            }
        });
    });
}

#[test]
fn names_and_errors_reach_programs() {
    each_transport(|place| {
        let mut names: Vec<_> = fs::read_dir(place.root())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["data", "late", "lost", "never", "release", "stats"]);
        let error = |name: &str| fs::read(place.path(name)).unwrap_err().raw_os_error();
        assert_eq!(error("lost"), Some(rustix::io::Errno::IO.raw_os_error()), "a reply that is dropped");
        assert_eq!(error("missing"), Some(rustix::io::Errno::NOENT.raw_os_error()));
        let refused = fs::create_dir(place.path("new")).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::NOSYS.raw_os_error()));
        let long = "x".repeat(255);
        assert_eq!(error(&long), Some(rustix::io::Errno::NOENT.raw_os_error()));
    });
}

/// All entries of a queue wait for one request, which comes later.
#[test]
fn a_request_is_served_while_all_earlier_ones_wait_for_it() {
    each_transport(|place| {
        bind_to_one();
        for round in 0..3 {
            let readers: Vec<_> = (0..24)
                .map(|_| {
                    let path = place.path("late");
                    std::thread::spawn(move || fs::read(path).unwrap())
                })
                .collect();
            wait_for("the readers wait", || place.stat("waiting") == 24);
            fs::write(place.path("release"), format!("round {round}")).unwrap();
            for reader in readers {
                assert_eq!(reader.join().unwrap(), format!("round {round}").as_bytes());
            }
        }
    });
}

#[test]
fn a_killed_program_interrupts_its_request() {
    each_transport(|place| {
        let mut cat = Command::new("cat").arg(place.path("never")).stdout(Stdio::null()).spawn().unwrap();
        wait_for("the program waits", || place.stat("waiting") == 1);
        cat.kill().unwrap();
        wait_for("the program has ended", || cat.try_wait().unwrap().is_some());
        wait_for("its request was interrupted", || place.stat("interrupted") == 1);
        assert_eq!(place.stat("waiting"), 0);
    });
}

#[test]
fn forgotten_inodes_are_reported() {
    each_transport(|place| {
        for name in ["data", "late", "lost"] {
            fs::metadata(place.path(name)).unwrap();
        }
        // The kernel drops inodes of the mount on remounting read-only and on pressure; a drop of
        // the caches is the way that needs no file system of its own.
        if fs::write("/proc/sys/vm/drop_caches", "2").is_err() {
            return eprintln!("skipped: dropping the kernel's caches requires root");
        }
        wait_for("inodes are forgotten", || place.stat("forgotten") >= 2);
    });
}

#[test]
fn the_end_of_the_server_ends_waiting_programs() {
    each_transport(|place| {
        let path = place.path("never");
        let (send, receive) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut file = File::open(path).unwrap();
            send.send(()).unwrap();
            file.read(&mut [0; 10]).unwrap_err().raw_os_error().unwrap()
        });
        receive.recv().unwrap();
        wait_for("the reader waits", || place.stat("waiting") == 1);
        place.kill_server();
        let error = rustix::io::Errno::from_raw_os_error(reader.join().unwrap());
        assert!([rustix::io::Errno::CONNABORTED, rustix::io::Errno::NOTCONN].contains(&error), "{error}");
    });
}

#[test]
fn an_unmount_ends_the_server() {
    each_transport(|place| {
        place.unmount();
        wait_for("the server has ended", || place.server_has_ended());
        assert!(place.server_succeeded());
    });
}

#[test]
fn rings_are_refused_with_a_reason_if_they_are_off() {
    let permitted = fs::read_to_string("/sys/module/fuse/parameters/enable_uring");
    if permitted.is_ok_and(|value| value.trim() == "Y") {
        return eprintln!("skipped: this kernel permits requests through io_uring");
    }
    let Some(refusal) = Place::refusal("on") else { return };
    assert!(refusal.contains("it is off in this kernel") || refusal.contains("Linux 6.14"), "{refusal}");
    // Automatic use falls back to the device.
    if let Some(place) = Place::mount("auto") {
        assert_eq!(place.stat("rings"), 0);
    }
}

/// Not a test: the process of the server, if the environment names a directory.
#[test]
fn serve() {
    if let Some(directory) = std::env::var_os(server::DIRECTORY) {
        server::run(directory.as_ref());
    }
}
