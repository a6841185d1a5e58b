//! Latencies that are computed by hand from the data sheet, for every engine that must reproduce
//! them. Times in ns: cells in a read 62 301, in a program 200 001, bus 13 199 per page.

use crate::common::*;
use frit_core::{Nanos, Sink, Tok, UnitId, UnitState};
use frit_engine::sched::{Fifo, Hfsl, ReadFirst};
use frit_engine::{Event, InOrder, LoopMode, RequestTimes, SinkUsage};
use frit_media::Hardware;

/// Checks the in-order engine and the event engine with FIFO.
fn check(hw: &Hardware, requests: &[Request], want: &[u64]) {
    assert_eq!(ends(&mut Sink::new(InOrder::new(hw)), requests), want, "in-order");
    assert_eq!(ends(&mut Sink::new(Event::new(hw, Fifo)), requests), want, "event");
}

#[test]
fn one_page_on_one_chip() {
    let hw = nand(&[0]);
    // Read: 62 301 + 13 199 = 75 500. Program: 13 199 + 200 001 = 213 200.
    check(&hw, &singles(&[read(0, 0)]), &[75_500]);
    check(&hw, &singles(&[program(0, 0)]), &[213_200]);
    check(&hw, &singles(&[erase(0, 0)]), &[1_500_000]);
    // One after the other: 213 200 + 75 500 = 288 700.
    check(&hw, &singles(&[program(0, 0), read(0, 0)]), &[213_200, 288_700]);
}

#[test]
fn a_nested_command_waits_for_the_start_of_its_request() {
    let hw = nand(&[0, 1]);
    let mode = LoopMode::Closed { depth: 1 };
    // The command has no token, or one that is done before the request to the lower layer starts.
    for after in [None, Some(0)] {
        let request = Request { at: 0, commands: vec![(program(0, 0), None), (read(1, 0), after)] };
        // 213 200 + 1000 + 75 500 = 289 700.
        let ends = |(times, _): (Vec<RequestTimes>, _)| times[0].acknowledged.0;
        let (requests, by) = ([request], Some(Nanos(1000)));
        assert_eq!(
            ends(run_nested(&mut Sink::new(InOrder::new(&hw)), mode, &requests, by)),
            289_700,
            "in-order"
        );
        assert_eq!(
            ends(run_nested(&mut Sink::new(Event::new(&hw, Fifo)), mode, &requests, by)),
            289_700,
            "event"
        );
    }
}

#[test]
fn four_channels_work_in_parallel() {
    let hw = nand(&[0, 1, 2, 3]);
    let reads: Vec<_> = (0..8).map(|i| read(i % 4, 0)).collect();
    // The second four begin when the first four are done: 2 × 75 500 = 151 000.
    check(&hw, &singles(&reads), &[75_500, 75_500, 75_500, 75_500, 151_000, 151_000, 151_000, 151_000]);
    let programs: Vec<_> = (0..4).map(|i| program(i, 0)).collect();
    check(&hw, &singles(&programs), &[213_200; 4]);
    // A request of four pages ends with its last page: all at 213 200.
    check(&hw, &[Request::at(0, &programs)], &[213_200]);
}

#[test]
fn four_chips_behind_one_channel_share_the_bus() {
    let hw = nand(&[0, 0, 0, 0]);
    let reads: Vec<_> = (0..4).map(|i| read(i, 0)).collect();
    // The cells end together at 62 301; then the bus transfers one page after the other: 62 301 + k
    // × 13 199.
    check(&hw, &singles(&reads), &[75_500, 88_699, 101_898, 115_097]);
    let programs: Vec<_> = (0..4).map(|i| program(i, 0)).collect();
    // The bus transfers one page after the other, then the cells work in parallel: k × 13 199 +
    // 200 001.
    check(&hw, &singles(&programs), &[213_200, 226_399, 239_598, 252_797]);
}

#[test]
fn four_planes_of_one_chip_are_four_units_on_one_channel() {
    let hw = nand(&[0, 0, 0, 0]);
    let reads: Vec<_> = (0..8).map(|i| read(i % 4, 0)).collect();
    // Second round: the cells of a plane begin when its first page is transferred, and 62 301 later
    // the bus is free: 75 500 + 62 301 + 13 199 = 151 000, then each page 13 199 later.
    check(&hw, &singles(&reads), &[75_500, 88_699, 101_898, 115_097, 151_000, 164_199, 177_398, 190_597]);
    let programs: Vec<_> = (0..8).map(|i| program(i % 4, 0)).collect();
    // Second round: the first plane is free at 213 200; 213 200 + 213 200 = 426 400, then each
    // 13 199 later.
    check(
        &hw,
        &singles(&programs),
        &[213_200, 226_399, 239_598, 252_797, 426_400, 439_599, 452_798, 465_997],
    );
}

#[test]
fn a_program_uses_the_bus_while_the_cells_of_a_read_work() {
    let hw = nand(&[0, 0]);
    // The read needs the bus at 62 301, the program at 0: both end as on an idle device, in either
    // order.
    check(&hw, &singles(&[read(0, 0), program(1, 0)]), &[75_500, 213_200]);
    check(&hw, &singles(&[program(1, 0), read(0, 0)]), &[213_200, 75_500]);
}

