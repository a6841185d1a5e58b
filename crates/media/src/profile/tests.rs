//! Tests of profiles: values of the published tables, sources, overrides, and errors.

use super::*;
use crate::disk::{Background, DriveModel};
use crate::{NandGeometry, PlaneOps, TimingModel};
use frit_core::{Cause, Cmd, Nanos, Op, UnitId};

fn resolve(toml: &str) -> Result<MediumSpec> {
    toml::from_str::<MediumConfig>(toml).unwrap().resolve("m", Path::new("."))
}

fn error(toml: &str) -> String {
    resolve(toml).unwrap_err().to_string()
}

fn cost(model: &mut TimingModel, op: Op, len: u32) -> Nanos {
    let cmd = Cmd { addr: 0, len, hazard: 0, unit: UnitId(0), op, cause: Cause::Host };
    model.phases(&cmd, Nanos::ZERO).total()
}

#[test]
fn every_builtin_resolves_and_names_a_source_for_every_value() {
    for (p, name) in Profile::builtins().unwrap().into_iter().zip(Profile::builtin_names()) {
        assert_eq!(name, p.name);
        let spec = resolve(&format!("profile = '{}'", p.name)).unwrap();
        assert_eq!(spec.kind(), p.medium);
        assert!(spec.bytes() > 0 && spec.store_bytes() >= spec.bytes());
        assert!(p.about.len() > 40, "{}: about", p.name);
        for row in p.rows() {
            assert!(row.source.len() > 3, "{}.{} has no source", p.name, row.key);
            assert!(!row.value.is_empty() && !row.help.is_empty());
        }
    }
}

#[test]
fn table_7_comes_out_exactly() {
    let MediumSpec::Nand(nand) = resolve("profile = 'slc-k9-2016'").unwrap() else { panic!() };
    let mut m = TimingModel::Nand(nand.timing);
    assert_eq!(cost(&mut m, Op::NandRead, 2048), Nanos(75_500));
    assert_eq!(cost(&mut m, Op::NandProgram, 2048), Nanos(213_200));
    assert_eq!(cost(&mut m, Op::NandErase, 0), Nanos(1_500_000));

    let MediumSpec::Pcm(pcm) = resolve("profile = 'pcm-p8p-2016'").unwrap() else { panic!() };
    let mut m = TimingModel::Pcm(pcm.timing);
    for (bytes, read, write) in [(128, 12_800, 20_700), (256, 24_600, 45_900), (512, 45_900, 93_500)] {
        assert_eq!(cost(&mut m, Op::PcmRead, bytes), Nanos(read));
        assert_eq!(cost(&mut m, Op::PcmWrite, bytes), Nanos(write));
    }
    assert_eq!(cost(&mut m, Op::PcmWrite, 2), cost(&mut m, Op::PcmWrite, 16));
}

#[test]
fn table_6_comes_out_exactly() {
    let MediumSpec::Nand(nand) = resolve("profile = 'slc-k9-2016'").unwrap() else { panic!() };
    let g = nand.geometry;
    assert_eq!(g.bytes(), 32 << 30);
    assert_eq!((g.channels, g.units(), g.page_bytes, g.pages_per_block), (8, 16, 2048, 64));
    assert_eq!(g.bytes() / u64::from(g.channels * g.chips_per_channel), 2 << 30);
    let MediumSpec::Pcm(pcm) = resolve("profile = 'pcm-p8p-2016'").unwrap() else { panic!() };
    assert_eq!(pcm.geometry.bytes(), 256 << 20);
    assert_eq!((pcm.geometry.channels, pcm.geometry.chips_per_channel), (2, 8));
}

