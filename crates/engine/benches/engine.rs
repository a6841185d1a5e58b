//! Benchmark of the engines in nanoseconds per command, and of the driver with a host that does no
//! work per request. It is a plain program that reports the best of five rounds, to reduce the
//! effect of other load on the machine.

#![allow(missing_docs)]
#![allow(clippy::expect_used, clippy::print_stdout)] // a program for people, not a library

use frit_core::{Cause, Cmd, MediumKind, Nanos, Op, Progress, Result, Sink, UnitId};
use frit_engine::{
    AnyScheduler, Arrival, Driver, Event, Host, InOrder, LatencyByClass, LoopMode, RequestTimes,
};
use frit_media::{CommandCycles, Device, Hardware, NandTiming, TimingModel};
use std::hint::black_box;
use std::time::Instant;
use strum::VariantNames;

const COMMANDS: u64 = 2_000_000;
const ROUNDS: usize = 5;
const CHANNELS: u16 = 8;
const UNITS: u16 = 32;

fn hardware() -> Hardware {
    let timing = NandTiming {
        t_read: Nanos(62_300),
        t_prog: Nanos(200_000),
        t_erase: Nanos(1_500_000),
        t_command: CommandCycles::all(Nanos::ZERO),
        t_plane: CommandCycles::all(Nanos::ZERO),
        t_cache_busy: None,
        bus_ps_per_byte: 6_445,
    };
    let mut hw = Hardware::new();
    let device = Device {
        name: "flash".into(),
        kind: MediumKind::Nand,
        model: TimingModel::Nand(timing),
        unit_channel: (0..UNITS).map(|u| u % CHANNELS).collect(),
        nand: None,
    };
    hw.add(device).expect("a small device");
    hw
}

/// A cheap deterministic sequence (SplitMix64), so that the generator adds little to the result.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn command(r: u64) -> Cmd {
    let op = if r & 7 < 3 { Op::NandRead } else { Op::NandProgram };
    Cmd {
        addr: 0,
        len: 2048,
        hazard: (r >> 40) as u32,
        unit: UnitId((r >> 8) as u16 % UNITS),
        op,
        cause: Cause::Host,
    }
}

fn best(what: &str, per: &str, n: u64, mut round: impl FnMut() -> u64) {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let t = Instant::now();
        black_box(round());
        least = least.min(t.elapsed().as_nanos() as f64 / n as f64);
    }
    println!("{what:<44} {least:8.1} ns/{per}");
}

/// Requests of `commands` commands each, in parallel; 0 to measure the driver alone.
struct Requests {
    rng: Rng,
    left: u64,
    commands: u32,
    latencies: LatencyByClass,
}

impl Requests {
    fn new(requests: u64, commands: u32) -> Requests {
        Requests { rng: Rng(1), left: requests, commands, latencies: LatencyByClass::new() }
    }
}

impl Host for Requests {
    fn next(&mut self) -> Result<Option<Arrival>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        Ok(Some(Arrival { at: Nanos::ZERO, class: (self.left & 1) as u8 }))
    }
    fn serve(&mut self, sink: &mut Sink) -> Result<()> {
        for _ in 0..self.commands {
            let tok = sink.emit(command(self.rng.next()), sink.start());
            sink.ack(tok);
        }
        Ok(())
    }
    fn background(&mut self, _: &mut Sink, _: u32) -> Result<Progress> {
        Ok(Progress::Idle)
    }
    fn done(&mut self, class: u8, times: RequestTimes) {
        self.latencies.record(class, times);
    }
}

fn drive(mut engine: Sink, depth: u32, commands: u32) -> u64 {
    let mut host = Requests::new(COMMANDS / u64::from(commands.max(1)), commands);
    let mut driver = Driver::new(LoopMode::Closed { depth }).expect("a depth above 0");
    driver.run(&mut engine, &mut host, None).expect("a host that does not fail");
    driver.finish(&mut engine, &mut host).expect("a host that does not fail").last_ack.0
}

fn main() {
    let hw = hardware();
    best("generator alone", "command", COMMANDS, || {
        let mut rng = Rng(1);
        (0..COMMANDS).map(|_| command(rng.next()).unit.0 as u64).sum()
    });
    best("latency record (2 histograms)", "request", COMMANDS, || {
        let (mut l, mut rng) = (LatencyByClass::new(), Rng(1));
        for i in 0..COMMANDS {
            let end = Nanos(rng.next() % 1_000_000);
            let t = RequestTimes { index: i, arrived: Nanos::ZERO, admitted: Nanos::ZERO, acknowledged: end };
            l.record(0, t);
        }
        l.iter().count() as u64
    });
    best("driver, null engine, host without commands", "request", COMMANDS, || drive(Sink::untimed(), 1, 0));
    for depth in [1, 32] {
        let what = format!("driver, in-order, 1 command, depth {depth}");
        best(&what, "request", COMMANDS, || drive(Sink::new(InOrder::new(&hw)), depth, 1));
    }
    best("driver, in-order, 4 commands, depth 32", "command", COMMANDS, || {
        drive(Sink::new(InOrder::new(&hw)), 32, 4)
    });
    for name in AnyScheduler::VARIANTS {
        let engine = || Sink::new(Event::new(&hw, AnyScheduler::named(name).expect("a name of the list")));
        for commands in [1, 4] {
            let what = format!("driver, event {name}, {commands} commands, depth 32");
            best(&what, "command", COMMANDS, || drive(engine(), 32, commands));
        }
    }
}
