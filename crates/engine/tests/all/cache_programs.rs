//! Cache programs, computed by hand: the data of the next page of a block are transferred while the cells
//! work. Times as in `by_hand`: cells in a program 200 001 ns, bus 13 199 a page; tCBSY is 3 000.

use crate::common::*;
use frit_core::{Cmd, Sink};
use frit_engine::sched::{Fifo, ReadFirst};
use frit_engine::{DeviceUsage, Event, InOrder, LoopMode, Scheduler, SinkUsage};
use frit_media::Hardware;
use proptest::prelude::*;

/// Runs commands at once in the engine in order, and with the scheduler `fifo`.
fn take(hw: &Hardware, commands: &[Cmd], expected: &[u64]) {
    assert_eq!(ends(&mut Sink::new(InOrder::new(hw)), &singles(commands)), expected);
    assert_eq!(ends(&mut Sink::new(Event::new(hw, Fifo)), &singles(commands)), expected);
}

#[test]
fn programs_of_a_block_take_the_time_of_their_cells() {
    let hw = nand_caching(&[0]);
    // Each page but the first is in the register when the cells are free.
    take(&hw, &[program(0, 1); 4], &[1, 2, 3, 4].map(|n| BUS + n * T_PROG));
    // The data of another block are transferred when the cells have ended; so are commands of other kinds.
    take(&hw, &[program(0, 1), program(0, 2)], &[PROGRAM, 2 * PROGRAM]);
    let mixed = [program(0, 1), program(0, 1), read(0, 9), program(0, 1)];
    let second = BUS + 2 * T_PROG;
    take(&hw, &mixed, &[PROGRAM, second, second + READ, second + READ + PROGRAM]);
}

#[test]
fn a_transfer_waits_for_its_channel_and_for_the_register() {
    // 20 units on a channel: 20 transfers take 264 µs, longer than the cells. So the channel is the limit.
    let hw = nand_caching(&[0; 20]);
    let programs: Vec<Cmd> = (0..40).map(|i| program(i % 20, 1)).collect();
    let expected: Vec<u64> = (1..=40).map(|n| n * BUS + T_PROG).collect();
    take(&hw, &programs, &expected);
    // A program that comes 1 µs after the start of the cells has its data in the register 3 µs after it.
    let hw = nand_caching(&[0]);
    let start = BUS;
    for (later, end) in [(1_000, 2 * T_PROG + BUS), (T_PROG - 1_000, T_PROG + BUS - 1_000 + PROGRAM)] {
        let r = [Request::at(0, &[program(0, 1)]), Request::at(start + later, &[program(0, 1)])];
        let mode = LoopMode::Open { speed: 1.0, depth: None };
        let both = [
            run(&mut Sink::new(InOrder::new(&hw)), mode, &r).0[1].acknowledged.0,
            run(&mut Sink::new(Event::new(&hw, Fifo)), mode, &r).0[1].acknowledged.0,
        ];
        assert_eq!(both, [end; 2]);
    }
}

#[test]
fn a_read_that_waits_has_the_unit_after_the_current_program() {
    let hw = nand_caching(&[0]);
    let r = [
        Request::at(0, &[program(0, 1)]),
        Request::at(0, &[program(0, 1)]),
        Request::at(1_000, &[read(0, 2)]),
    ];
    let mode = LoopMode::Open { speed: 1.0, depth: None };
    let times = |e: &mut Sink| -> Vec<u64> { run(e, mode, &r).0.iter().map(|t| t.acknowledged.0).collect() };
    let mut e = Sink::new(Event::new(&hw, ReadFirst::default()));
    assert_eq!(times(&mut e), [PROGRAM, PROGRAM + READ + PROGRAM, PROGRAM + READ]);
}

#[test]
fn a_unit_is_busy_once() {
    let hw = nand_caching(&[0]);
    let busy = |usage: &DeviceUsage| usage.units()[0].0;
    let mut e = Sink::new(InOrder::new(&hw));
    ends(&mut e, &singles(&[program(0, 1); 4]));
    assert_eq!(busy(e.usage().unwrap()), BUS + 4 * T_PROG);
    let mut e = Sink::new(Event::new(&hw, Fifo));
    ends(&mut e, &singles(&[program(0, 1); 4]));
    assert_eq!(busy(e.usage().unwrap()), BUS + 4 * T_PROG);
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let command = (0u16..4, 0u32..2, 0u64..4, 0u8..8).prop_map(|(unit, block, page, op)| {
        let addr = u64::from(block) * 16 + page;
        match op {
            0 => erase(unit, block),
            1..6 => Cmd { addr, ..program(unit, block) },
            _ => Cmd { addr, ..read(unit, block) },
        }
    });
    let request = (prop::collection::vec(command, 1..5), 0u64..3_000_000);
    prop::collection::vec(request, 1..40).prop_map(|mut all| {
        all.sort_by_key(|(_, at)| *at);
        all.into_iter().map(|(commands, at)| Request::at(at, &commands)).collect()
    })
}

fn acknowledged<P: Scheduler + 'static>(hw: &Hardware, scheduler: P, r: &[Request]) -> Vec<u64> {
    let mode = LoopMode::Open { speed: 1.0, depth: None };
    run(&mut Sink::new(Event::new(hw, scheduler)), mode, r).0.iter().map(|t| t.acknowledged.0).collect()
}

proptest! {
    #[test]
    fn both_engines_agree_and_no_request_is_lost(r in requests(), shared: bool) {
        let hw = nand_caching(if shared { &[0, 0, 0, 0] } else { &[0, 1, 0, 1] });
        let mode = LoopMode::Open { speed: 1.0, depth: None };
        let in_order: Vec<u64> =
            run(&mut Sink::new(InOrder::new(&hw)), mode, &r).0.iter().map(|t| t.acknowledged.0).collect();
        prop_assert_eq!(acknowledged(&hw, Fifo, &r), in_order);
        prop_assert_eq!(acknowledged(&hw, ReadFirst::default(), &r).len(), r.len());
    }
}
