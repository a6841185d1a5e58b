//! The generators against the published numbers of filebench, and against a model in Python.

use super::file_system::{FileSystem, FsOptions};
use super::layout::Layout;
use super::personality::{FlowOp, PERSONALITIES};
use super::run::{FilebenchRun, FilebenchSetup};
use crate::generate::Generator;
use crate::{ReqOp, Request};
use frit_core::{Hints, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Numbers of `workloads/NAME.f` of filebench 1.5: nfiles, meanfilesize, meandirwidth, prealloc in
/// percent, nthreads, meanappendsize.
const DEFAULTS: [(&str, [u32; 6]); 3] = [
    ("fileserver", [10_000, 131_072, 20, 80, 50, 16_384]),
    ("webserver", [1_000, 16_384, 20, 100, 100, 16_384]),
    ("varmail", [1_000, 16_384, 1_000_000, 80, 16, 16_384]),
];

/// Number of flowops of each kind in a loop, in the order create, open, write whole file, append, read
/// whole file, fsync, close, delete, stat.
const LOOPS: [(&str, [u64; 9]); 3] = [
    ("fileserver", [1, 2, 1, 1, 1, 0, 3, 1, 1]),
    ("webserver", [0, 10, 0, 1, 10, 0, 10, 0, 0]),
    ("varmail", [1, 2, 0, 2, 2, 2, 3, 1, 0]),
];

/// Executed operations and their bytes, by kind.
type Totals = BTreeMap<FlowOp, (u64, u64)>;

/// Files of the comparison with the model: with few files, their mean size depends on the seed.
const MANY_FILES: u32 = 30_000;

fn setup(name: &str) -> FilebenchSetup {
    let personality = PERSONALITIES.iter().find(|p| p.name == name).unwrap();
    FilebenchSetup {
        personality,
        files: personality.files,
        mean_file_bytes: personality.mean_file_bytes,
        dir_width: personality.dir_width,
        preallocated: personality.preallocated,
        threads: personality.threads,
        append_bytes: personality.append_bytes,
        seed: 1,
    }
}

fn run(setup: &FilebenchSetup) -> FilebenchRun {
    let options = FsOptions {
        cached_blocks: 1 << 14,
        dirty_blocks: 1 << 11,
        age_ns: 30_000_000_000,
        commit_ns: 5_000_000_000,
        read_blocks: 32,
        write_blocks: 128,
    };
    let layout = Layout::new(1 << 21, setup.files + 1, setup.dir_width).unwrap();
    FilebenchRun::new(setup, FileSystem::new(options, layout, setup.files + 1)).unwrap()
}

/// Totals of a number of loops, after as many loops as there are files.
fn totals(setup: &FilebenchSetup, loops: u64) -> Totals {
    let mut run = run(setup);
    let (length, mut totals) = (setup.personality.operations.len() as u64, Totals::new());
    let warm = u64::from(setup.files) * length;
    for i in 0..warm + loops * length {
        let (op, bytes) = run.operate(Nanos(i * 100_000));
        run.forget_requests();
        if let Some(bytes) = bytes.filter(|_| i >= warm) {
            let total = totals.entry(op).or_default();
            *total = (total.0 + 1, total.1 + bytes);
        }
    }
    totals
}

#[test]
fn the_defaults_are_those_of_filebench() {
    assert_eq!(PERSONALITIES.len(), DEFAULTS.len());
    for (name, [files, size, width, prealloc, threads, append]) in DEFAULTS {
        let p = setup(name).personality;
        assert_eq!((p.files, p.mean_file_bytes, p.dir_width), (files, size, width), "{name}");
        assert_eq!(
            (p.preallocated, p.threads, p.append_bytes),
            (f64::from(prealloc) / 100.0, threads, append)
        );
    }
}

#[test]
fn the_mix_of_operations_is_that_of_filebench() {
    for (name, published) in LOOPS {
        let got = totals(&setup(name), 20_000);
        let of = |op: FlowOp| got.get(&op).map_or(0, |t| t.0) as f64 / 20_000.0;
        let append = of(FlowOp::Append) + of(FlowOp::AppendLog);
        let kinds = [
            of(FlowOp::Create),
            of(FlowOp::Open),
            of(FlowOp::WriteWhole),
            append,
            of(FlowOp::ReadWhole),
            of(FlowOp::Fsync),
            of(FlowOp::Close),
            of(FlowOp::Delete),
            of(FlowOp::Stat),
        ];
        for (got, published) in kinds.into_iter().zip(published) {
            assert!((got - published as f64).abs() < 0.01, "{name}: {kinds:?}, published {published}");
        }
    }
}

/// Bytes read and written by a loop, as `scripts/models/filebench.py` computes them.
fn modelled(name: &str) -> Option<[f64; 2]> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/models/filebench.py");
    let done = Command::new("python3").args([script, name, &MANY_FILES.to_string()]).output().ok()?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let out = String::from_utf8(done.stdout).unwrap();
    let mut numbers = out.split_whitespace().map(|n| n.parse().unwrap());
    Some([numbers.next()?, numbers.next()?])
}

