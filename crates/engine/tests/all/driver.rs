//! Tests of the driver: admission of requests, their waiting times, and the times of background
//! work.

use crate::common::*;
use frit_core::{Error, Nanos, Progress, Result, Sink};
use frit_engine::pace::Pace;
use frit_engine::sched::{Fifo, Hfsl};
use frit_engine::{Arrival, Driver, Event, Host, InOrder, LoopMode, Recorder, RequestTimes, SinkUsage};
use std::cell::RefCell;
use std::rc::Rc;

const OPEN: LoopMode = LoopMode::Open { speed: 1.0, depth: None };

fn split(times: &[RequestTimes]) -> Vec<(u64, u64, u64)> {
    times.iter().map(|t| (t.arrived.0, t.admitted.0, t.acknowledged.0)).collect()
}

/// Runs the requests on the in-order and on the event engine, whose results must be equal.
fn both(
    channels: &[u16],
    mode: LoopMode,
    requests: &[Request],
) -> (Vec<(u64, u64, u64)>, frit_engine::DriverCounters) {
    let hw = nand(channels);
    let (in_order, a) = run(&mut Sink::new(InOrder::new(&hw)), mode, requests);
    let (event, b) = run(&mut Sink::new(Event::new(&hw, Fifo)), mode, requests);
    assert_eq!((split(&in_order), a), (split(&event), b));
    (split(&event), b)
}

fn reads(at: &[u64]) -> Vec<Request> {
    at.iter().map(|&at| Request::at(at, &[read(0, 0)])).collect()
}

#[test]
fn a_closed_loop_keeps_its_depth() {
    // One chip, two slots: a request is admitted when the one before the previous one is done.
    let (times, counters) = both(&[0], LoopMode::Closed { depth: 2 }, &reads(&[7, 3, 9, 9]));
    let r = READ;
    assert_eq!(times, [(0, 0, r), (0, 0, 2 * r), (r, r, 3 * r), (2 * r, 2 * r, 4 * r)]);
    assert_eq!((counters.requests, counters.out_of_order, counters.last_ack), (4, 0, Nanos(4 * r)));
}

#[test]
fn an_open_loop_queues_at_the_host_when_its_depth_is_reached() {
    // Arrival times are relative to the first. With one slot the second request waits in the host's
    // queue.
    let at = [1_000_000, 1_010_000];
    let depth = |depth| LoopMode::Open { speed: 1.0, depth };
    let (times, _) = both(&[0], depth(Some(1)), &reads(&at));
    assert_eq!(times, [(0, 0, READ), (10_000, READ, 2 * READ)]);
    // Without a limit it waits in the device: the latency is the same, but all of it is service
    // time.
    let (times, _) = both(&[0], depth(None), &reads(&at));
    assert_eq!(times, [(0, 0, READ), (10_000, 10_000, 2 * READ)]);
    let t = RequestTimes {
        index: 1,
        arrived: Nanos(10_000),
        admitted: Nanos(READ),
        acknowledged: Nanos(2 * READ),
    };
    assert_eq!((t.response(), t.service()), (Nanos(2 * READ - 10_000), Nanos(READ)));
}

#[test]
fn arrivals_are_sped_up_and_put_in_order() {
    let (times, counters) = both(
        &[0],
        LoopMode::Open { speed: 2.0, depth: None },
        &reads(&[100, 400_100, 300_100, 50, 1_000_100]),
    );
    let arrived: Vec<u64> = times.iter().map(|t| t.0).collect();
    assert_eq!(arrived, [0, 200_000, 200_000, 200_000, 500_000]);
    assert_eq!(counters.out_of_order, 2);
}

#[test]
fn modes_that_cannot_be_are_refused() {
    for mode in [
        LoopMode::Closed { depth: 0 },
        LoopMode::Open { speed: 1.0, depth: Some(0) },
        LoopMode::Open { speed: 0.0, depth: None },
        LoopMode::Open { speed: f64::NAN, depth: None },
        LoopMode::Open { speed: f64::INFINITY, depth: None },
    ] {
        assert!(matches!(Driver::new(mode), Err(Error::Param { .. })), "{mode:?}");
    }
}

