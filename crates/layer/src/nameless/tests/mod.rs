//! Property tests of the nameless volume against a shadow model: random operations, each read compared
//! with a plain byte array, and all tables audited.

use super::host_ftl::HostFtl;
use super::{Nameless, NamelessConfig, NamelessRecovery};
use crate::flash::BlockUse;
use crate::hfsl::tests::nand_config;
use crate::testing::TWO_UNITS;
use crate::testing::shadow::{self, Action, actions, read};
use frit_core::convert::low_u32;
use frit_core::{
    BlockLayer, CrashKind, Durable, Error, Hints, Lpn, NamelessDevice, PhysicalAddress, Ppn, Precondition,
    Preconditioning, Quiesce, ReadTarget, Sector, Sink, WriteData,
};
use frit_media::{AnyStore, Hardware, MemoryStore, Nand, NandFaults, NoStore};
use proptest::prelude::*;

mod failed_designs;
mod migration;
mod queues;

type Layer = Nameless<HostFtl>;

fn config(mapping_unit: u64, queue_writes: u32) -> NamelessConfig {
    NamelessConfig {
        mapping_unit,
        queue_writes,
        queues: 2,
        recovery: NamelessRecovery::Scan,
        over_provisioning: 0.2,
        ..NamelessConfig::default()
    }
}

fn on(config: NamelessConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Layer {
    let geometry = config.divide(TWO_UNITS).unwrap();
    let nand = Nand::new(nand_config(geometry, faults), store, &mut Hardware::new()).unwrap();
    Nameless::over_nand(config, nand).unwrap()
}

fn layer(config: NamelessConfig, faults: NandFaults) -> Layer {
    on(config, MemoryStore::new(4 << 20), faults)
}

impl Layer {
    /// Asserts that the map of the owner and the tables of the device agree.
    fn audit(&self) {
        let flash = self.device.flash();
        let g = *flash.nand().geometry();
        let mut valid = vec![0u16; g.blocks() as usize];
        let mut count = |page: u32| valid[g.block_of(Ppn(page)).idx()] += 1;
        assert!(NamelessDevice::migration(&self.device).is_none(), "all migrations are taken");
        assert!(self.replaced.is_empty());
        let has_version = |at: PhysicalAddress| match flash.nand().spare(Ppn(at.page)) {
            Ok(Some(spare)) => low_u32(spare.seq) == at.version,
            // NAND without bytes.
            _ => true,
        };
        for (lpn, at) in self.map.entries() {
            if let Some(at) = at {
                assert_eq!(flash.lpn_of(Ppn(at.page)), Some(lpn));
                assert!(has_version(at), "{lpn:?} at {at:?}");
                count(at.page);
            }
        }
        for (page, block) in &self.waiting {
            assert_eq!((block.at.page, flash.lpn_of(Ppn(*page))), (*page, Some(Lpn(block.owner))));
            assert!(self.map.is_unsaved(Lpn(block.owner)) && has_version(block.at), "{block:?}");
            count(*page);
        }
        self.device.each_metadata_page(&mut count);
        for b in 0..g.blocks() {
            assert_eq!(flash.blocks().valid(b), valid[b as usize], "block {b}");
            if flash.blocks().state(b) == BlockUse::Free {
                assert_eq!(valid[b as usize], 0);
            }
        }
        assert_eq!(flash.valid_pages(), valid.iter().map(|&v| u64::from(v)).sum::<u64>());
    }
}

fn write(layer: &mut Layer, at: u64, data: &[u8]) {
    layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(data), Hints::NONE).unwrap();
}

/// Takes the store out of a layer.
fn store_of(layer: &mut Layer) -> AnyStore {
    let device = layer.device.flash_mut().nand_mut().devices_mut().next().unwrap();
    std::mem::replace(device.store_mut(), MemoryStore::new(0).into())
}

/// Opens the store of a layer again, as after a crash of the process.
fn reopen(mut layer: Layer, faults: NandFaults) -> (Layer, frit_core::Recovery) {
    let mut next = on(layer.config().clone(), store_of(&mut layer), faults);
    let recovery = next.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    (next, recovery)
}

fn run(config: NamelessConfig, actions: &[Action], faults: NandFaults) {
    let reopen = |layer| reopen(layer, faults);
    shadow::run(layer(config, faults), actions, faults.program_fail > 0.0, reopen, Layer::audit);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_block_of_a_virtual_page_keeps_every_byte(actions in actions(500, 40, 160)) {
        run(config(0, 1), &actions, NandFaults::default());
        run(config(0, 3), &actions, NandFaults::default());
    }

    #[test]
    fn blocks_below_a_virtual_page_keep_every_byte(actions in actions(500, 40, 160)) {
        run(config(1024, 1), &actions, NandFaults::default());
        run(config(1024, 3), &actions, NandFaults::default());
        run(NamelessConfig { erase_after_flush: true, ..config(2048, 2) }, &actions, NandFaults::default());
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(actions in actions(500, 40, 160), seed in any::<u64>()) {
        let faults = NandFaults { program_fail: 0.002, erase_fail: 0.002, seed, ..NandFaults::default() };
        run(NamelessConfig { over_provisioning: 1.0, ..config(1024, 2) }, &actions, faults);
        run(NamelessConfig { over_provisioning: 1.0, ..config(0, 1) }, &actions, faults);
    }
}

/// Overwrites random pages, and returns the number of the last write of each page.
fn overwrite(layer: &mut Layer, writes: u64) -> Vec<u8> {
    let (pages, page) = (u64::from(layer.pages), layer.page_bytes as usize);
    let mut versions = vec![0u8; pages as usize];
    let mut state = 1u64;
    for n in 0..writes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lpn = (state >> 33) % pages;
        versions[lpn as usize] = n as u8;
        write(layer, lpn * page as u64 / 512, &vec![n as u8; page]);
        if n % 64 == 0 {
            layer.step(&mut Sink::untimed(), 2).unwrap();
        }
    }
    versions
}

