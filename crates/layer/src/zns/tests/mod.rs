//! Tests of the zoned device against a shadow model, over halts and crashes.

use super::{Zns, ZnsConfig, ZnsRecovery};
use crate::hfsl::tests::nand_config;
use crate::testing::TWO_UNITS;
use frit_core::{
    BlockLayer, CheckScope, CrashKind, Durable, Error, Hints, Quiesce, ReadTarget, Recovery, Sector, Sink,
    WriteData, ZoneAccess, ZoneAction, ZoneFault, ZoneInfo, ZoneState,
};
use frit_media::{AnyStore, Hardware, MemoryStore, Nand, NandFaults, NandGeometry};

mod failures;
mod limits;
mod model;
mod order;

type Layer = Zns;

/// Two units of 24 blocks of 8 NAND pages of 4 KiB.
const GEOMETRY: NandGeometry = NandGeometry { blocks_per_plane: 24, ..TWO_UNITS };

fn sink() -> Sink {
    Sink::untimed()
}

fn config(mapping_unit: u64) -> ZnsConfig {
    ZnsConfig {
        mapping_unit,
        max_open: 2,
        max_active: 4,
        recovery: ZnsRecovery::Scan,
        ..ZnsConfig::default()
    }
}

fn open(config: &ZnsConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Layer {
    let geometry = config.divide(GEOMETRY).unwrap();
    let nand = Nand::new(nand_config(geometry, faults), store, &mut Hardware::new()).unwrap();
    Zns::new(config.clone(), nand).unwrap()
}

fn new_layer(config: &ZnsConfig) -> Layer {
    open(config, MemoryStore::new(4 << 20), NandFaults::default())
}

/// Opens the store of a layer again, as after a crash of the process.
fn reopen(mut layer: Layer, faults: NandFaults) -> (Layer, Recovery) {
    let config = layer.config().clone();
    let device = layer.nand_mut().devices_mut().next().unwrap();
    let store = std::mem::replace(device.store_mut(), MemoryStore::new(0).into());
    let mut next = open(&config, store, faults);
    let recovery = next.recover(&mut sink(), CrashKind::Process).unwrap();
    (next, recovery)
}

/// The commands of a layer, with the type of its sink.
fn access(layer: &mut Layer) -> &mut dyn ZoneAccess {
    layer.zone_access().unwrap()
}

fn zone(layer: &mut Layer, zone: u32) -> ZoneInfo {
    access(layer).zone(zone).unwrap()
}

fn zones(layer: &mut Layer) -> Vec<ZoneInfo> {
    let count = access(layer).zoned_info().zones;
    (0..count).map(|z| zone(layer, z)).collect()
}

fn manage(layer: &mut Layer, zone: u32, action: ZoneAction) -> Result<(), Error> {
    access(layer).manage(&mut sink(), zone, action)
}

fn append(layer: &mut Layer, zone: u32, data: &[u8]) -> Result<Sector, Error> {
    access(layer).append(&mut sink(), zone, WriteData::Bytes(data))
}

fn read(layer: &mut Layer, at: Sector, bytes: usize) -> Vec<u8> {
    let mut data = vec![0xEE; bytes];
    BlockLayer::read(layer, &mut sink(), at, ReadTarget::Bytes(&mut data), Hints::NONE).unwrap();
    data
}

fn fault(result: Result<impl std::fmt::Debug, Error>) -> ZoneFault {
    match result {
        Err(Error::Zone { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}
