//! Latencies by type of page, and suspensions of programs and erases, computed by hand. Times as in
//! `by_hand`: cells in a read 62 301 ns, in a program 200 001, bus 13 199 a page. A suspension takes
//! 5 µs (programs) or 20 µs (erases), a resumption 3 µs.

use crate::common::*;
use frit_core::{Cause, Cmd, Nanos, Op, Sink, UnitId, UnitState};
use frit_engine::sched::{Fifo, Hfsl, ReadFirst};
use frit_engine::{AnyScheduler, DeviceUsage, Event, InOrder, LoopMode, RequestTimes, SinkUsage};
use frit_media::{Hardware, NandSuspend, SuspendTimes};
use proptest::prelude::*;

const OPEN: LoopMode = LoopMode::Open { speed: 1.0, depth: None };

fn acknowledged(times: &[RequestTimes]) -> Vec<u64> {
    times.iter().map(|t| t.acknowledged.0).collect()
}

fn at(list: &[(u64, Cmd)]) -> Vec<Request> {
    list.iter().map(|&(at, cmd)| Request::at(at, &[cmd])).collect()
}

/// Checks the in-order engine and the event engine with FIFO.
fn check(hw: &Hardware, commands: &[(u64, Cmd)], want: &[u64]) {
    let requests = at(commands);
    assert_eq!(acknowledged(&run(&mut Sink::new(InOrder::new(hw)), OPEN, &requests).0), want, "in-order");
    assert_eq!(acknowledged(&run(&mut Sink::new(Event::new(hw, Fifo)), OPEN, &requests).0), want, "event");
}

/// A command to a page of a block of 16 pages.
fn at_page(cmd: Cmd, page: u64) -> Cmd {
    Cmd { addr: u64::from(cmd.hazard) * 16 + page, ..cmd }
}

#[test]
fn a_page_takes_the_time_of_its_type() {
    let hw = nand_typed(&[0], None);
    // Staggered order: pages 0 to 5 are LSB, 6 and 7 CSB, 8 and 9 LSB, 10 and 11 CSB, 12 and 13 MSB.
    for (page, kind) in [(0, 0), (5, 0), (6, 1), (7, 1), (8, 0), (11, 1), (12, 2), (13, 2), (14, 0)] {
        let (cells_read, cells_program) = TYPES[kind];
        // The type depends on the page in the block, and not on the block.
        for block in [0, 3] {
            check(&hw, &[(0, at_page(read(0, block), page))], &[cells_read + BUS]);
            check(&hw, &[(0, at_page(program(0, block), page))], &[BUS + cells_program]);
        }
    }
    check(&hw, &[(0, erase(0, 1))], &[T_ERASE]);
    // A copyback: the cells of a read and of a program of the target, without a bus.
    check(&hw, &[(0, at_page(page(Op::NandCopyback, 0, 0), 12))], &[110_000 + 2_000_000]);
}

#[test]
fn pages_of_different_types_share_a_channel() {
    let hw = nand_typed(&[0, 0, 0, 0], None);
    // The cells end at 110 000, 75 000, 50 000 and 50 000; the bus follows this order, and for
    // equal times the order of emission: 50 000 + 13 199, + 13 199, then 76 398 + 13 199, then
    // 110 000 + 13 199.
    let reads = [(0, 12), (1, 6), (2, 0), (3, 8)].map(|(unit, page)| (0, at_page(read(unit, 0), page)));
    check(&hw, &reads, &[123_199, 89_597, 63_199, 76_398]);
}

#[test]
fn a_read_suspends_a_program() {
    let hw = nand_suspending(&[0], SUSPEND, 0);
    // The program would end at 213 200. The read begins 5 000 after its arrival: 105 000 + 62 301 +
    // 13 199 = 180 500. The program goes on with 113 200 + 3 000.
    check(&hw, &[(0, program(0, 0)), (100_000, read(0, 1))], &[296_700, 180_500]);
    // A read that arrives during the transfer in suspends the program when the cells begin, at
    // 13 199: 13 199 + 5 000 + 75 500 = 93 699; 93 699 + 200 001 + 3 000.
    check(&hw, &[(0, program(0, 0)), (5_000, read(0, 1))], &[296_700, 93_699]);
    // A read of the same block follows the program.
    check(&hw, &[(0, program(0, 0)), (100_000, read(0, 0))], &[213_200, 288_700]);
    // One that arrives at its end as well.
    check(&hw, &[(0, program(0, 0)), (213_200, read(0, 1))], &[213_200, 288_700]);
    // Only reads suspend.
    check(&hw, &[(0, program(0, 0)), (100_000, program(0, 1))], &[213_200, 426_400]);
}

