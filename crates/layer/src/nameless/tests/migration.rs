//! The race between a migration and a crash.
//!
//! In the prototype, "there is a race condition that can lead to lost data if the system fails before
//! notifying the file system" (section 3.4 of FAST 2013).

use super::*;
use frit_core::{Cause, Claimed, Migration, OwnedBlock, Sink, Tok};
use frit_media::NandGeometry;

type Device = HostFtl;

/// Static wear leveling moves blocks that are never written.
fn worn_evenly(mapping_unit: u64) -> NamelessConfig {
    NamelessConfig { wear_leveling: "static".into(), wear_threshold: 2, ..config(mapping_unit, 1) }
}

fn open(store: impl Into<AnyStore>) -> Device {
    let config = worn_evenly(1024);
    let geometry = config.divide(TWO_UNITS).unwrap();
    let nand = nand_config(geometry, NandFaults::default());
    let nand = Nand::new(nand, store, &mut Hardware::new()).unwrap();
    let blocks =
        super::super::DeviceBlocks { capacity: 200, waiting: 0, virtual_blocks: 2, atomic_flush: false };
    HostFtl::new(&config, nand.into(), blocks).unwrap()
}

fn contents(owner: u32) -> [u8; 1024] {
    [owner as u8 ^ 0x5A; 1024]
}

fn write_block(device: &mut Device, owner: u32) -> OwnedBlock {
    let sink = &mut Sink::untimed();
    let mut placed = Vec::new();
    let data = contents(owner);
    device
        .nameless_write(sink, &[owner], WriteData::Bytes(&data), Cause::Host, Tok::DONE, &mut placed)
        .unwrap();
    OwnedBlock { owner, at: placed[0] }
}

fn read_block(device: &mut Device, block: OwnedBlock) -> frit_core::Result<Vec<u8>> {
    let mut out = vec![0; 1024];
    let into = ReadTarget::Bytes(&mut out);
    device.physical_read(&mut Sink::untimed(), &[block], 0, into, Cause::Host).map(|_| out)
}

/// Writes blocks that stay, and others around them. Returns those whose old places the device has erased.
/// The owner takes no migration.
fn moved() -> (Device, Vec<OwnedBlock>) {
    let mut device = open(MemoryStore::new(4 << 20));
    let stay: Vec<OwnedBlock> = (0..20).map(|owner| write_block(&mut device, owner)).collect();
    let sink = &mut Sink::untimed();
    let mut others: Vec<OwnedBlock> = (0..20).map(|n| write_block(&mut device, 1000 + n)).collect();
    let in_old_place = |device: &Device, b: &OwnedBlock| {
        device.flash().nand().spare(Ppn(b.at.page)).unwrap().is_some_and(|spare| spare.lpn == b.owner)
    };
    for n in 20..8000 {
        device.free(sink, others.remove(0), Tok::DONE);
        others.push(write_block(&mut device, 1000 + n));
    }
    let stay: Vec<OwnedBlock> = stay.into_iter().filter(|b| !in_old_place(&device, b)).collect();
    assert!(stay.len() >= 10, "{} old places were erased", stay.len());
    (device, stay)
}

#[test]
fn an_old_address_is_good_until_the_migration_is_acknowledged() {
    let (mut device, stay) = moved();
    for &block in &stay {
        assert_eq!(read_block(&mut device, block).unwrap(), contents(block.owner));
    }
    let mut known: Vec<OwnedBlock> = stay.clone();
    while let Some(migration) = NamelessDevice::migration(&device) {
        if let Some(block) = known.iter_mut().find(|b| b.at.page == migration.from) {
            assert_eq!(block.owner, migration.owner);
            block.at = migration.to.unwrap();
        }
        NamelessDevice::acknowledge(&mut device, 1);
    }
    for (&old, &new) in stay.iter().zip(&known) {
        assert_eq!(read_block(&mut device, new).unwrap(), contents(new.owner));
        assert!(read_block(&mut device, old).is_err(), "an acknowledged address is void");
    }
}

