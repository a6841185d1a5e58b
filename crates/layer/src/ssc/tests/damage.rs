//! Damage to data and metadata.

use super::super::records::MetaKind;
use super::*;
use crate::ssc_block::{SscBlock, SscBlockConfig};
use frit_core::{BlockLayer, Durable, Hints, Sector, Sink, Tok};
use frit_media::PageState;

/// Pages whose spare areas name a number, oldest first.
fn places(device: &Device, number: u32) -> Vec<Ppn> {
    let g = *device.nand.geometry();
    let mut found = Vec::new();
    for block in (0..g.blocks()).map(BlockId) {
        for at in 0..device.nand.next_page(block) {
            let ppn = g.ppn(block, at);
            if let Ok(PageState::Programmed(spare)) = device.nand.page_state(ppn)
                && spare.lpn == number
            {
                found.push((spare.seq, ppn));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, ppn)| ppn).collect()
}

fn damage(device: &mut Device, ppn: Ppn) {
    let at = u64::from(ppn.0) * u64::from(device.sizes.page_bytes) + 100;
    let store = device.nand_mut().devices_mut().next().unwrap().store_mut();
    let mut byte = [0];
    store.read(at, &mut byte).unwrap();
    store.write(at, &[byte[0] ^ 1]).unwrap();
}

#[test]
fn damage_to_a_clean_block_is_a_miss_and_to_a_dirty_one_an_error() {
    for (config, _) in guarantees::all() {
        let mut device = device(config, NandFaults::default());
        put(&mut device, 7, &[1], false).unwrap();
        put(&mut device, 8, &[2], true).unwrap();
        device.flush(&mut Sink::untimed(), Tok::DONE).unwrap();
        for block in [7, 8] {
            let newest = *places(&device, block).last().unwrap();
            damage(&mut device, newest);
        }
        assert_eq!(get(&mut device, 7), None);
        let mut out = vec![0; device.sizes.page_bytes as usize];
        let read =
            device.read(&mut Sink::untimed(), 8, 0, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE);
        assert!(matches!(read, Err(Error::Corrupt { .. })));
        let mut findings = 0;
        let scope = CheckScope { data: true, ..CheckScope::default() };
        device.run_check(&mut Sink::untimed(), scope, &mut |_| findings += 1).unwrap();
        assert_eq!(findings, 1);
    }
}

/// Returns a device after a recovery that lacks a page of the log.
fn without_a_log_page() -> (Device, Recovery) {
    // No checkpoint makes the log pages superfluous.
    let log = SscConfig { flush: SscFlush::Log, checkpoint_log: 100.0, ..config(0, SscDurability::Deferred) };
    let mut device = device(log, NandFaults::default());
    for version in 1..4 {
        put(&mut device, 7, &[version], true).unwrap();
        device.flush(&mut Sink::untimed(), Tok::DONE).unwrap();
    }
    let pages = places(&device, MetaKind::Log.lpn(0));
    damage(&mut device, pages[pages.len() - 2]);
    reopen(device, NandFaults::default(), CrashKind::Process)
}

/// Any block can be present then. A copy by extents must read it, and get the error.
#[test]
fn without_a_log_page_no_block_is_a_hole() {
    let mut layer = SscBlock::<Device>::new(SscBlockConfig::default(), without_a_log_page().0).unwrap();
    let sectors = layer.info().sectors;
    let mut held = 0;
    layer
        .extents(Sector(0), sectors, &mut |e| held += if e.place.is_some() { e.sectors } else { 0 })
        .unwrap();
    assert_eq!(held, sectors);
    let read = layer.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut [0; 512]), Hints::NONE);
    assert!(matches!(read, Err(Error::Corrupt { .. })));
}

#[test]
fn damage_to_the_log_is_noticed() {
    let (mut device, recovery) = without_a_log_page();
    assert_eq!(recovery.unnamed.len(), 1, "{recovery:?}");
    assert!(matches!(put(&mut device, 7, &[9], true), Err(Error::ReadOnly { .. })));
    let repair = CheckScope { repair: true, older: true, ..CheckScope::default() };
    device.run_check(&mut Sink::untimed(), repair, &mut |_| {}).unwrap();
    put(&mut device, 7, &[9], true).unwrap();
    assert_eq!(get(&mut device, 7), Some(9));
}

