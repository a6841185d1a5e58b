//! A trace that is written in a format is read back unchanged, as far as the format can represent
//! it.

use frit_core::{Hints, Nanos, Sector};
use frit_trace::write::{WRITABLE, WriteFormat, Writer};
use frit_trace::{DeviceMapping, Options, ReqOp, Request, Scan, SectorCut, SizeUnit, TimeUnit, Workload};
use proptest::prelude::*;

/// Returns the time resolution of a format in ns, `true` if it has flushes and discards, and `true`
/// if it has hints.
fn keeps(format: WriteFormat) -> (u64, bool, bool) {
    match format {
        WriteFormat::Recorded => (1, true, true),
        WriteFormat::Fio2 | WriteFormat::Fio3 => (1000, true, false),
        WriteFormat::Msr => (100, false, false),
        WriteFormat::DiskSim | WriteFormat::MqSim | WriteFormat::Spc => (1, false, false),
    }
}

fn back(requests: &[Request], format: WriteFormat, name: &str, devices: bool) -> (Vec<Request>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    let path = path.to_str().unwrap();
    let names: Vec<String> = ["0", "host,1", "sdb"].map(String::from).to_vec();
    let mut w = Writer::create(path, format, devices).unwrap();
    for part in requests.chunks(7) {
        w.write(part, &names).unwrap();
    }
    let written = w.finish().unwrap();
    assert_eq!(written.requests + written.flushes_lost + written.discards_lost, requests.len() as u64);
    if written.requests == 0 {
        return (Vec::new(), Vec::new());
    }
    let disksim = |u| matches!(format, WriteFormat::DiskSim | WriteFormat::MqSim).then_some(u);
    let unit = if format == WriteFormat::MqSim { TimeUnit::Ns } else { TimeUnit::Ms };
    let options = Options {
        devices: DeviceMapping::Merge,
        strict: true,
        time_unit: disksim(unit),
        size_unit: disksim(unit).map(|_| SizeUnit::SECTORS),
        ..Options::default()
    };
    let mut w = Workload::open(path, &options).unwrap();
    let mut all = Vec::new();
    for r in w.by_ref() {
        all.push(r.unwrap());
    }
    (all, w.devices().to_vec())
}

