//! Sides that fail, come back, or are replaced.

use super::{Bench, IDENTITY, Layer, check, config, metric};
use crate::device::SECTOR;
use frit_compose::Composed;
use frit_compose::mirror::{Mirror, MirrorConfig};
use frit_core::{
    BlockDevice, BlockLayer, CrashKind, Durable, Hints, Progress, Quiesce, ReadTarget, Result, Sector,
    Severity, Sink, WriteData,
};

/// Sectors of the data.
const SECTORS: u64 = 120;

fn put(m: &mut Layer, at: u64, byte: u8) -> Result<()> {
    m.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&[byte; SECTOR]), Hints::NONE)
}

fn get(m: &mut Layer, at: u64) -> Result<u8> {
    let mut sector = [0; SECTOR];
    m.read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut sector), Hints::NONE)?;
    assert!(sector.iter().all(|&b| b == sector[0]));
    Ok(sector[0])
}

fn formatted(bench: &Bench) -> Layer {
    let mut m = bench.build(config());
    m.format(&mut Sink::untimed()).unwrap();
    m
}

fn restart(bench: &Bench, config: MirrorConfig) -> Result<Layer> {
    let mut m: Layer = bench.build(config);
    m.recover(&mut Sink::untimed(), CrashKind::Process)?;
    Ok(m)
}

fn copy_all(m: &mut Layer) {
    while matches!(m.step(&mut Sink::untimed(), 8).unwrap(), Progress::Busy(_)) {}
}

#[test]
fn a_read_error_is_served_by_the_other_side_and_repaired() {
    let bench = Bench::new(&[1, 1]);
    let mut m = formatted(&bench);
    for at in 0..SECTORS {
        put(&mut m, at, at as u8).unwrap();
    }
    bench.devices[0].state().unreadable.extend([0, 9]);
    bench.devices[1].state().unreadable.insert(2);
    for at in 0..SECTORS {
        assert_eq!(get(&mut m, at).unwrap(), at as u8);
    }
    assert_eq!((metric(&m, "read_errors"), metric(&m, "sectors_rewritten")), (3, 3));
    assert_eq!((metric(&m, "degraded"), m.refuses()), (0, None));
    assert!(bench.devices.iter().all(|d| d.state().unreadable.is_empty()));
    // A sector that no side can read is an error, and no other sector is.
    bench.devices.iter().for_each(|d| {
        d.state().unreadable.insert(5);
    });
    assert!(get(&mut m, 5).is_err() && get(&mut m, 6).is_ok());
    put(&mut m, 5, 1).unwrap();
    assert_eq!(get(&mut m, 5).unwrap(), 1);
}

#[test]
fn a_side_that_missed_writes_gets_only_the_regions_that_were_written() {
    let bench = Bench::new(&[1, 1]);
    let mut m = formatted(&bench);
    put(&mut m, 0, 1).unwrap();
    m.halt(&mut Sink::untimed()).unwrap();
    bench.devices[0].state().dead = true;
    put(&mut m, 40, 2).unwrap();
    put(&mut m, 41, 3).unwrap();
    assert_eq!((metric(&m, "degraded"), metric(&m, "side_failures"), m.refuses()), (1, 1, None));
    m.flush(&mut Sink::untimed()).unwrap();
    m.halt(&mut Sink::untimed()).unwrap();
    bench.devices[0].state().dead = false;
    let mut m = restart(&bench, config()).unwrap();
    assert_eq!((metric(&m, "degraded"), metric(&m, "regions_to_copy")), (1, 1));
    assert_eq!((get(&mut m, 40).unwrap(), get(&mut m, 41).unwrap(), get(&mut m, 0).unwrap()), (2, 3, 1));
    copy_all(&mut m);
    assert_eq!((metric(&m, "degraded"), metric(&m, "bytes_copied")), (0, 4096));
    bench.devices[1].state().dead = true;
    assert_eq!((get(&mut m, 40).unwrap(), get(&mut m, 41).unwrap()), (2, 3));
}

