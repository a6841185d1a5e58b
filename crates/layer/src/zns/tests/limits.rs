//! States of zones, limits and errors.

use super::*;

const BLOCK: usize = 1024;

fn small() -> Layer {
    new_layer(&config(BLOCK as u64))
}

fn block(n: u8) -> Vec<u8> {
    vec![n; BLOCK]
}

#[test]
fn implicitly_open_zones_are_closed_at_the_limit_and_explicitly_open_ones_are_not() {
    let mut layer = small();
    for z in 0..3 {
        append(&mut layer, z, &block(z as u8 + 1)).unwrap();
    }
    let states: Vec<ZoneState> = zones(&mut layer).iter().take(4).map(|z| z.state).collect();
    use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
    assert_eq!(states, [Closed, ImplicitlyOpen, ImplicitlyOpen, Empty], "the oldest is closed");
    manage(&mut layer, 1, ZoneAction::Open).unwrap();
    manage(&mut layer, 0, ZoneAction::Open).unwrap();
    let states: Vec<ZoneState> = zones(&mut layer).iter().take(3).map(|z| z.state).collect();
    assert_eq!(states, [ExplicitlyOpen, ExplicitlyOpen, Closed]);
    assert_eq!(fault(append(&mut layer, 2, &block(9))), ZoneFault::TooManyOpen);
    manage(&mut layer, 1, ZoneAction::Close).unwrap();
    append(&mut layer, 2, &block(9)).unwrap();
    append(&mut layer, 3, &block(4)).unwrap();
    assert_eq!(fault(append(&mut layer, 4, &block(5))), ZoneFault::TooManyActive);
    manage(&mut layer, 3, ZoneAction::Finish).unwrap();
    append(&mut layer, 4, &block(5)).unwrap();
    let info = access(&mut layer).zoned_info();
    assert_eq!((info.open, info.active), (2, 4));
    // The part of a program unit outlives the close of its zone.
    let start = zone(&mut layer, 2).start;
    assert_eq!(read(&mut layer, start, 2 * BLOCK), [block(3), block(9)].concat());
}

#[test]
fn errors_name_the_zone_its_write_pointer_and_a_remedy() {
    let mut layer = small();
    append(&mut layer, 1, &block(1)).unwrap();
    let info = zone(&mut layer, 1);
    let write = |layer: &mut Layer, at: u64, bytes: usize| {
        let data = vec![7; bytes];
        BlockLayer::write(layer, &mut sink(), Sector(at), WriteData::Bytes(&data), Hints::NONE)
    };
    let e = write(&mut layer, info.start.0, BLOCK).unwrap_err();
    let text = e.to_string();
    assert!(matches!(e, Error::Zone { zone: 1, fault: ZoneFault::InvalidWrite, .. }), "{e:?}");
    assert!(text.starts_with("zone 1: ") && text.contains("reset"), "{text}");
    assert!(text.contains(&format!("write pointer {}", info.write_pointer.0)), "{text}");
    let sectors = access(&mut layer).zoned_info().zone_sectors;
    let crossing = write(&mut layer, info.write_pointer.0, (sectors * 512) as usize);
    assert_eq!(fault(crossing), ZoneFault::BoundaryError);
    assert!(write(&mut layer, info.write_pointer.0, 512).unwrap_err().to_string().contains("whole blocks"));
    write(&mut layer, info.write_pointer.0, BLOCK).unwrap();
    assert_eq!(fault(manage(&mut layer, 2, ZoneAction::Close)), ZoneFault::InvalidTransition);
    assert!(manage(&mut layer, 1000, ZoneAction::Reset).unwrap_err().to_string().contains("less than"));
    let part = layer.discard(&mut sink(), info.start, 2);
    assert_eq!(fault(part), ZoneFault::InvalidTransition);
    layer.discard(&mut sink(), info.start, sectors).unwrap();
    assert_eq!(zone(&mut layer, 1).state, ZoneState::Empty);
    assert_eq!(read(&mut layer, info.start, 2 * BLOCK), vec![0; 2 * BLOCK]);
    layer.health.writable().unwrap();
}

#[test]
fn full_and_finished_zones_refuse_writes_until_a_reset() {
    let mut layer = small();
    let sectors = access(&mut layer).zoned_info().zone_sectors;
    append(&mut layer, 0, &vec![1; (sectors * 512) as usize]).unwrap();
    assert_eq!(zone(&mut layer, 0).state, ZoneState::Full);
    append(&mut layer, 1, &block(2)).unwrap();
    manage(&mut layer, 1, ZoneAction::Finish).unwrap();
    let (mut layer, _) = reopen(layer, NandFaults::default());
    for z in 0..2 {
        assert_eq!(fault(append(&mut layer, z, &block(3))), ZoneFault::IsFull);
    }
    let info = zone(&mut layer, 1);
    assert_eq!(
        (info.state, info.write_pointer.0 - info.start.0),
        (ZoneState::Full, 2),
        "a finish is durable"
    );
    assert_eq!(read(&mut layer, info.start, 2 * BLOCK), [block(2), block(0)].concat());
    manage(&mut layer, 1, ZoneAction::Reset).unwrap();
    let (mut layer, _) = reopen(layer, NandFaults::default());
    assert_eq!(zone(&mut layer, 1).state, ZoneState::Empty, "a reset is durable");
    append(&mut layer, 1, &block(4)).unwrap();
}

#[test]
fn a_rewrite_resets_a_zone_if_the_host_knows_no_zones() {
    let config = ZnsConfig { reset_on_rewrite: true, ..config(BLOCK as u64) };
    let mut layer = new_layer(&config);
    let sectors = access(&mut layer).zoned_info().zone_sectors;
    let bytes = (sectors * 512) as usize;
    let write = |layer: &mut Layer, at: u64, data: &[u8]| {
        BlockLayer::write(layer, &mut sink(), Sector(at), WriteData::Bytes(data), Hints::NONE)
    };
    write(&mut layer, 0, &vec![1; bytes + BLOCK]).unwrap();
    assert_eq!(zone(&mut layer, 0).state, ZoneState::Full);
    assert_eq!(zone(&mut layer, 1).write_pointer.0, sectors + 2);
    write(&mut layer, 0, &block(5)).unwrap();
    assert_eq!(read(&mut layer, Sector(0), 2 * BLOCK), [block(5), block(0)].concat());
    assert_eq!(fault(write(&mut layer, 8, &block(5))), ZoneFault::InvalidWrite);
}

#[test]
fn impossible_parameters_are_refused_by_key() {
    let refused = |config: &ZnsConfig| {
        let geometry = config.divide(GEOMETRY).unwrap();
        let nand = nand_config(geometry, NandFaults::default());
        let nand = Nand::new(nand, MemoryStore::new(4 << 20), &mut Hardware::new()).unwrap();
        match Layer::new(config.clone(), nand).map(|_| ()) {
            Err(Error::Param { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&ZnsConfig { zone_blocks: 60, ..config(1024) }), "blocks_per_plane");
    assert_eq!(refused(&ZnsConfig { capacity: 1 << 30, ..config(1024) }), "capacity");
    let limited = new_layer(&ZnsConfig { capacity: 65 << 10, ..config(1024) });
    assert_eq!(limited.sizes.zones, 2, "whole zones of 64 KiB");
    let (mut layer, half) = (new_layer(&config(1024)), ZnsConfig { zone_blocks: 1, ..config(1024) });
    let all = access(&mut layer).zoned_info();
    let halves = access(&mut new_layer(&half)).zoned_info();
    assert_eq!((halves.zones / 2, halves.zone_sectors * 2), (all.zones, all.zone_sectors));
}