#[test]
fn modern_profiles_meet_what_they_cite() {
    let model = |p: &str| match resolve(&format!("profile = '{p}'")).unwrap() {
        MediumSpec::Nand(c) => c.timing_model(),
        MediumSpec::Pcm(c) => TimingModel::Pcm(c.timing),
        MediumSpec::Dram(c) => TimingModel::Dram(c.timing),
        MediumSpec::Disk(c) => match c.drive {
            DriveModel::SolidState(drive) => TimingModel::SolidState(drive),
            DriveModel::Mechanical(_) => panic!("{p}"),
        },
        MediumSpec::Object(c) => TimingModel::Object(c.timing),
    };
    let mut optane = model("dimm-optane-2019");
    assert_eq!(cost(&mut optane, Op::PcmRead, 64), Nanos(305));
    assert_eq!(cost(&mut optane, Op::PcmWrite, 64), Nanos(94));
    let gb_s = |bytes: u64, t: Nanos| bytes as f64 / t.0 as f64;
    let long = |m: &mut TimingModel, op| gb_s(8 << 20, cost(m, op, 8 << 20));
    assert!((long(&mut optane, Op::PcmRead) - 6.6).abs() < 0.3, "{}", long(&mut optane, Op::PcmRead));
    assert!((long(&mut optane, Op::PcmWrite) - 2.3).abs() < 0.1);
    // 16 KB at 1200 MT/s over 8 bits.
    assert_eq!(cost(&mut model("tlc-2020"), Op::NandRead, 16384), Nanos(45_000 + 13_648));
    assert_eq!(cost(&mut model("qlc-2020"), Op::NandProgram, 16384), Nanos(1_860_000 + 20_480));
    assert_eq!(cost(&mut model("bnvm-pcm-2019"), Op::PcmWriteClean, 4096), Nanos::from_us(200.0));
    assert_eq!(cost(&mut model("bnvm-pcm-2019"), Op::PcmRefresh, 512 << 10), Nanos(100_000_000));
    // A put and a get of 4 MiB at 87.5 MB/s, the bandwidth of a connection.
    let mut s3 = model("s3-standard-2019");
    let transfer = |base: f64| Nanos::from_us(base + 4_194_304.0 / 87.5);
    let near = |a: Nanos, b: Nanos| a.0.abs_diff(b.0) < 10_000;
    assert!(near(cost(&mut s3, Op::ObjectPut, 4 << 20), transfer(60_000.0)));
    assert!(near(cost(&mut s3, Op::ObjectGet, 4 << 20), transfer(30_000.0)));
    assert_eq!(cost(&mut model("s3-express-2023"), Op::ObjectDelete, 0), Nanos::from_us(5000.0));
    let mut nvme = model("nvme-p4500-2017");
    assert_eq!(cost(&mut nvme, Op::DiskRead, 4096), Nanos(85_002));
    assert_eq!(cost(&mut nvme, Op::DiskWrite, 4096), Nanos(19_999));
    assert_eq!(cost(&mut nvme, Op::DiskFlush, 0), Nanos(16_100));
    assert_eq!(cost(&mut model("ram-disk-ddr4"), Op::DiskRead, 4096), Nanos(101 + 193));
    let ddr = cost(&mut model("dram-ddr4"), Op::DramRead, 4096);
    assert_eq!(ddr, Nanos(101 + 193));
    for (p, tera) in [("tlc-2020", 2.2), ("qlc-2020", 2.2)] {
        let MediumSpec::Nand(c) = resolve(&format!("profile = '{p}'")).unwrap() else { panic!() };
        assert!((c.geometry.bytes() as f64 / 1e12 - tera).abs() < 0.01, "{p}");
    }
}