#[test]
fn a_suspended_read_has_a_command_cycle() {
    let hw = nand_suspending(&[0], SUSPEND, 1_000);
    // The program: 1 000 + 13 199 on the bus, cells until 214 200. The read: 100 000 + 5 000 + 1 000
    // + 75 500 = 181 500. The program: 181 500 + 114 200 + 3 000.
    check(&hw, &[(0, program(0, 0)), (100_000, read(0, 1))], &[298_700, 181_500]);
    // An erase: cells from 1 000. 50 000 + 20 000 + 1 000 + 75 500 = 146 500; left 1 451 000.
    check(&hw, &[(0, erase(0, 0)), (50_000, read(0, 1))], &[1_600_500, 146_500]);
}

#[test]
fn a_suspension_executes_all_reads_that_wait() {
    let hw = nand_suspending(&[0], SUSPEND, 0);
    // The second read follows the first without another suspension: 180 500 + 75 500 = 256 000. The
    // program: 256 000 + 113 200 + 3 000 = 372 200, but a third read suspends it at 300 000: 305 000
    // + 75 500 = 380 500; 380 500 + 72 200 + 3 000.
    let commands = [(0, program(0, 0)), (100_000, read(0, 1)), (110_000, read(0, 2)), (300_000, read(0, 1))];
    check(&hw, &commands, &[455_700, 180_500, 256_000, 380_500]);
}

#[test]
fn a_suspension_executes_both_transfers_of_a_page() {
    // One read for each operation: the second transfer of a page is no other read.
    let hw = nand_suspending(&[0], NandSuspend { max_reads: 1, ..SUSPEND }, 0);
    // 100 000 + 5 000 + 75 500 = 180 500; + 13 199 = 193 699; the program: 193 699 + 113 200 + 3 000.
    let commands = [(0, program(0, 0)), (100_000, read(0, 1)), (100_000, register_read(0, 1))];
    check(&hw, &commands, &[309_899, 180_500, 193_699]);
}

#[test]
fn an_erase_is_suspended_up_to_its_limit() {
    let hw = nand_suspending(&[0], NandSuspend { max_suspends: 2, ..SUSPEND }, 0);
    // Read 1: 100 000 + 20 000 + 75 500 = 195 500; the erase would end at 195 500 + 1 400 000 +
    // 3 000 = 1 598 500. Read 2: 400 000 + 95 500 = 495 500; left 1 198 500, end at 1 697 000. Read 3
    // waits for it.
    let commands = [(0, erase(0, 0)), (100_000, read(0, 1)), (400_000, read(0, 1)), (700_000, read(0, 1))];
    check(&hw, &commands, &[1_697_000, 195_500, 495_500, 1_772_500]);
    // With one read for an operation, the second read waits.
    let hw = nand_suspending(&[0], NandSuspend { max_reads: 1, ..SUSPEND }, 0);
    let commands = [(0, program(0, 0)), (100_000, read(0, 1)), (110_000, read(0, 2))];
    check(&hw, &commands, &[296_700, 180_500, 372_200]);
}

#[test]
fn an_operation_near_its_end_is_not_suspended() {
    let program_times = SuspendTimes { suspend: Nanos(5_000), min_remaining: Nanos(113_200) };
    let hw = nand_suspending(&[0], NandSuspend { program: Some(program_times), ..SUSPEND }, 0);
    check(&hw, &[(0, program(0, 0)), (100_000, read(0, 1))], &[296_700, 180_500]);
    check(&hw, &[(0, program(0, 0)), (100_001, read(0, 1))], &[213_200, 288_700]);
    // Where only erases are suspended.
    let hw = nand_suspending(&[0], NandSuspend { program: None, ..SUSPEND }, 0);
    check(&hw, &[(0, program(0, 0)), (100_000, read(0, 1))], &[213_200, 288_700]);
    check(&hw, &[(0, erase(0, 0)), (100_000, read(0, 1))], &[1_598_500, 195_500]);
}

