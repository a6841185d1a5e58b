//! Request queues: one virtual page each, and the commands for which a request waits.

use super::*;
use crate::testing::RecordingSink;
use frit_core::{Cause, Op, Sink, Tok};

type Recorded = Nameless<HostFtl>;

fn recorded(queue_writes: u32) -> Recorded {
    let config = NamelessConfig { recovery: NamelessRecovery::None, ..config(1024, queue_writes) };
    let nand = nand_config(config.divide(TWO_UNITS).unwrap(), NandFaults::default());
    Nameless::over_nand(config, Nand::new(nand, NoStore, &mut Hardware::new()).unwrap()).unwrap()
}

/// Executes a request. Returns the number of programs and of reads, and the set of commands that its
/// acknowledgement waits for, among all commands.
fn request(sink: &mut RecordingSink, run: impl FnOnce(&mut Sink)) -> (usize, usize, u64) {
    let (emitted, ack) = sink.request(run);
    let of = |op| emitted.iter().filter(|c| c.op == op && c.cause != Cause::Gc).count();
    (of(Op::NandProgram), of(Op::NandRead), ack)
}

fn write_pages(layer: &mut Recorded, sink: &mut RecordingSink, page: u64, n: u32) -> (usize, usize, u64) {
    request(sink, |sink| {
        layer.write(sink, Sector(page * 2), WriteData::Len(n * 1024), Hints::NONE).unwrap();
    })
}

#[test]
fn a_request_is_divided_into_queues_of_one_virtual_page() {
    let (mut layer, sink) = (recorded(1), &mut RecordingSink::default());
    // Four blocks fit into a virtual page: 6 blocks take two, and the next request takes another one.
    assert_eq!(write_pages(&mut layer, sink, 1, 6), (2, 0, 0b11));
    assert_eq!(write_pages(&mut layer, sink, 7, 1), (1, 0, 0b100));
    // Consecutive contents of one virtual page are read by one command.
    let mut read = |page: u64, n: u32| {
        request(sink, |sink| {
            layer.read(sink, Sector(page * 2), ReadTarget::Len(n * 1024), Hints::NONE).unwrap();
        })
    };
    assert_eq!(read(1, 4), (0, 1, 0b1000));
    assert_eq!(read(4, 4), (0, 3, 0b111_0000));
}

#[test]
fn unrelated_writes_are_merged_up_to_a_limit_and_consecutive_ones_up_to_a_virtual_page() {
    let (mut layer, sink) = (recorded(2), &mut RecordingSink::default());
    // Two unrelated writes share a queue; the third one is in the next one.
    assert_eq!(write_pages(&mut layer, sink, 10, 1).0, 0);
    assert_eq!(write_pages(&mut layer, sink, 30, 1).0, 0);
    assert_eq!(write_pages(&mut layer, sink, 50, 1).0, 1);
    // 51 to 53 follow: the queue is full.
    assert_eq!((51..54).map(|p| write_pages(&mut layer, sink, p, 1).0).sum::<usize>(), 1);
    assert_eq!(layer.queue.len(), 0);
    // A queued block is read from the queue, and a flush programs it.
    write_pages(&mut layer, sink, 70, 1);
    let read = request(sink, |sink| {
        layer.read(sink, Sector(140), ReadTarget::Len(1024), Hints::NONE).unwrap();
    });
    assert_eq!((read.0, read.1), (0, 0));
    assert_eq!(request(sink, |sink| layer.flush(sink).unwrap()).0, 1);
}

#[test]
fn a_part_of_a_block_is_read_and_merged() {
    let (mut layer, sink) = (recorded(1), &mut RecordingSink::default());
    write_pages(&mut layer, sink, 5, 1);
    let written = request(sink, |sink| {
        layer.write(sink, Sector(10), WriteData::Len(512), Hints::NONE).unwrap();
    });
    assert_eq!((written.0, written.1), (1, 1));
}

#[test]
fn no_virtual_page_has_blocks_of_two_queues() {
    let mut layer = layer(config(1024, 3), NandFaults::default());
    overwrite(&mut layer, 500);
    let sink = &mut Sink::untimed();
    // The device refuses a queue that is larger than a virtual page.
    let mut placed = Vec::new();
    let five = [0u8; 5 * 1024];
    let refused = layer.device_mut().nameless_write(
        sink,
        &[1, 2, 3, 4, 5],
        WriteData::Bytes(&five),
        Cause::Host,
        Tok::DONE,
        &mut placed,
    );
    assert!(matches!(refused, Err(Error::Param { .. })));
}
