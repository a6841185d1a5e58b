//! A host that follows a script, and the devices of the tests.

#![allow(unreachable_pub)] // the module is private

use frit_core::{
    Cause, Cmd, LinkRequest, MediumKind, Nanos, Op, Progress, Result, Sink, Tok, TrafficKind, UnitId,
};
use frit_engine::{Arrival, Driver, DriverCounters, Host, LoopMode, RequestTimes};
use frit_media::{
    CellKind, CommandCycles, Device, Hardware, LatencyCurve, NandCells, NandLayout, NandSuspend, NandTiming,
    ObjectTiming, PageOrder, PageTimes, PcmTiming, SuspendTimes, TimingModel,
};

/// Phases of profile `slc-k9-2016` in ns, for a page of 2 KB: cells in a read and in a program,
/// bus.
pub const T_READ: u64 = 62_301;
pub const T_PROG: u64 = 200_001;
pub const T_ERASE: u64 = 1_500_000;
pub const BUS: u64 = 13_199;
/// A read and a program in Table 7 of the HFSL paper: 75.5 and 213.2 µs.
pub const READ: u64 = T_READ + BUS;
pub const PROGRAM: u64 = BUS + T_PROG;

const TIMING: NandTiming = NandTiming {
    t_read: Nanos(T_READ),
    t_prog: Nanos(T_PROG),
    t_erase: Nanos(T_ERASE),
    t_command: CommandCycles::all(Nanos::ZERO),
    t_plane: CommandCycles::all(Nanos::ZERO),
    t_cache_busy: None,
    bus_ps_per_byte: 6_445,
};

fn with_cycles(time: u64) -> NandTiming {
    let cycles = CommandCycles::all(Nanos(time));
    NandTiming { t_command: cycles, t_plane: cycles, ..TIMING }
}

/// NAND whose unit `u` is on channel `channels[u]`.
pub fn nand(channels: &[u16]) -> Hardware {
    device(MediumKind::Nand, TimingModel::Nand(TIMING), channels)
}

/// NAND on one channel, with command and address cycles of 1 µs.
pub fn nand_with_commands(chips: usize) -> Hardware {
    let timing = with_cycles(1_000);
    device(MediumKind::Nand, TimingModel::Nand(timing), &vec![0; chips])
}

/// Suspensions that take 5 µs for programs and 20 µs for erases, and 3 µs for the resumption.
pub const SUSPEND: NandSuspend = NandSuspend {
    program: Some(SuspendTimes { suspend: Nanos(5_000), min_remaining: Nanos::ZERO }),
    erase: SuspendTimes { suspend: Nanos(20_000), min_remaining: Nanos::ZERO },
    resume: Nanos(3_000),
    max_suspends: 16,
    max_reads: 64,
};

/// NAND whose unit `u` is on channel `channels[u]`, with suspensions.
pub fn nand_suspending(channels: &[u16], suspend: NandSuspend, t_command: u64) -> Hardware {
    let timing = with_cycles(t_command);
    let model = TimingModel::NandCells(Box::new((timing, NandCells::suspending(suspend))));
    device(MediumKind::Nand, model, channels)
}

/// Cells of a read and of a program of each type of page of TLC, LSB first.
pub const TYPES: [(u64, u64); 3] = [(50_000, 500_000), (75_000, 1_000_000), (110_000, 2_000_000)];

/// TLC NAND whose unit `u` is on channel `channels[u]`, with blocks of 16 pages.
pub fn nand_typed(channels: &[u16], suspend: Option<NandSuspend>) -> Hardware {
    let times = TYPES.map(|(read, program)| PageTimes { read: Nanos(read), program: Nanos(program) });
    let cells = NandCells::typed(CellKind::Tlc, PageOrder::Staggered, &times, 16, suspend);
    device(MediumKind::Nand, TimingModel::NandCells(Box::new((TIMING, cells))), channels)
}

/// Dies on one channel, with multi-plane commands: unit `u` is a plane of die `u % dies`. Blocks
/// have 8 pages.
pub fn nand_with_planes(dies: u16, planes: u16) -> Hardware {
    let model = TimingModel::Nand(TIMING);
    let nand = Some(NandLayout {
        channels: 1,
        chips: 1,
        dies,
        pages_per_block: 8,
        program_pages: 1,
        multi_plane: true,
    });
    let mut hw = Hardware::new();
    let unit_channel = vec![0; usize::from(dies * planes)];
    hw.add(Device { name: "nand".into(), kind: MediumKind::Nand, model, unit_channel, nand }).unwrap();
    hw
}

