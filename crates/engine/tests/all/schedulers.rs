//! Tests of schedulers: cases that are computed by hand, and invariants of all schedulers.

use crate::common::*;
use frit_core::{Cmd, Op, ParamInfo, Params, Result, Sink, UnitId};
use frit_engine::event::{CmdId, Queues};
use frit_engine::sched::{Fifo, Hfsl, ReadFirst};
use frit_engine::{AnyScheduler, Event, LoopMode, Scheduler};
use frit_media::Hardware;
use proptest::prelude::*;
use strum::VariantNames;

fn with<P: Scheduler + Default>(params: &[(&str, &str)]) -> P {
    let mut p = P::default();
    for (key, value) in params {
        p.params().set(key, value).unwrap();
    }
    p
}

fn metric(e: &Sink, name: &str) -> f64 {
    e.metrics().iter().find(|m| m.name == name).unwrap().value
}

#[test]
fn read_first_lets_a_read_overtake_other_blocks() {
    let hw = nand(&[0]);
    let r = singles(&[program(0, 1), program(0, 2), read(0, 3)]);
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, Fifo)), &r), [213_200, 426_400, 501_900]);
    let mut e = Sink::new(Event::new(&hw, ReadFirst::default()));
    assert_eq!(ends(&mut e, &r), [288_700, 501_900, 75_500]);
    assert_eq!(metric(&e, "reads_overtaken"), 1.0);
}

#[test]
fn read_first_keeps_the_order_of_a_block() {
    let hw = nand(&[0]);
    // The read is in the block that is programmed second: it overtakes neither that program nor the
    // first.
    let r = singles(&[program(0, 1), program(0, 2), read(0, 2)]);
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, ReadFirst::default())), &r), [213_200, 426_400, 501_900]);
    // A read of another page of the block overtakes both.
    let other = Cmd { addr: 33, ..read(0, 2) };
    let r = singles(&[program(0, 1), program(0, 2), other]);
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, ReadFirst::default())), &r), [288_700, 501_900, 75_500]);
    // Reads do not hold back programs of other pages, and wait for an erase of their block.
    let r = singles(&[other, erase(0, 2), program(0, 2), other]);
    let last = READ + T_ERASE + READ;
    assert_eq!(
        ends(&mut Sink::new(Event::new(&hw, ReadFirst::default())), &r),
        [READ, READ + T_ERASE, last + PROGRAM, last]
    );
    // The read before an erase is always started first; the read after it, in another block,
    // overtakes it.
    let r = singles(&[read(0, 1), erase(0, 9), read(0, 2), read(0, 9)]);
    let erased = 2 * READ + T_ERASE;
    assert_eq!(
        ends(&mut Sink::new(Event::new(&hw, ReadFirst::default())), &r),
        [READ, erased, 2 * READ, erased + READ]
    );
}

#[test]
fn read_first_works_while_something_waits_elsewhere() {
    let hw = nand(&[0, 1]);
    // The first program on unit 0 waits for a read on unit 1, the second does not wait.
    let copy = Request { at: 0, commands: vec![(read(1, 0), None), (program(0, 1), Some(0))] };
    let r = [copy.clone(), Request::at(0, &[program(0, 2)])];
    // FIFO: 75 500, then both. Read-first: the second program at once, the first behind it.
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, Fifo)), &r), [288_700, 501_900]);
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, ReadFirst::default())), &r), [426_400, 213_200]);
    // In the same block it must not overtake.
    let r = [copy, Request::at(0, &[program(0, 1)])];
    assert_eq!(ends(&mut Sink::new(Event::new(&hw, ReadFirst::default())), &r), [288_700, 501_900]);
}

