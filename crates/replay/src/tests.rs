//! Whole runs: every policy is verified, faults are detected, reports are reproducible.

mod arrays;
mod byte_requests;
mod device_commands;
mod disks;
mod engines;
mod faults;
mod hints;
mod policies;
mod records;
mod reports;
mod trees;
mod verify_figures;

use crate::{Job, Report, RunOptions};
use frit_stack::Stack;
use frit_trace::{Fit, Options};
use std::fmt::Write;
use std::path::PathBuf;

/// Returns a volume of slightly more than a megabyte with 128 KiB of PCM, so that a few thousand
/// requests fill both several times.
pub(crate) fn small(sets: &[&str]) -> Stack {
    let base =
        ["nand.channels=2", "nand.blocks_per_plane=24", "nand.pages_per_block=16", "pcm.chip_bytes=8K"];
    let sets: Vec<String> = base.iter().chain(sets).map(|s| (*s).to_owned()).collect();
    Stack::builtin("hfsl-small", &sets).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()))
}

/// Returns the same volume without PCM.
pub(crate) fn small_without_pcm(sets: &[&str]) -> Stack {
    let base = ["nand.channels=2", "nand.blocks_per_plane=24", "nand.pages_per_block=16"];
    let sets: Vec<String> = base.iter().chain(sets).map(|s| (*s).to_owned()).collect();
    Stack::builtin("no-pcm-small", &sets).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()))
}

/// Writes a trace of every kind of request over `sectors`: reads, small and large writes, aligned
/// and not, discards, flushes, metadata, FUA. It uses a linear congruential sequence (Knuth's
/// MMIX), so that it never changes.
pub(crate) fn mixed_trace(dir: &tempfile::TempDir, sectors: u64, requests: u64) -> PathBuf {
    let mut state = 42u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut text = String::from("time_us,op,sector,sectors,flags\n");
    for i in 0..requests {
        let n = [1, 2, 3, 4, 4, 8, 8, 16, 64, 130][next(10) as usize];
        // Half of the requests go to an eighth of the space.
        let span = if next(2) == 0 { sectors / 8 } else { sectors };
        let at = next(span - n);
        let (op, flags) = match next(100) {
            0..30 => ("R", ""),
            30..75 => ("W", ""),
            75..85 => ("W", "M"),
            85..90 => ("W", "FS"),
            90..96 => ("D", ""),
            _ => ("F", ""),
        };
        let (at, n) = if op == "F" { (0, 0) } else { (at, n) };
        writeln!(text, "{},{op},{at},{n},{flags}", i * 50).unwrap();
    }
    let path = dir.path().join("mixed.csv");
    std::fs::write(&path, text).unwrap();
    path
}

pub(crate) fn run(stack: &Stack, spec: &str, options: &RunOptions) -> Report {
    let job = Job::open(spec, &Options::default(), Fit::Strict, &mut |_| {}).unwrap();
    job.run(stack, options, &mut |_| {}).unwrap()
}

#[test]
fn warm_ups_that_read_twice_are_refused_for_standard_input() {
    let job = Job::open("-", &Options::default(), Fit::Strict, &mut |_| {}).unwrap();
    for (warm, part) in [
        ("trace", "--warm trace runs 'standard input' twice"),
        ("fill+trace", "--warm trace runs 'standard input' twice"),
        ("10%", "a share needs the length of 'standard input'"),
    ] {
        let options = RunOptions { warm: warm.parse().unwrap(), ..RunOptions::default() };
        let e = job.run(&small(&[]), &options, &mut |_| {}).unwrap_err().to_string();
        assert!(e.contains(part), "{warm}: {e}");
    }
}
