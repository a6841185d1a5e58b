//! Times of requests, in closed form.

use super::{Bench, Layer, config};
use frit_core::{
    BlockLayer, Durable, Hints, Nanos, Op, Quiesce, ReadTarget, Result, Sector, Sink, WriteData,
};
use frit_engine::in_order::InOrder;
use frit_engine::{AnyScheduler, Event, Recorder};

/// Latencies of the sides.
const FAST: u64 = 100;
const SLOW: u64 = 300;

/// Returns the time of a request on an idle engine.
fn time(engine: &mut Sink, request: impl FnOnce(&mut Sink) -> Result<()>) -> u64 {
    let begun = engine.now();
    engine.begin();
    request(engine).unwrap();
    let done = engine.end();
    if let Some(at) = engine.time_or_watch(done, 1) {
        while engine.next_done(at).is_some() {}
        return at.0 - begun.0;
    }
    engine.next_done(Nanos::MAX).unwrap().at.0 - begun.0
}

fn write(m: &mut Layer, e: &mut Sink, at: u64, sectors: u32) -> u64 {
    time(e, |e| m.write(e, Sector(at), WriteData::Len(sectors * 512), Hints::NONE))
}

fn read(m: &mut Layer, e: &mut Sink, at: u64, sectors: u32) -> u64 {
    time(e, |e| m.read(e, Sector(at), ReadTarget::Len(sectors * 512), Hints::NONE))
}

fn requests_take(bench: &Bench, e: &mut Sink) {
    let mut m: Layer = bench.build(config());
    time(e, |e| m.format(e));
    while e.next_done(Nanos::MAX).is_some() {}
    // The first write to a region waits for the mark, a write and a flush, of the slower side.
    assert_eq!(write(&mut m, e, 0, 2), 3 * SLOW);
    // Later ones take the slower of the two sides.
    assert_eq!(write(&mut m, e, 0, 8), SLOW);
    assert_eq!(time(e, |e| m.discard(e, Sector(1), 3)), SLOW);
    assert_eq!(time(e, |e| m.flush(e)), SLOW);
    // A read takes one side: ranges of two sectors are on the sides in turn.
    for (at, sectors, ns) in [(0, 2, FAST), (1, 1, FAST), (2, 2, SLOW), (4, 1, FAST), (6, 1, SLOW)] {
        assert_eq!(read(&mut m, e, at, sectors), ns, "at {at}");
    }
    // Over two ranges, both sides serve a part at the same time; over four, each serves two.
    assert_eq!(read(&mut m, e, 0, 4), SLOW.max(FAST));
    assert_eq!(read(&mut m, e, 0, 8), (2 * SLOW).max(2 * FAST));
    // A write over two regions, one of which is marked.
    assert_eq!(write(&mut m, e, 6, 4), 3 * SLOW);
}

#[test]
fn a_write_takes_the_slower_side_and_a_read_takes_one() {
    let bench = Bench::new(&[FAST, SLOW]);
    requests_take(&bench, &mut Sink::new(InOrder::new(&bench.hardware)));
    let bench = Bench::new(&[FAST, SLOW]);
    requests_take(
        &bench,
        &mut Sink::new(Event::<AnyScheduler>::new(&bench.hardware, "fifo".parse().unwrap())),
    );
}

#[test]
fn a_degraded_mirror_takes_the_side_that_is_left() {
    let bench = Bench::new(&[FAST, SLOW]);
    let mut e = Sink::new(InOrder::new(&bench.hardware));
    let mut m: Layer = bench.build(config());
    write(&mut m, &mut e, 0, 1);
    bench.devices[1].state().dead = true;
    // The note is written and flushed at the time of the data, behind it on the same side: two
    // copies of the superblock and a flush.
    assert_eq!(write(&mut m, &mut e, 0, 1), 4 * FAST);
    assert_eq!(write(&mut m, &mut e, 0, 1), FAST);
    assert_eq!(read(&mut m, &mut e, 2, 1), FAST);
}

#[test]
fn reads_that_stay_in_a_range_stay_on_a_side() {
    let bench = Bench::new(&[1, 1, 1]);
    let mut m: Layer = bench.build(config());
    let mut sink = Sink::untimed();
    m.halt(&mut sink).unwrap();
    let reads = || bench.devices.iter().map(|d| d.state().reads).collect::<Vec<_>>();
    let before = reads();
    for at in 0..60 {
        m.read(&mut sink, Sector(at), ReadTarget::Len(512), Hints::NONE).unwrap();
    }
    let since: Vec<u64> = reads().iter().zip(&before).map(|(a, b)| a - b).collect();
    assert_eq!(since, [20, 20, 20]);
    m.read(&mut sink, Sector(0), ReadTarget::Len(1024), Hints::NONE).unwrap();
    assert_eq!(reads()[0], before[0] + 21);
}

#[test]
fn data_waits_for_the_mark_and_a_cleared_mark_for_the_data() {
    let bench = Bench::new(&[1, 1]);
    let mut r = Sink::new(Recorder::default());
    let mut m: Layer = bench.build(config());
    m.format(&mut r).unwrap();
    let recorded = |r: &Sink| r.engine::<Recorder>().unwrap().recording().ops.len();
    let formatted = recorded(&r);
    for region in 0..6 {
        r.begin();
        m.write(&mut r, Sector(region * 8), WriteData::Bytes(&[1; 512]), Hints::NONE).unwrap();
        r.end();
    }
    let written = recorded(&r);
    r.begin();
    m.step(&mut r, 8).unwrap();
    let (ops, _) = Recorder::finish(r).unwrap();
    let ops = &ops.ops;
    let flush = |i: usize| ops[i].cmd.op == Op::DramWrite && ops[i].cmd.len == 0;
    // Each data write comes directly or not after a flush of both sides.
    let mut before: Vec<std::collections::BTreeSet<u32>> = Vec::new();
    for op in ops {
        let mut all: std::collections::BTreeSet<u32> = op.after.iter().copied().collect();
        op.after.iter().for_each(|&a| all.extend(before[a as usize].clone()));
        before.push(all);
    }
    let mut data = 0;
    for (i, op) in ops.iter().enumerate().take(written).skip(formatted) {
        if !op.cmd.cause.is_background() {
            let flushes = before[i].iter().filter(|&&b| b as usize >= formatted && flush(b as usize));
            let units: std::collections::BTreeSet<_> = flushes.map(|&f| ops[f as usize].cmd.unit.0).collect();
            assert_eq!(units.len(), 2, "command {i}");
            data += 1;
        }
    }
    assert_eq!(data, 12);
    // The cleared bitmap waits for a flush that waits for every data write of its side.
    let clears: Vec<usize> = (written..ops.len()).filter(|&i| !flush(i)).collect();
    assert_eq!(clears.len(), 2);
    for i in clears {
        for (j, op) in ops.iter().enumerate().take(written).skip(formatted) {
            if !op.cmd.cause.is_background() {
                let fenced = |&&b: &&u32| {
                    flush(b as usize) && b as usize >= written && before[b as usize].contains(&(j as u32))
                };
                assert!(before[i].iter().filter(fenced).count() == 2, "{i} does not wait for {j}");
            }
        }
    }
}