#[test]
fn read_first_starves_no_program() {
    let hw = nand(&[0]);
    let mut commands = vec![program(0, 0)];
    commands.extend((1..6).map(|b| read(0, b)));
    // Two reads overtake the program, then it runs, then the remaining reads.
    let mut e = Sink::new(Event::new(&hw, with::<ReadFirst>(&[("max-overtakes", "2")])));
    let p = 2 * READ + PROGRAM;
    assert_eq!(ends(&mut e, &singles(&commands)), [p, READ, 2 * READ, p + READ, p + 2 * READ, p + 3 * READ]);
    // No overtaking: the same as FIFO.
    let mut e = Sink::new(Event::new(&hw, with::<ReadFirst>(&[("max-overtakes", "0")])));
    assert_eq!(
        ends(&mut e, &singles(&commands)),
        ends(&mut Sink::new(Event::new(&hw, Fifo)), &singles(&commands))
    );
    // A window that does not reach the reads has the same effect.
    let mut e = Sink::new(Event::new(&hw, with::<ReadFirst>(&[("window", "1")])));
    assert_eq!(ends(&mut e, &singles(&commands))[0], PROGRAM);
}

/// Ten reads, five on each of two channels.
fn ten_reads() -> Vec<Request> {
    singles(&(0..10).map(|i| read(i % 2, 0)).collect::<Vec<_>>())
}

#[test]
fn hfsl_sends_batches_and_acknowledges_them_whole() {
    let hw = nand(&[0, 1]);
    let mut e =
        Sink::new(Event::new(&hw, with::<Hfsl>(&[("max-cmd-send-counter", "8"), ("transfer-ns", "5000")])));
    // First batch: 8 commands, four on each channel, at the device at 5 000: 5 000 + 4 × 75 500 =
    // 307 000. Second batch: two commands, at the device at 312 000: 312 000 + 75 500 = 387 500.
    let first = 307_000;
    let want: Vec<u64> = (0..10).map(|i| if i < 8 { first } else { 387_500 }).collect();
    assert_eq!(ends(&mut e, &ten_reads()), want);
    assert_eq!((metric(&e, "batches"), metric(&e, "batch_size")), (2.0, 5.0));
}

#[test]
fn hfsl_with_a_counter_a_channel_does_not_wait_for_the_other() {
    let hw = nand(&[0, 1]);
    let params = [("max-cmd-send-counter", "8"), ("transfer-ns", "5000"), ("counter", "channel")];
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&params)));
    // Each channel has a batch of five; the second transfer waits for the first.
    let (a, b) = (5_000 + 5 * READ, 10_000 + 5 * READ);
    assert_eq!(ends(&mut e, &ten_reads()), [a, b, a, b, a, b, a, b, a, b]);
    let refused = e
        .engine_mut::<Event<Hfsl>>()
        .unwrap()
        .scheduler()
        .params()
        .set("counter", "device")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("cannot be changed"), "{refused}");
}

#[test]
fn hfsl_looks_at_its_counter_at_ticks_of_the_timer() {
    let hw = nand(&[0, 1]);
    let params = [("max-cmd-send-counter", "8"), ("transfer-ns", "5000"), ("timer-ns", "100000")];
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&params)));
    // The first batch ends at 307 000; the next tick is at 400 000.
    assert_eq!(ends(&mut e, &ten_reads())[9], 400_000 + 5_000 + READ);
}

#[test]
fn hfsl_sends_no_more_of_a_channel_than_its_queue_holds() {
    let hw = nand(&[0, 1]);
    let params = [("max-cmd-send-counter", "8"), ("transfer-ns", "0"), ("queue-capacity", "2")];
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&params)));
    // Batches of 2 + 2, 2 + 2, 1 + 1.
    let want: Vec<u64> = [2, 2, 2, 2, 4, 4, 4, 4, 5, 5].map(|n| n * READ).to_vec();
    assert_eq!(ends(&mut e, &ten_reads()), want);
}

