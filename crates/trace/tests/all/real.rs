//! Every trace in `../shared/traces`, read by content alone: number of requests, units, no line
//! skipped.

use frit_trace::{Options, ReqOp, Scan, Workload};
use std::path::PathBuf;

/// File, format, number of requests, and facts that must be recognised.
type Known = (&'static str, &'static str, u64, &'static [(&'static str, &'static str)]);

/// Returns the directory of the traces, or `None` (with a message) on a machine without it.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn traces() -> Option<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("SKIPPED: ../shared/traces does not exist");
    None
}

const FILES: [Known; 19] = [
    ("public/Financial1-snippet.spc.zst", "spc", 10_000, &[]),
    ("public/fin1_50k.trace.zst", "disksim", 50_000, &[("time unit", "ms"), ("size unit", "units of 4 KiB")]),
    (
        "public/Financial1forssd_asu0_153566.txt.zst",
        "disksim",
        153_566,
        &[("time unit", "s"), ("size unit", "sectors of 512 B")],
    ),
    ("public/web1_50k.trace.zst", "disksim", 50_000, &[("time unit", "ms"), ("size unit", "units of 4 KiB")]),
    (
        "public/mqsim_tpcc-small.trace.zst",
        "disksim",
        6_999,
        &[("time unit", "ns"), ("size unit", "sectors of 512 B")],
    ),
    (
        "public/mqsim_wsrch-small.trace.zst",
        "disksim",
        24_783,
        &[("time unit", "ns"), ("size unit", "sectors of 512 B")],
    ),
    ("public/msr_web_3.csv.zst", "msr", 31_380, &[]),
    (
        "public/MSNFS_dev5_30s.trace.zst",
        "disksim",
        149_999,
        &[("time unit", "ms"), ("size unit", "sectors of 512 B")],
    ),
    (
        "public/DTRS1K.trace.zst",
        "disksim",
        127_043,
        &[("time unit", "us"), ("size unit", "sectors of 512 B")],
    ),
    ("public/Booting_log176.txt.zst", "biotracer", 18_417, &[]),
    ("public/Installing_log181.txt.zst", "biotracer", 17_952, &[("sizes", "as the trace has them")]),
    ("public/Movie_log121.txt.zst", "biotracer", 4_781, &[]),
    ("public/cloudPhysicsIO.vscsi.zst", "vscsi", 113_872, &[("version", "1")]),
    // The README counts 9 997 of the 9 998 requests: a count by lines takes the first request for
    // the end of the tar header, with which it shares a line.
    ("public/mail_cheetah_first10000.blkparse.zst", "fiu", 9_998, &[]),
    ("public/diskmon_mayun2.txt.zst", "diskmon", 87_160, &[]),
    ("recorded/pgbench.csv.zst", "recorded", 459_800, &[]),
    ("recorded/mail.csv.zst", "recorded", 416_401, &[]),
    ("recorded/rocksdb.csv.zst", "recorded", 433_220, &[]),
    ("recorded/sqlite.csv.zst", "recorded", 500_000, &[]),
];

#[test]
fn every_trace_is_read_whole() {
    let Some(dir) = traces() else { return };
    for (file, format, requests, facts) in FILES {
        let path = dir.join(file);
        let scan = Scan::of(path.to_str().unwrap(), &Options::default()).unwrap();
        assert_eq!((scan.reading.format.as_str(), scan.requests), (format, requests), "{file}");
        assert_eq!(scan.problems.malformed, 0, "{file}: {:?}", scan.problems.shown);
        for (what, value) in facts {
            assert_eq!(
                scan.reading.get(what).map(|f| f.value.as_str()),
                Some(*value),
                "{file}: {}",
                scan.reading
            );
        }
        assert_eq!(scan.identity.sha256.as_ref().map(String::len), Some(64));
    }
}

#[test]
fn sectors_that_a_driver_added_go() {
    let Some(dir) = traces() else { return };
    let path = dir.join("public/Installing_log181.txt.zst");
    let options = Options { whole_pages: true, ..Options::default() };
    let scan = Scan::of(path.to_str().unwrap(), &options).unwrap();
    let told = &scan.reading.get("sizes").unwrap().value;
    assert!(told.ends_with("of 17952 requests 3081 lost an added sector, 0 were widened"), "{told}");
    assert_eq!(scan.aligned_4k, 1.0);
}

#[test]
fn the_tar_around_the_mail_trace_is_seen_through() {
    let Some(dir) = traces() else { return };
    let path = dir.join("public/mail_cheetah_first10000.blkparse.zst");
    let scan = Scan::of(path.to_str().unwrap(), &Options::default()).unwrap();
    assert!(
        scan.reading.container.iter().any(|c| c.starts_with("tar: cheetah")),
        "{:?}",
        scan.reading.container
    );
    assert!(scan.problems.cut.as_ref().is_some_and(|c| c.contains("tar archive ends")));
    let first = Workload::open(path.to_str().unwrap(), &Options::default()).unwrap().next().unwrap().unwrap();
    assert_eq!((first.sector.0, first.op), (18_579_576, ReqOp::Write));
    let strict = Options { strict: true, ..Options::default() };
    assert!(Scan::of(path.to_str().unwrap(), &strict).unwrap_err().to_string().contains("ends"));
}

#[test]
fn the_same_requests_come_out_of_the_same_trace_in_two_formats() {
    let Some(dir) = traces() else { return };
    // WebSearch1 in DiskSim format with pages and ms, and in MQSim's with sectors and ns.
    let open = |f: &str| {
        Workload::open(
            dir.join(f).to_str().unwrap(),
            &Options { devices: frit_trace::DeviceMapping::Merge, ..Options::default() },
        )
        .unwrap()
    };
    let pages = open("public/web1_50k.trace.zst");
    let sectors = open("public/mqsim_wsrch-small.trace.zst");
    let mut same = 0;
    for (a, b) in pages.zip(sectors) {
        let (a, b) = (a.unwrap(), b.unwrap());
        same += u32::from((a.sector, a.sectors, a.op) == (b.sector, b.sectors, b.op));
    }
    assert!(same > 24_000, "{same}");
}
