//! Compares the eager engine with the event engine under FIFO: the results are equal if no units
//! share a bus, and close if they do. Also compares each engine with itself.

use crate::common::*;
use frit_core::{Cause, Cmd, Nanos, Op, UnitId};
use frit_engine::sched::Fifo;
use frit_engine::{AnyScheduler, Eager, Event, LoopMode, RequestTimes};
use proptest::prelude::*;
use strum::VariantNames;

const UNITS: u16 = 6;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![4 => Just(Op::NandRead), 4 => Just(Op::NandProgram), 1 => Just(Op::NandErase)]
}

/// A request of 1 to 4 commands that may wait for each other.
fn request(cmd: impl Strategy<Value = Cmd>) -> impl Strategy<Value = (u64, Vec<(Cmd, Option<usize>)>)> {
    let command = (cmd, prop::option::of(any::<prop::sample::Index>()));
    (0u64..400_000, prop::collection::vec(command, 1..5)).prop_map(|(gap, commands)| {
        let after = |i: usize, a: Option<prop::sample::Index>| a.filter(|_| i > 0).map(|a| a.index(i));
        (gap, commands.into_iter().enumerate().map(|(i, (c, a))| (c, after(i, a))).collect())
    })
}

fn requests(cmd: impl Strategy<Value = Cmd>, most: usize) -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec(request(cmd), 1..most).prop_map(|list| {
        let mut at = 0;
        let timed = |(gap, commands): (u64, Vec<_>)| {
            at += gap;
            Request { at, commands }
        };
        list.into_iter().map(timed).collect()
    })
}

fn nand_cmd() -> impl Strategy<Value = Cmd> {
    (op(), 0..UNITS, 0u32..4).prop_map(|(op, unit, block)| page(op, unit, block))
}

fn pcm_cmd() -> impl Strategy<Value = Cmd> {
    let op = prop_oneof![Just(Op::PcmRead), Just(Op::PcmWrite), Just(Op::PcmFence)];
    (op, 0..UNITS, 0u64..64, 1u32..1024).prop_map(|(op, unit, line, len)| Cmd {
        addr: line * 512,
        len: if op == Op::PcmFence { 0 } else { len },
        hazard: line as u32,
        unit: UnitId(unit),
        op,
        cause: Cause::Meta,
    })
}

fn mode() -> impl Strategy<Value = LoopMode> {
    prop_oneof![
        (1u32..9).prop_map(|depth| LoopMode::Closed { depth }),
        (0.5f64..4.0, prop::option::of(1u32..9)).prop_map(|(speed, depth)| LoopMode::Open { speed, depth }),
    ]
}

fn mean(times: &[RequestTimes]) -> f64 {
    times.iter().map(|t| t.response().0 as f64).sum::<f64>() / times.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn equal_when_every_unit_has_its_channel(r in requests(nand_cmd(), 40), m in mode()) {
        let hw = nand(&[0, 1, 2, 3, 4, 5]);
        let eager = run(&mut Eager::new(&hw), m, &r);
        prop_assert_eq!(eager, run(&mut Event::new(&hw, Fifo), m, &r));
    }

    #[test]
    fn equal_when_there_are_no_bus_phases(r in requests(pcm_cmd(), 40), m in mode()) {
        let hw = pcm(&[0, 0, 0, 1, 1, 1]);
        let eager = run(&mut Eager::new(&hw), m, &r);
        prop_assert_eq!(eager, run(&mut Event::new(&hw, Fifo), m, &r));
    }

    /// The bound stated in docs/design/engine.md: on random mixes of 200 requests over two channels
    /// with three units each, the mean latency and the length of the run differ by at most 10 %.
    #[test]
    fn close_when_units_share_a_bus(
        r in prop::collection::vec(request(nand_cmd()), 200),
        depth in 1u32..17,
    ) {
        let r: Vec<Request> = r.into_iter().map(|(at, commands)| Request { at, commands }).collect();
        let hw = nand(&[0, 0, 0, 1, 1, 1]);
        let m = LoopMode::Closed { depth };
        let (eager, a) = run(&mut Eager::new(&hw), m, &r);
        let (event, b) = run(&mut Event::new(&hw, Fifo), m, &r);
        let close = |x: f64, y: f64| (x / y - 1.0).abs() <= 0.10;
        prop_assert!(close(mean(&eager), mean(&event)), "{} {}", mean(&eager), mean(&event));
        prop_assert!(close(a.last_ack.0 as f64, b.last_ack.0 as f64), "{:?} {:?}", a, b);
    }

    #[test]
    fn the_same_input_gives_the_same_output(r in requests(nand_cmd(), 30), m in mode()) {
        let hw = nand(&[0, 0, 0, 1, 1, 1]);
        for name in AnyScheduler::VARIANTS {
            let once = || {
                let mut e = Event::new(&hw, AnyScheduler::named(name).unwrap());
                let times = run(&mut e, m, &r);
                let metrics: Vec<f64> = e.metrics().iter().map(|m| m.value).collect();
                let busy: Vec<Nanos> = e.usage().units().to_vec();
                (times, metrics, busy)
            };
            prop_assert_eq!(once(), once(), "{}", name);
        }
        prop_assert_eq!(run(&mut Eager::new(&hw), m, &r), run(&mut Eager::new(&hw), m, &r));
    }
}