#[test]
fn hfsl_sends_what_depends_on_a_batch_with_the_next() {
    let hw = nand(&[0, 1]);
    let copy = Request { at: 0, commands: vec![(read(0, 0), None), (program(1, 1), Some(0))] };
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&[("transfer-ns", "5000")])));
    // 5 000 + 75 500, then 5 000 + 213 200.
    assert_eq!(ends(&mut e, std::slice::from_ref(&copy)), [298_700]);
    // With a long command in the batch, the dependent command waits for that one.
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&[("transfer-ns", "5000")])));
    let r = [Request::at(0, &[erase(1, 7)]), copy];
    assert_eq!(ends(&mut e, &r), [1_505_000, 1_505_000 + 5_000 + 213_200]);
}

#[test]
fn hfsl_keeps_a_closed_loop_in_step() {
    // Eight requests outstanding, eight per batch: all slots are filled before the next batch is
    // sent.
    let hw = nand(&[0, 1]);
    let params = [("max-cmd-send-counter", "8"), ("transfer-ns", "1000")];
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&params)));
    let r = singles(&(0..80).map(|i| read(i % 2, 0)).collect::<Vec<_>>());
    let (times, _) = run(&mut e, LoopMode::Closed { depth: 8 }, &r);
    assert!(times.iter().all(|t| t.response().0 == 1_000 + 4 * READ), "{times:?}");
    assert_eq!(metric(&e, "batch_size"), 8.0);
}

#[test]
fn hfsl_lets_channels_take_turns() {
    let hw = nand(&[0, 1, 2]);
    let params = [("max-cmd-send-counter", "8"), ("transfer-ns", "0")];
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&params)));
    // 24 reads, 8 per channel: batches of 3 + 3 + 2, 3 + 2 + 3, 2 + 3 + 3, each as long as 3 reads.
    // If the first channel always came first, 4 commands would be left for the last one.
    let r = singles(&(0..24).map(|i| read(i % 3, 0)).collect::<Vec<_>>());
    assert_eq!(ends(&mut e, &r).into_iter().max(), Some(9 * READ));
}

#[test]
fn hfsl_sees_requests_that_arrive_together_together() {
    let hw = nand(&[0, 1]);
    let mut e = Sink::new(Event::new(&hw, with::<Hfsl>(&[("transfer-ns", "0")])));
    let r: Vec<Request> = (0..8).map(|i| Request::at(50_000, &[read(i % 2, 0)])).collect();
    let (times, _) = run(&mut e, LoopMode::Open { speed: 1.0, depth: None }, &r);
    assert!(times.iter().all(|t| t.response().0 == 4 * READ), "{times:?}");
}

/// A scheduler that picks the newest command that was sent, and so violates every possible hazard.
#[derive(Default)]
struct NewestFirst;