#[test]
fn a_transfer_waits_for_one_that_asked_for_the_bus_before() {
    // A read at 0 needs the bus at 62 301; a program arrives at 55 000, when the bus is free. The
    // program has the bus until 68 199, the read from then until 81 398.
    let hw = nand(&[0, 0]);
    let requests = [Request::at(0, &[read(0, 0)]), Request::at(55_000, &[program(1, 0)])];
    let mode = LoopMode::Open { speed: 1.0, depth: None };
    let ends = |t: &[RequestTimes]| t.iter().map(|t| t.acknowledged.0).collect::<Vec<_>>();
    let want = [81_398, 55_000 + 213_200];
    assert_eq!(ends(&run(&mut Sink::new(Event::new(&hw, Fifo)), mode, &requests).0), want);
    assert_eq!(ends(&run(&mut Sink::new(InOrder::new(&hw)), mode, &requests).0), want);
}

#[test]
fn commands_wait_for_what_they_come_after() {
    let hw = nand(&[0, 1]);
    // Read on one channel, then program the data on the other: 75 500 + 213 200 = 288 700.
    let copy = Request { at: 0, commands: vec![(read(0, 0), None), (program(1, 0), Some(0))] };
    check(&hw, std::slice::from_ref(&copy), &[288_700]);
    // A read behind the program on its unit waits for it in FIFO order: 288 700 + 75 500.
    check(&hw, &[copy, Request::at(0, &[read(1, 1)])], &[288_700, 364_200]);
}

/// A read with two transfers, each of a page.
fn in_parts(unit: u16, block: u32) -> [Request; 2] {
    // As one request would have one acknowledgement, the second transfer is a request of its own.
    [Request::at(0, &[read(unit, block)]), Request::at(0, &[register_read(unit, block)])]
}

#[test]
fn the_rest_of_a_page_takes_only_the_bus() {
    let hw = nand(&[0, 0]);
    // 75 500, then a transfer without the cells: 88 699. The next read of the unit: + 75 500.
    let [first, rest] = in_parts(0, 0);
    let requests = [first, rest, Request::at(0, &[read(0, 1)])];
    check(&hw, &requests, &[75_500, 88_699, 164_199]);
    // The other unit asks for the bus at 62 301, before the rest does.
    let [first, rest] = in_parts(0, 0);
    check(&hw, &[first, rest, Request::at(0, &[read(1, 0)])], &[75_500, 101_898, 88_699]);
    // With a cycle for the command and the address: 1 000 + 75 500, then 1 000 + 13 199.
    check(&nand_with_commands(1), &in_parts(0, 0), &[76_500, 90_699]);
}

#[test]
fn no_other_read_comes_between_the_transfers_of_a_page() {
    // The reads of the other blocks are sent before the first one ends. A scheduler does not choose
    // one of them while the page register holds the rest of a page.
    let [first, rest] = in_parts(0, 0);
    let requests = [first, rest, Request::at(0, &[read(0, 1)]), Request::at(0, &[read(0, 2)])];
    let hw = nand(&[0]);
    let want = [75_500, 88_699, 164_199, 239_699];
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, ReadFirst::default())), &requests), want);
    check(&hw, &requests, &want);
    // The scheduler of HFSL sends batches and reports them as a whole: 5 000 for the transfer, then
    // the reads. The second transfer needs no report.
    let ends = ends(&mut Sink::new(Event::new(&hw, Hfsl::default())), &requests);
    assert_eq!(ends, [244_699, 93_699, 244_699, 244_699]);
}

#[test]
fn joins_wait_for_both() {
    fn joined(mut e: Sink) -> Option<u64> {
        e.begin();
        let a = e.emit(read(0, 0), e.start());
        let b = e.emit(program(1, 0), e.start());
        let both = e.join(a, b);
        let c = e.emit(read(2, 0), both);
        let nothing = e.join(e.start(), e.start());
        let c = e.join(nothing, c);
        e.ack(c);
        let tok = e.end();
        e.time_or_watch(tok, 0).or_else(|| e.next_done(Nanos::MAX).map(|d| d.at)).map(|t| t.0)
    }
    let hw = nand(&[0, 1, 2]);
    // max(75 500, 213 200) + 75 500.
    assert_eq!(joined(Sink::new(InOrder::new(&hw))), Some(288_700));
    assert_eq!(joined(Sink::new(Event::new(&hw, Fifo))), Some(288_700));
}

/// Predicts when a token of the engine in order is done.
fn predict(e: &Sink, tok: Tok) -> Nanos {
    e.engine::<InOrder>().unwrap().predict(tok)
}

