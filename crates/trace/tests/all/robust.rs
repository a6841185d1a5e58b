//! Damaged input of every kind: no panic, always termination, and no request that was not in the
//! original.

use crate::samples::samples;
use frit_trace::{Columns, DeviceMapping, Options, Request, Workload};
use proptest::prelude::*;
use std::io::{Cursor, Write};

/// Reads everything; returns the requests so far, and the result at the end.
fn read(bytes: &[u8], options: &Options) -> (Vec<Request>, Result<frit_trace::Problems, String>) {
    let mut all = Vec::new();
    let mut workload = match Workload::from_reader("sample", Box::new(Cursor::new(bytes.to_vec())), options) {
        Ok(w) => w,
        Err(e) => return (all, Err(e.to_string())),
    };
    let mut batch = Vec::new();
    loop {
        match workload.fill(&mut batch) {
            Ok(true) => all.extend_from_slice(&batch),
            Ok(false) => return (all, Ok(workload.problems())),
            Err(e) => return (all, Err(e.to_string())),
        }
    }
}

fn merged() -> Options {
    Options { devices: DeviceMapping::Merge, ..Options::default() }
}

fn named(format: &str) -> Options {
    let mut o = Options { format: Some(format.into()), ..merged() };
    if format == "csv" {
        o.columns = Some("time=1:us,op=2,sector=3,sectors=4".parse::<Columns>().unwrap());
    }
    o
}

const FORMATS: [&str; 12] = [
    "recorded",
    "fio3",
    "fio2",
    "vscsi",
    "msr",
    "spc",
    "blkparse",
    "fiu",
    "biotracer",
    "diskmon",
    "disksim",
    "csv",
];

#[test]
fn every_sample_is_recognised_and_read_whole() {
    for (format, bytes, requests) in samples() {
        let w = Workload::from_reader("s", Box::new(Cursor::new(bytes.clone())), &merged()).unwrap();
        assert_eq!(w.reading().format, format);
        let (all, end) = read(&bytes, &Options { strict: true, ..merged() });
        assert_eq!((all.len(), end.as_ref().err()), (requests, None), "{format}");
        assert!(end.unwrap().is_clean(), "{format}");
    }
}

#[test]
fn a_cut_at_every_byte_only_shortens() {
    for (format, bytes, _) in samples() {
        let (whole, _) = read(&bytes, &merged());
        for n in 0..bytes.len() {
            let (part, _) = read(&bytes[..n], &named(format));
            assert!(part.len() <= whole.len(), "{format} at {n}");
            // All requests are unchanged, except possibly the last line, which lost its end.
            let sure = part.len().saturating_sub(2);
            assert_eq!(part[..sure], whole[..sure], "{format} at {n}");
            let _ = read(&bytes[..n], &merged());
        }
    }
}

type Packer = fn(&[u8]) -> Vec<u8>;

fn packers() -> [(&'static str, Packer); 4] {
    [
        ("gzip", |b| {
            let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            e.write_all(b).unwrap();
            e.finish().unwrap()
        }),
        ("zstd", |b| zstd::encode_all(b, 3).unwrap()),
        ("xz", |b| {
            let mut e = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(3)).unwrap();
            e.write_all(b).unwrap();
            e.finish().unwrap()
        }),
        ("bzip2", |b| {
            let mut e = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
            e.write_all(b).unwrap();
            e.finish().unwrap()
        }),
    ]
}

#[test]
fn compression_is_seen_through_and_a_cut_delivers_what_was_before() {
    for (format, bytes, requests) in samples() {
        let (whole, _) = read(&bytes, &merged());
        for (name, pack) in packers() {
            let packed = pack(&bytes);
            let w = Workload::from_reader("s", Box::new(Cursor::new(packed.clone())), &merged()).unwrap();
            assert_eq!((w.reading().container, w.reading().format.as_str()), (vec![name.to_owned()], format));
            assert_eq!(read(&packed, &merged()).0.len(), requests, "{format} in {name}");
            for n in 1..packed.len() {
                let (part, end) = read(&packed[..n], &named(format));
                assert!(whole.starts_with(&part), "{format} in {name} at {n}");
                match end {
                    Ok(p) => {
                        assert!(p.cut.is_some() || part.len() == whole.len(), "{format} in {name} at {n}");
                    }
                    Err(e) => assert!(part.is_empty() && !e.is_empty(), "{format} in {name} at {n}: {e}"),
                }
            }
        }
    }
}

#[test]
fn a_cut_in_the_middle_of_a_long_compressed_trace_is_told_with_its_place() {
    let text: String = (0..200_000u64).map(|i| format!("{},0,{},8,\n", i * 10, i * 7919 % 100_000)).collect();
    let text = format!("time_us,op,sector,sectors,flags\n{}", text.replace(",0,", ",W,"));
    for (name, pack) in packers() {
        let packed = pack(text.as_bytes());
        let half = &packed[..packed.len() * 3 / 4];
        let (part, end) = read(half, &merged());
        // xz and bzip2 deliver whole chunks; the data before the truncated chunk is read.
        assert!(part.len() > 50_000 && part.len() < 190_000, "{name}: {}", part.len());
        let cut = end.unwrap().cut.unwrap();
        assert!(cut.contains(&format!("{} compressed bytes", half.len())), "{cut}");
        let e = read(half, &Options { strict: true, ..merged() }).1.unwrap_err();
        assert!(e.contains("truncated"), "{name}: {e}");
    }
}

