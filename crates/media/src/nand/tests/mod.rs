//! Tests of the rules of NAND, of its faults, and of its bytes on every store.

mod array;
mod bytes;
mod faults;
mod modes;
mod rules;

use super::*;
use crate::{AnyStore, Hardware, MemoryStore};
use frit_core::{Cause, Ppn, ReadTarget, Sink, Tok, WriteData};

const PAGE: usize = 512;

fn config() -> NandConfig {
    NandConfig {
        name: "flash".into(),
        geometry: NandGeometry {
            channels: 2,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 2,
            blocks_per_plane: 3,
            pages_per_block: 4,
            page_bytes: PAGE as u32,
            spare_bytes: 32,
            plane_ops: PlaneOps::Single,
            program_pages: 1,
            record_copies: 1,
            slc: SlcArea::default(),
        },
        timing: NandTiming {
            t_read: frit_core::Nanos(10),
            t_prog: frit_core::Nanos(20),
            t_erase: frit_core::Nanos(30),
            t_command: Default::default(),
            t_plane: Default::default(),
            t_cache_busy: None,
            bus_ps_per_byte: 1000,
        },
        cells: None,
        slc: None,
        endurance: 1000,
        faults: NandFaults::default(),
        serial: 0,
    }
}

fn on(config: NandConfig, store: impl Into<AnyStore>) -> Nand {
    Nand::new(config, store, &mut Hardware::new()).unwrap()
}

fn in_memory(config: NandConfig) -> Nand {
    let bytes = config.geometry.store_bytes();
    on(config, MemoryStore::new(bytes))
}

fn spare(lpn: u32) -> Spare {
    Spare { lpn, seq: u64::from(lpn) + 100 }
}

fn program(n: &mut Nand, ppn: u32, byte: u8) -> Result<Tok> {
    n.program(
        &mut Sink::untimed(),
        Ppn(ppn),
        WriteData::Bytes(&[byte; PAGE]),
        spare(ppn),
        Cause::Host,
        Tok::DONE,
    )
}

fn erase(n: &mut Nand, block: u32) -> Result<Tok> {
    n.erase(&mut Sink::untimed(), BlockId(block), Cause::Gc, Tok::DONE)
}

fn read(n: &mut Nand, ppn: u32) -> Result<Vec<u8>> {
    let mut page = vec![0xEE; PAGE];
    n.read(&mut Sink::untimed(), Ppn(ppn), 0, ReadTarget::Bytes(&mut page), Cause::Host, Tok::DONE)
        .map(|_| page)
}
