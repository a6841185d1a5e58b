//! Command cycles and multi-plane commands, computed by hand. Times as in `by_hand`: cells in a read
//! 62 301 ns, in a program 200 001, bus 13 199 a page.

use crate::common::*;
use frit_core::Sink;
use frit_core::{Cmd, Nanos, UnitId, UnitState};
use frit_engine::sched::Fifo;
use frit_engine::{Event, InOrder, LoopMode};
use proptest::prelude::*;

/// A command to a page of its block.
fn at_page(cmd: Cmd, page: u64) -> Cmd {
    Cmd { addr: page, ..cmd }
}

#[test]
fn a_command_has_the_bus_before_the_cells() {
    let hw = nand_with_commands(1);
    for (commands, want) in [
        // Read: 1 000 + 62 301 + 13 199. Program: 1 000 + 13 199 + 200 001. Erase: 1 000 + 1.5 ms.
        (vec![read(0, 0)], vec![76_500]),
        (vec![program(0, 0)], vec![214_200]),
        (vec![erase(0, 0)], vec![1_501_000]),
    ] {
        assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&commands)), want);
        assert_eq!(ends(&mut Sink::new(Event::new(&hw, Fifo)), &singles(&commands)), want);
    }
}

#[test]
fn the_command_of_a_read_waits_while_data_leaves_the_bus() {
    let hw = nand_with_commands(4);
    let reads: Vec<_> = (0..8).map(|i| read(i % 4, 0)).collect();
    // Commands end at 1, 2, 3 and 4 µs. The first page leaves at 63 301, the others follow: 76 500,
    // 89 699, 102 898, 116 097. The second command of the first chip asks at 76 500, behind three
    // pages: it has the bus from 116 097. The others follow, and their cells end in time for a bus
    // without gaps: 117 097 + 62 301 + 13 199 = 192 597, and so on.
    let want = [76_500, 89_699, 102_898, 116_097, 192_597, 205_796, 218_995, 232_194];
    assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&reads)), want);
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, Fifo)), &singles(&reads)), want);
}

#[test]
fn programs_of_four_planes_are_one_command() {
    let hw = nand_with_planes(1, 4);
    let programs: Vec<_> = (0..8).map(|i| program(i % 4, 0)).collect();
    // Four transfers, then all cells together: 4 × 13 199 + 200 001 = 252 797. The die is busy until
    // then, so the second command ends at twice that time.
    let want = [[252_797; 4], [505_594; 4]].concat();
    assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&programs)), want);
    let erases: Vec<_> = (0..4).map(|i| erase(i, 0)).collect();
    assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&erases)), [1_500_000; 4]);
}

#[test]
fn reads_of_four_planes_leave_one_after_the_other() {
    let hw = nand_with_planes(1, 4);
    let reads: Vec<_> = (0..8).map(|i| read(i % 4, 0)).collect();
    // The second command starts when the last page of the first has left: 115 097 + 75 500, and so
    // on.
    let want = [75_500, 88_699, 101_898, 115_097, 190_597, 203_796, 216_995, 230_194];
    assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&reads)), want);
}

#[test]
fn commands_to_other_pages_or_of_other_operations_are_alone() {
    let hw = nand_with_planes(1, 4);
    let reads: Vec<_> = (0..4).map(|i| at_page(read(i, 0), u64::from(i))).collect();
    assert_eq!(
        ends(&mut Sink::new(InOrder::new(&hw)), &singles(&reads)),
        [75_500, 151_000, 226_500, 302_000]
    );
    // Page 11 of the device is page 3 of the second block.
    let reads = [at_page(read(0, 0), 3), at_page(read(1, 1), 11)];
    assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&reads)), [75_500, 88_699]);
    // Blocks in different modes execute no command together.
    let modes = [program(0, 0), at_page(program(1, 0), Cmd::ONE_BIT)];
    assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&modes)), [PROGRAM, 2 * PROGRAM]);
    let mixed = [read(0, 0), program(1, 0), read(2, 0)];
    // Both reads are one command; the program follows when their pages have left.
    assert_eq!(ends(&mut Sink::new(InOrder::new(&hw)), &singles(&mixed)), [75_500, 88_699 + 213_200, 88_699]);
}

#[test]
fn only_commands_that_are_ready_join() {
    let hw = nand_with_planes(1, 2);
    // The second read arrives 1 ns after the die has started the first.
    let requests = [Request::at(0, &[read(0, 0)]), Request::at(1, &[read(1, 0)])];
    let mode = LoopMode::Open { speed: 1.0, depth: None };
    let (times, _) = run(&mut Sink::new(InOrder::new(&hw)), mode, &requests);
    assert_eq!(times.iter().map(|t| t.acknowledged.0).collect::<Vec<_>>(), [75_500, 151_000]);
    // Dies of one channel work in parallel: units 0 and 2 are planes of the first die.
    let hw = nand_with_planes(2, 2);
    let reads: Vec<_> = (0..4).map(|i| read(i, 0)).collect();
    let times = ends(&mut Sink::new(InOrder::new(&hw)), &singles(&reads));
    assert_eq!(times, [75_500, 88_699, 101_898, 115_097]);
}

#[test]
fn a_plane_is_busy_while_its_die_is() {
    let hw = nand_with_planes(1, 2);
    let mut e = Sink::new(InOrder::new(&hw));
    e.begin();
    let tok = e.emit(program(0, 0), e.start());
    e.time_or_watch(tok, 0);
    assert_eq!(e.next_done(Nanos(1_000)), None);
    assert!(matches!(e.unit(UnitId(1)), UnitState::BusyUntil(_)));
    while e.next_done(Nanos(213_200)).is_some() {}
    assert_eq!(e.unit(UnitId(1)), UnitState::Idle);
}

proptest! {
    /// A die with one plane is a unit.
    #[test]
    fn a_die_of_one_plane_is_a_unit(
        list in prop::collection::vec((0u64..300_000, 0u16..3, 0u8..3, 0u64..16), 1..60),
        depth in 1u32..9,
    ) {
        let mut at = 0;
        let requests: Vec<Request> = list.into_iter().map(|(gap, unit, op, page)| {
            at += gap;
            let cmd = [read, program, erase][usize::from(op)](unit, 0);
            Request::at(at, &[at_page(cmd, page)])
        }).collect();
        for m in [LoopMode::Closed { depth }, LoopMode::Open { speed: 1.0, depth: None }] {
            let planes = run(&mut Sink::new(InOrder::new(&nand_with_planes(3, 1))), m, &requests);
            prop_assert_eq!(planes, run(&mut Sink::new(InOrder::new(&nand(&[0, 0, 0]))), m, &requests));
        }
    }
}