#[test]
fn a_run_in_parts_is_the_same_run() {
    let hw = nand(&[0, 0]);
    let requests: Vec<Request> =
        (0..50).map(|i| Request::at(i * 30_000, &[read((i % 2) as u16, 0), program(1, 0)])).collect();
    for mode in [OPEN, LoopMode::Closed { depth: 3 }] {
        let (whole, counters) = run(&mut Sink::new(Event::new(&hw, Fifo)), mode, &requests);
        let mut engine = Sink::new(Event::new(&hw, Fifo));
        let mut host = Script::new(requests.clone());
        let mut driver = Driver::new(mode).unwrap();
        assert_eq!(driver.run(&mut engine, &mut host, Some(20)).unwrap(), 20);
        assert_eq!(driver.counters().requests, 20);
        assert_eq!(driver.run(&mut engine, &mut host, Some(1000)).unwrap(), 30);
        assert_eq!(driver.finish(&mut engine, &mut host).unwrap(), counters);
        assert_eq!(host.times.into_iter().map(Option::unwrap).collect::<Vec<_>>(), whole);
    }
}

/// A cleaner that copies `left` pages inside unit 0, with one read and one program each, within the
/// budget of a step. It records the times of its steps.
fn cleaner(mut left: u32, steps: &Rc<RefCell<Vec<(u64, u32)>>>) -> Background {
    let steps = Rc::clone(steps);
    Box::new(move |sink: &mut Sink, budget| {
        let mut tok = sink.start();
        let pages = left.min(budget / 2);
        for _ in 0..pages {
            tok = sink.emit(read(0, 8), tok);
            tok = sink.emit(program(0, 9), tok);
        }
        left -= pages;
        steps.borrow_mut().push((sink.now().0, pages));
        if pages > 0 { Progress::Busy(tok) } else { Progress::Idle }
    })
}

fn clean(mut engine: Sink, requests: &[Request]) -> (Vec<u64>, Vec<(u64, u32)>) {
    let steps = Rc::default();
    let mut host = Script::new(requests.to_vec());
    host.background = Some(cleaner(5, &steps));
    let mut driver = Driver::new(OPEN).unwrap();
    driver.run(&mut engine, &mut host, None).unwrap();
    driver.finish(&mut engine, &mut host).unwrap();
    let steps = steps.borrow().clone();
    (host.times.into_iter().map(|t| t.unwrap().response().0).collect(), steps)
}

#[test]
fn background_goes_on_in_steps_between_requests() {
    let hw = nand(&[0]);
    // The first read triggers the cleaner. A step copies two pages: 2 × (75 500 + 213 200) =
    // 577 400.
    let copy = 2 * (READ + PROGRAM);
    let requests = reads(&[0, READ + 100, 10_000_000]);
    let (latency, steps) = clean(Sink::new(InOrder::new(&hw)), &requests);
    assert_eq!((latency.clone(), steps.clone()), clean(Sink::new(Event::new(&hw, Fifo)), &requests));
    // A step follows when the token of the previous one is done; the second step waits, in
    // addition, for the read that arrived in the meantime. The third step has one page and the
    // fourth none; the last request triggers a step without work.
    let (a, b) = (READ + copy, 2 * READ + 2 * copy);
    let c = b + copy / 2;
    assert_eq!(steps, [(0, 2), (a, 2), (b, 1), (c, 0), (10_000_000, 0)]);
    // The read in between waits for one step, not for all five pages.
    assert_eq!(latency, [READ, copy + READ - 100, READ]);
}

#[test]
fn background_sleeps_until_its_time_or_the_next_request() {
    fn wakes(mut engine: Sink) -> Vec<u64> {
        let woken = Rc::new(RefCell::new(Vec::new()));
        let mut host = Script::new(reads(&[0, 1_000_000, 1_000_000]));
        let log = Rc::clone(&woken);
        host.background = Some(Box::new(move |sink: &mut Sink, _| {
            log.borrow_mut().push(sink.now().0);
            Progress::At(Nanos(sink.now().0 + 400_000))
        }));
        let mut driver = Driver::new(OPEN).unwrap();
        driver.run(&mut engine, &mut host, None).unwrap();
        woken.take()
    }
    let want = [0, 400_000, 800_000, 1_000_000, 1_000_000];
    assert_eq!(wakes(Sink::new(InOrder::new(&nand(&[0])))), want);
    assert_eq!(wakes(Sink::new(Event::new(&nand(&[0]), Fifo))), want);
}