/// Returns the requests that a format keeps, with times relative to the first of them.
fn kept(requests: &[Request], format: WriteFormat) -> Vec<Request> {
    let (tick, others, hints) = keeps(format);
    let moves = |r: &&Request| others || matches!(r.op, ReqOp::Read | ReqOp::Write);
    let rs: Vec<Request> = requests.iter().filter(moves).copied().collect();
    let first = rs.first().map_or(0, |r| r.at.0 / tick);
    rs.iter()
        .map(|r| Request {
            at: Nanos((r.at.0 / tick - first) * tick),
            device: 0,
            hints: if hints { r.hints } else { Hints::NONE },
            cut: if format == WriteFormat::Recorded { r.cut } else { SectorCut::NONE },
            ..*r
        })
        .collect()
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let one = (0u64..5_000_000, 0u64..1 << 40, 1u32..100_000, 0u16..3, 0u8..8, 0u8..32);
    proptest::collection::vec(one, 1..60).prop_map(|rows| {
        let mut at = 0;
        let hint = |bits: u8| {
            [Hints::METADATA, Hints::FUA, Hints::SYNC, Hints::HOT, Hints::COLD]
                .into_iter()
                .enumerate()
                .filter(|(i, _)| bits >> i & 1 == 1)
                .fold(Hints::NONE, |h, (_, n)| h.with(n))
        };
        rows.into_iter()
            .map(|(gap, sector, sectors, device, op, hints)| {
                at += gap;
                let op = [ReqOp::Read, ReqOp::Write, ReqOp::Discard, ReqOp::Flush][usize::from(op.min(3))];
                let (sector, sectors) = if op == ReqOp::Flush { (0, 0) } else { (sector, sectors) };
                let (at, cut) = (Nanos(at), SectorCut::NONE);
                let r = Request { at, sector: Sector(sector), sectors, device, op, hints: hint(hints), cut };
                // Some requests begin and end inside a sector.
                match op {
                    ReqOp::Read | ReqOp::Write if sector % 3 == 0 => {
                        let (head, tail) = (gap % 256, gap / 256 % 256);
                        r.with_bytes(sector * 512 + head, u64::from(sectors) * 512 - head - tail)
                    }
                    _ => r,
                }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_format_gives_back_what_it_can_say(requests in requests()) {
        for (name, format) in WRITABLE {
            let (got, _) = back(&requests, format, name, false);
            prop_assert_eq!(got, kept(&requests, format), "{}", name);
        }
    }

    #[test]
    fn devices_stay_apart(requests in requests()) {
        for (name, format) in WRITABLE {
            let (got, names) = back(&requests, format, name, true);
            let want = kept(&requests, format);
            prop_assert_eq!(got.len(), want.len());
            let devices: std::collections::HashSet<u16> = got.iter().map(|r| r.device).collect();
            prop_assert_eq!(devices.len(), names.len());
            let mut pairs: Vec<(u16, u16)> = requests
                .iter()
                .filter(|r| keeps(format).1 || matches!(r.op, ReqOp::Read | ReqOp::Write))
                .map(|r| r.device)
                .zip(got.iter().map(|r| r.device))
                .collect();
            pairs.sort_unstable();
            pairs.dedup();
            prop_assert_eq!(pairs.len(), names.len(), "{}: {:?}", name, pairs);
        }
    }
}

#[test]
fn compressed_output_is_read_back() {
    let spec = "gen:uniform,count=10k,read=0.5,flush=7,meta=0.2";
    let mut source = Workload::open(spec, &Options::default()).unwrap();
    let mut all = Vec::new();
    let mut batch = Vec::new();
    while source.fill(&mut batch).unwrap() {
        all.extend_from_slice(&batch);
    }
    for name in ["t.csv.gz", "t.csv.zst", "t.csv"] {
        let (got, _) = back(&all, WriteFormat::Recorded, name, false);
        assert_eq!(got, kept(&all, WriteFormat::Recorded), "{name}");
    }
    assert!(Writer::create("t.xz", WriteFormat::Recorded, false).err().unwrap().to_string().contains(".zst"));
}

#[test]
fn devices_are_laid_out_one_after_another_and_the_scan_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("three.spc");
    std::fs::write(
        &path,
        "2,100,512,w,0.0\n7,5000,4096,r,0.1\n2,8,512,w,0.2\n9,1,512,r,0.3\n7,0,512,r,0.4\n",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let sectors =
        |o: &Options| -> Vec<u64> { Workload::open(path, o).unwrap().map(|r| r.unwrap().sector.0).collect() };
    let with = |d: &str| Options { devices: d.parse().unwrap(), ..Options::default() };
    assert_eq!(sectors(&with("concat")), [100, 2048 + 5000, 8, 8193, 2048]);
    assert_eq!(sectors(&with("merge")), [100, 5000, 8, 1, 0]);
    assert_eq!(sectors(&with("only:7")), [5000, 0]);
    let end = |d: &str| Scan::of(path, &with(d)).unwrap().end_sector;
    assert_eq!((end("concat"), end("merge"), end("only:7")), (8194, 5008, 5008));
    assert!(Scan::of(path, &with("only:8")).unwrap_err().to_string().contains("2, 7, 9"));
    let e = Workload::open(path, &with("only:8")).unwrap().next().unwrap().unwrap_err();
    assert!(e.to_string().contains("2, 7, 9"), "{e}");
    // The devices of a stream cannot be measured beforehand.
    let text = std::fs::read(path).unwrap();
    let mut w = Workload::from_reader("pipe", Box::new(std::io::Cursor::new(text)), &with("concat")).unwrap();
    assert!(w.next().unwrap().unwrap_err().to_string().contains("cannot be read twice"));
}

#[test]
fn a_trace_larger_than_the_volume_names_sizes_and_ways_out() {
    use frit_trace::Fit;
    let spec = "gen:uniform,count=1000,span=1G";
    let scan = Scan::of(spec, &Options::default()).unwrap();
    let open = || Workload::open_scanned(spec, &Options::default(), &scan).unwrap();
    let e = open().fit(Fit::Strict, 1 << 20, Some(&scan)).err().unwrap().to_string();
    for part in ["reaches 1", "the volume holds 512 MiB", "at least that size", "--wrap", "--compact"] {
        assert!(e.contains(part), "{part}: {e}");
    }
    for fit in [Fit::Wrap, Fit::Compact { chunk: 1 << 20 }] {
        let capacity = 1 << 21;
        let all: Vec<Request> = open().fit(fit, capacity, Some(&scan)).unwrap().map(|r| r.unwrap()).collect();
        assert!(all.len() >= 1000 && all.iter().all(|r| r.end() <= capacity));
    }
    let e = open().fit(Fit::Compact { chunk: 1 << 20 }, 1 << 18, Some(&scan)).err().unwrap();
    let e = e.to_string();
    let needed = format!("touches {} chunks of 1 MiB", scan.chunks);
    for part in [needed.as_str(), "holds 128,", "even packed", "--wrap instead of --compact"] {
        assert!(e.contains(part), "{part}: {e}");
    }
}

#[test]
fn a_generic_csv_is_read_by_name_and_by_number() {
    let read = |text: &str, columns: &str| -> Vec<(u64, u64, u32, ReqOp)> {
        let options = Options {
            columns: Some(columns.parse().unwrap()),
            devices: DeviceMapping::Merge,
            strict: true,
            ..Options::default()
        };
        Workload::from_reader("c", Box::new(std::io::Cursor::new(text.as_bytes().to_vec())), &options)
            .unwrap()
            .map(|r| r.unwrap())
            .map(|r| (r.at.0, r.sector.0, r.sectors, r.op))
            .collect()
    };
    let want = vec![(0, 8, 8, ReqOp::Write), (1500, 16, 1, ReqOp::Read)];
    assert_eq!(
        read("ts,type,lba,len\n5,W,8,4096\n6.5,Read,16,512\n", "time=ts:us,op=type,sector=lba,bytes=len"),
        want
    );
    assert_eq!(read("0 4096 1 8 0\n1500 8192 0 1 0\n", "time=1:ns,offset=2,op=3:0,sectors=4"), want);
    // Alibaba's cloud traces: device, opcode, offset, length, timestamp in µs.
    let alibaba = "7,W,4096,4096,1577808000000046\n7,R,8192,512,1577808000000047.5\n";
    assert_eq!(read(alibaba, "device=1,op=2,offset=3,bytes=4,time=5:us"), want);
    let want = vec![(0, 8, 8, ReqOp::Discard), (0, 0, 0, ReqOp::Flush)];
    assert_eq!(
        read("\"op\";\"at\";\"n\"\n\"trim\";1;1\nflush;;\n", "op=op,sector=at:4K,sectors=n:pages"),
        want
    );
}