impl Scheduler for NewestFirst {
    fn pick(&mut self, queues: &Queues, unit: UnitId) -> Option<CmdId> {
        queues.sent(unit).last().map(|w| w.id)
    }
    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl Params for NewestFirst {
    fn list(&self) -> Vec<ParamInfo> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}

/// A scheduler that sends no command.
#[derive(Default)]
struct Stuck;

impl Scheduler for Stuck {
    fn ready(&mut self, _: &mut Queues, _: CmdId) {}
    fn pick(&mut self, _: &Queues, _: UnitId) -> Option<CmdId> {
        None
    }
    fn params(&mut self) -> &mut dyn Params {
        Box::leak(Box::new(NewestFirst))
    }
}

#[test]
fn a_scheduler_that_would_break_a_hazard_is_caught() {
    let hw = nand(&[0]);
    let mut e = Sink::new(Event::new(&hw, NewestFirst));
    let order = ends(&mut e, &singles(&[program(0, 1), program(0, 1), read(0, 1)]));
    assert_eq!(order, [PROGRAM, 2 * PROGRAM, 2 * PROGRAM + READ]);
    // It picked the third command before the first, and again before the second.
    assert_eq!(metric(&e, "picks_refused"), 2.0);
    // Without a hazard its choice is accepted.
    let mut e = Sink::new(Event::new(&hw, NewestFirst));
    assert_eq!(ends(&mut e, &singles(&[program(0, 1), read(0, 2)])), [READ + PROGRAM, READ]);
    assert_eq!(metric(&e, "picks_refused"), 0.0);
}

#[test]
fn a_scheduler_that_stalls_is_an_error() {
    let hw = nand(&[0]);
    let mut host = Script::new(singles(&[read(0, 0)]));
    let mut driver = frit_engine::Driver::new(LoopMode::Closed { depth: 1 }).unwrap();
    let mut e = Sink::new(Event::new(&hw, Stuck));
    driver.run(&mut e, &mut host, None).unwrap();
    let error = driver.finish(&mut e, &mut host).unwrap_err().to_string();
    assert!(error.contains("scheduler") && error.contains("1 request"), "{error}");
}

/// Emits all commands at time zero, each optionally after another one, and checks that no pair
/// violated its hazard. Returns the number of refused choices.
fn check_order<P: Scheduler + 'static>(
    hw: &Hardware,
    scheduler: P,
    commands: &[(Option<Cmd>, Cmd)],
) -> std::result::Result<f64, TestCaseError> {
    let mut e = Sink::new(Event::new(hw, scheduler));
    let request = |&(first, cmd): &(Option<Cmd>, Cmd)| Request {
        at: 0,
        commands: first.map(|f| (f, None)).into_iter().chain([(cmd, first.map(|_| 0))]).collect(),
    };
    let ends = ends(&mut e, &commands.iter().map(request).collect::<Vec<_>>());
    let queues = e.engine::<Event<P>>().unwrap().queues();
    for (i, (_, earlier)) in commands.iter().enumerate() {
        for (j, (_, later)) in commands.iter().enumerate().skip(i + 1) {
            if earlier.unit == later.unit && queues.must_follow(earlier, later) {
                prop_assert!(ends[i] <= ends[j], "{earlier:?} {later:?}: {} {}", ends[i], ends[j]);
            }
        }
    }
    prop_assert_eq!(metric(&e, "commands_outstanding"), 0.0);
    Ok(metric(&e, "picks_refused"))
}

fn nand_cmd() -> impl Strategy<Value = Cmd> {
    (0u8..9, 0u16..4, 0u32..3, 0u64..3).prop_map(|(n, unit, block, page)| {
        let addr = u64::from(block) * 16 + page;
        match n {
            0..4 => Cmd { addr, ..read(unit, block) },
            4..8 => Cmd { addr, ..program(unit, block) },
            _ => erase(unit, block),
        }
    })
}

fn pcm_cmd() -> impl Strategy<Value = Cmd> {
    (0u8..9, 0u16..4, 0u32..6).prop_map(|(n, unit, line)| Cmd {
        op: match n {
            0..4 => Op::PcmRead,
            4..7 => Op::PcmWrite,
            _ => Op::PcmFence,
        },
        len: 64,
        ..read(unit, line)
    })
}

proptest! {
    #[test]
    fn no_scheduler_breaks_a_hazard(
        on_nand in prop::collection::vec((prop::option::of(nand_cmd()), nand_cmd()), 1..60),
        on_pcm in prop::collection::vec((prop::option::of(pcm_cmd()), pcm_cmd()), 1..60),
    ) {
        let channels = [0, 0, 1, 1];
        for (hw, commands) in [(nand(&channels), on_nand), (pcm(&channels), on_pcm)] {
            for name in AnyScheduler::VARIANTS {
                let refused = check_order(&hw, AnyScheduler::named(name).unwrap(), &commands)?;
                prop_assert_eq!(refused, 0.0, "{} picked a blocked command", name);
            }
            let per_channel = with::<Hfsl>(&[("counter", "channel"), ("max-cmd-send-counter", "8")]);
            prop_assert_eq!(check_order(&hw, per_channel, &commands)?, 0.0);
            check_order(&hw, NewestFirst, &commands)?;
        }
    }
}
