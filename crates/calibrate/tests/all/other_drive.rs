//! Drives that the model does not describe: their own stack and engine, and garbage collection during the
//! recording.
//!
//! A fit to all requests took the delays by garbage collection for times of the drive: with a quarter
//! of the units and `write_us` between 99 and 944 µs, for a drive with 45 µs.

use crate::synthetic::{msr, read};
use frit_calibrate::{Calibration, FitOptions, Model, Parameter, Sample, Verdict};
use frit_core::visible::StackView;
use frit_core::{
    Hints, Nanos, Op, Precondition, Progress, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackDevice,
    WriteData,
};
use frit_engine::{Arrival, Driver, Event, Host, LoopMode, RequestTimes};
use frit_stack::{Bytes, Stack};
use frit_trace::{ReqOp, Request, SectorCut};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::Path;

/// A drive of four units with pages of 2 KiB, filled before the recording.
const DRIVE: &str = r#"
[engine]
kind = "event"

[media.nand]
profile = "slc-k9-2016"
channels = 2
chips_per_channel = 2
blocks_per_plane = 40
t_read = "95 us"
t_prog = "640 us"
t_erase = "3.2 ms"

[ftl]
over_provisioning = 0.2

[link]
kind = "delay"
device = "ftl"
read_us = 30
write_us = 45
"#;

/// The parameters of that drive that differ from the profile, with their values.
const TRUTH: [(Parameter, f64); 5] = [
    (Parameter::TRead, 95e6),
    (Parameter::TProg, 640e6),
    (Parameter::Units, 4.0),
    (Parameter::ReadUs, 30.0),
    (Parameter::WriteUs, 45.0),
];

struct Recorder<'a> {
    layer: &'a mut dyn StackDevice,
    requests: &'a [Request],
    next: usize,
    service_ns: Vec<u64>,
}

impl Host for Recorder<'_> {
    fn next(&mut self) -> Result<Option<Arrival>> {
        let request = self.requests.get(self.next);
        self.next += 1;
        Ok(request.map(|r| Arrival { at: r.at, class: 0 }))
    }

    fn serve(&mut self, sink: &mut Sink) -> Result<()> {
        let r = &self.requests[self.next - 1];
        let bytes = r.sectors * SECTOR_BYTES as u32;
        match r.op {
            ReqOp::Read => self.layer.read(sink, r.sector, ReadTarget::Len(bytes), r.hints),
            _ => self.layer.write(sink, r.sector, WriteData::Len(bytes), r.hints),
        }
    }

    fn background(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        self.layer.step(sink, budget)
    }

    fn done(&mut self, _: u8, times: RequestTimes) {
        self.service_ns[times.index as usize] = times.service().0;
    }
}

/// Returns reads and writes of 1 to 32 pages at random addresses, every 5 ms on average.
fn requests(count: usize, pages: u64, seed: u64) -> Vec<Request> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut at = 0.0;
    (0..count)
        .map(|_| {
            at -= 5e6 * (1.0 - rng.random::<f64>()).ln();
            let size = 1u64 << rng.random_range(0..6);
            Request {
                at: Nanos(at as u64 / 100 * 100),
                sector: Sector(rng.random_range(0..pages / size) * size * 4),
                sectors: size as u32 * 4,
                device: 0,
                op: if rng.random::<bool>() { ReqOp::Read } else { ReqOp::Write },
                hints: Hints::NONE,
                cut: SectorCut::NONE,
            }
        })
        .collect()
}

/// Returns the sample of a recording of a drive, and its number of erases.
fn recording(drive: &str, count: usize, seed: u64) -> (Sample, u64) {
    let stack = Stack::parse("drive", drive, &[]).unwrap();
    let mut built = stack.build(&Bytes::None).unwrap();
    built.layer.precondition(Precondition::Fill).unwrap();
    let requests = requests(count, built.layer.info().sectors / 4, seed);
    let mut sink = Sink::new(Event::new(&built.hardware, stack.engine_config().scheduler.clone()));
    let mut host =
        Recorder { layer: &mut *built.layer, requests: &requests, next: 0, service_ns: vec![0; count] };
    let mut driver = Driver::new(LoopMode::Open { speed: 1.0, depth: Some(4) }).unwrap();
    driver.run(&mut sink, &mut host, None).unwrap();
    driver.finish(&mut sink, &mut host).unwrap();
    let times = host.service_ns;
    let mut view = StackView::default();
    built.layer.visible(&mut view);
    let trace = read(&msr(&requests, &times)).unwrap();
    (Sample::new(&trace, 0.3).unwrap(), view.counts().of(Op::NandErase).commands)
}

/// Fits the parameters of [`TRUTH`], and others.
fn fit(sample: &Sample, others: &[Parameter]) -> Calibration {
    let model = Model::new("slc-k9-2016", Path::new(""), sample).unwrap();
    let parameters = [&TRUTH.map(|(p, _)| p), others].concat();
    let options = FitOptions { parameters, evaluations: 3000 };
    Calibration::run(&model, sample, &options, &mut |_| {}).unwrap()
}

fn assert_truth(c: &Calibration) {
    for (name, value) in TRUTH {
        let p = c.parameters.iter().find(|p| p.name == name).unwrap();
        assert_ne!(p.verdict, Verdict::NotExamined, "{name:?}");
        assert!(p.low.is_none_or(|low| low <= value), "{p:?}: {value}");
        assert!(p.high.is_none_or(|high| high >= value), "{p:?}: {value}");
        if matches!(name, Parameter::TProg | Parameter::Units) {
            assert!((p.fitted / value - 1.0).abs() < 0.1, "{p:?}: {value}");
        }
    }
}

#[test]
fn garbage_collection_is_not_taken_for_times_of_the_drive() {
    let (sample, erases) = recording(DRIVE, 1000, 5);
    assert!(erases > 100, "{erases}");
    let c = fit(&sample, &[]);
    let delays = c.delays.unwrap();
    assert!(delays.delayed > 0.3, "{delays:?}");
    assert_truth(&c);
    let write_us = c.parameters.iter().find(|p| p.name == Parameter::WriteUs).unwrap();
    assert!(write_us.fitted < 100.0, "{write_us:?}");
}

/// A fit that is a little better than the true values does not exclude them.
#[test]
fn a_drive_with_a_write_cache_and_delays_has_intervals_with_its_values() {
    let cached = DRIVE.replace("over_provisioning = 0.2", "over_provisioning = 0.2\nmerge_buffer = 8");
    let (sample, _) = recording(&cached, 1000, 5);
    let c = fit(&sample, &[Parameter::MergeBuffer]);
    assert!(c.delays.is_some());
    assert_truth(&c);
    let cache = c.parameters.iter().find(|p| p.name == Parameter::MergeBuffer).unwrap();
    assert!((cache.fitted - 8.0).abs() < f64::EPSILON, "{cache:?}");
}

#[test]
fn a_drive_without_garbage_collection_is_fitted_to_all_requests() {
    let large = DRIVE.replace("blocks_per_plane = 40", "blocks_per_plane = 200");
    let (sample, erases) = recording(&large, 600, 5);
    assert_eq!(erases, 0);
    let c = fit(&sample, &[]);
    assert_eq!(c.delays, None);
    for (name, value) in TRUTH {
        let p = c.parameters.iter().find(|p| p.name == name).unwrap();
        assert!((p.fitted / value - 1.0).abs() < 0.2, "{p:?}: {value}");
    }
}