#[test]
fn the_failure_of_all_sides_is_returned_and_takes_none_out() {
    let bench = Bench::new(&[1, 1]);
    let mut m = formatted(&bench);
    put(&mut m, 3, 1).unwrap();
    bench.devices.iter().for_each(|d| d.state().fail_write = true);
    assert!(put(&mut m, 3, 2).is_err());
    assert_eq!((metric(&m, "degraded"), metric(&m, "regions_to_copy")), (0, 1));
    put(&mut m, 3, 4).unwrap();
    copy_all(&mut m);
    assert_eq!((get(&mut m, 3).unwrap(), metric(&m, "regions_to_copy")), (4, 0));
    bench.devices.iter().for_each(|d| d.state().dead = true);
    assert!(get(&mut m, 3).is_err() && put(&mut m, 3, 5).is_err() && m.flush(&mut Sink::untimed()).is_err());
}

/// Writes 1 to a sector, flushes, and writes 2, which a power cut leaves on the first side only.
fn differing(bench: &Bench) -> Layer {
    let mut m = formatted(bench);
    put(&mut m, 3, 1).unwrap();
    m.flush(&mut Sink::untimed()).unwrap();
    put(&mut m, 3, 2).unwrap();
    bench.devices[0].crash(|writes| writes);
    bench.devices[1].crash(|_| 0);
    restart(bench, config()).unwrap()
}

#[test]
fn a_source_that_fails_before_the_copies_are_done_leaves_the_state_of_another_side() {
    for copied in [false, true] {
        let bench = Bench::new(&[1, 1]);
        let mut m = differing(&bench);
        assert_eq!((metric(&m, "regions_to_copy"), metric(&m, "source")), (1, 0));
        assert_eq!(get(&mut m, 3).unwrap(), 2);
        if copied {
            copy_all(&mut m);
        }
        bench.devices[0].state().dead = true;
        put(&mut m, 4, 3).unwrap();
        assert_eq!((metric(&m, "degraded"), metric(&m, "source")), (1, 1));
        assert_eq!((get(&mut m, 3).unwrap(), get(&mut m, 4).unwrap()), (if copied { 2 } else { 1 }, 3));
    }
}

#[test]
fn sides_that_were_used_without_each_other_are_refused_until_one_is_preferred() {
    let bench = Bench::new(&[1, 1]);
    let mut m = formatted(&bench);
    m.halt(&mut Sink::untimed()).unwrap();
    // Each side is used alone, as the user asks for.
    for (side, at) in [(0, 0), (1, 9)] {
        bench.devices[1 - side].state().dead = true;
        let why = restart(&bench, config()).err().unwrap().to_string();
        assert!(why.contains(&format!("prefer = {side}")), "{why}");
        let mut m = restart(&bench, MirrorConfig { prefer: side as i32, ..config() }).unwrap();
        put(&mut m, at, side as u8 + 1).unwrap();
        m.halt(&mut Sink::untimed()).unwrap();
        bench.devices[1 - side].state().dead = false;
    }
    let why = restart(&bench, config()).err().unwrap().to_string();
    assert!(why.contains("prefer = 0 or prefer = 1"), "{why}");
    let mut m = restart(&bench, MirrorConfig { prefer: 1, ..config() }).unwrap();
    assert_eq!((get(&mut m, 0).unwrap(), get(&mut m, 9).unwrap()), (0, 2));
    // The decision is durable before the copy is complete.
    drop(m);
    let mut m = restart(&bench, config()).unwrap();
    assert_eq!((get(&mut m, 0).unwrap(), get(&mut m, 9).unwrap()), (0, 2));
    copy_all(&mut m);
    assert_eq!(metric(&m, "degraded"), 0);
    assert!(check(&mut m, &mut Sink::untimed(), false).unwrap().is_empty());
    assert_eq!(bench.devices[0].peek(9 * 512), [2; SECTOR]);
}

