//! Commands and what acknowledgements wait for.

use super::*;
use crate::testing::RecordingSink;
use frit_core::{Cause, Op};

fn timed(config: &ZnsConfig) -> Zns {
    let geometry = config.divide(GEOMETRY).unwrap();
    let nand = nand_config(geometry, NandFaults::default());
    let nand = Nand::new(nand, MemoryStore::new(4 << 20), &mut Hardware::new()).unwrap();
    Zns::new(config.clone(), nand).unwrap()
}

/// A write is acknowledged in the buffer until the buffer is full of program units that are being programmed.
#[test]
fn writes_wait_for_space_in_the_buffer_only() {
    let mut layer = timed(&ZnsConfig { buffer_units: 2, recovery: ZnsRecovery::None, ..config(1024) });
    let mut sink = RecordingSink::default();
    let mut acks = Vec::new();
    for _ in 0..16 {
        let data = [5; 1024];
        let (commands, ack) = sink.request(|sink| {
            layer.append(sink, 0, WriteData::Bytes(&data)).unwrap();
        });
        acks.push((commands.len(), ack));
    }
    let programs: Vec<usize> = acks.iter().map(|a| a.0).collect();
    assert_eq!(programs, [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], "a program for four blocks");
    let waits: Vec<u64> = acks.iter().map(|a| a.1).collect();
    assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "for the unit two units before");
    let units: Vec<u16> = sink.commands().iter().map(|c| c.unit.0).collect();
    assert_eq!(units, [0, 1, 0, 1], "a zone is striped over the units");
}

/// A flush saves a part of a program unit, writes both copies of the table, and waits for all of it. The
/// whole program unit is programmed later.
#[test]
fn a_flush_saves_parts_and_the_table() {
    let mut layer = timed(&config(1024));
    let mut sink = RecordingSink::default();
    layer.append(&mut sink.0, 0, WriteData::Bytes(&[1; 5 * 1024])).unwrap();
    let before = sink.commands().len();
    let (commands, ack) = sink.request(|sink| BlockLayer::flush(&mut layer, sink).unwrap());
    let causes: Vec<(Op, Cause)> = commands.iter().map(|c| (c.op, c.cause)).collect();
    assert_eq!(causes, [(Op::NandProgram, Cause::Meta); 3], "one part, two copies of the table");
    assert_eq!(ack, (1 << (before + 3)) - 1);
    let (commands, _) = sink.request(|sink| BlockLayer::flush(&mut layer, sink).unwrap());
    assert!(commands.is_empty(), "nothing has changed");
    layer.append(&mut sink.0, 0, WriteData::Bytes(&[1; 3 * 1024])).unwrap();
    let last = sink.commands().last().unwrap();
    assert_eq!((last.cause, last.len), (Cause::Host, 4096), "the whole program unit");
}

/// A close of a zone at the limit saves its part of a program unit, and a later write reads it back.
#[test]
fn a_zone_beyond_the_limit_costs_a_save_and_a_read() {
    let mut layer = timed(&ZnsConfig { recovery: ZnsRecovery::None, ..config(1024) });
    let mut sink = RecordingSink::default();
    let mut ops = Vec::new();
    for zone in [0, 1, 2, 0, 1] {
        let (commands, _) = sink.request(|sink| {
            layer.append(sink, zone, WriteData::Bytes(&[1; 1024])).unwrap();
        });
        ops.push(commands.iter().map(|c| c.op).collect::<Vec<_>>());
    }
    assert_eq!(ops[..2], [vec![], vec![]]);
    assert_eq!(ops[2], [Op::NandProgram]);
    assert_eq!(ops[3..], [[Op::NandProgram, Op::NandRead], [Op::NandProgram, Op::NandRead]]);
}
