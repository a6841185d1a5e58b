//! Queues of chips (the scheduler `out-of-order`), computed by hand. Times as in `by_hand`: cells in a
//! read 62 301 ns, in a program 200 001, bus 13 199 a page.

use crate::common::*;
use frit_core::{Cause, Cmd, Nanos, Sink};
use frit_engine::sched::OutOfOrder;
use frit_engine::{Event, LoopMode, Scheduler};
use frit_media::Hardware;
use proptest::prelude::*;

/// A command to a page of its block.
fn at_page(cmd: Cmd, page: u64) -> Cmd {
    Cmd { addr: page, ..cmd }
}

fn engine(hw: &Hardware, interleaves: bool) -> Sink {
    let mut scheduler = OutOfOrder::default();
    scheduler.params().set("interleave-dies", &interleaves.to_string()).unwrap();
    Sink::new(Event::new(hw, scheduler))
}

/// Runs commands at once, with chips that take commands for one die.
fn take(hw: &Hardware, commands: &[Cmd], expected: &[u64]) {
    assert_eq!(ends(&mut engine(hw, false), &singles(commands)), expected);
}

#[test]
fn a_chip_takes_commands_when_it_is_idle() {
    // One chip of two dies: the second read begins when the first page has left.
    let hw = nand_chips(1, 2, 1, (0, 0));
    take(&hw, &[read(0, 0), read(1, 0)], &[READ, 2 * READ]);
    // With commands for all dies, the cells work together and the pages leave one after the other.
    assert_eq!(ends(&mut engine(&hw, true), &singles(&[read(0, 0), read(1, 0)])), [READ, READ + BUS]);
    let programs = [program(0, 0), program(1, 0)];
    assert_eq!(ends(&mut engine(&hw, true), &singles(&programs)), [PROGRAM, PROGRAM + BUS]);
    // Two chips do not wait for each other.
    take(&nand_chips(2, 1, 1, (0, 0)), &programs, &[PROGRAM, PROGRAM + BUS]);
}

#[test]
fn reads_precede_programs_and_these_erases() {
    let hw = nand_chips(1, 1, 1, (0, 0));
    let commands = [erase(0, 9), program(0, 1), program(0, 1), read(0, 1)];
    let programmed = READ + PROGRAM;
    take(&hw, &commands, &[programmed + PROGRAM + T_ERASE, programmed, programmed + PROGRAM, READ]);
    // Those of the host precede others.
    let background = Cmd { cause: Cause::Gc, ..program(0, 2) };
    take(&hw, &[background, program(0, 1)], &[2 * PROGRAM, PROGRAM]);
    let background = Cmd { cause: Cause::Gc, ..read(0, 2) };
    take(&hw, &[background, program(0, 1)], &[PROGRAM + READ, PROGRAM]);
    take(&hw, &[background, read(0, 1)], &[2 * READ, READ]);
}

#[test]
fn garbage_collection_can_precede_the_host() {
    let requests = |hw: &Hardware, requests: &[Request]| {
        let mut scheduler = OutOfOrder::default();
        scheduler.params().set("gc-first", "true").unwrap();
        ends(&mut Sink::new(Event::new(hw, scheduler)), requests)
    };
    let first = |hw: &Hardware, commands: &[Cmd]| requests(hw, &singles(commands));
    let hw = nand_chips(1, 1, 1, (0, 0));
    let of_gc = |cmd: Cmd| Cmd { cause: Cause::Gc, ..cmd };
    assert_eq!(first(&hw, &[read(0, 1), of_gc(read(0, 2))]), [2 * READ, READ]);
    assert_eq!(first(&hw, &[read(0, 1), of_gc(program(0, 2))]), [PROGRAM + READ, PROGRAM]);
    assert_eq!(first(&hw, &[read(0, 1), erase(0, 9)]), [T_ERASE + READ, T_ERASE]);
    assert_eq!(first(&hw, &[program(0, 1), read(0, 1)]), [READ + PROGRAM, READ]);
    // Commands of the host for another plane join those of garbage collection.
    let hw = nand_chips(1, 1, 2, (0, 0));
    assert_eq!(first(&hw, &[program(1, 0), of_gc(program(0, 0))]), [2 * BUS + T_PROG; 2]);
    // A chip that waits for the data of a copy, which another chip reads, takes no command of the host.
    let hw = nand_chips(2, 1, 1, (0, 0));
    let copy = Request { at: 0, commands: vec![(of_gc(read(1, 0)), None), (of_gc(program(0, 0)), Some(0))] };
    let copied = READ + PROGRAM;
    assert_eq!(requests(&hw, &[copy, Request::at(0, &[read(0, 9)])]), [copied, copied + READ]);
}

