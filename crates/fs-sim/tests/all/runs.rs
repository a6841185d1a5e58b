//! Benchmark runs: they are repeatable, verified, work on every memory, and agree between engines.

use frit_core::{Nanos, Sink};
use frit_engine::sched::Fifo;
use frit_engine::{Event, InOrder};
use frit_fs::{Caller, Clock, FileSystem, FormatOptions, Fs, Ino, NewInode};
use frit_fs_sim::bench::{BenchOptions, BenchReport, run};
use frit_fs_sim::{Area, Devices, HostModel, SimMedium};

fn options(profile: &str, host: &str) -> BenchOptions {
    BenchOptions {
        profile: profile.into(),
        host: host.into(),
        size: Some(16 << 20),
        file: 256 << 10,
        records: vec![1 << 10, 16 << 10],
        names: 100,
        seed: 3,
        sums: false,
        verify: true,
    }
}

const PAPER: &str = "lpddr2-nvm-ispfs-2018";

fn of<'r>(
    report: &'r BenchReport,
    name: &str,
    record: Option<u64>,
) -> &'r frit_fs_sim::bench::PatternMetrics {
    report.measured.iter().find(|m| m.name == name && m.record == record).unwrap()
}

#[test]
fn a_run_is_verified_and_the_same_again() {
    let first = run(&options(PAPER, "zedboard-2018")).unwrap();
    let checked = first.verified.as_ref().unwrap();
    // Two reads of the file with each record size, and one after a recovery.
    assert_eq!((checked.mismatches, checked.bytes), (0, 5 * (256 << 10)), "{:?}", checked.first);
    assert!(checked.names >= 300);
    assert_eq!(run(&options(PAPER, "zedboard-2018")).unwrap(), first);
    let other = BenchOptions { seed: 4, ..options(PAPER, "zedboard-2018") };
    assert_ne!(run(&other).unwrap().measured, first.measured, "another seed, another order");
    // The comparison must not affect the metrics.
    let plain = BenchOptions { verify: false, ..options(PAPER, "zedboard-2018") };
    assert_eq!(run(&plain).unwrap().measured, first.measured);
}

#[test]
fn checksums_of_contents_have_their_price() {
    let with = run(&BenchOptions { sums: true, ..options(PAPER, "zedboard-2018") }).unwrap();
    assert_eq!(with.verified.as_ref().unwrap().mismatches, 0);
    for name in ["reread", "rewrite"] {
        let m = of(&with, name, Some(16 << 10));
        assert!(m.areas.iter().any(|a| a.area == Area::Sums), "{name}");
    }
    let without = run(&options(PAPER, "zedboard-2018")).unwrap();
    assert!(without.measured.iter().flat_map(|m| &m.areas).all(|a| a.area != Area::Sums));
    let mb_s = |r: &BenchReport| of(r, "reread", Some(16 << 10)).mb_s;
    assert!(mb_s(&with) < mb_s(&without));
}

#[test]
fn figures_are_those_of_the_table_of_fences() {
    let r = run(&options(PAPER, "zedboard-2018")).unwrap();
    for name in ["stat", "create", "rename", "unlink"] {
        let m = of(&r, name, None);
        let least = if name == "stat" { 0 } else { m.operations };
        // A directory that grows takes one more fence.
        assert!((least..least + 6).contains(&m.fences), "{name}: {}", m.fences);
        assert_eq!(m.areas.iter().any(|a| a.area == Area::Journal), name != "stat");
    }
    let rewrite = of(&r, "rewrite", Some(16 << 10));
    assert_eq!((rewrite.fences, rewrite.metadata_bytes, rewrite.operations), (0, 0, 16));
    assert_eq!(rewrite.write_amplification, Some(1.0));
    let write = of(&r, "write", Some(1 << 10));
    assert!(write.fences >= write.operations && write.write_amplification.unwrap() > 1.0);
    let reread = of(&r, "reread", Some(16 << 10));
    assert!(reread.busy.iter().any(|b| b.part == "link" && b.share > 0.9), "{:?}", reread.busy);
    assert!(r.measured.iter().flat_map(|m| &m.busy).all(|b| (0.0..=1.0).contains(&b.share)));
}

