//! Synthetic workloads: patterns, mixes, and models fitted to published tables.
//!
//! A specification is `NAME,key=value,…`. The same specification and [`VERSION`] give the same
//! requests on every machine: random numbers come from PCG-64-MCG, and logarithms from a portable
//! library.

mod bijection;
mod filebench;
mod models;
mod place;
mod random;
mod recipes;
mod sizes;
mod spec;
mod zipf;

pub use filebench::{PERSONALITIES, Personality};
pub use models::{MODELS, WorkloadModel};
pub use recipes::{PAGE_SHARE, RECIPES, Recipe};

use crate::formats::BATCH;
use crate::reading::{FactSource, Reading};
use crate::{ReqOp, Request, Result, SectorCut};
use filebench::FilebenchRun;
use frit_core::{Hints, Nanos, Sector};
use place::AddressDistribution;
use random::Random;
use sizes::SizeDistribution;
use spec::GeneratorSpec;

/// Prefix of a workload specification that names a generator.
pub const GENERATOR_PREFIX: &str = "gen:";

/// Version of the generators. It changes when a specification yields other requests than before.
pub const VERSION: u32 = 2;

/// All patterns: name and description.
pub const PATTERNS: [(&str, &str); 6] = [
    ("uniform", "every place equally likely"),
    ("zipf", "popularity of the k-th address is proportional to k^-theta; popular addresses are scattered"),
    (
        "sequential",
        "consecutive addresses; reads begin at the start of the span, writes at its middle, and both wrap",
    ),
    ("zones", "writers in turn, each in order in a zone of its own, and in the next one when it is full"),
    ("hotcold", "a share of the requests goes to a share of the address space"),
    (
        "mix",
        "several weighted patterns: gen:mix,count=1M+uniform,weight=3,size=4K+sequential,weight=1,size=128K",
    ),
];

/// One pattern of a workload, with its weight.
struct Pattern {
    weight: f64,
    /// Unit of addresses and sizes in bytes: a sector, or 1.
    unit: u32,
    place: AddressDistribution,
    read: f64,
    reads: SizeDistribution,
    writes: SizeDistribution,
    metadata: f64,
    flush_every: u64,
    writes_done: u64,
}

/// Process by which requests arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
enum ArrivalProcess {
    Poisson,
    Fixed,
    AtOnce,
}

/// Arrival times: of requests, or of the operations that cause them.
struct Arrivals {
    process: ArrivalProcess,
    gap_ns: f64,
    clock: f64,
}

impl Arrivals {
    /// Returns the next arrival.
    #[inline]
    fn next(&mut self, random: &mut Random) -> Nanos {
        let at = Nanos(self.clock.round() as u64);
        self.clock += match self.process {
            ArrivalProcess::Poisson => self.gap_ns * random.exponential(),
            ArrivalProcess::Fixed => self.gap_ns,
            ArrivalProcess::AtOnce => 0.0,
        };
        at
    }
}

/// Model that the requests come from.
enum RequestModel {
    /// Patterns of addresses, drawn by weight.
    Patterns(Vec<Pattern>),
    /// Operations on files, through a model of a file system.
    Filebench(Box<FilebenchRun>),
}

/// A generator of a synthetic workload.
pub struct Generator {
    name: String,
    canonical: String,
    reading: Reading,
    model: RequestModel,
    arrivals: Arrivals,
    left: u64,
    random: Random,
}

impl Generator {
    /// Creates a generator from `NAME,key=value,…`.
    ///
    /// # Errors
    /// A name or key that is not known, or a value that is not valid.
    pub fn parse(text: &str) -> Result<Generator> {
        let spec = GeneratorSpec::parse(text)?;
        if let Some(model) = MODELS.iter().find(|m| m.name == spec.name) {
            return models::build(model, spec);
        }
        if let Some(personality) = PERSONALITIES.iter().find(|p| p.name == spec.name) {
            return filebench::build(personality, spec);
        }
        match RECIPES.iter().find(|r| r.name == spec.name) {
            Some(recipe) => recipes::build(recipe, spec),
            None => spec::build(spec),
        }
    }

    /// Returns the name ("uniform", "hfsl-fin1").
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the specification with all values written out.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.canonical.clone()
    }

    /// Returns a description in the form of a [`Reading`], as for a trace.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.reading.clone()
    }

    /// Replaces the contents of `out` by the next requests; returns `false` at the end.
    pub fn fill(&mut self, out: &mut Vec<Request>) -> bool {
        out.clear();
        let Generator { model, arrivals, random, left, .. } = self;
        while *left > 0 && out.len() < BATCH {
            match model {
                RequestModel::Patterns(patterns) => {
                    *left -= 1;
                    let at = arrivals.next(random);
                    let i = pick(patterns, random);
                    patterns[i].draw(at, random, out);
                }
                RequestModel::Filebench(run) => {
                    let request = run.next(|random| arrivals.next(random));
                    *left -= u64::from(request.op != ReqOp::Flush);
                    out.push(request);
                }
            }
        }
        !out.is_empty()
    }
}

impl Pattern {
    /// Draws a request, and adds it and the flush that follows it.
    fn draw(&mut self, at: Nanos, random: &mut Random, out: &mut Vec<Request>) {
        let read = self.read > 0.0 && (self.read >= 1.0 || random.unit() < self.read);
        let (op, sizes) = if read { (ReqOp::Read, &self.reads) } else { (ReqOp::Write, &self.writes) };
        let size = sizes.draw(random);
        let place = self.place.draw(random, size, read);
        let mut hints = Hints::NONE;
        if !read && self.metadata > 0.0 && random.unit() < self.metadata {
            hints = hints.with(Hints::METADATA);
        }
        let whole =
            Request { at, sector: Sector(place), sectors: size, device: 0, op, hints, cut: SectorCut::NONE };
        out.push(if self.unit == 1 { whole.with_bytes(place, u64::from(size)) } else { whole });
        if !read && self.flush_every > 0 {
            self.writes_done += 1;
            if self.writes_done.is_multiple_of(self.flush_every) {
                let (op, sector, hints) = (ReqOp::Flush, Sector(0), Hints::NONE);
                out.push(Request { sector, sectors: 0, op, hints, cut: SectorCut::NONE, at, device: 0 });
            }
        }
    }
}

/// Draws the next pattern by weight. The weights add up to one.
fn pick(patterns: &[Pattern], random: &mut Random) -> usize {
    if patterns.len() == 1 {
        return 0;
    }
    let mut u = random.unit();
    let last = patterns.len() - 1;
    // The last pattern is the default, so that rounding errors of the weights have no effect.
    for (i, p) in patterns.iter().enumerate().take(last) {
        if u < p.weight {
            return i;
        }
        u -= p.weight;
    }
    last
}

/// Returns the description of a generator in the form of a reading.
fn reading(about: &str) -> Reading {
    let mut reading =
        Reading { format: "generated".into(), about: format!("generated: {about}"), ..Reading::default() };
    reading.fact("generator version", VERSION.to_string(), FactSource::Fixed);
    reading
}

#[cfg(test)]
mod tests;
