//! Property tests of a device with an owner against a shadow model, over crashes between any operations.

use super::{NamelessBlock, NamelessBlockConfig};
use crate::flash::BlockUse;
use crate::hfsl::tests::nand_config;
use crate::nameless::{HostFtl, NamelessConfig, NamelessRecovery};
use crate::testing::TWO_UNITS;
use frit_core::{
    BlockLayer, Cause, Claimed, CrashKind, Durable, Error, Hints, NamelessDevice, OwnedBlock,
    PhysicalAddress, Quiesce, ReadTarget, Sector, Sink, WriteData,
};
use frit_media::{AnyStore, Hardware, MemoryStore, Nand, NandFaults};

mod blocks;
mod owner;
mod transactions;

type Layer = NamelessBlock<HostFtl>;

fn config(mapping_unit: u64, virtual_bytes: u64) -> NamelessBlockConfig {
    let device = NamelessConfig {
        mapping_unit,
        recovery: NamelessRecovery::Scan,
        over_provisioning: 0.2,
        ..NamelessConfig::default()
    };
    NamelessBlockConfig { virtual_bytes, device }
}

fn open(config: &NamelessBlockConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Layer {
    let geometry = config.device.divide(TWO_UNITS).unwrap();
    let nand = Nand::new(nand_config(geometry, faults), store, &mut Hardware::new()).unwrap();
    NamelessBlock::over_nand(config.clone(), nand).unwrap()
}

fn new_layer(config: &NamelessBlockConfig) -> Layer {
    open(config, MemoryStore::new(4 << 20), NandFaults::default())
}

/// Takes the store out of a layer.
fn store_of(layer: &mut Layer) -> AnyStore {
    let device = layer.device_mut().flash_mut().nand_mut().devices_mut().next().unwrap();
    std::mem::replace(device.store_mut(), MemoryStore::new(0).into())
}

/// Opens the store of a layer again, as after a crash of the process.
fn reopen(mut layer: Layer, faults: NandFaults) -> (Layer, frit_core::Recovery) {
    let config = layer.config().clone();
    let mut next = open(&config, store_of(&mut layer), faults);
    let recovery = next.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    (next, recovery)
}

/// The device of a layer, with the type of its sink.
fn device(layer: &mut Layer) -> &mut dyn NamelessDevice {
    layer.nameless_device().unwrap()
}

/// Contents of a block: its stamp in each byte of a word.
fn contents(stamp: u32, bytes: usize) -> Vec<u8> {
    stamp.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// Asserts that the tables of the device count the pages that its map of virtual blocks, the checkpoint and
/// the given number of nameless blocks need.
fn audit(layer: &Layer, nameless: u32) {
    let flash = layer.device().flash();
    let g = *flash.nand().geometry();
    let mut valid = 0;
    for b in 0..g.blocks() {
        let pages = (0..g.pages_per_block).map(|at| g.ppn(frit_core::BlockId(b), at));
        let here = pages.filter(|&ppn| flash.lpn_of(ppn).is_some()).count() as u64;
        assert_eq!(u64::from(flash.blocks().valid(b)), here, "block {b}");
        if flash.blocks().state(b) == BlockUse::Free && !layer.device_is_recovering() {
            assert_eq!(here, 0, "block {b}");
        }
        valid += here;
    }
    let space = NamelessDevice::space(layer.device());
    assert_eq!(space.stored, nameless);
    let metadata = layer.device().metadata_pages_in_use();
    assert_eq!(valid, u64::from(nameless) + metadata);
}

impl Layer {
    fn device_is_recovering(&self) -> bool {
        NamelessDevice::awaits_claims(self.device())
    }
}
