//! Tests of the rules of NAND, of its commands, and of configurations that cannot be built.

use super::*;
use crate::NoStore;
use crate::testing::{recorded, recording_sink};
use frit_core::{Error, Op, Sink, Tok};

#[track_caller]
fn breaks<T: std::fmt::Debug>(r: Result<T>, rule: &str) {
    match r {
        Err(Error::Rule { what, .. }) if what.contains(rule) => {}
        other => panic!("{other:?} instead of a broken rule about '{rule}'"),
    }
}

fn rules_hold(mut n: Nand) {
    breaks(program(&mut n, 1, 1), "out of order");
    program(&mut n, 0, 1).unwrap();
    breaks(program(&mut n, 0, 2), "twice without an erase");
    breaks(program(&mut n, 2, 2), "out of order");
    breaks(read(&mut n, 1), "erased");
    program(&mut n, 1, 2).unwrap();
    assert_eq!(n.next_page(BlockId(0)), 2);
    erase(&mut n, 0).unwrap();
    assert_eq!((n.next_page(BlockId(0)), n.erases(BlockId(0))), (0, 1));
    breaks(read(&mut n, 0), "erased");
    program(&mut n, 0, 3).unwrap();

    n.retire(BlockId(0));
    assert!(n.is_bad(BlockId(0)) && n.bad_blocks() == 1);
    breaks(program(&mut n, 1, 1), "bad block");
    breaks(erase(&mut n, 0), "bad");
    read(&mut n, 0).unwrap();

    breaks(program(&mut n, 48, 1), "outside");
    breaks(read(&mut n, 48), "outside");
    breaks(erase(&mut n, 12), "outside");
    let short = WriteData::Bytes(&[1; 100]);
    breaks(n.program(&mut Sink::untimed(), Ppn(4), short, spare(4), Cause::Host, Tok::DONE), "whole page");
    program(&mut n, 4, 1).unwrap();
    let mut into = [0; 100];
    breaks(
        n.read(&mut Sink::untimed(), Ppn(4), 413, ReadTarget::Bytes(&mut into), Cause::Host, Tok::DONE),
        "past the end",
    );
    n.read(&mut Sink::untimed(), Ppn(4), 412, ReadTarget::Bytes(&mut into), Cause::Host, Tok::DONE).unwrap();

    // Block 6 is the first of the second unit.
    breaks(
        n.copyback(&mut Sink::untimed(), Ppn(4), Ppn(24), spare(4), None, Cause::Gc, Tok::DONE),
        "leave its unit",
    );
    breaks(
        n.copyback(&mut Sink::untimed(), Ppn(4), Ppn(9), spare(4), None, Cause::Gc, Tok::DONE),
        "out of order",
    );
    breaks(n.copyback(&mut Sink::untimed(), Ppn(5), Ppn(8), spare(4), None, Cause::Gc, Tok::DONE), "erased");
    n.copyback(&mut Sink::untimed(), Ppn(4), Ppn(8), spare(4), None, Cause::Gc, Tok::DONE).unwrap();
    // A command that violates a rule is not counted.
    let done = |op| n.counts().of(op).commands;
    assert_eq!((done(Op::NandProgram), done(Op::NandErase), done(Op::NandCopyback)), (4, 1, 1));
    assert_eq!(done(Op::NandRead), 2);
}

#[test]
fn rules_hold_with_bytes() {
    rules_hold(in_memory(config()));
}

#[test]
fn rules_hold_without_bytes() {
    rules_hold(on(config(), NoStore));
}

#[test]
fn a_program_without_bytes_is_refused_only_where_bytes_are_held() {
    let len = WriteData::Len(PAGE as u32);
    let mut held = in_memory(config());
    breaks(
        held.program(&mut Sink::untimed(), Ppn(0), len, spare(0), Cause::Host, Tok::DONE),
        "without bytes",
    );
    let mut none = on(config(), NoStore);
    none.program(&mut Sink::untimed(), Ppn(0), len, spare(0), Cause::Host, Tok::DONE).unwrap();
    assert_eq!(none.spare(Ppn(0)).unwrap(), None);
}

