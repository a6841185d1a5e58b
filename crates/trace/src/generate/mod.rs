//! Workloads that are made up: patterns, mixes, and models fitted to published tables.
//!
//! `NAME,key=value,…`; the same specification and [`VERSION`] give the same requests on every machine: the random
//! numbers are PCG-64-MCG's, and logarithms come from a portable library.

mod bijection;
mod models;
mod place;
mod random;
mod recipes;
mod sizes;
mod spec;
mod zipf;

pub use models::{MODELS, Model};
pub use recipes::{PAGES, RECIPES, Recipe};

use crate::formats::BATCH;
use crate::reading::{How, Reading};
use crate::{ReqOp, Request, Result};
use frit_core::{Hints, Nanos, Sector};
use place::Place;
use random::Random;
use sizes::Sizes;
use spec::Spec;

/// The version of the generators: it changes when a specification gives other requests than before.
pub const VERSION: u32 = 1;

/// The patterns, with what they are.
pub const PATTERNS: [(&str, &str); 5] = [
    ("uniform", "every place equally likely"),
    ("zipf", "the k-th most popular place as likely as k^-theta; popular places are scattered"),
    (
        "sequential",
        "one request after another, from the start again at the end; reads and writes each in their half",
    ),
    ("hotcold", "a share of the requests goes to a share of the space"),
    (
        "mix",
        "several weighted patterns: gen:mix,count=1M+uniform,weight=3,size=4K+sequential,weight=1,size=128K",
    ),
];

/// One pattern of a workload.
struct Pattern {
    weight: f64,
    place: Place,
    read: f64,
    reads: Sizes,
    writes: Sizes,
    metadata: f64,
    flush_every: u64,
    writes_done: u64,
}

/// How requests arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Arrival {
    Poisson,
    Fixed,
    AtOnce,
}

/// A workload that is made up.
pub struct Generator {
    name: String,
    canonical: String,
    reading: Reading,
    patterns: Vec<Pattern>,
    arrival: Arrival,
    gap_ns: f64,
    clock: f64,
    left: u64,
    random: Random,
}

impl Generator {
    /// From `NAME,key=value,…`.
    ///
    /// # Errors
    /// A name or key that is not known, or a value that cannot be.
    pub fn parse(text: &str) -> Result<Generator> {
        let spec = Spec::parse(text)?;
        if let Some(model) = MODELS.iter().find(|m| m.name == spec.name) {
            return models::build(model, spec);
        }
        match RECIPES.iter().find(|r| r.name == spec.name) {
            Some(recipe) => recipes::build(recipe, spec),
            None => spec::build(spec),
        }
    }

    /// Its name ("uniform", "hfsl-fin1").
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The specification with every value spelled out.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.canonical.clone()
    }

    /// What it is, as a trace says how it was read.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.reading.clone()
    }

    /// Puts the next requests into `out`, replacing what is there; false at the end.
    pub fn fill(&mut self, out: &mut Vec<Request>) -> bool {
        out.clear();
        while self.left > 0 && out.len() < BATCH {
            self.left -= 1;
            self.one(out);
        }
        !out.is_empty()
    }

    fn one(&mut self, out: &mut Vec<Request>) {
        let at = Nanos(self.clock.round() as u64);
        self.clock += match self.arrival {
            Arrival::Poisson => self.gap_ns * self.random.exponential(),
            Arrival::Fixed => self.gap_ns,
            Arrival::AtOnce => 0.0,
        };
        let i = self.pick();
        let (pattern, random) = (&mut self.patterns[i], &mut self.random);
        let read = pattern.read > 0.0 && (pattern.read >= 1.0 || random.unit() < pattern.read);
        let (op, sizes) = if read { (ReqOp::Read, &pattern.reads) } else { (ReqOp::Write, &pattern.writes) };
        let sectors = sizes.draw(random);
        let sector = Sector(pattern.place.draw(random, sectors, read));
        let mut hints = Hints::NONE;
        if !read && pattern.metadata > 0.0 && random.unit() < pattern.metadata {
            hints = hints.with(Hints::METADATA);
        }
        out.push(Request { at, sector, sectors, device: 0, op, hints });
        if !read && pattern.flush_every > 0 {
            pattern.writes_done += 1;
            if pattern.writes_done % pattern.flush_every == 0 {
                let op = ReqOp::Flush;
                out.push(Request { at, sector: Sector(0), sectors: 0, device: 0, op, hints: Hints::NONE });
            }
        }
    }

    /// Which pattern is next; weights add up to one.
    fn pick(&mut self) -> usize {
        if self.patterns.len() == 1 {
            return 0;
        }
        let mut u = self.random.unit();
        let last = self.patterns.len() - 1;
        for (i, p) in self.patterns.iter().enumerate().take(last) {
            if u < p.weight {
                return i;
            }
            u -= p.weight;
        }
        last
    }
}

/// How a generator describes itself.
fn reading(about: &str) -> Reading {
    let mut reading =
        Reading { format: "generated".into(), about: format!("generated: {about}"), ..Reading::default() };
    reading.fact("generator version", VERSION.to_string(), How::Fixed);
    reading
}

#[cfg(test)]
mod tests;