#[test]
fn the_bytes_of_a_loop_are_those_of_the_model_in_python() {
    for (name, _) in DEFAULTS {
        let Some([read, written]) = modelled(name) else {
            println!("skipped: there is no python3");
            return;
        };
        let loops = 40_000;
        let got = totals(&FilebenchSetup { files: MANY_FILES, ..setup(name) }, loops);
        let bytes = |ops: &[FlowOp]| {
            ops.iter().map(|op| got.get(op).map_or(0, |t| t.1)).sum::<u64>() as f64 / loops as f64
        };
        let (reads, writes) =
            (bytes(&[FlowOp::ReadWhole]), bytes(&[FlowOp::WriteWhole, FlowOp::Append, FlowOp::AppendLog]));
        assert!((reads / read - 1.0).abs() < 0.02, "{name}: {reads} bytes read, model {read}");
        assert!((writes / written - 1.0).abs() < 0.02, "{name}: {writes} bytes written, model {written}");
    }
}

fn requests(spec: &str) -> Vec<Request> {
    let mut g = Generator::parse(spec).unwrap();
    let (mut out, mut batch) = (Vec::new(), Vec::new());
    while g.fill(&mut batch) {
        out.extend_from_slice(&batch);
    }
    out
}

/// Number of operations before the requests: the time of the last one, with one operation a second.
fn operations(requests: &[Request]) -> f64 {
    requests.last().map_or(0.0, |r| r.at.0 as f64 / 1e9) + 1.0
}

#[test]
fn each_fsync_ends_with_a_flush_after_its_commit() {
    let all = requests("varmail,count=20k,threads=1,arrival=fixed,rate=1,age=1e6,commit=1e6,dirty=1");
    let flushes = all.iter().filter(|r| r.op == ReqOp::Flush).count() as f64;
    // Two of thirteen operations are an fsync, and its commit has two flushes.
    let expected = operations(&all) * 2.0 / 13.0 * 2.0;
    assert!((flushes / expected - 1.0).abs() < 0.03, "{flushes} flushes, {expected} expected");
    for pair in all.windows(2).filter(|p| p[1].op == ReqOp::Flush) {
        assert!(pair[0].op == ReqOp::Write && pair[0].hints == Hints::METADATA, "{pair:?}");
    }
    assert!(requests("webserver,count=2k").iter().all(|r| r.op != ReqOp::Flush || r.sectors == 0));
}

#[test]
fn a_large_page_cache_reads_each_block_once_and_keys_are_respected() {
    let all =
        requests("fileserver,count=20k,files=500,filesize=32K,cache=2G,span=256M,readahead=16K,request=64K");
    let mut seen = BTreeSet::new();
    for r in &all {
        assert!(r.sectors <= if r.op == ReqOp::Read { 32 } else { 128 }, "{r:?}");
        assert!(r.end() <= (256 << 20) / 512 && r.sector.0 % 8 == 0 && r.sectors % 8 == 0);
        if r.op == ReqOp::Read {
            assert!((r.sector.0..r.end()).all(|s| seen.insert(s)), "read twice: {r:?}");
        }
    }
    assert!(all.iter().any(|r| r.op == ReqOp::Read) && all.windows(2).all(|p| p[0].at <= p[1].at));
    let small = requests("fileserver,count=20k,files=500,filesize=32K,cache=1M,span=256M");
    let reads = |all: &[Request]| all.iter().filter(|r| r.op == ReqOp::Read).count() as f64 / operations(all);
    assert!(reads(&small) > reads(&all) * 5.0, "a small cache misses");
}

#[test]
fn files_that_do_not_fit_are_refused() {
    for (spec, why) in [
        ("fileserver,span=1G", "fill more than nine tenths"),
        ("varmail,span=64K", "too small for the metadata"),
        ("varmail,filesize=5G", "below 4 GiB"),
        ("varmail,cache=1000", "multiple of 4 KiB"),
        ("webserver,size=4K", "there is no size here"),
    ] {
        let e = Generator::parse(spec).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains(why), "{spec}: {e}");
    }
}