/// Configurations with two copies of the metadata, on one unit and on two.
fn with_copies() -> Vec<(SscConfig, NandGeometry)> {
    let log = SscConfig { flush: SscFlush::Log, checkpoint_log: 100.0, ..config(0, SscDurability::Deferred) };
    let all = [config(0, SscDurability::Deferred), log, config(0, SscDurability::Synchronous)];
    let copies = all.map(|config| SscConfig { metadata_copies: 2, ..config });
    let alone = NandGeometry { channels: 1, blocks_per_plane: 28, ..GEOMETRY };
    copies.iter().flat_map(|config| [GEOMETRY, alone].map(|g| (config.clone(), g))).collect()
}

fn used(config: &SscConfig, g: NandGeometry) -> Device {
    let nand =
        Nand::new(nand_config(g, NandFaults::default()), MemoryStore::new(1 << 20), &mut Hardware::new());
    let mut device = Ssc::new(config.clone(), nand.unwrap()).unwrap();
    for n in 0..40 {
        put(&mut device, n % 10, &[n], true).unwrap();
        device.flush(&mut Sink::untimed(), Tok::DONE).unwrap();
    }
    device
}

/// A copy of a device as after a crash.
fn crashed(device: &mut Device, damaged: &[Ppn], crash: CrashKind) -> (Device, Recovery) {
    let (config, nand) =
        (device.config().clone(), nand_config(*device.nand.geometry(), NandFaults::default()));
    let store = device.nand_mut().devices_mut().next().unwrap().store_mut();
    let mut copy = MemoryStore::new(1 << 20);
    let mut bytes = vec![0; 1 << 20];
    store.read(0, &mut bytes).unwrap();
    copy.write(0, &bytes).unwrap();
    let mut next = Ssc::new(config, Nand::new(nand, copy, &mut Hardware::new()).unwrap()).unwrap();
    for &ppn in damaged {
        damage(&mut next, ppn);
    }
    let recovered = next.recover(&mut Sink::untimed(), crash).unwrap();
    (next, recovered.recovery)
}

fn check(device: &mut Device, data: bool) -> Vec<&'static str> {
    let mut found = Vec::new();
    let scope = CheckScope { data, ..CheckScope::default() };
    device.run_check(&mut Sink::untimed(), scope, &mut |f| found.push(f.kind)).unwrap();
    found
}

fn metadata(device: &Device, copy: u32) -> Vec<Ppn> {
    [MetaKind::Log, MetaKind::Checkpoint].iter().flat_map(|kind| places(device, kind.lpn(copy))).collect()
}

#[test]
fn one_copy_of_a_page_of_metadata_suffices() {
    for (config, g) in with_copies() {
        let mut device = used(&config, g);
        let all = [metadata(&device, 0), metadata(&device, 1)].concat();
        assert!(all.len() >= 2 && check(&mut device, false).is_empty());
        for ppn in all {
            for halted in [false, true] {
                let (mut next, recovery) = crashed(&mut device, &[ppn], CrashKind::Process);
                assert_eq!(recovery.losses(), 0, "{recovery:?}");
                assert!((0..10).all(|b| get(&mut next, b) == Some(30 + b)), "{halted}");
                // Recovery has written new metadata in two copies.
                assert_eq!(check(&mut next, true), [""; 0]);
                if halted {
                    next.halt(&mut Sink::untimed(), Tok::DONE).unwrap();
                    let newest = *places(&next, MetaKind::Checkpoint.lpn(1)).last().unwrap();
                    let (mut next, recovery) = crashed(&mut next, &[newest], CrashKind::PowerLoss);
                    assert!(recovery.clean && recovery.losses() == 0, "{recovery:?}");
                    assert!((0..10).all(|b| get(&mut next, b) == Some(30 + b)));
                }
            }
        }
    }
}

