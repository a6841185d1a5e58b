//! Growing a volume, also with a crash at any moment; export and import of images.

use crate::common::{self, create, create_with, open, pattern, place, read, stack, try_open};
use frit_core::Hints;
use frit_volume::{
    ImageSink, ImageSource, Volume, export, grow, import, inspect, sized_stack, stack_with_overrides,
};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const LARGER: &[&str] = &["nand.blocks_per_plane=64"];

fn beside(dir: &Path) -> std::path::PathBuf {
    dir.with_file_name("vol.growing")
}

/// Fills a volume with some data and a parameter. Returns the data and the UUID.
fn filled(dir: &Path) -> (Vec<u8>, [u8; 16]) {
    let mut v = create(dir);
    let data = pattern(0, 1, 300 << 10);
    v.write(0, &data, Hints::NONE).unwrap();
    let end = v.bytes() - 4096;
    v.write(end, &data[..4096], Hints::NONE).unwrap();
    v.set_param("SSW", "1024").unwrap();
    let uuid = v.superblock().uuid;
    v.close().unwrap();
    // Files of a server or of the user beside the media.
    std::fs::write(dir.join("changes.log"), "SSW").unwrap();
    std::fs::create_dir(dir.join("mnt")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(dir.join("ctl.sock")).unwrap());
    (data, uuid)
}

/// Asserts that files of the user and of servers are still in the directory.
fn keeps_the_rest(dir: &Path) {
    assert_eq!(std::fs::read_to_string(dir.join("changes.log")).unwrap(), "SSW");
    assert!(dir.join("mnt").is_dir() && !dir.join("ctl.sock").exists());
}

fn holds(dir: &Path, data: &[u8]) -> Volume {
    let mut v = open(dir);
    assert!(read(&mut v, 0, data.len()) == data);
    v
}

#[test]
fn a_volume_grows_with_all_that_it_holds() {
    let (_dir, dir) = place();
    let (data, uuid) = filled(&dir);
    let before = inspect(&dir).unwrap().superblock;
    let larger = stack_with_overrides(&before, &["media.nand.blocks_per_plane=64".to_owned()]).unwrap();
    let grown = grow(&dir, &larger, &mut |_, _, _| {}).unwrap();
    assert!(grown.now > grown.before * 3 / 2, "{grown:?}");
    let mut v = holds(&dir, &data);
    assert_eq!((v.bytes(), v.superblock().uuid), (grown.now, uuid));
    assert!(read(&mut v, grown.before - 4096, 4096) == data[..4096]);
    assert!(read(&mut v, grown.before, 4096).iter().all(|&b| b == 0));
    assert_eq!(v.superblock().params, before.params);
    assert_eq!(v.superblock().created_unix, before.created_unix);
    v.write(grown.now - 512, &[1; 512], Hints::NONE).unwrap();
    v.close().unwrap();
    assert!(!beside(&dir).exists());
    keeps_the_rest(&dir);
}

#[test]
fn growing_that_is_stopped_anywhere_leaves_one_whole_volume() {
    for stop in 0.. {
        let (_dir, dir) = place();
        let (data, uuid) = filled(&dir);
        let mut calls = 0;
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            grow(&dir, &stack(LARGER), &mut |_, _, _| {
                assert!(calls != stop, "stopped here by the test");
                calls += 1;
            })
        }));
        if let Ok(grown) = stopped {
            grown.unwrap();
            assert!(stop >= 7, "it has at least so many steps, and had {stop}");
            break;
        }
        // The volume is complete, old or new, and the same call finishes the work.
        let v = holds(&dir, &data);
        assert_eq!(v.superblock().uuid, uuid);
        let has = v.bytes();
        v.close().unwrap();
        let grown = grow(&dir, &stack(LARGER), &mut |_, _, _| {}).unwrap();
        assert!(has == grown.before && grown.now >= has);
        assert!(!beside(&dir).exists(), "stopped at {stop}");
        keeps_the_rest(&dir);
        holds(&dir, &data).close().unwrap();
    }
}

