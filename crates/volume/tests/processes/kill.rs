//! Crash test: a program is killed with signal 9 during writes; every acknowledged write is intact.

use crate::common::{self, create, open, place, read};
use frit_core::Hints;
use frit_volume::Volume;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 300;
const KILLS: u32 = 12;

/// Returns a block that identifies its number and version throughout.
fn block(n: u64, version: u32) -> Vec<u8> {
    common::pattern(n * BLOCK as u64, version, BLOCK)
}

/// Returns the version of a complete block; `None` if versions are mixed.
fn version_of(n: u64, bytes: &[u8]) -> Option<u32> {
    if bytes.iter().all(|&b| b == 0) {
        return Some(0);
    }
    let version = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    (bytes == block(n, version)).then_some(version)
}

/// The child process: writes and reports acknowledged writes until it is killed.
#[test]
#[ignore = "a part of the next test, which runs it in a process of its own"]
fn child() {
    let dir = std::env::var("FRIT_TEST_VOLUME").unwrap();
    let mut version: u32 = std::env::var("FRIT_TEST_VERSION").unwrap().parse().unwrap();
    let mut v = open(Path::new(&dir));
    let mut out = std::io::stdout().lock();
    let mut n = u64::from(version);
    loop {
        version += 1;
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (n >> 33) % BLOCKS;
        v.write(at * BLOCK as u64, &block(at, version), Hints::NONE).unwrap();
        writeln!(out, "done {at} {version}").unwrap();
        out.flush().unwrap();
        if version.is_multiple_of(7) {
            v.step(20).unwrap();
        }
        if version.is_multiple_of(29) {
            v.flush().unwrap();
        }
    }
}

#[test]
fn what_a_killed_program_was_told_is_there() {
    let (_dir, dir) = place();
    create(&dir).close().unwrap();
    kill_and_look(&dir);
}

/// The same for pages that are overwritten in place by way of a log.
#[test]
fn what_a_killed_program_was_told_is_there_on_memory_alone() {
    for log in ["none", "full"] {
        let (_dir, dir) = place();
        let sets = ["chip_bytes=2M".to_owned(), format!("ntl.log={log}"), "log_buffer=none".to_owned()];
        let stack = frit_stack::Stack::builtin("ntl-small", &sets).unwrap();
        let options = frit_volume::CreateOptions { stack, force: false };
        Volume::create(&dir, &options).unwrap().close().unwrap();
        kill_and_look(&dir);
    }
}

/// The same for a disk that is accessed without the page cache, behind a cache of few blocks.
#[test]
fn what_a_killed_program_was_told_is_there_on_a_direct_disk() {
    let (_dir, dir) = place();
    let sets = ["pcm.chip_bytes=128K", "disk.bytes=8M", "disk.access=io-uring"].map(str::to_owned);
    let stack = frit_stack::Stack::builtin("halo-small", &sets).unwrap();
    let options = frit_volume::CreateOptions { stack, force: false };
    Volume::create(&dir, &options).unwrap().close().unwrap();
    kill_and_look(&dir);
}

fn kill_and_look(dir: &Path) {
    let mut newest = vec![0u32; BLOCKS as usize];
    let mut version = 0;
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env("FRIT_TEST_VOLUME", dir)
            .env("FRIT_TEST_VERSION", version.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The child writes for a while and is killed at an arbitrary moment.
        let mut told = |line: String| {
            if let Some(rest) = line.strip_prefix("done ") {
                let (at, v) = rest.split_once(' ').unwrap();
                newest[at.parse::<usize>().unwrap()] = v.parse().unwrap();
                version = version.max(v.parse().unwrap());
                return true;
            }
            false
        };
        let mut seen = 0;
        while seen < 100 * kill + 7 {
            seen += u32::from(told(lines.next().unwrap().unwrap()));
        }
        std::thread::sleep(Duration::from_micros(u64::from(kill) * 317));
        child.kill().unwrap();
        for line in lines {
            // The last line may be incomplete.
            let line = line.unwrap();
            if line.split(' ').count() == 3 && line.starts_with("done ") {
                told(line);
            }
        }
        child.wait().unwrap();
        let mut v = open(dir);
        assert!(!v.recovery().recovery.clean && !v.recovery().power_loss);
        for n in 0..BLOCKS {
            let bytes = read(&mut v, n * BLOCK as u64, BLOCK);
            let found = version_of(n, &bytes).unwrap_or_else(|| panic!("kill {kill}: block {n} is mixed"));
            let least = newest[n as usize];
            assert!(found >= least, "kill {kill}: block {n} has version {found}, {least} was acknowledged");
            newest[n as usize] = found;
            version = version.max(found);
        }
        if kill % 2 == 0 {
            v.close().unwrap();
        }
    }
    assert!(version > 1000, "the children hardly wrote: {version}");
}