#[test]
fn every_durable_memory_takes_a_file_system() {
    for profile in frit_media::Profile::builtins().unwrap() {
        let plays = run(&options(&profile.name, "direct"));
        if profile.medium == frit_core::MediumKind::Pcm {
            assert_eq!(plays.unwrap().verified.unwrap().mismatches, 0, "{}", profile.name);
        } else {
            assert!(plays.unwrap_err().to_string().contains("byte-addressable"), "{}", profile.name);
        }
    }
}

#[test]
fn wrong_options_are_refused_by_name() {
    let good = options(PAPER, "direct");
    for (wrong, part) in [
        (BenchOptions { records: vec![1500], ..good.clone() }, "records"),
        (BenchOptions { file: 3000, ..good.clone() }, "file"),
        (BenchOptions { records: vec![], names: 0, ..good.clone() }, "nothing to play"),
        (BenchOptions { profile: "pcm-p8".into(), ..good.clone() }, "no such profile"),
        (BenchOptions { host: "zed".into(), ..good.clone() }, "no such host"),
        (BenchOptions { size: Some(1 << 40), ..good.clone() }, "size"),
        (BenchOptions { size: Some(64 << 10), ..good.clone() }, "--size"),
        (BenchOptions { file: 64 << 20, ..good }, "no space"),
    ] {
        let e = run(&wrong).unwrap_err().to_string();
        assert!(e.contains(part), "{part}: {e}");
    }
}

/// Returns the latencies of a few operations.
fn latencies(host: &str, engine: impl FnOnce(&Devices) -> Sink) -> Vec<Nanos> {
    let parts = Devices::new(PAPER, HostModel::find(host).unwrap(), Some(16 << 20)).unwrap();
    let sink = engine(&parts);
    let medium = SimMedium::new(parts, sink).unwrap();
    let me = Caller::ROOT;
    let mut took = Vec::new();
    let format = FormatOptions { uuid: Some(7), clock: Clock::counted(1), ..FormatOptions::default() };
    let (fs, t) = medium.operation(|| Fs::format(&medium, format).unwrap());
    took.push(t);
    for i in 0..20_u8 {
        let (file, t) =
            medium.operation(|| fs.create(&me, Ino::ROOT, &[b'a' + i], NewInode::file(0o644)).unwrap().ino);
        took.push(t);
        took.push(medium.operation(|| fs.write(file, 0, &[i; 3000]).unwrap()).1);
        took.push(medium.operation(|| fs.write(file, 5, &[i; 2000]).unwrap()).1);
        took.push(medium.operation(|| fs.read(file, 0, &mut [0; 3000]).unwrap()).1);
        took.push(medium.operation(|| fs.sync_file(file, true).unwrap()).1);
    }
    took
}

#[test]
fn the_zeros_of_formatting_count_for_their_regions() {
    let mut parts = Devices::new(PAPER, HostModel::find("direct").unwrap(), Some(16 << 20)).unwrap();
    parts.sums = true;
    let sink = Sink::new(InOrder::new(&parts.hardware));
    let medium = SimMedium::new(parts, sink).unwrap();
    drop(Fs::format(&medium, FormatOptions { sums: true, ..FormatOptions::default() }).unwrap());
    let traffic = medium.traffic();
    let written = |area| traffic.of(area).written_bytes;
    // One range of zeros covers the registers, the ledger and the list of orphans.
    for area in [Area::Registers, Area::Ledger, Area::Orphans, Area::Sums] {
        assert!(written(area) >= 4096, "{}: {} bytes", area.name(), written(area));
    }
    // The registers are one block, whose header is written by the first open.
    assert_eq!(written(Area::Registers), 4096 + 512);
}

#[test]
fn the_event_engine_says_the_same() {
    for host in ["zedboard-2018", "zedboard-2018,software=3 us,copy_per_byte=2 ns", "direct"] {
        let in_order = latencies(host, |p| Sink::new(InOrder::new(&p.hardware)));
        let event = latencies(host, |p| Sink::new(Event::new(&p.hardware, Fifo)));
        assert_eq!(in_order, event, "{host}");
        assert!(in_order.iter().all(|t| *t > Nanos::ZERO) || host == "direct");
    }
}