#[test]
fn a_prediction_is_what_happens_if_nothing_follows() {
    let hw = nand(&[0, 0]);
    let mut e = Sink::new(InOrder::new(&hw));
    let first = e.emit(read(0, 0), e.start());
    // The program waits for the read: 75 500 + 213 200.
    let second = e.emit(program(1, 0), first);
    assert_eq!((predict(&e, first), predict(&e, second)), (Nanos(75_500), Nanos(288_700)));
    // The prediction did not advance the engine. A further program follows on its unit.
    assert_eq!(e.now(), Nanos::ZERO);
    assert_eq!(e.time_or_watch(second, 7), None);
    assert_eq!(e.next_done(Nanos(60_000)), None);
    let third = e.emit(program(1, 0), e.start());
    assert_eq!(predict(&e, third), Nanos(75_500 + 2 * 213_200));
    assert_eq!(e.next_done(Nanos::MAX).map(|d| (d.tag, d.at)), Some((7, Nanos(288_700))));
}

#[test]
fn a_later_transfer_can_delay_what_was_predicted() {
    let hw = nand(&[0, 0]);
    let mut e = Sink::new(InOrder::new(&hw));
    let first = e.emit(read(0, 0), e.start());
    assert_eq!(predict(&e, first), Nanos(75_500));
    e.next_done(Nanos(55_000));
    // The program has the bus from 55 000 to 68 199, and the read from then until 81 398.
    e.emit(program(1, 0), e.start());
    assert_eq!(predict(&e, first), Nanos(81_398));
}

/// The engine in order does not know which space is returned next: a wait for space is one for a given command.
#[test]
fn in_order_a_wait_for_space_is_one_for_a_given_command() {
    let mut e = Sink::new(InOrder::new(&nand(&[0])));
    let start = e.start();
    let pool = e.add_pool(1);
    let first = e.emit(read(0, 0), start);
    let entered = e.acquire(pool, 1, start, first);
    assert!(!e.is_done(entered));
    assert_eq!(predict(&e, entered), predict(&e, first));
}

#[test]
fn unit_state_is_seen_at_once() {
    fn states(mut e: Sink) {
        assert_eq!(e.unit(UnitId(0)), UnitState::Idle);
        e.begin();
        let tok = e.emit(read(0, 0), e.start());
        assert_eq!(e.unit(UnitId(0)), UnitState::BusyUntil(Nanos(75_500)));
        assert_eq!(e.unit(UnitId(1)), UnitState::Idle);
        e.emit(program(0, 0), tok);
        assert_eq!(e.unit(UnitId(0)), UnitState::BusyUntil(Nanos(288_700)));
        while e.next_done(Nanos(288_700)).is_some() {}
        assert_eq!(e.unit(UnitId(0)), UnitState::Idle);
    }
    let hw = nand(&[0, 1]);
    states(Sink::new(InOrder::new(&hw)));
    states(Sink::new(Event::new(&hw, Fifo)));
    states(Sink::new(Event::new(&hw, ReadFirst::default())));
}

#[test]
fn usage_is_the_sum_of_the_phases() {
    let hw = nand(&[0, 0]);
    let requests = singles(&[read(0, 0), read(1, 0), program(0, 0)]);
    let (mut in_order, mut event) = (Sink::new(InOrder::new(&hw)), Sink::new(Event::new(&hw, Fifo)));
    in_order.usage_mut().unwrap().enable_histograms();
    event.usage_mut().unwrap().enable_histograms();
    ends(&mut in_order, &requests);
    ends(&mut event, &requests);
    for usage in [in_order.usage().unwrap(), event.usage().unwrap()] {
        // Unit 0: a read and a program. Unit 1: a read whose data waits 13 199 for the bus.
        assert_eq!(usage.units(), [Nanos(75_500 + 213_200), Nanos(75_500 + 13_199)]);
        assert_eq!(usage.channels(), [Nanos(3 * 13_199)]);
        // The program gets the bus at 88 699, after the second read, and ends at 301 899.
        assert_eq!(usage.window(), Nanos(88_699 + 213_200));
        let times: Vec<_> =
            usage.commands().map(|(op, _, t)| (op, t.commands, t.waited.0, t.served.0)).collect();
        assert_eq!(
            times,
            [
                (frit_core::Op::NandRead, 2, 0, 75_500 + 88_699),
                (frit_core::Op::NandProgram, 1, 88_699, 213_200)
            ]
        );
        assert_eq!(usage.histogram(frit_core::Op::NandRead).unwrap().summary().max_ns, Nanos(88_699));
    }
}

#[test]
fn a_request_to_a_layer_below_starts_after_its_delay() {
    let hw = nand(&[0, 1, 2]);
    // A read, then a program and a read below. The layer below knows nothing of the first read.
    let commands = vec![(read(0, 0), None), (program(1, 0), None), (read(2, 0), None)];
    let request = [Request { at: 0, commands }];
    let mode = LoopMode::Closed { depth: 1 };
    for by in [0, 5_000] {
        let end = READ + by + PROGRAM.max(READ);
        let in_order = run_nested(&mut Sink::new(InOrder::new(&hw)), mode, &request, Some(Nanos(by))).0;
        assert_eq!(in_order[0].acknowledged, Nanos(end));
        let event = run_nested(&mut Sink::new(Event::new(&hw, Fifo)), mode, &request, Some(Nanos(by))).0;
        assert_eq!(event[0].acknowledged, Nanos(end));
    }
}