#[test]
fn a_suspension_has_the_latencies_of_the_types_of_pages() {
    let hw = nand_typed(&[0], Some(SUSPEND));
    // The MSB program would end at 2 013 199. CSB read: 1 000 000 + 5 000 + 75 000 + 13 199 =
    // 1 093 199; 1 093 199 + 1 013 199 + 3 000.
    let commands = [(0, at_page(program(0, 0), 12)), (1_000_000, at_page(read(0, 1), 6))];
    check(&hw, &commands, &[2_109_398, 1_093_199]);
}

#[test]
fn a_scheduler_chooses_the_read_that_suspends() {
    let hw = nand_suspending(&[0], SUSPEND, 0);
    let commands = [(0, program(0, 0)), (0, program(0, 1)), (100_000, read(0, 2)), (100_000, read(0, 1))];
    // FIFO: the second program is the next command, so the first one is not suspended. The cells of
    // the second begin at 213 200 + 13 199, and the first read suspends them: 226 399 + 5 000 +
    // 75 500 = 306 899; 306 899 + 200 001 + 3 000 = 509 900. The second read follows its block.
    check(&hw, &commands, &[213_200, 509_900, 306_899, 585_400]);
    // Read-first: the first read suspends the first program. The second program begins at 296 700.
    let times = run(&mut Sink::new(Event::new(&hw, ReadFirst::default())), OPEN, &at(&commands)).0;
    assert_eq!(acknowledged(&times), [296_700, 509_900, 180_500, 585_400]);
}

#[test]
fn a_unit_is_busy_once_and_until_its_operation_ends() {
    let hw = nand_suspending(&[0], SUSPEND, 0);
    let requests = at(&[(0, program(0, 0)), (100_000, read(0, 1))]);
    let (mut in_order, mut event) = (Sink::new(InOrder::new(&hw)), Sink::new(Event::new(&hw, Fifo)));
    run(&mut in_order, OPEN, &requests);
    run(&mut event, OPEN, &requests);
    for usage in [in_order.usage().unwrap(), event.usage().unwrap()] {
        assert_eq!(usage.units(), [Nanos(296_700)]);
        assert_eq!([Op::NandProgram, Op::NandErase].map(|op| usage.suspensions(op, Cause::Host)), [1, 0]);
        let times: Vec<_> = usage.commands().map(|(op, _, t)| (op, t.waited.0, t.served.0)).collect();
        // The read waits for the suspension. The program waits while the read is executed.
        assert_eq!(times, [(Op::NandRead, 5_000, 75_500), (Op::NandProgram, 75_500, 221_200)]);
    }
    fn states(mut e: Sink) {
        e.begin();
        let (first, second) = (e.emit(program(0, 0), e.start()), e.emit(read(0, 1), e.start()));
        assert!(e.time_or_watch(first, 1).is_none() && e.time_or_watch(second, 2).is_none());
        assert_eq!(e.next_done(Nanos::MAX).map(|d| (d.tag, d.at)), Some((2, Nanos(93_699))));
        assert!(matches!(e.unit(UnitId(0)), UnitState::BusyUntil(_)));
        assert_eq!(e.next_done(Nanos::MAX).map(|d| (d.tag, d.at)), Some((1, Nanos(296_700))));
        assert_eq!(e.unit(UnitId(0)), UnitState::Idle);
    }
    states(Sink::new(InOrder::new(&hw)));
    states(Sink::new(Event::new(&hw, Fifo)));
}

fn command() -> impl Strategy<Value = Cmd> {
    let op = prop_oneof![6 => Just(Op::NandRead), 4 => Just(Op::NandProgram), 1 => Just(Op::NandErase)];
    (op, 0u16..6, 0u32..4, 0u64..16).prop_map(|(op, unit, block, offset)| Cmd {
        cause: Cause::Host,
        ..at_page(page(op, unit, block), offset)
    })
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let command = (command(), prop::option::weighted(0.2, any::<prop::sample::Index>()));
    // Times of a coarse grid make events of the same instant.
    let gap = prop_oneof![0u64..400_000, (0u64..8).prop_map(|n| n * 13_199), Just(0)];
    prop::collection::vec((gap, prop::collection::vec(command, 1..5)), 1..60).prop_map(|list| {
        let mut at = 0;
        let timed = |(gap, commands): (u64, Vec<(Cmd, Option<prop::sample::Index>)>)| {
            at += gap;
            let after = |i: usize, a: Option<prop::sample::Index>| a.filter(|_| i > 0).map(|a| a.index(i));
            Request {
                at,
                commands: commands.into_iter().enumerate().map(|(i, (c, a))| (c, after(i, a))).collect(),
            }
        };
        list.into_iter().map(timed).collect()
    })
}

