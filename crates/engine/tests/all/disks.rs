//! Tests of disks: the order of the drive, its limits, and background work that yields.

use crate::common::*;
use frit_core::{Cause, Cmd, MediumKind, Nanos, Op, Sink, UnitId};
use frit_engine::event::Queues;
use frit_engine::sched::Fifo;
use frit_engine::{AnyScheduler, Event, InOrder, LoopMode, Scheduler};
use frit_media::disk::geometry::{DiskGeometry, Zone};
use frit_media::disk::{
    Background, Bus, CacheSpec, DiskSpec, Drive, DriveScheduler, MAX_WAIT, Mechanics, Overheads, Positioning,
    SeekCurve, WriteBack,
};
use frit_media::{Device, Hardware, TimingModel};
use proptest::prelude::*;
use strum::{IntoEnumIterator, VariantNames};

/// 100 cylinders of 100 sectors; a revolution takes 10 ms, a seek 1 ms plus 0.1 ms per cylinder.
fn spec(scheduler: DriveScheduler) -> DiskSpec {
    let zone = Zone { last_cylinder: 99, sectors_per_track: 100, ..Zone::default() };
    DiskSpec {
        name: "simple".into(),
        geometry: DiskGeometry { heads: 1, cylinders: 100, zones: vec![zone], ..DiskGeometry::default() },
        mechanics: Mechanics {
            positioning: Positioning::Full,
            revolution_ps: 10_000_000_000,
            seek: SeekCurve::Points(vec![(1, Nanos(1_100_000)), (90, Nanos(10_000_000))]),
            head_switch: Nanos(1_000_000),
            write_settle_ns: 500_000,
        },
        overheads: Overheads::default(),
        bus: Bus { read_ps: 1_000_000, write_ps: 1_000_000, ..Bus::default() },
        cache: CacheSpec::default(),
        queue_depth: 32,
        scheduler,
        max_wait: MAX_WAIT,
        background: Background::Yield,
    }
}

/// Like `spec`, but each access takes 1 ms at any position.
fn constant(scheduler: DriveScheduler) -> DiskSpec {
    let mut s = spec(scheduler);
    s.mechanics.positioning = Positioning::Constant(Nanos(1_000_000));
    s
}

fn hardware(spec: &DiskSpec) -> Hardware {
    let mut hw = Hardware::new();
    let model = TimingModel::Disk(Box::new(Drive::new(spec).unwrap()));
    hw.add(Device { name: "disk".into(), kind: MediumKind::Disk, model, unit_channel: vec![0], nand: None })
        .unwrap();
    hw
}

/// An access to one sector of a cylinder, with the cylinder as its hazard.
fn at(op: Op, cylinder: u64, cause: Cause) -> Cmd {
    let len = if op == Op::DiskFlush { 0 } else { 512 };
    Cmd { addr: cylinder * 100 * 512, len, hazard: cylinder as u32, unit: UnitId(0), op, cause }
}

fn read_at(cylinder: u64) -> Cmd {
    at(Op::DiskRead, cylinder, Cause::Host)
}

fn destage(cylinder: u64) -> Cmd {
    at(Op::DiskWrite, cylinder, Cause::Destage)
}

/// Returns the order, by index, in which a disk serves the commands that arrive while it serves the
/// first.
fn order<P: Scheduler + 'static>(spec: &DiskSpec, scheduler: P, first: Cmd, others: &[Cmd]) -> Vec<usize> {
    let mut requests = vec![Request::at(0, &[first])];
    requests.extend(others.iter().map(|&c| Request::at(1, &[c])));
    let mut e = Sink::new(Event::new(&hardware(spec), scheduler));
    let (times, _) = run(&mut e, LoopMode::Open { speed: 1.0, depth: None }, &requests);
    let mut order: Vec<usize> = (0..others.len()).collect();
    order.sort_by_key(|&i| times[i + 1].acknowledged);
    order
}