#[test]
fn pages_have_the_latencies_of_their_types() {
    let model = |toml: &str| match resolve(toml).unwrap() {
        MediumSpec::Nand(c) => c.timing_model(),
        other => panic!("{other:?}"),
    };
    let at = |model: &mut TimingModel, op, page| {
        let cmd = Cmd { addr: page, len: 16384, hazard: 0, unit: UnitId(0), op, cause: Cause::Host };
        model.phases(&cmd, Nanos::ZERO).array
    };
    let mut tlc = model("profile = 'tlc-pages-2018'");
    // Pages 5, 6 and 12 of a block of 1152 pages are LSB, CSB and MSB.
    for (page, read, program) in [(5, 56.5, 820.5), (6, 77.5, 2225.0), (1152 * 7 + 12, 106.0, 5734.0)] {
        assert_eq!(at(&mut tlc, Op::NandRead, page), Nanos::from_us(read));
        assert_eq!(at(&mut tlc, Op::NandProgram, page), Nanos::from_us(program));
        assert_eq!(at(&mut tlc, Op::NandErase, page), Nanos::from_us(3000.0));
    }
    assert_eq!(tlc.suspend(), None);
    let mut qlc = model("profile = 'qlc-pages-2022'\npage_order = 'word-line'");
    let reads: Vec<Nanos> = (0..5).map(|page| at(&mut qlc, Op::NandRead, page)).collect();
    assert_eq!(reads, [47.9, 76.2, 134.6, 228.1, 47.9].map(Nanos::from_us));
    assert_eq!(at(&mut qlc, Op::NandProgram, 3), Nanos::from_us(1860.0));
    // One time for all types is the timing without types.
    assert!(matches!(model("profile = 'tlc-2020'\ncell = 'tlc'"), TimingModel::Nand(_)));
    // A stack switches on the suspension of a profile.
    let rules = model("profile = 'tlc-pages-2018'\nsuspend = 'erase'\nt_resume = '7 us'").suspend().unwrap();
    assert_eq!((rules.program, rules.erase.suspend), (None, Nanos::from_us(700.0)));
    assert_eq!((rules.resume, rules.max_suspends, rules.max_reads), (Nanos(7_000), 16, 64));
    let rules = model("profile = 'tlc-pages-2018'\nsuspend = 'program-erase'").suspend().unwrap();
    assert_eq!(rules.program.map(|p| p.suspend), Some(Nanos::from_us(100.0)));
}

#[test]
fn impossible_cells_are_refused_by_key() {
    for (keys, part) in [
        ("t_read = ['1 us', '2 us']", "t_read = 1 us, 2 us: has a time for each type of page, so `cell`"),
        ("cell = 'tlc'\nt_read = ['1 us', '2 us']", "has 2 times; cells of kind `tlc` have 3 types"),
        ("cell = 'mlc'\nt_prog = ['1 us', '0 us']", "t_prog = 1 us, 0 ps: each time has to be"),
        ("page_order = 'word-line'", "page_order = word-line: is an order of types"),
        ("suspend = 'erase'", "t_suspend_erase = (not given)"),
        ("suspend = 'program-erase'\nt_suspend_erase = '1 us'", "t_suspend_program = (not given)"),
        ("max_suspends = 3", "max_suspends = 3: has no effect without `suspend`"),
        ("suspend = 'erase'\nt_suspend_erase = '1 us'\nmax_suspends = 0", "has to be at least 1"),
        ("suspend = 'erase'\nt_suspend_erase = '1 us'\nplane_ops = 'multi'", "plane_ops = multi: cannot"),
    ] {
        let e = error(&format!("profile = 'slc-k9-2016'\n{keys}"));
        assert!(e.contains(part), "{keys}: {e}");
    }
    let e = error("profile = 'nvme-p4500-2017'\nt_read = ['1 us', '2 us']");
    assert!(e.contains("has to be one time"), "{e}");
}

#[test]
fn durable_memories_hold_a_page_on_one_channel_and_make_small_writes_cheap() {
    let pcm = |p: &str| match resolve(&format!("profile = '{p}'")).unwrap() {
        MediumSpec::Pcm(c) => c,
        other => panic!("{other:?}"),
    };
    for p in ["bnvm-pcm-2019", "bnvm-pcm-bytes", "reram-2014", "mram-2019"] {
        let c = pcm(p);
        assert!(c.geometry.channels >= 4 && c.geometry.interleave_bytes >= 4096, "{p}");
        assert_eq!(c.refresh_bytes.is_some(), p.starts_with("bnvm"), "{p}");
    }
    // A whole page costs the same with and without writes of parts.
    let model = |p| TimingModel::Pcm(pcm(p).timing);
    let (mut whole, mut bytes) = (model("bnvm-pcm-2019"), model("bnvm-pcm-bytes"));
    for (op, share) in [(Op::PcmRead, 1766), (Op::PcmWrite, 4891), (Op::PcmWriteClean, 4109)] {
        assert_eq!(cost(&mut whole, op, 64), cost(&mut whole, op, 4096));
        assert_eq!(cost(&mut bytes, op, 4096), cost(&mut whole, op, 4096));
        assert_eq!(cost(&mut bytes, op, 64), Nanos(share));
    }
    assert_eq!(pcm("bnvm-pcm-bytes").refresh_bytes, Some(512 << 10));
    // The figures in the title of the paper, for large accesses: 1 GB/s and 200 MB/s.
    let mut reram = model("reram-2014");
    let mb_s = |t: Nanos| 65536.0 * 1e3 / t.0 as f64;
    assert!((mb_s(cost(&mut reram, Op::PcmRead, 65536)) - 1000.0).abs() < 50.0);
    assert!((mb_s(cost(&mut reram, Op::PcmWrite, 65536)) - 200.0).abs() < 10.0);
    assert_eq!(pcm("mram-2019").geometry.bytes(), 4 << 30);
}