#[test]
fn an_owner_that_knows_old_addresses_only_finds_its_blocks_after_a_crash() {
    let (mut device, stay) = moved();
    let store = std::mem::replace(
        device.flash_mut().nand_mut().devices_mut().next().unwrap().store_mut(),
        MemoryStore::new(0).into(),
    );
    let mut device = open(store);
    let sink = &mut Sink::untimed();
    let mut recovery = device.recover(sink, CrashKind::Process).unwrap();
    let mut claim = |block| NamelessDevice::claim(&mut device, block).unwrap();
    let found: Vec<OwnedBlock> = stay
        .iter()
        .map(|&block| match claim(block) {
            Claimed::At(at) => OwnedBlock { at, ..block },
            Claimed::Lost(why) => panic!("owner {}: {why}", block.owner),
        })
        .collect();
    // A version that was never written is not found.
    let at = PhysicalAddress { version: 9_999_999, ..stay[0].at };
    assert!(matches!(claim(OwnedBlock { at, ..stay[0] }), Claimed::Lost(_)));
    device.resume(sink, &mut recovery).unwrap();
    for (&old, &new) in stay.iter().zip(&found) {
        assert_ne!(old.at.page, new.at.page);
        assert_eq!(read_block(&mut device, new).unwrap(), contents(new.owner));
    }
}

#[test]
fn saved_maps_refer_to_old_addresses_and_recover() {
    let mut layer = layer(worn_evenly(0), NandFaults::default());
    let sink = &mut Sink::untimed();
    let pages = u64::from(layer.pages);
    // Cold pages, saved once, between hot ones whose blocks are collected.
    for lpn in 0..pages {
        write(&mut layer, lpn * 8, &[lpn as u8; 4096]);
    }
    layer.flush(sink).unwrap();
    let hot = pages - 8;
    for n in 0..4000u64 {
        write(&mut layer, (hot + n % 8) * 8, &[n as u8; 4096]);
    }
    layer.audit();
    assert!(layer.stats.migrations > 50);
    // Without a flush: the map that is saved is that of before, apart from saves for space.
    let (mut layer, recovery) = reopen(layer, NandFaults::default());
    assert_eq!(recovery.losses(), 0, "{recovery:?}");
    layer.audit();
    for lpn in 0..hot {
        assert!(read(&mut layer, lpn * 8, 8).unwrap().iter().all(|&b| b == lpn as u8), "page {lpn}");
    }
}

/// A write can make the device move the block that it replaces, erase the place of it, and program the new
/// block there. The migration is of the block that was replaced then, although the page is that of the
/// new one.
#[test]
fn a_migration_of_a_replaced_block_does_not_concern_its_successor_at_the_same_page() {
    let at = |page, version| PhysicalAddress { page, version };
    let (old, new, moved) = (at(24, 276), at(24, 299), at(38, 276));
    let migration = Migration { owner: 0, from: 24, to: Some(moved) };
    let mut layer = layer(config(0, 1), NandFaults::default());
    layer.map.set(Lpn(0), Some(new));
    layer.waiting.insert(24, OwnedBlock { owner: 0, at: old });
    layer.take_migration(migration, moved);
    assert_eq!(layer.map.get(Lpn(0)), Some(new));
    assert_eq!(layer.waiting.drain().collect::<Vec<_>>(), [(38, OwnedBlock { owner: 0, at: moved })]);
    // A block that the saved map does not refer to is in another list.
    layer.replaced.push(OwnedBlock { owner: 0, at: old });
    layer.take_migration(migration, moved);
    assert_eq!(layer.map.get(Lpn(0)), Some(new));
    assert_eq!(layer.replaced, [OwnedBlock { owner: 0, at: moved }]);
}

/// With few free blocks, as after several restarts, a write waits for the erase of a block and is programmed
/// there.
#[test]
fn a_page_keeps_its_last_write_if_the_device_moves_an_older_version_in_the_same_request() {
    let geometry = NandGeometry { channels: 1, ..TWO_UNITS };
    let open = |store: AnyStore| -> Layer {
        let nand = nand_config(geometry, NandFaults::default());
        let nand = Nand::new(nand, store, &mut Hardware::new()).unwrap();
        Nameless::over_nand(config(0, 1), nand).unwrap()
    };
    let sink = &mut Sink::untimed();
    for seed in 0..20u64 {
        let mut layer = open(MemoryStore::new(4 << 20).into());
        let (pages, mut state) = (u64::from(layer.pages), seed);
        for n in 0..400u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = state >> 33;
            let lpn = (draw >> 8) % pages;
            write(&mut layer, lpn * 8, &[n as u8; 4096]);
            let found = read(&mut layer, lpn * 8, 8).unwrap();
            assert!(found.iter().all(|&b| b == n as u8), "write {n} of seed {seed}");
            if draw % 32 == 0 {
                layer.flush(sink).unwrap();
                for _ in 0..draw / 32 % 6 {
                    layer = open(store_of(&mut layer));
                    layer.recover(sink, CrashKind::Process).unwrap();
                }
                layer.audit();
            }
        }
    }
}
