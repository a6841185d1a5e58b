//! Traces of drives with known values.

use frit_calibrate::{Model, Parameter, Sample, Settings};
use frit_core::Hints;
use frit_core::{Nanos, Sector};
use frit_trace::{MeasuredTrace, Options, ReqOp, Request, SectorCut};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Form of a synthetic workload.
pub(crate) struct Workload {
    pub(crate) requests: usize,
    /// Largest size, in pages of 4 KiB; sizes are powers of two.
    pub(crate) pages_max: u32,
    /// Mean time between requests, in µs.
    pub(crate) gap_us: f64,
    pub(crate) depth: u32,
    /// Standard deviation of the logarithm of the noise.
    pub(crate) noise: f64,
}

fn requests(w: &Workload, rng: &mut SmallRng) -> Vec<Request> {
    let mut at = 0.0;
    let sizes = w.pages_max.ilog2() + 1;
    (0..w.requests)
        .map(|_| {
            at -= w.gap_us * 1e3 * (1.0 - rng.random::<f64>()).ln();
            let pages = 1u32 << rng.random_range(0..sizes);
            let slots = (16 << 20) / (4096 * u64::from(pages));
            Request {
                // MSR's unit is 100 ns.
                at: Nanos(at as u64 / 100 * 100),
                sector: Sector(rng.random_range(0..slots) * u64::from(pages) * 8),
                sectors: pages * 8,
                device: 0,
                op: if rng.random::<bool>() { ReqOp::Read } else { ReqOp::Write },
                hints: Hints::NONE,
                cut: SectorCut::NONE,
            }
        })
        .collect()
}

/// Returns a trace in the format of MSR.
pub(crate) fn msr(requests: &[Request], service_ns: &[u64]) -> String {
    let mut text = String::new();
    for (r, service) in requests.iter().zip(service_ns) {
        let op = if r.op == ReqOp::Read { "Read" } else { "Write" };
        let at = 128_166_000_000_000_000 + r.at.0 / 100;
        let (offset, bytes) = (r.sector.0 * 512, u64::from(r.sectors) * 512);
        writeln!(text, "{at},synthetic,0,{op},{offset},{bytes},{}", service.div_ceil(100)).unwrap();
    }
    text
}

/// Reads a trace from text.
pub(crate) fn read(text: &str) -> frit_trace::Result<MeasuredTrace> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    MeasuredTrace::read(&file.path().display().to_string(), &Options::default())
}

/// Returns a model and a sample of a drive that differs from the profile by some values.
pub(crate) fn drive(profile: &str, truth: &[(Parameter, u64)], w: &Workload) -> (Model, Sample, Settings) {
    let mut rng = SmallRng::seed_from_u64(17);
    let requests = requests(w, &mut rng);
    let trace = read(&msr(&requests, &vec![1000; requests.len()])).unwrap();
    let mut sample = Sample::new(&trace, 0.3).unwrap();
    sample.depth = w.depth;
    let model = Model::new(profile, Path::new(""), &sample).unwrap();
    let settings = truth.iter().fold(model.profile_settings(), |s, (p, value)| s.with(*p, *value));
    let mut times = model.service_times(&settings, &sample, requests.len()).unwrap();
    for t in &mut times {
        // The sum of twelve uniform numbers has the variance 1.
        let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        *t = (*t as f64 * (w.noise * normal).exp()) as u64;
    }
    let trace = read(&msr(&requests, &times)).unwrap();
    let sample = Sample::new(&trace, 0.3).unwrap();
    let model = Model::new(profile, Path::new(""), &sample).unwrap();
    (model, sample, settings)
}
