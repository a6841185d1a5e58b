//! Commands of devices in traces: names, formats that have them and formats that refuse them, statistics,
//! and options that move addresses.

use frit_core::{Hints, Nanos, Sector};
use frit_trace::write::{WRITABLE, WriteFormat, Writer};
use frit_trace::{DeviceCommand, Fit, Options, ReqOp, Request, Scan, SectorCut, Workload};

fn request(at: u64, op: ReqOp, sector: u64, sectors: u32) -> Request {
    let (at, sector) = (Nanos(at), Sector(sector));
    Request { at, sector, sectors, device: 0, op, hints: Hints::NONE, cut: SectorCut::NONE }
}

/// One request of every command, with plain ones between them.
fn every_command() -> Vec<Request> {
    let pair = |(i, &c): (usize, &DeviceCommand)| {
        let at = i as u64 * 1000;
        [request(at, ReqOp::Command(c), 8 * i as u64, 16), request(at + 500, ReqOp::Write, 8 * i as u64, 8)]
    };
    DeviceCommand::all().iter().enumerate().flat_map(pair).collect()
}

fn read(text: &str, options: &Options) -> frit_trace::Result<Vec<Request>> {
    Workload::from_reader("t", Box::new(std::io::Cursor::new(text.to_owned())), options)?.collect()
}

#[test]
fn the_recorded_format_has_every_command() {
    let dir = tempfile::tempdir().unwrap();
    for devices in [false, true] {
        let path = dir.path().join(format!("{devices}.csv"));
        let mut w = Writer::create(path.to_str().unwrap(), WriteFormat::Recorded, devices).unwrap();
        w.write(&every_command(), &["0".to_owned()]).unwrap();
        assert_eq!(w.finish().unwrap().requests, 22);
        let text = std::fs::read_to_string(path).unwrap();
        let tail = if devices { ",0" } else { "" };
        assert!(text.contains(&format!("\n2,write-clean,16,16,{tail}\n2.500,W,16,8,{tail}\n")), "{text}");
        assert_eq!(read(&text, &Options { strict: true, ..Options::default() }).unwrap(), every_command());
    }
}

#[test]
fn columns_take_the_names_as_operations() {
    let options = Options {
        columns: Some("time=ts:us,op=type,sector=lba,sectors=n".parse().unwrap()),
        strict: true,
        ..Options::default()
    };
    let text = "ts,type,lba,n\n0,Write-Clean,8,8\n1,zone-reset,0,64\n2,write,0,8\n";
    let expected = [
        request(0, ReqOp::Command(DeviceCommand::WriteClean), 8, 8),
        request(1000, ReqOp::Command(DeviceCommand::ZoneReset), 0, 64),
        request(2000, ReqOp::Write, 0, 8),
    ];
    assert_eq!(read(text, &options).unwrap(), expected);
}

#[test]
fn bad_lines_are_refused_with_a_reason() {
    let options = Options { strict: true, ..Options::default() };
    for (line, reason) in [
        ("5,write-dirtyy,0,8,", "unknown operation"),
        ("5,write,0,8,", "unknown operation"),
        ("5,evict", "too few fields"),
        ("5,evict,0,0,", "size is zero"),
        ("5,evict,0,4096,B", "a command has whole sectors"),
    ] {
        let text = format!("time_us,op,sector,sectors,flags\n0,W,0,8,\n{line}\n");
        let e = read(&text, &options).unwrap_err().to_string();
        assert!(e.contains("line 3") && e.contains(reason), "{line}: {e}");
    }
}

#[test]
fn other_formats_refuse_commands_and_write_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let requests =
        [request(0, ReqOp::Write, 0, 8), request(1, ReqOp::Flush, 0, 0), request(2, ReqOp::Discard, 0, 8)];
    for (name, format) in WRITABLE.into_iter().filter(|w| w.1 != WriteFormat::Recorded) {
        for &command in DeviceCommand::all() {
            let mut w = Writer::create(path.to_str().unwrap(), format, false).unwrap();
            w.write(&requests, &[]).unwrap();
            let e = w.write(&[request(3, ReqOp::Command(command), 72, 8)], &[]).unwrap_err().to_string();
            for part in [name, command.name(), "request 4", "sector 72", "recorded"] {
                assert!(e.contains(part), "{part}: {e}");
            }
        }
        assert!(!path.exists(), "{name}");
    }
}

#[test]
fn a_scan_counts_commands_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let text = "time_us,op,sector,sectors,flags\n0,evict,80,16,\n1,W,0,8,\n2,evict,0,8,\n3,clean,0,8,\n";
    std::fs::write(&path, text).unwrap();
    let s = Scan::of(path.to_str().unwrap(), &Options::default()).unwrap();
    let counts: Vec<_> = s.commands.iter().map(|c| (c.command, c.requests, c.bytes)).collect();
    assert_eq!(counts, [("evict", 2, 24 * 512), ("clean", 1, 8 * 512)]);
    assert_eq!((s.requests, s.writes.count, s.reads.count, s.discards.count), (4, 1, 0, 0));
    assert_eq!((s.end_sector, s.footprint_pages), (96, 1));
}

#[test]
fn commands_keep_their_addresses_and_sizes() {
    let text = "time_us,op,sector,sectors,flags\n0,evict,0,8,\n1,W,100,9,\n2,evict,96,9,\n";
    let open = |o: &Options| Workload::from_reader("t", Box::new(std::io::Cursor::new(text)), o).unwrap();
    let all = |fit| -> frit_trace::Result<Vec<Request>> {
        open(&Options::default()).fit(fit, 100, None).unwrap().collect()
    };
    for (fit, option, sector) in
        [(Fit::Wrap, "--wrap", "sector 96"), (Fit::Compact { chunk: 4096 }, "--compact", "sector 0")]
    {
        let e = all(fit).unwrap_err().to_string();
        assert!(e.contains("evict") && e.contains(sector) && e.contains(option), "{e}");
    }
    // A command inside the volume needs no other address.
    let inside = "time_us,op,sector,sectors,flags\n0,evict,0,8,\n1,W,100,9,\n";
    let w = Workload::from_reader("t", Box::new(std::io::Cursor::new(inside)), &Options::default()).unwrap();
    let got: Vec<Request> = w.fit(Fit::Wrap, 100, None).unwrap().map(|r| r.unwrap()).collect();
    assert_eq!(got.iter().map(|r| r.sector.0).collect::<Vec<_>>(), [0, 0]);
    // --whole-pages changes requests of blocks only.
    let pages: Vec<Request> =
        open(&Options { whole_pages: true, ..Options::default() }).map(|r| r.unwrap()).collect();
    let sizes: Vec<(u64, u32)> = pages.iter().map(|r| (r.sector.0, r.sectors)).collect();
    assert_eq!(sizes, [(0, 8), (96, 16), (96, 9)]);
}