#[test]
fn commands_name_page_block_unit_cause_and_what_they_wait_for() {
    let mut hw = Hardware::new();
    let first = Nand::new(config(), NoStore, &mut hw).unwrap();
    let mut n = Nand::new(config(), NoStore, &mut hw).unwrap();
    assert_eq!((first.unit_id(0), n.unit_id(1)), (UnitId(0), UnitId(3)));
    let mut log = recording_sink();
    let len = WriteData::Len(PAGE as u32);
    let p = n.program(&mut log, Ppn(24), len, spare(0), Cause::Host, Tok::DONE).unwrap();
    let r = n.read(&mut log, Ppn(24), 0, ReadTarget::Len(4), Cause::Merge, p).unwrap();
    let c = n.copyback(&mut log, Ppn(24), Ppn(28), spare(0), None, Cause::WearLevel, r).unwrap();
    n.erase(&mut log, BlockId(6), Cause::Gc, c).unwrap();
    let seen: Vec<_> = recorded(&log)
        .iter()
        .map(|(c, after)| (c.op, c.addr, c.len, c.hazard, c.unit, c.cause, *after))
        .collect();
    let unit = UnitId(3);
    assert_eq!(
        seen,
        [
            (Op::NandProgram, 24, 512, 6, unit, Cause::Host, 0),
            (Op::NandRead, 24, 512, 6, unit, Cause::Merge, 1),
            (Op::NandCopyback, 28, 512, 7, unit, Cause::WearLevel, 2),
            (Op::NandErase, 24, 0, 6, unit, Cause::Gc, 4),
        ]
    );
    assert_eq!(n.counts().get(Op::NandRead, Cause::Merge).bytes, 512);
    assert_eq!(hw.channel_of(unit), 3);
}

#[test]
fn preset_is_a_state_without_commands() {
    let mut n = on(config(), NoStore);
    n.preset(BlockId(3), 3, 77);
    assert_eq!((n.next_page(BlockId(3)), n.erases(BlockId(3))), (3, 77));
    breaks(program(&mut n, 12, 1), "twice");
    program(&mut n, 15, 1).unwrap();
    n.preset(BlockId(3), 99, 0);
    assert_eq!(n.next_page(BlockId(3)), 4);
    assert_eq!(n.counts().of(Op::NandErase).commands, 0);

    let mut held = in_memory(config());
    held.preset_page(Ppn(0), WriteData::Bytes(&[7; PAGE]), spare(5)).unwrap();
    breaks(held.preset_page(Ppn(2), WriteData::Bytes(&[7; PAGE]), spare(5)), "next page of a good block");
    assert_eq!(held.spare(Ppn(0)).unwrap(), Some(spare(5)));
    assert_eq!(read(&mut held, 0).unwrap(), [7; PAGE]);
    assert_eq!(held.counts().of(Op::NandProgram).commands, 0);
}

#[test]
fn the_view_shows_geometry_wear_and_counts() {
    let mut n = on(config(), NoStore);
    erase(&mut n, 2).unwrap();
    n.retire(BlockId(5));
    let v = n.view();
    assert_eq!((v.bytes, v.channels, v.units, v.wear.bad, v.wear.limit), (48 * 512, 2, 2, 1, 1000));
    assert_eq!(v.wear.cycles.len(), 12);
    assert_eq!(v.wear.summary().max, 1);
    assert!(v.geometry.contains(&("pages_per_block", 4)));
    assert_eq!(v.counts.of(Op::NandErase).commands, 1);
}

#[test]
fn what_cannot_be_built_says_why() {
    let store = MemoryStore::new(1000);
    let e = Nand::new(config(), store, &mut Hardware::new()).unwrap_err();
    assert!(e.contains("has 1000 bytes and needs"), "{e}");
    let mut zero = config();
    zero.geometry.channels = 0;
    let e = Nand::new(zero, NoStore, &mut Hardware::new()).unwrap_err();
    assert!(e.contains("channels = 0"), "{e}");
}
