//! Counts of commands in cases that can be counted by hand.

use super::*;
use frit_core::{Cause, Op, Sink};

fn without_bytes(config: FtlConfig) -> Ftl {
    on(FtlConfig { recovery: FtlRecovery::None, ..config }, NoStore, NandFaults::default())
}

fn write_pages(layer: &mut Ftl, lpns: impl Iterator<Item = u64>) {
    let page = layer.page_bytes;
    for lpn in lpns {
        let at = Sector(lpn * u64::from(page) / 512);
        layer.write(&mut Sink::untimed(), at, WriteData::Len(page), Hints::NONE).unwrap();
    }
}

fn count(layer: &Ftl, op: Op, cause: Cause) -> (u64, u64) {
    let count = layer.flash().nand().devices().map(|d| d.counts().get(op, cause)).next().unwrap();
    (count.commands, count.bytes)
}

#[test]
fn a_merge_buffer_programs_whole_pages() {
    let mut layer = without_bytes(config(1024, 2));
    write_pages(&mut layer, (0..41).map(|i| i * 3 % 41));
    // 41 mapping units: ten pages of four, and one unit waits.
    assert_eq!(count(&layer, Op::NandProgram, Cause::Host), (10, 10 * 4096));
    layer.flush(&mut Sink::untimed()).unwrap();
    assert_eq!(count(&layer, Op::NandProgram, Cause::Host), (11, 11 * 4096));
    assert_eq!(count(&layer, Op::NandRead, Cause::Merge), (0, 0));
}

#[test]
fn a_flush_of_a_protected_merge_buffer_programs_nothing() {
    for (power_loss_protection, programs) in [(false, 11), (true, 10)] {
        let mut layer = without_bytes(FtlConfig { power_loss_protection, ..config(1024, 2) });
        write_pages(&mut layer, 0..41);
        layer.flush(&mut Sink::untimed()).unwrap();
        assert_eq!(count(&layer, Op::NandProgram, Cause::Host), (programs, programs * 4096));
    }
}

#[test]
fn without_a_merge_buffer_each_request_programs_a_page() {
    let mut layer = without_bytes(config(1024, 0));
    write_pages(&mut layer, 0..41);
    assert_eq!(count(&layer, Op::NandProgram, Cause::Host), (41, 41 * 4096));
}

#[test]
fn a_small_write_reads_a_whole_page_of_the_baseline() {
    let mut layer = without_bytes(config(0, 0));
    write_pages(&mut layer, 0..4);
    layer.write(&mut Sink::untimed(), Sector(1), WriteData::Len(512), Hints::NONE).unwrap();
    assert_eq!(count(&layer, Op::NandRead, Cause::Merge), (1, 4096));
    assert_eq!(count(&layer, Op::NandProgram, Cause::Host), (5, 5 * 4096));
}

#[test]
fn pages_that_lie_together_are_read_with_one_command() {
    let mut layer = without_bytes(FtlConfig { read_buffer: 0, ..config(1024, 2) });
    write_pages(&mut layer, 0..8);
    let sink = &mut Sink::untimed();
    layer.read(sink, Sector(0), ReadTarget::Len(8192), Hints::NONE).unwrap();
    assert_eq!(count(&layer, Op::NandRead, Cause::Host), (2, 8192));
    layer.read(sink, Sector(2), ReadTarget::Len(1024), Hints::NONE).unwrap();
    assert_eq!(count(&layer, Op::NandRead, Cause::Host), (3, 9216));
}

#[test]
fn the_read_buffer_serves_the_rest_of_a_page() {
    let mut layer = without_bytes(config(1024, 2));
    write_pages(&mut layer, 0..8);
    let sink = &mut Sink::untimed();
    for page in 0..4 {
        layer.read(sink, Sector(page * 2), ReadTarget::Len(1024), Hints::NONE).unwrap();
    }
    assert_eq!(count(&layer, Op::NandRead, Cause::Host), (1, 1024));
    // The rest comes out of the page register: the cells are read once.
    assert_eq!(count(&layer, Op::NandRegisterRead, Cause::Migrate), (1, 3072));
    assert_eq!(count(&layer, Op::NandRead, Cause::Migrate), (0, 0));
}