#[test]
fn tar_inside_compression_inside_tar_is_seen_through() {
    let (format, bytes, requests) = samples().remove(0);
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, data: &[u8]| {
        let mut h = tar::Header::new_gnu();
        h.set_size(data.len() as u64);
        h.set_cksum();
        tar.append_data(&mut h, name, data).unwrap();
    };
    add("empty", b"");
    add(&format!("{}/hm_0.csv.gz", "long".repeat(40)), &packers()[0].1(&bytes));
    add("other.csv", b"nothing here");
    let packed = packers()[1].1(&tar.into_inner().unwrap());
    let w = Workload::from_reader("s", Box::new(Cursor::new(packed.clone())), &merged()).unwrap();
    assert_eq!(w.reading().format, format);
    assert!(w.reading().container[1].ends_with("hm_0.csv.gz"), "{:?}", w.reading().container);
    assert_eq!(w.reading().container.len(), 3);
    let (all, end) = read(&packed, &merged());
    assert_eq!(all.len(), requests);
    assert!(end.unwrap().notes[0].contains("other.csv"));
    let member = |m: &str| read(&packed, &Options { member: Some(m.into()), ..merged() });
    assert!(member("absent").1.unwrap_err().contains("other.csv"));
    assert!(member("other").1.is_err());
}

#[test]
fn long_lines_blank_files_and_garbage_are_clear_errors() {
    let error = |b: &[u8]| read(b, &merged()).1.unwrap_err();
    assert!(error(b"").contains("empty"));
    assert!(error(b"\n  \n").contains("empty"));
    assert!(error(&packers()[1].1(b"")).contains("empty inside"));
    assert!(error(&[0xfe, 0xed, 1, 2, 3, 4, 200].repeat(500)).contains("binary"));
    assert!(error(b"Dear reader,\nthis is no trace.\n").contains("Dear reader"));
    assert!(error(b"time_us,op,sector,sectors,flags\n").contains("no request"));
    assert!(error(b"fio version 3 iolog\n").contains("no request"));
    let long = [b"0,W,8,8,\n".repeat(3), vec![b'7'; 1 << 20], b"\n1,R,8,8,\n".to_vec()].concat();
    let (all, end) = read(&long, &merged());
    assert_eq!((all.len(), end.unwrap().malformed), (4, 1));
}

#[test]
fn a_text_of_which_some_lines_match_a_format_is_not_recognised() {
    let tsv = |words: usize| {
        let line = |i: usize| format!("{i}\t0\t{}\t8\t{}\n", i * 24, if i % 20 < words { "W" } else { "1" });
        "ts\tdev\tlba\tlen\top\n".to_owned() + &(0..400).map(line).collect::<String>()
    };
    let e = read(tsv(10).as_bytes(), &merged()).1.unwrap_err();
    for part in [
        "is not recognised",
        "nearest: DiskSim ASCII",
        "201 of 401 lines",
        "line 2: operation is neither",
        "--format disksim",
    ] {
        assert!(e.contains(part), "{part}: {e}");
    }
    // The user may name the format, and few malformed lines are counted.
    let (all, end) = read(tsv(10).as_bytes(), &named("disksim"));
    assert_eq!((all.len(), end.unwrap().malformed), (200, 201));
    let (all, end) = read(tsv(1).as_bytes(), &merged());
    assert_eq!((all.len(), end.unwrap().malformed), (380, 21));
    // A long preamble has another form, but the trace after it does not.
    let preamble = "host: alpha, 4 disks\n".repeat(1000) + &tsv(0);
    assert_eq!(read(preamble.as_bytes(), &merged()).0.len(), 400);
}

#[test]
fn a_decimal_comma_is_named() {
    let text: String = (0..20).map(|i| format!("{i},5 0 {} 8 1\n", i * 24)).collect();
    let e = read(text.as_bytes(), &merged()).1.unwrap_err();
    assert!(e.contains("nearest: DiskSim ASCII") && e.contains("decimal commas"), "{e}");
    let e = read(text.as_bytes(), &named("disksim")).1.unwrap_err();
    assert!(e.contains("decimals are written with a point"), "{e}");
    let columns = "time=1:ms,op=2,offset=3,bytes=4,delimiter=semicolon".parse::<Columns>().unwrap();
    let csv = Options { columns: Some(columns), ..merged() };
    let e = read(b"t;op;offset;bytes\n0,5;W;0;4096\n", &csv).1.unwrap_err();
    assert!(e.contains("decimals are written with a point"), "{e}");
}