#[test]
fn a_replaced_device_gets_all_data() {
    let mut bench = Bench::new(&[1, 1]);
    let mut m = formatted(&bench);
    for at in 0..SECTORS {
        put(&mut m, at, at as u8 + 1).unwrap();
    }
    bench.devices[1].state().dead = true;
    put(&mut m, 7, 99).unwrap();
    m.halt(&mut Sink::untimed()).unwrap();
    let new = Bench::new(&[1]).devices.remove(0);
    bench.devices[1] = new;
    let mut m = restart(&bench, config()).unwrap();
    copy_all(&mut m);
    assert_eq!((metric(&m, "degraded"), metric(&m, "bytes_copied")), (0, SECTORS * 512));
    m.halt(&mut Sink::untimed()).unwrap();
    bench.devices[0].state().dead = true;
    let mut m = restart(&bench, MirrorConfig { prefer: 1, ..config() }).unwrap();
    assert_eq!((get(&mut m, 7).unwrap(), get(&mut m, 8).unwrap()), (99, 9));
}

#[test]
fn devices_of_another_mirror_or_in_another_order_are_refused() {
    let mut bench = Bench::new(&[1, 1]);
    let never = restart(&bench, config()).err().unwrap().to_string();
    assert!(never.contains("never formatted"), "{never}");
    drop(formatted(&bench));
    bench.devices.swap(0, 1);
    let why = restart(&bench, config()).err().unwrap().to_string();
    assert!(why.contains("holds side 1"), "{why}");
    bench.devices.swap(0, 1);
    let boxed = |d: &crate::device::TestDevice| Box::new(d.clone()) as Box<dyn BlockDevice>;
    let devices = bench.devices.iter().map(boxed).collect();
    let mut other = Composed::new(Mirror::new(config(), devices, IDENTITY + 1).unwrap());
    let why = other.recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err().to_string();
    assert!(why.contains("another mirror"), "{why}");
}

#[test]
fn a_check_names_sectors_that_differ_and_repairs_them() {
    let bench = Bench::new(&[1, 1, 1]);
    let mut m = formatted(&bench);
    for at in 0..SECTORS {
        put(&mut m, at, 1).unwrap();
    }
    m.flush(&mut Sink::untimed()).unwrap();
    assert!(check(&mut m, &mut Sink::untimed(), false).unwrap().is_empty());
    for at in [20, 21, 50] {
        bench.devices[2].poke(at * 512, [8; SECTOR]);
    }
    for (repair, times) in [(false, 1), (true, 1), (true, 0)] {
        let all = check(&mut m, &mut Sink::untimed(), repair).unwrap();
        assert_eq!(all.len(), 2 * times);
        for (f, named) in all.iter().zip(["sectors 20 to 21 of side 2", "sectors 50 to 50 of side 2"]) {
            assert!(f.what.contains(named) && f.repaired == repair && f.severity == Severity::Major, "{f:?}");
        }
    }
    assert_eq!(bench.devices[2].peek(20 * 512), [1; SECTOR]);
}

#[test]
fn damaged_metadata_is_found_repaired_and_costs_at_most_a_copy() {
    let bench = Bench::new(&[1, 1]);
    let mut m = formatted(&bench);
    put(&mut m, 0, 1).unwrap();
    m.halt(&mut Sink::untimed()).unwrap();
    for (sector, kind) in [(120, "bad-superblock"), (121, "bad-bitmap"), (127, "bad-superblock")] {
        bench.devices[0].poke(sector * 512, [3; SECTOR]);
        let mut m = restart(&bench, config()).unwrap();
        assert_eq!((get(&mut m, 0).unwrap(), metric(&m, "degraded")), (1, 0));
        assert_eq!(metric(&m, "regions_to_copy"), if kind == "bad-bitmap" { 15 } else { 0 });
        copy_all(&mut m);
        if kind == "bad-superblock" {
            let found = check(&mut m, &mut Sink::untimed(), true).unwrap();
            assert_eq!((found[0].kind, found[0].repaired, found.len()), (kind, true, 1));
        }
        m.halt(&mut Sink::untimed()).unwrap();
        assert!(check(&mut m, &mut Sink::untimed(), false).unwrap().is_empty());
    }
}