#[test]
fn the_board_of_the_ispfs_paper_is_as_the_paper_has_it() {
    let MediumSpec::Pcm(c) = resolve("profile = 'lpddr2-nvm-ispfs-2018'").unwrap() else { panic!() };
    let g = c.geometry;
    assert_eq!(g.bytes(), 1 << 30);
    assert_eq!((g.channels, g.groups, g.units(), g.channels * g.chips_per_channel), (2, 2, 4, 8));
    // 150 MB/s per chip with two chips in a group; 9 MB/s for writes.
    let mb_s = |op| {
        let cmd = Cmd { addr: 0, len: 64, hazard: 0, unit: UnitId(0), op, cause: Cause::Host };
        64e3 / c.timing.phases(&cmd).total().0 as f64
    };
    assert!((mb_s(Op::PcmRead) - 300.0).abs() < 1.0, "{}", mb_s(Op::PcmRead));
    assert!((mb_s(Op::PcmWrite) - 18.0).abs() < 0.2, "{}", mb_s(Op::PcmWrite));
}

#[test]
fn what_is_given_overrides_the_profile() {
    let spec = resolve(
        "profile = 'slc-k9-2016'
         channels = 4
         t_prog = '300 us'
         page_bytes = '4K'
         plane_ops = 'independent'
         program_fail = 0.01
         seed = 9",
    );
    let MediumSpec::Nand(c) = spec.unwrap() else { panic!() };
    assert_eq!((c.geometry.channels, c.geometry.page_bytes, c.name.as_str()), (4, 4096, "m"));
    assert_eq!(c.timing.t_prog, Nanos(300_000));
    assert_eq!((c.faults.program_fail, c.faults.seed), (0.01, 9));
    assert_eq!(c.geometry.plane_ops, PlaneOps::Independent);
    assert_eq!(c.geometry.blocks_per_plane, 16384);
}

#[test]
fn a_profile_of_ones_own_is_a_file_and_can_build_on_another() {
    let dir = tempfile::tempdir().unwrap();
    let mine =
        "name = 'mine'\nmedium = 'nand'\nabout = 'x'\n[values]\nprofile = 'slc-k9-2016'\nt_read = '30 us'\n";
    std::fs::write(dir.path().join("mine.toml"), mine).unwrap();
    let config: MediumConfig = toml::from_str("profile = 'mine.toml'\nchannels = 2").unwrap();
    let MediumSpec::Nand(c) = config.resolve("n", dir.path()).unwrap() else { panic!() };
    assert_eq!((c.timing.t_read, c.geometry.channels), (Nanos(30_000), 2));
    assert_eq!(c.geometry, NandGeometry { channels: 2, ..c.geometry });
    assert_eq!(c.timing.t_erase, Nanos(1_500_000));

    let own = mine.replace("'slc-k9-2016'", "'mine.toml'");
    std::fs::write(dir.path().join("mine.toml"), own).unwrap();
    let e = config.resolve("n", dir.path()).unwrap_err().to_string();
    assert!(e.contains("form a cycle"), "{e}");
}