#[test]
fn a_layer_that_is_always_busy_does_not_stop_time() {
    fn steps(mut engine: Sink) -> u64 {
        let mut host = Script::new(reads(&[0, 1_000_000]));
        host.background = Some(Box::new(|sink: &mut Sink, _| Progress::Busy(sink.start())));
        let mut driver = Driver::new(OPEN).unwrap();
        driver.run(&mut engine, &mut host, None).unwrap();
        assert!(host.times.iter().flatten().count() >= 1);
        driver.counters().steps
    }
    let hw = nand(&[0]);
    let bound = 2 * (1 << 16) + 4;
    assert!(steps(Sink::new(InOrder::new(&hw))) <= bound);
    assert!(steps(Sink::new(Event::new(&hw, Fifo))) <= bound);
    assert!(steps(Sink::untimed()) <= bound);
}

#[test]
fn live_use_is_driven_too() {
    let steps = Rc::default();
    let mut host = Script::new(reads(&[0, 5, 9]));
    host.background = Some(cleaner(5, &steps));
    let mut driver = Driver::new(LoopMode::Closed { depth: 1 }).unwrap();
    driver.run(&mut Sink::untimed(), &mut host, None).unwrap();
    driver.finish(&mut Sink::untimed(), &mut host).unwrap();
    assert!(host.times.iter().all(|t| t.unwrap().response() == Nanos::ZERO));
    // Each command is done when it is emitted, so that the cleaner ends before the second request.
    let pages: Vec<u32> = steps.borrow().iter().map(|s| s.1).collect();
    assert_eq!(pages, [2, 2, 1, 0, 0, 0]);
}

#[test]
fn a_recorded_run_is_the_run_itself() {
    let hw = nand(&[0, 1]);
    let copy = Request { at: 0, commands: vec![(read(0, 0), None), (program(1, 0), Some(0))] };
    let requests = [copy, Request::at(0, &[read(1, 0)])];
    let mode = LoopMode::Closed { depth: 2 };
    let plain = run(&mut Sink::new(Event::new(&hw, Fifo)), mode, &requests);
    let mut recorder = Sink::new(Recorder::new(Sink::new(Event::new(&hw, Fifo))));
    assert_eq!(run(&mut recorder, mode, &requests), plain);
    let (recording, below) = Recorder::finish(recorder).unwrap();
    assert_eq!(recording.requests, [vec![0, 1], vec![2]]);
    assert_eq!(recording.ops[1].after, [0]);
    assert_eq!(recording.ops[2].follows, Some(1));
    assert_eq!(below.usage().unwrap().window(), plain.1.last_ack);
}

struct Log(Rc<RefCell<Vec<u64>>>);

impl Pace for Log {
    fn wait_until(&mut self, time: Nanos) {
        self.0.borrow_mut().push(time.0);
    }
}

#[test]
fn a_pacer_sees_every_admission_and_acknowledgement_in_time() {
    let log = Rc::default();
    let hw = nand(&[0]);
    let mut engine = Sink::new(Event::new(&hw, Fifo));
    let mut host = Script::new(reads(&[0, 100_000, 110_000]));
    let mut driver = Driver::new(OPEN).unwrap().paced(Log(Rc::clone(&log)));
    driver.run(&mut engine, &mut host, None).unwrap();
    driver.finish(&mut engine, &mut host).unwrap();
    assert_eq!(*log.borrow(), [0, READ, 100_000, 110_000, 100_000 + READ, 100_000 + 2 * READ]);
}

struct Fails(u64);

impl Host for Fails {
    fn next(&mut self) -> Result<Option<Arrival>> {
        self.0 += 1;
        Ok(Some(Arrival { at: Nanos::ZERO, class: 0 }))
    }
    fn serve(&mut self, _: &mut Sink) -> Result<()> {
        if self.0 < 5 { Ok(()) } else { Err(Error::ReadOnly { why: "worn out".into() }) }
    }
    fn background(&mut self, _: &mut Sink, _: u32) -> Result<Progress> {
        Ok(Progress::Idle)
    }
    fn done(&mut self, _: u8, _: RequestTimes) {}
}

#[test]
fn an_error_of_the_host_ends_the_run() {
    let hw = nand(&[0]);
    let mut driver = Driver::new(LoopMode::Closed { depth: 1 }).unwrap();
    let error =
        driver.run(&mut Sink::new(Event::new(&hw, Hfsl::default())), &mut Fails(0), None).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }));
    assert_eq!(driver.counters().requests, 4);
}