#[test]
fn planes_join_from_anywhere_in_the_queue() {
    let hw = nand_chips(1, 1, 2, (0, 0));
    // Page 0 of both planes, although page 1 of the second one is older.
    let commands = [program(0, 0), at_page(program(1, 0), 1), program(1, 0)];
    let both = 2 * BUS + T_PROG;
    take(&hw, &commands, &[both, both + PROGRAM, both]);
    // Page 11 of the device is page 3 of the second block.
    let reads = [at_page(read(0, 0), 3), at_page(read(1, 1), 11), at_page(read(1, 1), 12)];
    take(&hw, &reads, &[READ, READ + BUS, READ + BUS + READ]);
    // Host and background fill a command together.
    let background = Cmd { cause: Cause::Gc, ..program(1, 0) };
    take(&hw, &[background, program(0, 0)], &[both, both]);
    let background = Cmd { cause: Cause::Gc, ..read(1, 0) };
    take(&hw, &[background, read(0, 0)], &[READ + BUS, READ]);
    // Blocks in different modes execute no command together.
    let one_bit = Cmd { addr: Cmd::ONE_BIT, ..program(1, 0) };
    take(&hw, &[program(0, 0), one_bit], &[PROGRAM, 2 * PROGRAM]);
}

#[test]
fn further_planes_have_cycles_of_their_own() {
    let hw = nand_chips(1, 1, 4, (1_000, 300));
    let programs: Vec<_> = (0..4).map(|i| program(i, 0)).collect();
    take(&hw, &programs, &[1_000 + 3 * 300 + 4 * BUS + T_PROG; 4]);
    let reads: Vec<_> = (0..3).map(|i| read(i, 0)).collect();
    let first = 1_600 + READ;
    take(&hw, &reads, &[first, first + BUS, first + 2 * BUS]);
    take(&hw, &[erase(0, 0), erase(1, 0)], &[1_300 + T_ERASE; 2]);
}

#[test]
fn pages_leave_before_new_commands_enter() {
    // The pages of chips 0 and 1 are ready at 63 301 and 64 301. The program of chip 2 waits from 50 000
    // on, but has the channel at once; that of chip 0 waits for its page, and for that of chip 1.
    let hw = nand_chips(3, 1, 1, (1_000, 0));
    let r = [
        Request::at(0, &[read(0, 0)]),
        Request::at(0, &[read(1, 0)]),
        Request::at(50_000, &[program(2, 0)]),
        Request::at(50_001, &[program(0, 1)]),
    ];
    let mut e = engine(&hw, false);
    let times = run(&mut e, LoopMode::Open { speed: 1.0, depth: None }, &r).0;
    let ends: Vec<u64> = times.iter().map(|t| t.acknowledged.0).collect();
    let out = 50_000 + 1_000 + BUS;
    assert_eq!(ends, [out + BUS, out + 2 * BUS, out + T_PROG, out + 2 * BUS + 1_000 + PROGRAM]);
}

#[test]
fn a_read_of_the_page_register_follows_its_read() {
    let hw = nand_chips(2, 1, 1, (1_000, 0));
    let r = [
        Request::at(0, &[read(0, 0), register_read(0, 0)]),
        Request::at(0, &[read(1, 0)]),
        Request::at(0, &[read(0, 1)]),
    ];
    // The register leaves directly after the page, with a command; then the page of the other chip. The
    // second read of the first chip is the last one.
    let both = 1_000 + READ + 1_000 + BUS;
    let third = both + BUS + 1_000 + READ;
    assert_eq!(ends(&mut engine(&hw, false), &r), [both, both + BUS, third]);
}

fn commands() -> impl Strategy<Value = Vec<(Cmd, u64)>> {
    let one = (0u16..12, 0u32..3, 0u64..8, 0u8..4, any::<bool>(), 0u64..400_000);
    let command = one.prop_map(|(unit, block, page, op, background, at)| {
        let cmd = match op {
            0 => erase(unit, block),
            1 => program(unit, block),
            _ => read(unit, block),
        };
        let cause = if background { Cause::Gc } else { Cause::Host };
        let page = if op == 0 { 0 } else { page };
        (Cmd { addr: u64::from(block) * 8 + page, cause, ..cmd }, at)
    });
    prop::collection::vec(command, 1..60)
}

proptest! {
    /// A chip executes commands of one die at a time: those whose times overlap are of one operation and
    /// one page of different planes.
    #[test]
    fn a_chip_has_one_command_at_a_time(mut all in commands()) {
        all.sort_by_key(|(_, at)| *at);
        // Two chips of two dies of three planes.
        let hw = nand_chips(2, 2, 3, (1_000, 300));
        let r: Vec<Request> = all.iter().map(|(cmd, at)| Request::at(*at, &[*cmd])).collect();
        let mut e = engine(&hw, false);
        let times = run(&mut e, LoopMode::Open { speed: 1.0, depth: None }, &r).0;
        prop_assert_eq!(e.next_done(Nanos::MAX), None);
        for (i, (a, _)) in all.iter().enumerate() {
            let cells = if a.op.is_read() { T_READ } else if a.len == 0 { T_ERASE } else { T_PROG };
            let bus = if a.len == 0 { 0 } else { BUS };
            prop_assert!(times[i].acknowledged.0 - times[i].arrived.0 >= 300 + cells + bus);
            for (j, (b, _)) in all.iter().enumerate().skip(i + 1) {
                let (chip, die) = (|c: &Cmd| c.unit.0 % 2, |c: &Cmd| c.unit.0 / 2 % 2);
                // The cells of programs and erases end together with the command.
                let together = times[i].acknowledged == times[j].acknowledged;
                if chip(a) == chip(b) && together && !a.op.is_read() {
                    prop_assert_eq!((die(a), a.op, a.addr % 8), (die(b), b.op, b.addr % 8));
                    prop_assert_ne!(a.unit, b.unit);
                }
            }
        }
    }
}
