//! Compares the in-order engine with the event engine under FIFO: the results are equal. Also
//! compares each engine with itself.

use crate::common::*;
use frit_core::{Cause, Cmd, Nanos, Op, Sink, TrafficKind, UnitId};
use frit_engine::sched::Fifo;
use frit_engine::{AnyScheduler, DeviceUsage, Event, InOrder, LoopMode, SinkUsage, TimesByKind};
use proptest::prelude::*;
use strum::VariantNames;

const UNITS: u16 = 6;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![4 => Just(Op::NandRead), 4 => Just(Op::NandProgram), 1 => Just(Op::NandErase)]
}

/// A request of 1 to 4 commands that may wait for each other. `parts`: some reads have two transfers.
fn request(
    cmd: impl Strategy<Value = Cmd>,
    parts: bool,
) -> impl Strategy<Value = (u64, Vec<(Cmd, Option<usize>)>)> {
    let command = (cmd, prop::option::of(any::<prop::sample::Index>()), any::<bool>());
    (0u64..400_000, prop::collection::vec(command, 1..5)).prop_map(move |(gap, commands)| {
        let mut all = Vec::new();
        for (cmd, after, in_parts) in commands {
            let i = all.len();
            all.push((cmd, after.filter(|_| i > 0).map(|a| a.index(i))));
            if parts && in_parts && cmd.op == Op::NandRead {
                all.push((Cmd { op: Op::NandRegisterRead, ..cmd }, Some(i)));
            }
        }
        (gap, all)
    })
}

fn requests(cmd: impl Strategy<Value = Cmd>, most: usize) -> impl Strategy<Value = Vec<Request>> {
    requests_of(request(cmd, true), most)
}