#[test]
fn a_device_without_a_profile_names_every_key() {
    let c = "medium = 'dram'\nbytes = '64M'\nchannels = 2\ninterleave_bytes = 64\nlatency = '50 ns'\n";
    assert!(error(c).contains("per_byte = (not given): is needed"), "{}", error(c));
    assert!(resolve(&format!("{c}per_byte = '40 ps'")).is_ok());
    assert!(error("channels = 2").contains("name a profile"));
    assert!(error("medium = 'disk'").contains("frit disk list"));
}

#[test]
fn errors_name_key_value_and_remedy() {
    for (toml, parts) in [
        ("profile = 'slc'", ["profile = slc", "slc-k9-2016"]),
        ("profile = 'no/such.toml'", ["no/such.toml", "cannot read"]),
        ("profile = 'slc-k9-2016'\npage_bytes = 1000", ["page_bytes = 1000", "multiple of the sector"]),
        ("profile = 'slc-k9-2016'\npage_bytes = '128K'", ["page_bytes = 131072", "64K"]),
        ("profile = 'slc-k9-2016'\nchannels = 0", ["channels = 0", "1 to"]),
        ("profile = 'slc-k9-2016'\nblocks_per_plane = 16000000", ["blocks_per_plane", "4294967294"]),
        ("profile = 'slc-k9-2016'\nt_read = '0 us'", ["t_read = 0 ps", "at least 1 ns"]),
        ("profile = 'slc-k9-2016'\nt_cache_busy = '9 ms'", ["t_cache_busy = 9 ms", "shorter than `t_prog`"]),
        (
            "profile = 'slc-k9-2016'\nt_cache_busy = '3 us'\nplane_ops = 'multi'",
            ["t_cache_busy", "independent"],
        ),
        ("profile = 'slc-k9-2016'\nendurance = 0", ["endurance = 0", "erases"]),
        ("profile = 'slc-k9-2016'\nerase_fail = 1.0", ["erase_fail = 1", "fraction"]),
        ("profile = 'slc-k9-2016'\nwrite_unit = 16", ["write_unit = 16 B", "not a key of a nand medium"]),
        ("profile = 'slc-k9-2016'\nmedium = 'pcm'", ["medium = pcm", "describes a nand medium"]),
        ("profile = 'pcm-p8p-2016'\nwrite_unit = '1K'", ["write_unit = 1024", "power of two from 2 to 512"]),
        ("profile = 'pcm-p8p-2016'\nread = []", ["read = 0 points", "at least one point"]),
        (
            "profile = 'pcm-p8p-2016'\nread = [[64, '9 us'], [128, '5 us']]",
            ["read = 2 points", "larger access"],
        ),
        ("profile = 'pcm-p8p-2016'\nrefresh_bytes = '64K'", ["t_refresh = (not given)", "one refresh"]),
        ("profile = 'dram-ddr4'\nbytes = 0", ["bytes = 0", "256 TiB"]),
    ] {
        let e = error(toml);
        assert!(parts.iter().all(|p| e.contains(p)), "{toml}: {e}");
    }
}

#[test]
fn what_is_no_config_is_refused_with_its_line() {
    for (toml, part) in [
        ("t_read = 25", "time with its unit"),
        ("t_read = '25'", "is not a time"),
        ("t_raed = '25 us'", "unknown field `t_raed`"),
        ("plane_ops = 'many'", "independent"),
        ("page_bytes = '2 apples'", "is not a size"),
    ] {
        let e = toml::from_str::<MediumConfig>(toml).unwrap_err().to_string();
        assert!(e.contains(part) && e.contains("line 1"), "{toml}: {e}");
    }
    let e = Profile::parse("name = 'x'\nmedium = 'nand'\nabout = ''\n[values]\nt_raed = '1 us'")
        .unwrap_err()
        .to_string();
    assert!(e.contains("line 5") && e.ends_with("unknown field `t_raed`; did you mean `t_read`?"), "{e}");
    let e = Profile::parse("name = 'x'\nmedium = 'nand'\nabout = ''\n[values]\n[sources]\nchannels = 'y'")
        .unwrap_err()
        .to_string();
    assert!(e.contains("sources.channels"), "{e}");
}