fn rules() -> impl Strategy<Value = NandSuspend> {
    // Equal lengths of different things make events of the same instant.
    let length = prop_oneof![Just(0), Just(13_199), Just(62_301), 0u64..100_000];
    let times = (length.clone(), prop_oneof![Just(0), 0u64..200_000])
        .prop_map(|(a, b)| SuspendTimes { suspend: Nanos(a), min_remaining: Nanos(b) });
    (prop::option::weighted(0.8, times.clone()), times, length, 1u32..6, 1u32..9).prop_map(
        |(program, erase, resume, max_suspends, max_reads)| NandSuspend {
            program,
            erase,
            resume: Nanos(resume),
            max_suspends,
            max_reads,
        },
    )
}

fn mode() -> impl Strategy<Value = LoopMode> {
    prop_oneof![
        (1u32..33).prop_map(|depth| LoopMode::Closed { depth }),
        (0.5f64..4.0, prop::option::of(1u32..17)).prop_map(|(speed, depth)| LoopMode::Open { speed, depth }),
    ]
}

/// Statistics that both engines keep.
fn counted(usage: &DeviceUsage) -> impl PartialEq + std::fmt::Debug + use<> {
    let commands: Vec<_> =
        usage.commands().map(|(op, cause, t)| (op, cause, t.commands, t.waited, t.served)).collect();
    let suspensions = [Op::NandProgram, Op::NandErase].map(|op| usage.suspensions(op, Cause::Host));
    (usage.units().to_vec(), usage.channels().to_vec(), commands, suspensions, usage.window())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn both_engines_suspend_at_the_same_times(
        r in requests(), m in mode(), rules in rules(), shared in any::<bool>(), t_command in 0u64..3,
    ) {
        let channels = if shared { [0, 0, 0, 1, 1, 1] } else { [0, 1, 2, 3, 4, 5] };
        let hw = nand_suspending(&channels, rules, t_command * 1_000);
        let (mut in_order, mut event) = (Sink::new(InOrder::new(&hw)), Sink::new(Event::new(&hw, Fifo)));
        prop_assert_eq!(run(&mut in_order, m, &r), run(&mut event, m, &r));
        prop_assert_eq!(counted(in_order.usage().unwrap()), counted(event.usage().unwrap()));
        // A unit is never busy twice.
        prop_assert!(in_order.usage().unwrap().units().iter().all(|&busy| busy <= in_order.usage().unwrap().window()));
    }

    #[test]
    fn both_engines_have_the_latencies_of_types(
        r in requests(), m in mode(), rules in prop::option::of(rules()),
    ) {
        let hw = nand_typed(&[0, 0, 0, 1, 1, 1], rules);
        let (mut in_order, mut event) = (Sink::new(InOrder::new(&hw)), Sink::new(Event::new(&hw, Fifo)));
        prop_assert_eq!(run(&mut in_order, m, &r), run(&mut event, m, &r));
        prop_assert_eq!(counted(in_order.usage().unwrap()), counted(event.usage().unwrap()));
    }

    /// Every command ends under each scheduler, and no pick is refused.
    #[test]
    fn every_operation_ends_under_each_scheduler(r in requests(), m in mode(), rules in rules()) {
        let hw = nand_suspending(&[0, 0, 0, 1, 1, 1], rules, 0);
        let schedulers: [AnyScheduler; 2] = [ReadFirst::default().into(), Hfsl::default().into()];
        for scheduler in schedulers {
            let mut e = Sink::new(Event::new(&hw, scheduler));
            let (times, _) = run(&mut e, m, &r);
            prop_assert_eq!(times.len(), r.len());
            let zero = ["picks_refused", "commands_outstanding"];
            prop_assert!(e.metrics().iter().filter(|m| zero.contains(&m.name)).all(|m| m.value == 0.0));
            prop_assert!(e.usage().unwrap().units().iter().all(|&busy| busy <= e.usage().unwrap().window()));
        }
    }
}
