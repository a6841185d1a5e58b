//! Volumes with several NAND devices below one HFSL: each has a file of its own, and a file that is
//! missing or not its own is refused.

use crate::common::{open, pattern, place, read, try_open};
use frit_core::{CheckScope, Hints};
use frit_stack::Stack;
use frit_volume::superblock::Features;
use frit_volume::{CreateOptions, Volume, grow, inspect, sized_stack, stack_with_overrides};
use std::path::Path;

const ARRAY: &str = r#"
media.a = { profile = "slc-k9-2016", channels = 1, chips_per_channel = 1, blocks_per_plane = 32 }
media.b = { profile = "slc-k9-2016", channels = 1, chips_per_channel = 1, blocks_per_plane = 32 }
media.pcm = { profile = "pcm-p8p-2016", chip_bytes = "128K" }
hfsl = { nand = ["a", "b"] }
"#;

const SIZE: usize = 1 << 20;

fn stack(sets: &[String]) -> frit_stack::Result<Stack> {
    Stack::parse("array", ARRAY, sets)
}

fn create(dir: &Path) -> Vec<u8> {
    let mut v = Volume::create(dir, &CreateOptions { stack: stack(&[]).unwrap(), force: false }).unwrap();
    let data = pattern(0, 1, SIZE);
    v.write(0, &data, Hints::NONE).unwrap();
    v.close().unwrap();
    data
}

fn refused(dir: &Path) -> String {
    try_open(dir).unwrap_err().to_string()
}

#[test]
fn each_device_has_its_own_file_and_half_of_the_pages() {
    let (_d, dir) = place();
    let data = create(&dir);
    let found = inspect(&dir).unwrap();
    // An older frit refuses the volume by this bit.
    assert_eq!(found.superblock.features.incompatible & Features::NAND_ARRAY, Features::NAND_ARRAY);
    let media = found.media;
    assert_eq!(media.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["a", "b", "pcm"]);
    assert!(media.iter().all(|m| m.problem.is_none()));
    let mut v = open(&dir);
    assert!(read(&mut v, 0, SIZE) == data);
    v.close().unwrap();
    // Both files hold pages: half of 1 MiB each.
    for name in ["a.medium", "b.medium"] {
        let bytes = std::fs::read(dir.join(name)).unwrap();
        let pages = bytes[..16 << 20 >> 2].chunks(2048).filter(|p| p.iter().any(|&b| b != 0)).count();
        assert_eq!(pages, SIZE / 2048 / 2, "{name}");
    }
}

#[test]
fn a_crash_is_recovered_on_all_devices() {
    let (_d, dir) = place();
    let data = create(&dir);
    let mut v = open(&dir);
    v.write(0, &data[512..100 << 10], Hints::NONE).unwrap();
    v.flush().unwrap();
    drop(v);
    let mut v = open(&dir);
    assert!(!v.recovery().recovery.clean && v.recovery().recovery.lost.is_empty());
    assert!(read(&mut v, 0, 64 << 10) == data[512..512 + (64 << 10)]);
    let mut findings = Vec::new();
    let counts =
        v.check(CheckScope { data: true, ..CheckScope::default() }, &mut |f| findings.push(f)).unwrap();
    assert!(findings.is_empty() && counts.pages_read >= SIZE as u64 / 2048, "{findings:?}");
    v.close().unwrap();
}

#[test]
fn missing_and_exchanged_devices_are_refused() {
    let ((_d, one), (_e, two)) = (place(), place());
    let data = create(&one);
    create(&two);
    let (a, b) = (one.join("a.medium"), one.join("b.medium"));
    let aside = one.join("aside");

    std::fs::rename(&b, &aside).unwrap();
    let e = refused(&one);
    assert!(e.contains("b.medium"), "{e}");
    std::fs::rename(&aside, &b).unwrap();

    // The devices are exchanged. The first of the two is reported.
    let exchange = || {
        std::fs::rename(&a, &aside).unwrap();
        std::fs::rename(&b, &a).unwrap();
        std::fs::rename(&aside, &b).unwrap();
    };
    exchange();
    let e = refused(&one);
    assert!(e.contains("NAND 'a': the store is that of another device"), "{e}");
    exchange();

    let own = std::fs::read(&b).unwrap();
    std::fs::copy(two.join("b.medium"), &b).unwrap();
    let e = refused(&one);
    assert!(e.contains("NAND 'b': the store is that of another device"), "{e}");
    std::fs::write(&b, own).unwrap();

    let mut v = open(&one);
    assert!(read(&mut v, 0, SIZE) == data);
    v.close().unwrap();
}

#[test]
fn damage_is_reported_with_the_device() {
    let (_d, dir) = place();
    create(&dir);
    let path = dir.join("b.medium");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[700] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let mut v = open(&dir);
    let mut findings = Vec::new();
    v.check(CheckScope { data: true, ..CheckScope::default() }, &mut |f| findings.push(f)).unwrap();
    assert_eq!(findings.len(), 1);
    assert!(findings[0].what.contains("(page 0 of NAND 'b')"), "{findings:?}");
    v.close().unwrap();
}

#[test]
fn a_volume_on_an_array_is_sized_and_grows() {
    let sized = sized_stack(12 << 20, stack).unwrap();
    let (_d, dir) = place();
    let mut v = Volume::create(&dir, &CreateOptions { stack: sized, force: false }).unwrap();
    assert_eq!(v.bytes(), 12 << 20);
    let data = pattern(0, 1, SIZE);
    v.write(0, &data, Hints::NONE).unwrap();
    v.close().unwrap();
    let before = inspect(&dir).unwrap().superblock;
    let sets = ["media.a.blocks_per_plane=256", "media.b.blocks_per_plane=256", "hfsl.capacity=0"];
    let larger = stack_with_overrides(&before, &sets.map(str::to_owned)).unwrap();
    let grown = grow(&dir, &larger, &mut |_, _, _| {}).unwrap();
    assert!(grown.now > grown.before, "{grown:?}");
    let mut v = open(&dir);
    assert!(read(&mut v, 0, SIZE) == data);
    v.close().unwrap();
}
