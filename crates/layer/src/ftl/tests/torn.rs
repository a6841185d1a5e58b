//! Interrupted programs and damaged records.

use super::*;
use frit_core::{BlockId, Cause, Ppn, Sink, Tok};
use frit_media::{PageState, Spare};

/// Byte addresses in the store of the pages whose records name a logical page, oldest first.
fn places(layer: &Layer, lpn: u32) -> Vec<Ppn> {
    let g = *layer.flash.nand().geometry();
    let mut found = Vec::new();
    for block in (0..g.blocks()).map(BlockId) {
        for at in 0..layer.flash.nand().next_page(block) {
            let ppn = g.ppn(block, at);
            if let Ok(PageState::Programmed(spare)) = layer.flash.nand().page_state(ppn)
                && spare.lpn == lpn
            {
                found.push((spare.seq, ppn));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, ppn)| ppn).collect()
}

fn damage_data(layer: &mut Layer, ppn: Ppn) {
    let at = u64::from(ppn.0) * u64::from(layer.page_bytes) + 100;
    let store = layer.flash.nand_mut().devices_mut().next().unwrap().store_mut();
    let mut byte = [0];
    store.read(at, &mut byte).unwrap();
    store.write(at, &[byte[0] ^ 1]).unwrap();
}

/// Damages a copy of the record of a page.
fn damage_record(layer: &mut Layer, ppn: Ppn, copy: u32) {
    let g = *layer.flash.nand().geometry();
    let at = g.bytes() + u64::from(copy * g.pages() + ppn.0) * 24 + 5;
    layer.flash.nand_mut().devices_mut().next().unwrap().store_mut().write(at, &[0xFF]).unwrap();
}

/// A damaged record after a crash would look like one of an interrupted program.
#[test]
fn damage_of_one_copy_of_a_record_costs_nothing() {
    let sink = &mut Sink::untimed();
    for copy in 0..2 {
        let mut layer = layer(config(1024, 2), NandFaults::default());
        for version in 1..=2 {
            write(&mut layer, 0, &[version; 4096]);
            layer.flush(sink).unwrap();
        }
        let newest = *places(&layer, 0).last().unwrap();
        damage_record(&mut layer, newest, copy);
        let (mut layer, recovery) = reopen(layer, NandFaults::default());
        assert_eq!(recovery.losses(), 0);
        assert_eq!(read(&mut layer, 0, 8).unwrap(), [2; 4096]);
    }
}

#[test]
fn an_interrupted_program_leaves_the_older_version_for_good() {
    let sink = &mut Sink::untimed();
    let mut layer = layer(config(1024, 2), NandFaults::default());
    write(&mut layer, 0, &[1; 4096]);
    layer.flush(sink).unwrap();
    write(&mut layer, 0, &[2; 4096]);
    let newest = *places(&layer, 0).last().unwrap();
    damage_data(&mut layer, newest);
    let (mut layer, recovery) = reopen(layer, NandFaults::default());
    assert_eq!(recovery.losses(), 0);
    assert_eq!(read(&mut layer, 0, 2).unwrap(), [1; 1024]);
    // The mark of a later flush is newer than the interrupted version, which has a valid record.
    write(&mut layer, 100, &[3; 4096]);
    layer.flush(sink).unwrap();
    let (mut layer, _) = reopen(layer, NandFaults::default());
    assert_eq!(read(&mut layer, 0, 2).unwrap(), [1; 1024]);
}

#[test]
fn damage_to_flushed_data_is_an_error_and_not_an_older_version() {
    let sink = &mut Sink::untimed();
    let mut layer = layer(config(1024, 2), NandFaults::default());
    for version in 1..=2 {
        write(&mut layer, 0, &[version; 4096]);
        layer.flush(sink).unwrap();
    }
    // The mark of a flush states the flush before. A flush without changes writes another mark, once.
    layer.flush(sink).unwrap();
    let marks = layer.stats.marks;
    layer.flush(sink).unwrap();
    assert_eq!(layer.stats.marks, marks);
    let newest = *places(&layer, 0).last().unwrap();
    damage_data(&mut layer, newest);
    let (mut layer, _) = reopen(layer, NandFaults::default());
    assert!(matches!(read(&mut layer, 0, 2), Err(Error::Corrupt { .. })));
    assert_eq!(read(&mut layer, 2, 2).unwrap(), [2; 1024]);
}

#[test]
fn both_copies_of_a_record_damaged_after_a_clean_halt_are_noticed() {
    let sink = &mut Sink::untimed();
    let mut layer = layer(config(1024, 2), NandFaults::default());
    for version in 1..=2 {
        write(&mut layer, 0, &[version; 4096]);
        layer.flush(sink).unwrap();
    }
    layer.halt(sink).unwrap();
    let newest = *places(&layer, 0).last().unwrap();
    damage_record(&mut layer, newest, 0);
    damage_record(&mut layer, newest, 1);
    let (mut layer, recovery) = reopen(layer, NandFaults::default());
    assert_eq!(recovery.losses(), 1);
    // The older version of the page must not pass for the newest.
    assert!(read(&mut layer, 0, 2).is_err());
    assert!(layer.flash.health.refusal().is_some());
    let repair = CheckScope { repair: true, older: true, ..CheckScope::default() };
    layer.check(sink, repair, &mut |_| {}).unwrap();
    assert_eq!(read(&mut layer, 0, 2).unwrap(), [1; 1024]);
    write(&mut layer, 0, &[4; 512]);
}

/// A page whose program was lost, as garbage collection finds it. Its older version is still in NAND.
fn lost_page() -> Layer {
    let sink = &mut Sink::untimed();
    let config = FtlConfig { gc: "fifo".into(), ..config(1024, 2) };
    let mut layer = layer(config, NandFaults::default());
    for version in 1..=2 {
        write(&mut layer, 0, &[version; 4096]);
        layer.flush(sink).unwrap();
    }
    let newest = *places(&layer, 0).last().unwrap();
    let g = *layer.flash.nand().geometry();
    for copy in 0..2 {
        let at = g.bytes() + u64::from(copy * g.pages() + newest.0) * 24;
        layer.flash.nand_mut().devices_mut().next().unwrap().store_mut().write(at, &[0; 24]).unwrap();
    }
    let sectors = layer.capacity_bytes() / 512;
    for at in (8..sectors - 8).step_by(8).cycle().take(2_000) {
        if layer.map.lost().contains_key(&0) {
            return layer;
        }
        write(&mut layer, at, &[at as u8; 4096]);
    }
    panic!("garbage collection did not reach the page");
}

#[test]
fn a_lost_page_stays_lost_over_a_halt_and_over_a_flush() {
    let sink = &mut Sink::untimed();
    for halts in [false, true] {
        let mut layer = lost_page();
        if halts {
            layer.halt(sink).unwrap();
        } else {
            layer.flush(sink).unwrap();
        }
        let (mut layer, recovery) = reopen(layer, NandFaults::default());
        assert_eq!((recovery.clean, recovery.losses()), (halts, 1), "{recovery:?}");
        assert!(matches!(read(&mut layer, 0, 2), Err(Error::Corrupt { .. })));
        assert_eq!(read(&mut layer, 2, 6).unwrap(), [2; 3072]);
        write(&mut layer, 0, &[3; 1024]);
        layer.flush(sink).unwrap();
        let (mut layer, recovery) = reopen(layer, NandFaults::default());
        assert_eq!(recovery.losses(), 0);
        assert_eq!(read(&mut layer, 0, 8).unwrap(), [[3; 1024].as_slice(), &[2; 3072]].concat());
    }
}

/// A power loss can leave all blocks partly written, because programs of different blocks have no order.
#[test]
fn a_volume_whose_blocks_are_all_partly_written_can_be_overwritten() {
    let sink = &mut Sink::untimed();
    for programmed in 1..4 {
        let config = config(0, 0);
        let g = geometry(&config);
        let store = MemoryStore::new(4 << 20);
        let mut nand = Nand::new(nand_config(g, NandFaults::default()), store, &mut Hardware::new()).unwrap();
        let mut lpn = 0;
        for (block, at) in (0..g.blocks()).flat_map(|b| (0..programmed).map(move |at| (b, at))) {
            let (page, spare) =
                (vec![lpn as u8; g.page_bytes as usize], Spare { lpn, seq: u64::from(lpn) + 1 });
            nand.program(
                sink,
                g.ppn(BlockId(block), at),
                WriteData::Bytes(&page),
                spare,
                Cause::Host,
                Tok::DONE,
            )
            .unwrap();
            lpn += 1;
        }
        let mut layer = Ftl::new(config, nand).unwrap();
        assert_eq!(layer.recover(sink, CrashKind::Process).unwrap().losses(), 0);
        let mut expected: Vec<u8> =
            (0..layer.pages).map(|page| if page < lpn { page as u8 } else { 0 }).collect();
        for n in 0..4 * layer.pages {
            let page = (n * 7) % layer.pages;
            write(&mut layer, u64::from(page) * 8, &[n as u8; 4096]);
            expected[page as usize] = n as u8;
        }
        layer.flush(sink).unwrap();
        layer.audit();
        for (page, value) in (0..).zip(&expected) {
            assert_eq!(read(&mut layer, page * 8, 8).unwrap(), [*value; 4096], "page {page}");
        }
    }
}
