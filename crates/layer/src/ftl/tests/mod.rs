//! Property tests of the FTL against a shadow model: random operations, each read compared with a
//! plain byte array, and all tables audited.

use super::page_map::PageEntry;
use super::{Ftl, FtlConfig, FtlRecovery};
use crate::flash::BlockUse;
use crate::hfsl::tests::nand_config;
use crate::testing::TWO_UNITS;
use crate::testing::shadow::{self, Action, actions, read};
use frit_core::{
    BlockLayer, CheckScope, CrashKind, Durable, Error, Hints, Lpn, Precondition, Preconditioning, Quiesce,
    ReadTarget, Sector, Sink, WriteData,
};
use frit_media::{AnyStore, Hardware, MemoryStore, Nand, NandFaults, NandGeometry, NoStore, Store};
use proptest::prelude::*;

mod dynamic_slc;
mod figures;
mod mapping;
mod order;
mod pacing;
mod slc;
mod streams;
mod torn;

type Layer = Ftl;

fn config(mapping_unit: u64, merge_buffer: u32) -> FtlConfig {
    FtlConfig {
        mapping_unit,
        merge_buffer,
        read_buffer: 2,
        recovery: FtlRecovery::Scan,
        over_provisioning: 0.2,
        ..FtlConfig::default()
    }
}

fn geometry(config: &FtlConfig) -> NandGeometry {
    config.divide(TWO_UNITS).unwrap()
}

fn on(config: FtlConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Ftl {
    on_geometry(TWO_UNITS, config, store, faults)
}

fn on_geometry(g: NandGeometry, config: FtlConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Ftl {
    let nand = nand_config(config.divide(g).unwrap(), faults);
    Ftl::new(config, Nand::new(nand, store, &mut Hardware::new()).unwrap()).unwrap()
}

fn layer(config: FtlConfig, faults: NandFaults) -> Layer {
    on(config, MemoryStore::new(4 << 20), faults)
}

impl Ftl {
    /// Asserts that all tables derived from the map agree with it.
    fn audit(&self) {
        let g = *self.flash.nand().geometry();
        let mut valid = vec![0u16; g.blocks() as usize];
        for lpn in (0..self.all_pages()).map(Lpn) {
            let entry = self.map.get(lpn);
            if let Some(ppn) = entry.ppn() {
                assert_eq!(self.flash.lpn_of(ppn), Some(lpn));
                valid[g.block_of(ppn).idx()] += 1;
            }
            assert_eq!(entry.is_buffered(), self.is_in_a_buffer(lpn), "page {}", lpn.0);
        }
        for b in 0..g.blocks() {
            assert_eq!(self.flash.blocks().valid(b), valid[b as usize], "block {b}");
            if self.flash.blocks().state(b) == BlockUse::Free {
                assert_eq!(valid[b as usize], 0);
            }
        }
        assert_eq!(self.flash.valid_pages(), valid.iter().map(|&v| u64::from(v)).sum::<u64>());
    }
}

fn write(layer: &mut Ftl, at: u64, data: &[u8]) {
    layer.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(data), Hints::NONE).unwrap();
}

/// Opens the store of a layer again, as after a crash of the process.
fn reopen(layer: Layer, faults: NandFaults) -> (Layer, frit_core::Recovery) {
    reopen_on(TWO_UNITS, layer, faults)
}

fn reopen_on(g: NandGeometry, mut layer: Layer, faults: NandFaults) -> (Layer, frit_core::Recovery) {
    let config = layer.config().clone();
    let device = layer.flash.nand_mut().devices_mut().next().unwrap();
    let store = std::mem::replace(device.store_mut(), MemoryStore::new(0).into());
    let mut next = on_geometry(g, config, store, faults);
    let recovery = next.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    (next, recovery)
}

fn run(config: FtlConfig, actions: &[Action], faults: NandFaults) {
    run_on(TWO_UNITS, 4 << 20, config, actions, faults);
}

/// Runs actions on NAND of this geometry, in a store of `bytes`.
fn run_on(g: NandGeometry, bytes: u64, config: FtlConfig, actions: &[Action], faults: NandFaults) {
    let reopen = |layer| reopen_on(g, layer, faults);
    let layer = on_geometry(g, config, MemoryStore::new(bytes), faults);
    shadow::run(layer, actions, faults.program_fail > 0.0, reopen, Layer::audit);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_mapping_unit_of_a_page_keeps_every_byte(actions in actions(500, 40, 160)) {
        run(config(0, 0), &actions, NandFaults::default());
        run(config(0, 3), &actions, NandFaults::default());
    }

    #[test]
    fn mapping_units_below_a_page_keep_every_byte(actions in actions(500, 40, 160)) {
        run(config(1024, 0), &actions, NandFaults::default());
        run(FtlConfig { copyback: true, ..config(1024, 2) }, &actions, NandFaults::default());
        run(FtlConfig { erase_after_flush: true, ..config(2048, 1) }, &actions, NandFaults::default());
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(actions in actions(500, 40, 160), seed in any::<u64>()) {
        let faults = NandFaults { program_fail: 0.002, erase_fail: 0.002, seed, ..NandFaults::default() };
        run(FtlConfig { over_provisioning: 1.0, ..config(1024, 2) }, &actions, faults);
        run(FtlConfig { over_provisioning: 1.0, ..config(0, 0) }, &actions, faults);
    }
}

#[test]
fn random_overwriting_collects_garbage_for_long() {
    for config in [config(0, 0), config(1024, 2), FtlConfig { copyback: true, ..config(1024, 2) }] {
        let mut layer = layer(config, NandFaults::default());
        let sink = &mut Sink::untimed();
        let pages = u64::from(layer.pages);
        let page = layer.page_bytes as usize;
        let mut versions = vec![0u8; pages as usize];
        let mut state = 1u64;
        for n in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lpn = (state >> 33) % pages;
            versions[lpn as usize] = n as u8;
            write(&mut layer, lpn * page as u64 / 512, &vec![n as u8; page]);
            if n % 64 == 0 {
                layer.step(sink, 2).unwrap();
            }
        }
        layer.audit();
        assert!(layer.flash().stats().victims > 100);
        for (lpn, version) in versions.iter().enumerate() {
            let out = read(&mut layer, (lpn * page / 512) as u64, page as u64 / 512).unwrap();
            assert!(out.iter().all(|b| b == version), "page {lpn}");
        }
    }
}

/// Wears a volume out, and reads everything that was acknowledged, before and after a restart.
fn wear_out(config: &FtlConfig, seed: u64) {
    let faults = NandFaults { program_fail: 0.004, erase_fail: 0.004, seed, ..NandFaults::default() };
    let sink = &mut Sink::untimed();
    let mut layer = layer(config.clone(), faults);
    let (pages, page) = (u64::from(layer.pages), layer.page_bytes as usize);
    let mut versions = vec![[0u8; 2]; pages as usize];
    let mut state = seed;
    for n in 0..400_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lpn = if n < pages { n } else { (state >> 33) % pages };
        let (at, data) = (Sector(lpn * page as u64 / 512), vec![n as u8; page]);
        let written = match state >> 60 {
            0 => layer.discard(sink, at, page as u64 / 512),
            _ => layer.write(sink, at, WriteData::Bytes(&data), Hints::NONE),
        };
        let new = if state >> 60 == 0 { 0 } else { n as u8 };
        let known = &mut versions[lpn as usize];
        match written.and_then(|()| layer.flush(sink)) {
            Ok(()) => *known = [new; 2],
            Err(e) => {
                assert!(matches!(e, Error::ReadOnly { .. }), "{e}");
                known[1] = new;
                break;
            }
        }
    }
    assert!(layer.flash.health.refusal().is_some());
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
    assert!(layer.flash.health.refusal().is_some());
    layer.flush(sink).unwrap();
    let refused = layer.write(sink, Sector(0), WriteData::Bytes(&vec![7; page]), Hints::NONE);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })));
    layer.flush(sink).unwrap();
    assert!(matches!(layer.halt(sink), Err(Error::ReadOnly { .. })));
}