/// NAND with cache programs: tCBSY is 3 µs.
pub fn nand_caching(channels: &[u16]) -> Hardware {
    let timing = NandTiming { t_cache_busy: Some(Nanos(CACHE_BUSY)), ..TIMING };
    device(MediumKind::Nand, TimingModel::Nand(timing), channels)
}

pub const CACHE_BUSY: u64 = 3_000;

/// Chips on one channel, with multi-plane commands. Blocks have 8 pages. `cycles` are those of a command
/// and of each further plane.
pub fn nand_chips(chips: u16, dies: u16, planes: u16, cycles: (u64, u64)) -> Hardware {
    let timing = NandTiming {
        t_command: CommandCycles::all(Nanos(cycles.0)),
        t_plane: CommandCycles::all(Nanos(cycles.1)),
        ..TIMING
    };
    let nand =
        NandLayout { channels: 1, chips, dies, pages_per_block: 8, program_pages: 1, multi_plane: true };
    let unit_channel = vec![0; usize::from(chips * dies * planes)];
    let model = TimingModel::Nand(timing);
    let mut hw = Hardware::new();
    hw.add(Device { name: "nand".into(), kind: MediumKind::Nand, model, unit_channel, nand: Some(nand) })
        .unwrap();
    hw
}

/// PCM without bus phases.
pub fn pcm(channels: &[u16]) -> Hardware {
    let points = vec![(128, Nanos(20_700)), (512, Nanos(93_500))];
    let timing = PcmTiming {
        read: LatencyCurve::new(vec![(512, Nanos(5_000))], 16).unwrap(),
        write: LatencyCurve::new(points, 16).unwrap(),
        write_clean: None,
        refresh: Nanos(1_000),
        bus_ps_per_byte: 0,
        fence: Nanos(100),
    };
    device(MediumKind::Pcm, TimingModel::Pcm(timing), channels)
}

/// PCM in banks that share a bus. Durations and transfers of different lengths are different.
pub fn banked_pcm(channels: &[u16]) -> Hardware {
    let timing = PcmTiming {
        read: LatencyCurve::new(vec![(1 << 16, Nanos(131_071_003))], 1).unwrap(),
        write: LatencyCurve::new(vec![(1 << 16, Nanos(524_287_019))], 1).unwrap(),
        write_clean: None,
        refresh: Nanos(1_000),
        bus_ps_per_byte: 977_131,
        fence: Nanos(100),
    };
    device(MediumKind::Pcm, TimingModel::Pcm(timing), channels)
}

/// An object store with this number of connections of 100 MB/s, and a link of 400 MB/s.
pub fn objects(connections: usize) -> Hardware {
    let timing = ObjectTiming {
        t_put: Nanos(2_000_000),
        t_get: Nanos(1_000_000),
        t_delete: Nanos(500_000),
        connection_ps_per_byte: 10_000,
        link_ps_per_byte: 2_500,
    };
    device(MediumKind::Object, TimingModel::Object(timing), &vec![0; connections])
}

fn device(kind: MediumKind, model: TimingModel, channels: &[u16]) -> Hardware {
    let mut hw = Hardware::new();
    let name = format!("{kind:?}");
    hw.add(Device { name, kind, model, unit_channel: channels.to_vec(), nand: None }).unwrap();
    hw
}

/// A command to the first page of a block. Blocks have 8 or 16 pages.
pub fn page(op: Op, unit: u16, block: u32) -> Cmd {
    let len = if op == Op::NandErase { 0 } else { 2048 };
    Cmd { addr: u64::from(block) * 16, len, hazard: block, unit: UnitId(unit), op, cause: Cause::Host }
}

pub fn read(unit: u16, block: u32) -> Cmd {
    page(Op::NandRead, unit, block)
}

/// A read of the page register, to be emitted directly after its read.
pub fn register_read(unit: u16, block: u32) -> Cmd {
    page(Op::NandRegisterRead, unit, block)
}

pub fn program(unit: u16, block: u32) -> Cmd {
    page(Op::NandProgram, unit, block)
}