#[test]
fn byte_addresses_of_a_disksim_trace_are_read_when_stated() {
    let text: String = (0..50u64).map(|i| format!("{i}.125 0 {} 4096 0\n", i * i % 31 * 8192)).collect();
    let e = read(text.as_bytes(), &merged()).1.unwrap_err();
    assert!(e.starts_with("sample: unit of sizes") && e.contains("--size-unit bytes"), "{e}");
    let bytes = Options { size_unit: Some(frit_trace::SizeUnit::BYTES), ..merged() };
    let all = read(text.as_bytes(), &bytes).0;
    assert_eq!(all.len(), 50);
    assert!(all.iter().zip(0u64..).all(|(r, i)| (r.sector.0, r.sectors) == (i * i % 31 * 16, 8)));
}

#[test]
fn malformed_lines_are_counted_with_number_and_reason() {
    let text = "time_us,op,sector,sectors,flags\n0,W,8,8,\n\n# a comment\n5,W,8,0,\n6,X,8,8,\n7,R,-8,8,\n\
                8,R,99999999999999999999,8,\n9,R,36028797018963967,8,\n3,R,16,8,M\r\n12,R,1\n13,R,8,8,,,\n14,F,0,0,\n";
    let (all, end) = read(text.as_bytes(), &merged());
    let p = end.unwrap();
    assert_eq!((all.len(), p.malformed, p.backwards), (3, 7, 0));
    let told: Vec<(u64, &str)> = p.shown.iter().map(|m| (m.line, m.reason)).collect();
    assert_eq!(told[0], (5, "size is zero"));
    assert_eq!(told[1], (6, "unknown operation"));
    assert_eq!(told[2], (7, "negative number"));
    assert_eq!(told[3], (8, "number too large"));
    assert_eq!(told[4], (9, "address and size reach past 2^64 bytes"));
    let e = read(text.as_bytes(), &Options { strict: true, ..merged() }).1.unwrap_err();
    assert!(e.contains("line 5") && e.contains("size is zero"), "{e}");
}

#[test]
fn times_that_run_backwards_are_kept_in_place_and_counted() {
    let (all, end) = read(b"100,W,8,8,\n50,W,16,8,\n200,W,24,8,\n150,R,8,8,\n", &merged());
    let at: Vec<u64> = all.iter().map(|r| r.at.0 / 1000).collect();
    let p = end.unwrap();
    assert_eq!((at, p.backwards, p.backwards_max.0), (vec![0, 0, 100, 100], 2, 50_000));
    let gap = Options { max_gap: Some(frit_core::Nanos(30_000)), ..merged() };
    assert_eq!(read(b"0,W,8,8,\n1000,W,8,8,\n1010,W,8,8,\n", &gap).0[2].at.0, 40_000);
}

#[test]
fn every_format_is_read_in_whole_pages_when_asked() {
    for (format, bytes, requests) in samples() {
        let plain = read(&bytes, &named(format)).0;
        let all = read(&bytes, &Options { whole_pages: true, ..named(format) }).0;
        assert_eq!((all.len(), plain.len()), (requests, requests), "{format}");
        for (r, was) in all.iter().zip(&plain) {
            assert!(r.sector.0.is_multiple_of(8) && r.sectors.is_multiple_of(8), "{format}: {r:?}");
            assert!(r.sector <= was.sector && r.end() + 1 >= was.end(), "{format}: {r:?} of {was:?}");
            assert_eq!((r.sectors == 0, r.at, r.op), (was.sectors == 0, was.at, was.op), "{format}");
        }
    }
}

#[test]
fn shuffled_lines_lose_nothing() {
    for (format, bytes, requests) in samples() {
        if matches!(format, "vscsi" | "fio2") {
            continue;
        }
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        lines.reverse();
        let half = lines.len() / 2;
        lines.swap(0, half);
        assert_eq!(read(&lines.concat(), &named(format)).0.len(), requests, "{format}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), format in 0usize..12) {
        let _ = read(&bytes, &merged());
        let _ = read(&bytes, &named(FORMATS[format]));
    }

    #[test]
    fn random_text_never_panics(text in "[0-9 ,.RWrw:+\\-\ta-f\n]{0,400}", format in 0usize..12) {
        let (all, _) = read(text.as_bytes(), &named(FORMATS[format]));
        prop_assert!(all.windows(2).all(|w| w[0].at <= w[1].at));
        prop_assert!(all.iter().all(|r| (r.sectors > 0) != (r.op == frit_trace::ReqOp::Flush)));
    }

    #[test]
    fn mutated_samples_never_panic(sample in 0usize..11, edits in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..20)) {
        let (format, mut bytes, _) = samples().remove(sample);
        for (at, byte) in edits {
            let n = bytes.len();
            bytes[usize::from(at) % n] = byte;
        }
        let (all, _) = read(&bytes, &merged());
        prop_assert!(all.iter().all(|r| r.end() <= frit_trace::request::SECTOR_LIMIT));
        let _ = read(&bytes, &named(format));
        let (_, end) = read(&bytes, &Options { strict: true, ..named(format) });
        let _ = end;
        for (_, pack) in packers() {
            let mut packed = pack(&bytes);
            let n = packed.len();
            packed[n / 2] ^= 0x55;
            let _ = read(&packed, &merged());
        }
    }
}