#[test]
fn a_disk_has_the_order_of_its_drive_under_every_scheduler() {
    let waiting = [60, 10, 55, 80, 45, 20].map(read_at);
    for name in AnyScheduler::VARIANTS {
        let of = |s| order(&spec(s), AnyScheduler::named(name).unwrap(), read_at(50), &waiting);
        assert_eq!(of(DriveScheduler::Fifo), [0, 1, 2, 3, 4, 5], "{name}");
        assert_eq!(of(DriveScheduler::Sstf), [2, 0, 4, 5, 1, 3], "{name}");
        assert_eq!(of(DriveScheduler::Scan), [2, 0, 3, 4, 5, 1], "{name}");
        assert_eq!(of(DriveScheduler::CLook), [2, 0, 3, 1, 5, 4], "{name}");
    }
}

/// SPTF uses the angle of the platter at the time at which the service begins.
#[test]
fn the_drive_chooses_when_its_service_begins() {
    let sector =
        |cylinder: u64, sector: u64| Cmd { addr: (cylinder * 100 + sector) * 512, ..read_at(cylinder) };
    // The first read ends after 0.1 ms, plus 1 µs on the bus. One cylinder further, the arm has
    // settled at 1.2 ms: sector 13 is the next one there, sector 12 has just passed.
    let (near, past) = (sector(1, 13), sector(1, 12));
    let near = Cmd { hazard: 90, ..near };
    assert_eq!(order(&spec(DriveScheduler::Sptf), Fifo, sector(0, 0), &[past, near]), [1, 0]);
    assert_eq!(order(&spec(DriveScheduler::Sstf), Fifo, sector(0, 0), &[past, near]), [0, 1]);
}

#[test]
fn a_drive_chooses_among_as_many_as_it_takes() {
    let waiting = [60, 10, 55, 80, 45, 20].map(read_at);
    let of = |queue_depth| {
        order(&DiskSpec { queue_depth, ..spec(DriveScheduler::Sstf) }, Fifo, read_at(50), &waiting)
    };
    assert_eq!(of(1), [0, 1, 2, 3, 4, 5]);
    // 60 or 10; then 55 or 10; 80 or 10; 45 or 10; and 10 or 20 with the arm at 45.
    assert_eq!(of(2), [0, 2, 3, 4, 5, 1]);
}

#[test]
fn nobody_starves_longer_than_the_bound() {
    // Thirty reads near the arm, and one far away that arrived first. Each takes 1.2 to 21 ms.
    let mut waiting = vec![read_at(99)];
    waiting.extend((1..31).map(read_at));
    let place = |max_wait| {
        let spec = DiskSpec { max_wait: Nanos(max_wait), ..spec(DriveScheduler::Sstf) };
        order(&spec, Fifo, read_at(0), &waiting).iter().position(|&i| i == 0)
    };
    assert_eq!(place(u64::MAX), Some(30));
    assert_eq!(place(0), Some(0));
    let bounded = place(100_000_000).unwrap();
    assert!((5..30).contains(&bounded), "{bounded}");
}

#[test]
fn reads_of_the_host_do_not_wait_behind_destaging() {
    let mut waiting: Vec<Cmd> = (10..16).map(destage).collect();
    waiting.extend([read_at(70), read_at(80)]);
    for scheduler in DriveScheduler::iter() {
        let with =
            |background| order(&DiskSpec { background, ..spec(scheduler) }, Fifo, destage(9), &waiting);
        let mut first = with(Background::Yield)[..2].to_vec();
        first.sort_unstable();
        assert_eq!(first, [6, 7], "{scheduler:?}");
        assert_ne!(with(Background::Equal)[..2], [6, 7], "{scheduler:?}");
    }
}