fn requests_of(
    request: impl Strategy<Value = (u64, Vec<(Cmd, Option<usize>)>)>,
    most: usize,
) -> impl Strategy<Value = Vec<Request>> {
    prop::collection::vec(request, 1..most).prop_map(|list| {
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

/// A command whose duration and transfer depend on its length.
fn banked_cmd() -> impl Strategy<Value = Cmd> {
    let op = prop_oneof![Just(Op::PcmRead), Just(Op::PcmWrite)];
    (op, 0..UNITS, 0u64..64, 1u32..60_000).prop_map(|(op, unit, line, len)| Cmd {
        addr: line * 512,
        len,
        hazard: line as u32,
        unit: UnitId(unit),
        op,
        cause: Cause::Meta,
    })
}

/// Returns the distributions of the requests to the layer below, and of the commands to the device.
fn link_times(usage: &DeviceUsage) -> Vec<Vec<(Nanos, u64)>> {
    let links = usage.links().unwrap();
    let of = |times: Option<&TimesByKind>, kind| {
        times.and_then(|t| t.of(kind)).map_or(Vec::new(), |h| h.buckets().collect())
    };
    let device = links.device(UnitId(0));
    let mut all = vec![of(links.layer(3), TrafficKind::Write)];
    all.extend([TrafficKind::Read, TrafficKind::Write].map(|kind| of(device, kind)));
    all
}

fn mode() -> impl Strategy<Value = LoopMode> {
    prop_oneof![
        (1u32..9).prop_map(|depth| LoopMode::Closed { depth }),
        (0.5f64..4.0, prop::option::of(1u32..9)).prop_map(|(speed, depth)| LoopMode::Open { speed, depth }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn equal_when_every_unit_has_its_channel(r in requests(nand_cmd(), 40), m in mode()) {
        let hw = nand(&[0, 1, 2, 3, 4, 5]);
        let in_order = run(&mut Sink::new(InOrder::new(&hw)), m, &r);
        prop_assert_eq!(in_order, run(&mut Sink::new(Event::new(&hw, Fifo)), m, &r));
    }

    #[test]
    fn equal_when_there_are_no_bus_phases(r in requests(pcm_cmd(), 40), m in mode()) {
        let hw = pcm(&[0, 0, 0, 1, 1, 1]);
        let in_order = run(&mut Sink::new(InOrder::new(&hw)), m, &r);
        prop_assert_eq!(in_order, run(&mut Sink::new(Event::new(&hw, Fifo)), m, &r));
    }

    #[test]
    fn equal_when_units_share_a_bus(
        r in requests(banked_cmd(), 60), closed in prop::option::of(1u32..17),
    ) {
        let hw = banked_pcm(&[0, 0, 0, 1, 1, 1]);
        let m = closed.map_or(LoopMode::Open { speed: 1.0, depth: None }, |depth| LoopMode::Closed { depth });
        let in_order = run(&mut Sink::new(InOrder::new(&hw)), m, &r);
        prop_assert_eq!(in_order, run(&mut Sink::new(Event::new(&hw, Fifo)), m, &r));
    }

    /// All commands of NAND have the same few durations, so transfers often ask for the bus in the
    /// same instant.
    #[test]
    fn equal_when_transfers_ask_for_the_bus_together(r in requests(nand_cmd(), 60), m in mode()) {
        let hw = nand(&[0, 0, 0, 1, 1, 1]);
        let in_order = run(&mut Sink::new(InOrder::new(&hw)), m, &r);
        prop_assert_eq!(in_order, run(&mut Sink::new(Event::new(&hw, Fifo)), m, &r));
    }

    /// A request to a layer below starts some time after the first command of its upper request. That
    /// is no read with two transfers, which belong to one request.
    #[test]
    fn equal_with_requests_to_layers_below(
        r in requests_of(request(nand_cmd(), false), 60), m in mode(), by in 0u64..300_000,
    ) {
        let hw = nand(&[0, 0, 0, 1, 1, 1]);
        let by = Some(Nanos(by));
        let (mut in_order, mut event) = (Sink::new(InOrder::new(&hw)), Sink::new(Event::new(&hw, Fifo)));
        in_order.usage_mut().unwrap().enable_links(&hw);
        event.usage_mut().unwrap().enable_links(&hw);
        let results = run_nested(&mut in_order, m, &r, by);
        prop_assert_eq!(results, run_nested(&mut event, m, &r, by));
        let times = link_times(in_order.usage().unwrap());
        prop_assert_eq!(&times, &link_times(event.usage().unwrap()));
        let nested = r.iter().filter(|r| r.commands.len() > 1).count() as u64;
        prop_assert_eq!(times[0].iter().map(|(_, n)| n).sum::<u64>(), nested);
    }

    /// The time of a request to a layer below is that of the upper one after its first command.
    #[test]
    fn times_of_links_are_parts_of_the_times_of_requests(at in prop::collection::vec(0u64..9, 1..20)) {
        let hw = nand(&[0, 1, 2, 3, 4, 5]);
        let by = Nanos(5_000);
        // Requests that do not meet: a program, the delay, and a read of another unit.
        let requests: Vec<Request> = (0..)
            .zip(&at)
            .map(|(i, gap)| Request::at(i * 50_000_000 + gap, &[program(0, 0), read(1, 0)]))
            .collect();
        let mode = LoopMode::Open { speed: 1.0, depth: None };
        let alone = |cmd| ends(&mut Sink::new(InOrder::new(&hw)), &singles(&[cmd]))[0];
        let mut engine = Sink::new(InOrder::new(&hw));
        engine.usage_mut().unwrap().enable_links(&hw);
        let (times, _) = run_nested(&mut engine, mode, &requests, Some(by));
        let summary = engine.usage().unwrap().links().unwrap().layer(3).unwrap().of(TrafficKind::Write).unwrap().summary();
        prop_assert_eq!(summary.count, at.len() as u64);
        prop_assert_eq!((summary.max_ns.0, summary.mean_ns), (alone(read(1, 0)), alone(read(1, 0)) as f64));
        for t in times {
            prop_assert_eq!(t.service().0, alone(program(0, 0)) + by.0 + summary.max_ns.0);
        }
    }

    #[test]
    fn the_same_input_gives_the_same_output(r in requests(nand_cmd(), 30), m in mode()) {
        let hw = nand(&[0, 0, 0, 1, 1, 1]);
        for name in AnyScheduler::VARIANTS {
            let once = || {
                let mut e = Sink::new(Event::new(&hw, AnyScheduler::named(name).unwrap()));
                let times = run(&mut e, m, &r);
                let metrics: Vec<f64> = e.metrics().iter().map(|m| m.value).collect();
                let busy: Vec<Nanos> = e.usage().unwrap().units().to_vec();
                (times, metrics, busy)
            };
            prop_assert_eq!(once(), once(), "{}", name);
        }
        prop_assert_eq!(run(&mut Sink::new(InOrder::new(&hw)), m, &r), run(&mut Sink::new(InOrder::new(&hw)), m, &r));
    }
}
