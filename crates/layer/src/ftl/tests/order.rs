//! Commands for which requests wait.

use super::*;
use crate::testing::RecordingSink;
use frit_core::{Cause, Op};

type Recorded = Ftl;

fn recorded(config: FtlConfig) -> Recorded {
    let config = FtlConfig { recovery: FtlRecovery::None, ..config };
    let nand = nand_config(geometry(&config), NandFaults::default());
    Ftl::new(config, Nand::new(nand, NoStore, &mut Hardware::new()).unwrap()).unwrap()
}

/// Executes a request. Returns the commands that it emits, and the set of those that its
/// acknowledgement waits for, among all commands.
fn request(sink: &mut RecordingSink, run: impl FnOnce(&mut Sink)) -> (Vec<(Op, Cause)>, u64) {
    let (emitted, ack) = sink.request(run);
    (emitted.iter().map(|c| (c.op, c.cause)).collect(), ack)
}

fn write_bytes(layer: &mut Recorded, sink: &mut RecordingSink, at: u64, len: u32) -> (Vec<(Op, Cause)>, u64) {
    request(sink, |sink| layer.write(sink, Sector(at / 512), WriteData::Len(len), Hints::NONE).unwrap())
}

const PROGRAM: (Op, Cause) = (Op::NandProgram, Cause::Host);

#[test]
fn without_a_merge_buffer_a_write_waits_for_its_own_programs() {
    let (mut layer, sink) = (recorded(config(0, 0)), &mut RecordingSink::default());
    assert_eq!(write_bytes(&mut layer, sink, 0, 4096), (vec![PROGRAM], 0b1));
    // The program of the first request is not one of them.
    assert_eq!(write_bytes(&mut layer, sink, 4096, 8192), (vec![PROGRAM, PROGRAM], 0b110));
}

#[test]
fn a_page_whose_old_contents_are_read_stays_in_its_unit() {
    let (mut layer, sink) = (recorded(config(0, 0)), &mut RecordingSink::default());
    for page in 0..3 {
        write_bytes(&mut layer, sink, page * 4096, 4096);
    }
    // The unit in turn is the one of the second page.
    assert_eq!(write_bytes(&mut layer, sink, 0, 512), (vec![(Op::NandRead, Cause::Merge), PROGRAM], 0b10000));
    let units: Vec<u16> = sink.commands().iter().map(|c| c.unit.0).collect();
    assert_eq!(units, [1, 0, 1, 1, 1]);
}

fn read_bytes(layer: &mut Recorded, sink: &mut RecordingSink, at: u64, len: u32) -> (Vec<(Op, Cause)>, u64) {
    request(sink, |sink| layer.read(sink, Sector(at / 512), ReadTarget::Len(len), Hints::NONE).unwrap())
}

/// Writes whole NAND pages of four mapping units.
fn write_nand_pages(layer: &mut Recorded, sink: &mut RecordingSink, pages: u64) {
    for page in 0..pages {
        write_bytes(layer, sink, page * 4096, 4096);
    }
    request(sink, |sink| layer.flush(sink).unwrap());
}

#[test]
fn a_hit_in_the_read_buffer_waits_until_the_page_is_in_the_buffer() {
    let (mut layer, sink) = (recorded(config(1024, 2)), &mut RecordingSink::default());
    write_nand_pages(&mut layer, sink, 1);
    let (emitted, first) = read_bytes(&mut layer, sink, 0, 1024);
    assert_eq!(emitted, [(Op::NandRead, Cause::Host), (Op::NandRegisterRead, Cause::Migrate)]);
    assert_eq!(first, 0b010, "the host has its part after the first transfer");
    assert_eq!(read_bytes(&mut layer, sink, 1024, 1024), (vec![], 0b100));
}

#[test]
fn a_merge_buffer_waits_for_the_rest_of_its_last_page() {
    let (mut layer, sink) = (recorded(config(1024, 2)), &mut RecordingSink::default());
    for sector in 0..7 {
        assert_eq!(write_bytes(&mut layer, sink, sector * 512, 512), (vec![], 0), "sector {sector}");
    }
    assert_eq!(write_bytes(&mut layer, sink, 7 * 512, 512), (vec![PROGRAM], 0));
}

#[test]
fn a_full_merge_buffer_is_programmed_when_a_page_does_not_fit() {
    let (mut layer, sink) = (recorded(config(1024, 2)), &mut RecordingSink::default());
    for page in 0..4 {
        assert_eq!(write_bytes(&mut layer, sink, page * 1024, 512), (vec![], 0), "page {page}");
    }
    assert_eq!(write_bytes(&mut layer, sink, 4 * 1024, 512), (vec![PROGRAM], 0));
    assert_eq!(request(sink, |sink| layer.flush(sink).unwrap()), (vec![PROGRAM], 0b11));
}

#[test]
fn a_read_of_a_partly_written_page_waits_for_its_old_contents() {
    let (mut layer, sink) = (recorded(config(1024, 2)), &mut RecordingSink::default());
    write_nand_pages(&mut layer, sink, 1);
    assert_eq!(write_bytes(&mut layer, sink, 512, 512), (vec![(Op::NandRead, Cause::Merge)], 0));
    assert_eq!(read_bytes(&mut layer, sink, 512, 512), (vec![], 0));
    assert_eq!(read_bytes(&mut layer, sink, 0, 1024), (vec![], 0b10));
}