fn assert_versions(layer: &mut Layer, versions: &[u8]) {
    let page = layer.page_bytes as usize;
    for (lpn, version) in versions.iter().enumerate() {
        let out = read(layer, (lpn * page / 512) as u64, page as u64 / 512).unwrap();
        assert!(out.iter().all(|b| b == version), "page {lpn}");
    }
}

#[test]
fn random_overwriting_collects_garbage_for_long() {
    let static_wear = || NamelessConfig { wear_leveling: "static".into(), wear_threshold: 2, ..config(0, 1) };
    let simulated = NamelessConfig { recovery: NamelessRecovery::None, ..config(1024, 3) };
    for config in [config(0, 1), config(1024, 3), static_wear(), simulated] {
        let mut layer = layer(config, NandFaults::default());
        let versions = overwrite(&mut layer, 20_000);
        layer.audit();
        assert!(layer.device().flash().stats().victims > 100);
        assert!(layer.stats.migrations > 100);
        assert_versions(&mut layer, &versions);
    }
}

/// A copy on NAND without bytes has a version of its own.
#[test]
fn migrations_on_nand_without_bytes_are_taken() {
    let simulated = NamelessConfig { recovery: NamelessRecovery::None, ..config(1024, 3) };
    for config in [config(0, 1), config(1024, 3), simulated] {
        let mut layer = on(config, NoStore, NandFaults::default());
        overwrite(&mut layer, 20_000);
        layer.audit();
        assert!(layer.stats.migrations > 100);
    }
}

#[test]
fn worn_out_volumes_keep_their_data() {
    for seed in 1..20 {
        wear_out(config(0, 1), seed);
        wear_out(config(1024, 2), seed);
    }
}

/// Wears a volume out, and reads everything that was flushed, before and after a restart.
fn wear_out(config: NamelessConfig, seed: u64) {
    let faults = NandFaults { program_fail: 0.004, erase_fail: 0.004, seed, ..NandFaults::default() };
    let sink = &mut Sink::untimed();
    let mut layer = layer(config, faults);
    let (pages, page) = (u64::from(layer.pages), layer.page_bytes as usize);
    let mut versions = vec![[0u8; 2]; pages as usize];
    let mut state = seed;
    for n in 0..400_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lpn = if n < pages { n } else { (state >> 33) % pages };
        let data = vec![n as u8; page];
        let written =
            layer.write(sink, Sector(lpn * page as u64 / 512), WriteData::Bytes(&data), Hints::NONE);
        let known = &mut versions[lpn as usize];
        match written.and_then(|()| layer.flush(sink)) {
            Ok(()) => *known = [n as u8; 2],
            Err(e) => {
                assert!(matches!(e, Error::ReadOnly { .. }), "{e}");
                known[1] = n as u8;
                break;
            }
        }
    }
    assert!(layer.refuses().is_some());
    let check = |layer: &mut Layer, when: &str| {
        for (lpn, version) in versions.iter().enumerate() {
            let out = read(layer, (lpn * page / 512) as u64, page as u64 / 512).unwrap();
            assert!(version.contains(&out[0]) && out.iter().all(|&b| b == out[0]), "page {lpn} {when}");
        }
    };
    check(&mut layer, "before the restart");
    let (mut layer, recovery) = reopen(layer, faults);
    assert_eq!(recovery.losses(), 0, "{recovery:?}");
    check(&mut layer, "after the restart");
    // Nothing was written since the recovery, so there is nothing that a flush could not save.
    assert!(layer.refuses().is_some());
    layer.flush(sink).unwrap();
    let refused = layer.write(sink, Sector(0), WriteData::Bytes(&vec![7; page]), Hints::NONE);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })));
    layer.flush(sink).unwrap();
    assert!(matches!(Quiesce::halt(&mut layer, sink), Err(Error::ReadOnly { .. })));
}

#[test]
fn a_discarded_page_does_not_come_back() {
    let sink = &mut Sink::untimed();
    let mut layer = layer(config(1024, 2), NandFaults::default());
    write(&mut layer, 0, &[7; 4096]);
    layer.flush(sink).unwrap();
    layer.discard(sink, Sector(0), 4).unwrap();
    layer.flush(sink).unwrap();
    let (mut layer, _) = reopen(layer, NandFaults::default());
    assert_eq!(read(&mut layer, 0, 8).unwrap(), [[0; 2048], [7; 2048]].concat());
}

#[test]
fn preconditioned_volumes_read_as_zeros_and_can_be_written() {
    for how in [Precondition::Fill, Precondition::Steady { seed: 3 }] {
        let mut layer = layer(config(1024, 2), NandFaults::default());
        layer.precondition(how).unwrap();
        layer.audit();
        let sectors = layer.capacity_bytes() / 512;
        assert!(read(&mut layer, 0, sectors).unwrap().iter().all(|&b| b == 0));
        for at in (0..sectors - 8).step_by(7) {
            write(&mut layer, at, &[at as u8; 4096]);
        }
        layer.flush(&mut Sink::untimed()).unwrap();
        layer.audit();
        assert!(layer.precondition(how).is_err());
    }
}

#[test]
fn impossible_sizes_are_refused_by_key() {
    let refused = |config: NamelessConfig| {
        let nand = nand_config(config.divide(TWO_UNITS).unwrap(), NandFaults::default());
        let nand = Nand::new(nand, NoStore, &mut Hardware::new()).unwrap();
        match Nameless::over_nand(config, nand).map(|_| ()) {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(NamelessConfig { capacity: 1 << 30, ..config(0, 1) }), "capacity");
}