#[test]
fn a_config_survives_being_written_and_read() {
    for p in Profile::builtins().unwrap() {
        let text = toml::to_string(&p.values).unwrap();
        let back: MediumConfig = toml::from_str(&text).unwrap();
        assert_eq!(back, p.values, "{text}");
    }
}

#[test]
fn the_manual_names_every_key_and_every_profile() {
    let manual =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/media.md"))
            .unwrap();
    for key in KEYS.iter().filter(|k| !["profile", "medium"].contains(&k.name)) {
        assert!(manual.contains(&format!("`{}`", key.name)), "{}", key.name);
    }
    for p in Profile::builtins().unwrap() {
        assert!(manual.contains(&format!("| `{}` |", p.name)), "{}", p.name);
    }
}

#[test]
fn a_drive_is_a_profile_with_what_differs_from_it() {
    let text = "profile = 'st3500320as-2008'\nbytes = '16G'\nwrite_back = false\norder = 'c-look'
                max_wait = '20 ms'\nbackground = 'equal'";
    let MediumSpec::Disk(disk) = resolve(text).unwrap() else { panic!("no disk") };
    let DriveModel::Mechanical(spec) = disk.drive else { panic!("no mechanism") };
    assert_eq!((spec.max_wait.0, spec.background), (20_000_000, Background::Equal));
    assert_eq!((disk.bytes, spec.queue_depth), (16 << 30, 32));
    assert_eq!(spec.scheduler, crate::disk::DriveScheduler::CLook);
    let MediumSpec::Disk(whole) = resolve("profile = 'st3500320as-2008'").unwrap() else { panic!("no disk") };
    assert_eq!(whole.bytes, 976_773_168 * 512);
    for (text, key) in [
        ("profile = 'st3500320as-2008'\nbytes = '1T'", "bytes"),
        ("profile = 'st3500320as-2008'\nbytes = 100", "bytes"),
        ("profile = 'st3500320as-2008'\nchannels = 2", "channels"),
        ("profile = 'st3500320as-2008'\nqueue_depth = 0", "queue_depth"),
        ("profile = 'st3500320as-2008'\nunits = 2", "units"),
        ("profile = 'nvme-p4500-2017'\nwrite_back = true", "write_back"),
        ("profile = 'nvme-p4500-2017'\nunits = 0", "units"),
        ("profile = 'nvme-p4500-2017'\ninterleave_bytes = '2M'", "interleave_bytes"),
        ("profile = 'nvme-p4500-2017'\nt_flush = '0 us'", "t_flush"),
        ("profile = 'nvme-p4500-2017'\nread_mb_per_s = 0.0", "read_mb_per_s"),
        ("profile = 'nvme-p4500-2017'\nbytes = 100", "bytes"),
        ("medium = 'disk'\nunits = 2", "interleave_bytes"),
        ("medium = 'disk'", "drive"),
    ] {
        assert!(resolve(text).unwrap_err().to_string().starts_with(key), "{text}");
    }
}

#[test]
fn the_values_of_a_drive_go_into_toml_and_back() {
    let profile =
        Profile::builtin("exos-x18-2020").err().map(|_| Profile::find("exos-x18-2020", Path::new("")));
    let values = profile.unwrap().unwrap().values;
    let text = toml::to_string(&values).unwrap();
    assert_eq!(toml::from_str::<MediumConfig>(&text).unwrap(), values);
}

#[test]
fn a_wrong_value_in_the_file_of_a_drive_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let good = include_str!("../../profiles/disk/st3500320as-2008.toml");
    let file = dir.path().join("drive.toml");
    std::fs::write(&file, good).unwrap();
    assert!(Profile::find("./drive.toml", dir.path()).unwrap().values.drive.is_some());
    std::fs::write(&file, good.replace("heads =", "head =")).unwrap();
    let error = Profile::find("./drive.toml", dir.path()).unwrap_err().to_string();
    assert!(error.contains("head") && !error.contains("page_bytes"), "{error}");
}