#[test]
fn damage_to_both_copies_of_the_newest_metadata_is_noticed() {
    for (config, g) in with_copies() {
        let mut device = used(&config, g);
        let newest = |device: &Device, copy| {
            let of = |kind: MetaKind| places(device, kind.lpn(copy)).last().copied();
            match config.flush {
                SscFlush::Checkpoint if !config.is_synchronous() => of(MetaKind::Checkpoint),
                _ => of(MetaKind::Log),
            }
        };
        let both = [0, 1].map(|copy| newest(&device, copy).unwrap());
        let (_, recovery) = crashed(&mut device, &both, CrashKind::Process);
        assert_eq!(recovery.unnamed.len(), 1, "{recovery:?}");
        device.halt(&mut Sink::untimed(), Tok::DONE).unwrap();
        let both = [0, 1].map(|copy| *places(&device, MetaKind::Checkpoint.lpn(copy)).last().unwrap());
        for crash in [CrashKind::Process, CrashKind::PowerLoss] {
            let (mut next, recovery) = crashed(&mut device, &both, crash);
            assert_eq!(recovery.unnamed.len(), 1, "{recovery:?}");
            assert!(matches!(put(&mut next, 3, &[9], true), Err(Error::ReadOnly { .. })));
        }
    }
}

#[test]
fn damage_to_one_copy_is_found_and_repaired() {
    for (config, g) in with_copies() {
        let mut device = used(&config, g);
        let second = metadata(&device, 1);
        damage(&mut device, *second.last().unwrap());
        assert_eq!(check(&mut device, false), ["bad-copy"]);
        let repair = CheckScope { repair: true, ..CheckScope::default() };
        device.run_check(&mut Sink::untimed(), repair, &mut |f| assert!(f.repaired)).unwrap();
        assert_eq!(check(&mut device, true), [""; 0]);
    }
}

/// A power loss of the machine loses data that was not synced, but what was flushed is damaged if it is
/// missing.
#[test]
fn damaged_data_of_a_flush_is_an_error_after_a_power_loss() {
    for flush in [SscFlush::Checkpoint, SscFlush::Log] {
        let config =
            SscConfig { metadata_copies: 2, over_files: true, flush, ..config(0, SscDurability::Deferred) };
        let mut device = used(&config, GEOMETRY);
        let newest = *places(&device, 9).last().unwrap();
        let (mut next, _) = crashed(&mut device, &[newest], CrashKind::PowerLoss);
        let mut out = vec![0; next.sizes.page_bytes as usize];
        let read = next.read(&mut Sink::untimed(), 9, 0, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE);
        assert!(matches!(read, Err(Error::Corrupt { .. })), "{read:?}");
        assert_eq!(get(&mut next, 8), Some(38));
        assert_eq!(check(&mut next, true), ["bad-page"]);
    }
}

#[test]
fn a_repair_drops_clean_blocks_and_with_older_versions_dirty_ones() {
    let config = SscConfig { metadata_copies: 2, ..config(0, SscDurability::Deferred) };
    let mut device = device(config, NandFaults::default());
    put(&mut device, 7, &[1], false).unwrap();
    put(&mut device, 8, &[2], true).unwrap();
    device.flush(&mut Sink::untimed(), Tok::DONE).unwrap();
    for block in [7, 8] {
        let newest = *places(&device, block).last().unwrap();
        damage(&mut device, newest);
    }
    let mut repair = |older| {
        let mut found = Vec::new();
        let scope = CheckScope { data: true, repair: true, older };
        device
            .run_check(&mut Sink::untimed(), scope, &mut |f| found.push((f.lpn.unwrap(), f.repaired)))
            .unwrap();
        found
    };
    assert_eq!(repair(false), [(7, true), (8, false)]);
    assert_eq!(repair(true), [(8, true)]);
    let (mut device, recovery) = reopen(device, NandFaults::default(), CrashKind::Process);
    assert_eq!((recovery.losses(), get(&mut device, 7), get(&mut device, 8)), (0, None, None));
}

#[test]
fn a_block_whose_eviction_cannot_be_logged_stays() {
    let config = SscConfig { metadata_copies: 2, ..config(0, SscDurability::Synchronous) };
    let mut device = device(config, NandFaults::default());
    put(&mut device, 7, &[1], true).unwrap();
    // No erased block is left for the log.
    for unit in &mut device.units {
        (unit.open, unit.free) = (None, Vec::new());
    }
    assert!(device.evict(&mut Sink::untimed(), 7..8, Tok::DONE).is_err());
    assert_eq!(get(&mut device, 7), Some(1));
    let (mut device, _) = reopen(device, NandFaults::default(), CrashKind::Process);
    assert_eq!(get(&mut device, 7), Some(1));
}