#[test]
fn growing_refuses_to_cut_data_off_and_to_remove_what_is_not_its_own() {
    let (_dir, dir) = place();
    let (data, _) = filled(&dir);
    let smaller = stack(&["nand.blocks_per_plane=20"]);
    let e = grow(&dir, &smaller, &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(e.contains("data is stored up to byte"), "{e}");
    // Another volume has that name.
    create(&beside(&dir)).close().unwrap();
    let e = grow(&dir, &stack(LARGER), &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(e.contains("is in the way"), "{e}");
    open(&beside(&dir)).close().unwrap();
    std::fs::remove_dir_all(beside(&dir)).unwrap();
    // Another directory has that name.
    std::fs::create_dir(beside(&dir)).unwrap();
    std::fs::write(beside(&dir).join("thesis.tex"), b"x").unwrap();
    assert!(grow(&dir, &stack(LARGER), &mut |_, _, _| {}).is_err());
    assert!(beside(&dir).join("thesis.tex").exists());
    let mut v = holds(&dir, &data);
    // Without data at its end, a volume may also shrink.
    v.discard(data.len() as u64, v.bytes() - data.len() as u64).unwrap();
    assert!(grow(&dir, &stack(LARGER), &mut |_, _, _| {}).unwrap_err().to_string().contains("in use"));
    v.close().unwrap();
    std::fs::remove_dir_all(beside(&dir)).unwrap();
    let shrunk = grow(&dir, &smaller, &mut |_, _, _| {}).unwrap();
    assert!(shrunk.now < shrunk.before);
    holds(&dir, &data).close().unwrap();
}

#[test]
fn a_medium_outside_of_the_volume_needs_another_place_to_grow() {
    let (base, dir) = place();
    let at = |name: &str| format!("media.nand.path={:?}", base.path().join(name).display().to_string());
    create_with(&dir, &[&at("a.bin")], false).unwrap().close().unwrap();
    for sets in [vec![LARGER[0].to_owned()], vec![LARGER[0].to_owned(), at("a.bin")]] {
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let e = grow(&dir, &stack(&sets), &mut |_, _, _| {}).unwrap_err().to_string();
        assert!(e.contains("media.nand.path"), "{e}");
    }
    let grown = grow(&dir, &stack(&[LARGER[0], &at("b.bin")]), &mut |_, _, _| {}).unwrap();
    assert_eq!(grown.left, [base.path().join("a.bin")]);
    open(&dir).close().unwrap();
}

#[test]
fn a_size_is_met_exactly() {
    for bytes in [2 << 20, (5 << 20) + 512, 40 << 20] {
        let load =
            |more: &[String]| frit_stack::Stack::parse("small", &common::SMALL.replace("128K", "256K"), more);
        let stack = sized_stack(bytes, load).unwrap();
        let (_dir, dir) = place();
        let options = frit_volume::CreateOptions { stack, force: false };
        let v = Volume::create(&dir, &options).unwrap();
        let page = u64::from(v.page_bytes());
        assert_eq!(v.bytes(), bytes.next_multiple_of(page), "{bytes}");
        v.close().unwrap();
    }
}

#[test]
fn a_disk_is_made_as_large_as_asked_and_grows() {
    made_and_grown("halo-small", &["chip_bytes=128K"], (5 << 20) + 4096);
}

#[test]
fn memory_alone_is_made_as_large_as_asked_and_grows() {
    for sets in [
        &[][..],
        &["ntl.page_bytes=512", "ntl.mapping=block"],
        &["ntl.wear_leveling=start-gap", "ntl.log=none"],
    ] {
        made_and_grown("ntl-small", sets, (5 << 20) + 512);
    }
}

#[test]
fn hfsl_over_a_leveler_is_made_as_large_as_asked_and_grows() {
    let sets = ["pcm_wear_leveling=start-gap", "pcm_wear_stripe=4K", "pcm_wear_interval=1"];
    made_and_grown("hfsl-small", &sets, (5 << 20) + 2048);
}

/// Creates a volume of a little more than 5 MiB, then grows it to 9 MiB.
fn made_and_grown(stack: &str, sets: &[&str], gets: u64) {
    let load = |more: &[String]| {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).chain(more.iter().cloned()).collect();
        frit_stack::Stack::builtin(stack, &sets)
    };
    let (_dir, dir) = place();
    let options =
        frit_volume::CreateOptions { stack: sized_stack((5 << 20) + 512, load).unwrap(), force: false };
    let mut v = Volume::create(&dir, &options).unwrap();
    assert_eq!(v.bytes(), gets);
    let data = vec![7; 1 << 20];
    v.write(4 << 20, &data, Hints::NONE).unwrap();
    v.close().unwrap();
    let grown = grow(&dir, &sized_stack(9 << 20, load).unwrap(), &mut |_, _, _| {}).unwrap();
    assert_eq!(grown.now, 9 << 20);
    let mut v = open(&dir);
    let mut back = vec![0; 1 << 20];
    v.read(4 << 20, &mut back).unwrap();
    assert!(back == data);
    v.close().unwrap();
}

#[test]
fn images_go_out_and_in() {
    let (base, dir) = place();
    let (data, _) = filled(&dir);
    let image = base.path().join("image");
    let mut v = open(&dir);
    let size = v.bytes();
    let file = File::create_new(&image).unwrap();
    let out = export(&mut v, &mut ImageSink::Sparse(&file), false, &mut |_| {}).unwrap();
    let mut stream = Vec::new();
    export(&mut v, &mut ImageSink::Stream(&mut stream), false, &mut |_| {}).unwrap();
    v.close().unwrap();
    assert_eq!((out.bytes, out.data_bytes), (size, (300 << 10) + 4096));
    assert!(std::fs::read(&image).unwrap() == stream && stream[..data.len()] == data);
    use std::os::unix::fs::MetadataExt;
    assert!(std::fs::metadata(&image).unwrap().blocks() * 512 < size / 4, "the image is not sparse");
    // The image is imported into another volume, which was full of other data.
    for from_stream in [false, true] {
        let other = base.path().join(format!("other-{from_stream}"));
        let mut v = create(&other);
        for at in (0..size / 2).step_by(1 << 16) {
            v.write(at, &[0xAB; 1 << 16], Hints::NONE).unwrap();
        }
        let file = File::open(&image).unwrap();
        let mut bytes = &stream[..];
        let mut from = if from_stream { ImageSource::Stream(&mut bytes) } else { ImageSource::File(&file) };
        let moved = import(&mut v, &mut from, &mut |_| {}).unwrap();
        assert_eq!(moved.bytes, size);
        v.close().unwrap();
        let mut v = open(&other);
        assert!(read(&mut v, 0, size as usize) == stream);
        let mut held = 0;
        v.extents(0, size, &mut |len, place| held += if place.is_some() { len } else { 0 }).unwrap();
        assert!(held < 400 << 10, "zeros take room: {held}");
    }
}

#[test]
fn images_that_do_not_fit_are_refused_and_odd_ones_end_in_zeros() {
    let (base, dir) = place();
    let mut v = create(&dir);
    let size = v.bytes();
    let image = base.path().join("image");
    let file = File::options().read(true).write(true).create_new(true).open(&image).unwrap();
    file.set_len(size + 1).unwrap();
    let e = import(&mut v, &mut ImageSource::File(&file), &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("frit grow"), "{e}");
    let mut long = std::io::repeat(1);
    let e = import(&mut v, &mut ImageSource::Stream(&mut long), &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("more than that"), "{e}");
    let mut odd = &[5u8; 700][..];
    import(&mut v, &mut ImageSource::Stream(&mut odd), &mut |_| {}).unwrap();
    let back = read(&mut v, 0, 4096);
    assert!(back[..700].iter().all(|&b| b == 5) && back[700..].iter().all(|&b| b == 0));
    assert!(read(&mut v, 1 << 20, 4096).iter().all(|&b| b == 0), "what was there before is gone");
    v.close().unwrap();
    assert!(try_open(&dir).is_ok());
}

#[test]
fn damaged_data_ends_an_export_or_is_listed() {
    let (base, dir) = place();
    let (data, _) = filled(&dir);
    // One bit of a page of the file flips, wherever the page is stored.
    let nand = dir.join("nand.medium");
    let mut bytes = std::fs::read(&nand).unwrap();
    let needle = &data[128 << 10..][..256];
    let at = bytes.windows(256).position(|w| w == needle).unwrap();
    bytes[at + 100] ^= 4;
    std::fs::write(&nand, bytes).unwrap();
    let mut v = open(&dir);
    let e =
        export(&mut v, &mut ImageSink::Stream(&mut Vec::new()), false, &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("damaged"), "{e}");
    let mut out = Vec::new();
    let moved = export(&mut v, &mut ImageSink::Stream(&mut out), true, &mut |_| {}).unwrap();
    let page = u64::from(v.page_bytes());
    assert_eq!(moved.damaged.len(), 1, "{:?}", moved.damaged);
    let (at, len, _) = moved.damaged[0];
    assert_eq!((at, len), ((128u64 << 10) / page * page, page));
    assert!(out[at as usize..(at + len) as usize].iter().all(|&b| b == 0));
    assert!(out[..at as usize] == data[..at as usize]);
    drop(base);
}

#[test]
fn a_volume_that_is_a_mount_point_is_not_grown_in_vain() {
    let (_dir, dir) = place();
    std::fs::create_dir(&dir).unwrap();
    let mount = |args: &[&str]| std::process::Command::new(args[0]).args(&args[1..]).arg(&dir).status();
    if !mount(&["mount", "-t", "tmpfs", "tmpfs"]).is_ok_and(|s| s.success()) {
        eprintln!("skipped: no right to mount on this machine");
        return;
    }
    create(&dir).close().unwrap();
    let e = grow(&dir, &stack(LARGER), &mut |_, _, _| {}).unwrap_err().to_string();
    let again = open(&dir).close();
    mount(&["umount"]).unwrap();
    assert!(e.contains("is a mount point") && e.contains("export"), "{e}");
    again.unwrap();
}

const RAW: [&str; 2] = ["raw_access=[\"db\"]", "raw_bytes=6K"];

/// Creates a volume with bytes at the begin and at the end of the area for physical addresses.
/// Returns the end of its PCM.
fn with_raw_bytes(dir: &Path, more: &[&str]) -> u64 {
    let mut v = create_with(dir, &[&RAW, more].concat(), false).unwrap();
    // The error names the end of PCM.
    let e = v.raw_write("db", 0, &[0]).unwrap_err().to_string();
    let (_, free) = e.split_once("direct writes go to ").unwrap();
    let ends: Vec<u64> = free.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(ends[1] - ends[0], 6 << 10, "{e}");
    v.raw_write("db", ends[0], b"first").unwrap();
    v.raw_write("db", ends[1] - 4, b"last").unwrap();
    v.flush().unwrap();
    v.close().unwrap();
    ends[1]
}

#[test]
fn the_area_for_physical_addresses_keeps_its_bytes_and_their_offsets() {
    // The area of a larger volume may be larger, and moves with the end of PCM, also over a leveler.
    let leveled =
        ["pcm_wear_leveling=start-gap", "pcm_wear_stripe=4K", "pcm_wear_banks=1", "pcm_wear_ranks=2"];
    for (sets, size) in [(&[][..], "raw_bytes=6K"), (&[], "raw_bytes=20K"), (&leveled, "raw_bytes=7K")] {
        let (_dir, dir) = place();
        let end = with_raw_bytes(&dir, &[sets, &["pcm.chip_bytes=256K"]].concat());
        let larger = [&RAW[..1], &[size, "pcm.chip_bytes=512K"], sets, LARGER].concat();
        let grown = grow(&dir, &stack(&larger), &mut |_, _, _| {}).unwrap();
        let area = grown.raw_area.unwrap();
        assert_eq!(area.before, end - (6 << 10)..end);
        assert!(area.now.start > area.before.start + (100 << 10), "{area:?}");
        let mut v = open(&dir);
        let mut bytes = vec![1; (area.now.end - area.now.start) as usize];
        v.raw_read("db", frit_core::MediumKind::Pcm, area.now.start, &mut bytes).unwrap();
        assert!(bytes.starts_with(b"first") && bytes[..6 << 10].ends_with(b"last"));
        assert_eq!(bytes.iter().filter(|&&b| b != 0).count(), 9, "all others are zeros");
        v.raw_write("db", area.now.start, b"again").unwrap();
        v.close().unwrap();
    }
}

#[test]
fn an_area_for_physical_addresses_is_not_cut_off() {
    let (_dir, dir) = place();
    let end = with_raw_bytes(&dir, &[]);
    for sets in [&[RAW[0], "raw_bytes=4K"][..], &[]] {
        let e = grow(&dir, &stack(sets), &mut |_, _, _| {}).unwrap_err().to_string();
        let place = if sets.is_empty() { (0, end - (6 << 10)) } else { ((6 << 10) - 4, end - 4) };
        assert!(e.contains("raw_bytes") && e.contains("or write zeros there first"), "{e}");
        assert!(e.contains(&format!("from byte {} on (physical address {})", place.0, place.1)), "{e}");
    }
    assert!(!beside(&dir).exists());
    // Zeros may be cut off.
    let mut v = open(&dir);
    v.raw_write("db", end - 4, &[0; 4]).unwrap();
    v.close().unwrap();
    let area = grow(&dir, &stack(&[RAW[0], "raw_bytes=4K"]), &mut |_, _, _| {}).unwrap().raw_area.unwrap();
    let mut bytes = [0; 5];
    open(&dir).raw_read("db", frit_core::MediumKind::Pcm, area.now.start, &mut bytes).unwrap();
    assert_eq!((&bytes, area.now.end - area.now.start), (b"first", 4096));
}