pub fn erase(unit: u16, block: u32) -> Cmd {
    page(Op::NandErase, unit, block)
}

/// A request: its arrival time and its commands. A command may wait for an earlier one of the same
/// request. The acknowledgement waits for all commands.
#[derive(Clone, Debug)]
pub struct Request {
    pub at: u64,
    pub commands: Vec<(Cmd, Option<usize>)>,
}

impl Request {
    /// Creates a request whose commands do not wait for each other.
    pub fn at(at: u64, commands: &[Cmd]) -> Request {
        Request { at, commands: commands.iter().map(|&c| (c, None)).collect() }
    }
}

/// Creates one request per command, all at time zero.
pub fn singles(commands: &[Cmd]) -> Vec<Request> {
    commands.iter().map(|&c| Request::at(0, &[c])).collect()
}

/// Action of a background step.
pub type Background = Box<dyn FnMut(&mut Sink, u32) -> Progress>;

/// A host that makes the requests of a script and records their times by index.
pub struct Script {
    pub requests: Vec<Request>,
    pub next: usize,
    pub times: Vec<Option<RequestTimes>>,
    pub background: Option<Background>,
    /// The commands of a request after its first one are a request to a layer below, which starts this
    /// long after the end of the first.
    pub nested: Option<Nanos>,
}

impl Script {
    pub fn new(requests: Vec<Request>) -> Script {
        Script { times: vec![None; requests.len()], requests, next: 0, background: None, nested: None }
    }
}

impl Host for Script {
    fn next(&mut self) -> Result<Option<Arrival>> {
        self.next += 1;
        Ok(self
            .requests
            .get(self.next - 1)
            .map(|r| Arrival { at: Nanos(r.at), class: r.commands.len() as u8 }))
    }

    fn serve(&mut self, sink: &mut Sink) -> Result<()> {
        let mut toks = Vec::new();
        let mut outer = None;
        for &(cmd, after) in &self.requests[self.next - 1].commands {
            if let (Some(by), Some(&first), None) = (self.nested, toks.first(), outer) {
                sink.ack(first);
                let after = sink.delay(first, by);
                outer = Some(sink.begin_nested(after));
            }
            // A command of the nested request waits for its start in any case.
            let start = if outer.is_some() { Tok::default() } else { sink.start() };
            let after = after.map_or(start, |i| toks[i]);
            toks.push(sink.emit(cmd, after));
        }
        toks.into_iter().for_each(|t| sink.ack(t));
        if let Some(outer) = outer {
            let request = LinkRequest { layer: 3, kind: TrafficKind::Write };
            let done = sink.end_measured(outer, request);
            sink.ack(done);
        }
        Ok(())
    }

    fn background(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        Ok(self.background.as_mut().map_or(Progress::Idle, |b| b(sink, budget)))
    }

    fn done(&mut self, class: u8, times: RequestTimes) {
        let index = times.index as usize;
        assert_eq!(usize::from(class), self.requests[index].commands.len());
        assert!(self.times[index].replace(times).is_none(), "acknowledged twice");
    }
}

/// Runs a script to its end. Returns the times by index.
pub fn run(engine: &mut Sink, mode: LoopMode, requests: &[Request]) -> (Vec<RequestTimes>, DriverCounters) {
    run_nested(engine, mode, requests, None)
}

/// Runs a script to its end, with the commands after the first of each request in a request to a
/// layer below.
pub fn run_nested(
    engine: &mut Sink,
    mode: LoopMode,
    requests: &[Request],
    nested: Option<Nanos>,
) -> (Vec<RequestTimes>, DriverCounters) {
    let mut host = Script { nested, ..Script::new(requests.to_vec()) };
    let mut driver = Driver::new(mode).unwrap();
    driver.run(engine, &mut host, None).unwrap();
    let counters = driver.finish(engine, &mut host).unwrap();
    (host.times.into_iter().map(|t| t.expect("acknowledged")).collect(), counters)
}

/// Runs all requests at once. Returns the times of acknowledgement.
pub fn ends(engine: &mut Sink, requests: &[Request]) -> Vec<u64> {
    let mode = LoopMode::Closed { depth: 1000 };
    run(engine, mode, requests).0.iter().map(|t| t.acknowledged.0).collect()
}