#[test]
fn worn_out_volumes_keep_their_data() {
    for seed in 1..20 {
        wear_out(&config(0, 0), seed);
        wear_out(&config(1024, 2), seed);
    }
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
        layer.audit();
        assert_ne!(layer.map.get(Lpn(0)), PageEntry::default());
    }
}

/// The pages of a full volume lie where writes in order would have put them.
#[test]
fn preconditioned_volumes_have_the_order_of_units() {
    const SHAPE: NandGeometry = NandGeometry { channels: 2, chips_per_channel: 2, ..TWO_UNITS };
    for how in [Precondition::Fill, Precondition::Steady { seed: 3 }] {
        for (unit_order, units) in
            [(crate::flash::UnitOrder::Cwdp, [0, 1, 2, 3]), (crate::flash::UnitOrder::Wcdp, [0, 2, 1, 3])]
        {
            let config = FtlConfig { unit_order, ..config(0, 0) };
            let store = MemoryStore::new(8 << 20);
            let mut layer = on_geometry(SHAPE, config, store, NandFaults::default());
            layer.precondition(how).unwrap();
            for lpn in 0..layer.pages {
                let ppn = layer.map.get(Lpn(lpn)).ppn().unwrap();
                let unit = SHAPE.unit_of_block(SHAPE.block_of(ppn));
                assert_eq!(unit, units[lpn as usize % 4], "{how:?} {unit_order:?}: page {lpn}");
            }
        }
    }
}

#[test]
fn impossible_sizes_are_refused_by_key() {
    let refused = |config: FtlConfig| {
        let nand = nand_config(geometry(&config), NandFaults::default());
        let nand = Nand::new(nand, NoStore, &mut Hardware::new()).unwrap();
        match Ftl::new(config, nand).map(|_| ()) {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(FtlConfig { capacity: 1 << 30, ..config(0, 0) }), "capacity");
    assert!(TWO_UNITS.with_mapping_unit(1000).is_err() && TWO_UNITS.with_mapping_unit(8192).is_err());
}