#[test]
fn destaging_does_not_wait_for_ever() {
    let ends = |max_wait| {
        let spec = DiskSpec { max_wait: Nanos(max_wait), ..constant(DriveScheduler::Fifo) };
        // Each takes 1 ms. Two destages and two reads wait at 1 ms; two reads arrive while those
        // are served.
        let mut requests = vec![Request::at(0, &[destage(9)])];
        requests.extend([destage(1), destage(2), read_at(10), read_at(11)].map(|c| Request::at(1, &[c])));
        requests.extend([read_at(12), read_at(13)].map(|c| Request::at(1_500_000, &[c])));
        let mode = LoopMode::Open { speed: 1.0, depth: None };
        let (times, _) = run(&mut Sink::new(Event::new(&hardware(&spec), Fifo)), mode, &requests);
        times.iter().map(|t| t.acknowledged.0 / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(ends(u64::MAX), [1, 6, 7, 2, 3, 4, 5]);
    // At 4 ms both destages have waited for 3 ms, the last read for 2 ms.
    assert_eq!(ends(3_000_000), [1, 5, 6, 2, 3, 4, 7]);
}

/// Background work that a request of the host has to follow does not yield.
#[test]
fn urgency_is_passed_on() {
    let host = at(Op::DiskWrite, 5, Cause::Host);
    let flush = Cmd { hazard: 77, ..at(Op::DiskFlush, 0, Cause::Destage) };
    let fifo = constant(DriveScheduler::Fifo);
    // The last read has the hazard of two destages: they keep their order and do not yield, the
    // other destage does.
    let same = |c: Cmd| Cmd { hazard: 1, ..c };
    let waiting =
        [same(destage(1)), destage(2), same(destage(3)), read_at(10), same(read_at(11)), read_at(12)];
    assert_eq!(order(&fifo, Fifo, read_at(50), &waiting), [0, 2, 3, 4, 5, 1]);
    // The write has to follow the fence, and the fence has to follow the destages before it; the
    // destage after the fence is not affected.
    let waiting = [destage(1), destage(2), flush, destage(3), read_at(10), host, read_at(11)];
    assert_eq!(order(&fifo, Fifo, read_at(50), &waiting), [0, 1, 2, 4, 5, 6, 3]);
    // A fence of the host, and a background fence before it.
    let fence = Cmd { hazard: 78, ..at(Op::DiskFlush, 0, Cause::Host) };
    let waiting = [destage(1), flush, destage(2), fence, read_at(10), destage(3)];
    assert_eq!(order(&fifo, Fifo, read_at(50), &waiting), [0, 1, 2, 3, 4, 5]);
    // No command has to follow them: they yield.
    let waiting = [destage(1), flush, destage(2), read_at(10), read_at(11)];
    assert_eq!(order(&fifo, Fifo, read_at(50), &waiting), [3, 4, 0, 1, 2]);
}

#[test]
fn batches_are_not_for_disks() {
    let reads: Vec<Cmd> = (1..5).map(read_at).collect();
    let hw = hardware(&constant(DriveScheduler::Fifo));
    for name in AnyScheduler::VARIANTS {
        let mut e = Sink::new(Event::new(&hw, AnyScheduler::named(name).unwrap()));
        assert_eq!(ends(&mut e, &singles(&reads)), [1_000_000, 2_000_000, 3_000_000, 4_000_000], "{name}");
    }
}

fn command() -> impl Strategy<Value = Cmd> {
    let op = prop_oneof![4 => Just(Op::DiskRead), 5 => Just(Op::DiskWrite), 1 => Just(Op::DiskFlush)];
    let cause = prop_oneof![Just(Cause::Host), Just(Cause::Destage), Just(Cause::Meta)];
    (op, cause, 0u64..9_990, 1u32..9).prop_map(|(op, cause, sector, n)| Cmd {
        addr: if op == Op::DiskFlush { 0 } else { sector * 512 },
        len: if op == Op::DiskFlush { 0 } else { n * 512 },
        // Large hazard ranges, so that many commands conflict.
        hazard: if op == Op::DiskFlush { 0 } else { (sector / 500) as u32 },
        unit: UnitId(0),
        op,
        cause,
    })
}

/// Requests of several commands, each of which may wait for an earlier one in its request.
fn requests(edges: bool) -> impl Strategy<Value = Vec<Request>> {
    let one = (command(), prop::option::of(any::<prop::sample::Index>()));
    let request = (0u64..30_000_000, prop::collection::vec(one, 1..5));
    prop::collection::vec(request, 1..40).prop_map(move |list| {
        let mut at = 0;
        let timed = |(gap, commands): (u64, Vec<(Cmd, Option<prop::sample::Index>)>)| {
            at += gap;
            let after =
                |i: usize, a: Option<prop::sample::Index>| a.filter(|_| edges && i > 0).map(|a| a.index(i));
            Request {
                at,
                commands: commands.into_iter().enumerate().map(|(i, (c, a))| (c, after(i, a))).collect(),
            }
        };
        list.into_iter().map(timed).collect()
    })
}

fn mode() -> impl Strategy<Value = LoopMode> {
    prop_oneof![
        (1u32..20).prop_map(|depth| LoopMode::Closed { depth }),
        (0.5f64..4.0).prop_map(|speed| LoopMode::Open { speed, depth: None }),
    ]
}

fn cached(spec: DiskSpec) -> DiskSpec {
    let cache = CacheSpec {
        enabled: true,
        segments: 4,
        write_back: WriteBack::Full,
        dirty_sectors: 64,
        ..CacheSpec::default()
    };
    DiskSpec { cache, ..spec }
}

/// Returns the queues of the engine with the scheduler `fifo`.
fn queues(e: &Sink) -> &Queues {
    e.engine::<Event<Fifo>>().unwrap().queues()
}

proptest! {
    /// A drive behind PCM whose commands wait for each other: the in-order engine gives the disk's
    /// commands to an event engine of its own.
    #[test]
    fn both_engines_agree_on_a_disk_behind_pcm(
        r in requests(true), to_pcm in prop::collection::vec(any::<bool>(), 160), m in mode(),
        queue_depth in 1u32..5, write_back: bool,
    ) {
        for scheduler in [DriveScheduler::Fifo, DriveScheduler::Sstf] {
            for background in Background::iter() {
                let plain = DiskSpec { queue_depth, background, ..spec(scheduler) };
                let mut hw = hardware(&if write_back { cached(plain) } else { plain });
                let model = pcm(&[0]).models().remove(0);
                let unit_channel = vec![0, 0];
                hw.add(Device { name: "pcm".into(), kind: MediumKind::Pcm, model, unit_channel, nand: None }).unwrap();
                let mut r = r.clone();
                let commands = r.iter_mut().flat_map(|r| &mut r.commands);
                for ((i, (cmd, _)), _) in commands.enumerate().zip(&to_pcm).filter(|(_, to_pcm)| **to_pcm) {
                    let op = if cmd.op == Op::DiskRead { Op::PcmRead } else { Op::PcmWrite };
                    *cmd = Cmd { op, unit: UnitId(1 + i as u16 % 2), len: 1 + i as u32, ..*cmd };
                }
                let in_order = run(&mut Sink::new(InOrder::new(&hw)), m, &r);
                prop_assert_eq!(in_order, run(&mut Sink::new(Event::new(&hw, Fifo)), m, &r));
            }
        }
    }

    /// One command per request, so that the times show the order. `run` checks that each is done
    /// exactly once.
    #[test]
    fn nothing_is_lost_and_hazards_are_kept(
        r in requests(true),
        queue_depth in 1u32..6,
        max_wait in prop_oneof![Just(0), Just(20_000_000), Just(u64::MAX)],
        write_back: bool,
        single in prop::collection::vec(command(), 1..40),
        m in mode(),
    ) {
        for scheduler in DriveScheduler::iter() {
            for background in Background::iter() {
                let plain = DiskSpec { queue_depth, background, max_wait: Nanos(max_wait), ..spec(scheduler) };
                let hw = hardware(&if write_back { cached(plain) } else { plain });
                run(&mut Sink::new(Event::new(&hw, Fifo)), m, &r);
                let mut e = Sink::new(Event::new(&hw, Fifo));
                let ends = ends(&mut e, &singles(&single));
                for (i, earlier) in single.iter().enumerate() {
                    for (j, later) in single.iter().enumerate().skip(i + 1) {
                        if queues(&e).must_follow(earlier, later) {
                            prop_assert!(ends[i] <= ends[j], "{earlier:?} {later:?}");
                        }
                    }
                }
                let refused = e.metrics().iter().find(|m| m.name == "picks_refused").unwrap().value;
                prop_assert_eq!((refused, queues(&e).depth(UnitId(0))), (0.0, 0));
            }
        }
    }
}
