//! Specifications of generators: `NAME,key=value,…`, and for mixes `mix,…+NAME,…+NAME,…`.

use super::bijection::Bijection;
use super::place::{AddressDistribution, AddressLaw, ZoneWriters};
use super::random::Random;
use super::sizes::SizeDistribution;
use super::zipf::Zipf;
use super::{
    ArrivalProcess, Arrivals, GENERATOR_PREFIX, Generator, MODELS, PATTERNS, PERSONALITIES, Pattern, RECIPES,
    RequestModel, reading,
};
use crate::{Error, Result};
use frit_core::{SECTOR_BYTES, size};

/// A parsed specification. Keys that were read are removed from `pairs` and added to `spelled`.
pub(super) struct GeneratorSpec {
    text: String,
    pub(super) name: String,
    pairs: Vec<(String, String)>,
    parts: Vec<GeneratorSpec>,
    spelled: Vec<String>,
}

impl GeneratorSpec {
    pub(super) fn parse(text: &str) -> Result<GeneratorSpec> {
        let mut pieces = text.split('+');
        let mut first = GeneratorSpec::piece(pieces.next().unwrap_or_default())?;
        first.parts = pieces.map(GeneratorSpec::piece).collect::<Result<_>>()?;
        first.text = text.into();
        if !first.parts.is_empty() && first.name != "mix" {
            return Err(first.bad("only a mix has parts: gen:mix,…+NAME,…"));
        }
        Ok(first)
    }

    fn piece(text: &str) -> Result<GeneratorSpec> {
        let mut fields = text.split(',');
        let name = fields.next().unwrap_or_default().trim().to_owned();
        let mut spec = GeneratorSpec {
            text: text.into(),
            name,
            pairs: Vec::new(),
            parts: Vec::new(),
            spelled: Vec::new(),
        };
        for field in fields {
            let Some((key, value)) = field.split_once('=') else {
                return Err(spec.bad(&format!("'{field}' has no =; write key=value")));
            };
            let key = key.trim().to_owned();
            if spec.pairs.iter().any(|p| p.0 == key) {
                return Err(spec.bad(&format!("{key} is given twice")));
            }
            spec.pairs.push((key, value.trim().to_owned()));
        }
        Ok(spec)
    }

    /// Returns the parts of a mix.
    pub(super) fn into_parts(self) -> Vec<GeneratorSpec> {
        self.parts
    }

    pub(super) fn bad(&self, why: &str) -> Error {
        Error::spec(format!("{GENERATOR_PREFIX}{}", self.text), why)
    }

    /// Removes and parses the value of a key, or its default, and records it for the canonical
    /// form.
    pub(super) fn take<T>(
        &mut self,
        key: &str,
        default: &str,
        parse: impl Fn(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let given = self.pairs.iter().position(|p| p.0 == key).map(|i| self.pairs.swap_remove(i).1);
        let value = given.as_deref().unwrap_or(default);
        let parsed = parse(value).map_err(|why| self.bad(&format!("{key}={value}: {why}")))?;
        self.spelled.push(format!("{key}={value}"));
        Ok(parsed)
    }

    /// Checks that every given key was read.
    fn done(&self) -> Result<()> {
        let Some((key, _)) = self.pairs.first() else { return Ok(()) };
        let known: Vec<&str> = self.spelled.iter().filter_map(|s| s.split('=').next()).collect();
        Err(self.bad(&format!("there is no {key} here; known keys: {}", known.join(", "))))
    }
}

/// Values that all generators have.
pub(super) struct CommonOptions {
    pub(super) count: u64,
    pub(super) seed: u64,
    arrival: ArrivalProcess,
    gap_ns: f64,
}

pub(super) fn common(spec: &mut GeneratorSpec) -> Result<CommonOptions> {
    let count = spec.take("count", "1M", count)?;
    let seed = spec.take("seed", "1", |v| v.parse().map_err(|_| "a seed is a whole number".into()))?;
    let arrival = spec.take("arrival", "poisson", |v| match v {
        "poisson" => Ok(ArrivalProcess::Poisson),
        "fixed" => Ok(ArrivalProcess::Fixed),
        "none" => Ok(ArrivalProcess::AtOnce),
        _ => Err("use poisson, fixed, or none (all at once)".into()),
    })?;
    let rate: f64 = spec.take("rate", "1000", |v| {
        let n: f64 =
            v.parse().or_else(|_| count_f64(v)).map_err(|_| "a rate is requests a second".to_owned())?;
        if n > 0.0 && n.is_finite() { Ok(n) } else { Err("a rate is more than 0".into()) }
    })?;
    Ok(CommonOptions { count, seed, arrival, gap_ns: 1e9 / rate })
}

/// Parses a whole number, with k, M or G for powers of ten.
pub(super) fn count(text: &str) -> std::result::Result<u64, String> {
    let bad = || "a count is a whole number, or one with k, M or G (powers of ten)".to_owned();
    let (digits, factor) = match text.char_indices().next_back() {
        Some((i, 'k' | 'K')) => (&text[..i], 1_000),
        Some((i, 'm' | 'M')) => (&text[..i], 1_000_000),
        Some((i, 'g' | 'G')) => (&text[..i], 1_000_000_000),
        _ => (text, 1),
    };
    let n: u64 = digits.replace('_', "").parse().map_err(|_| bad())?;
    n.checked_mul(factor).filter(|n| *n > 0).ok_or_else(bad)
}

fn count_f64(text: &str) -> std::result::Result<f64, String> {
    count(text).map(|n| n as f64)
}

pub(super) fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(f) if (0.0..=1.0).contains(&f) => Ok(f),
        _ => Err("use a share between 0 and 1".into()),
    }
}

/// Parses a size in bytes and returns it in sectors.
pub(super) fn sectors(text: &str) -> std::result::Result<u64, String> {
    let bytes = size::parse(text)?;
    if bytes == 0 || bytes % SECTOR_BYTES != 0 {
        return Err("use a multiple of 512 bytes".into());
    }
    Ok(bytes / SECTOR_BYTES)
}

/// Reads the span, which the user of a model may change.
pub(super) fn span(spec: &mut GeneratorSpec, default: &str) -> Result<u64> {
    spec.take("span", default, sectors)
}

/// Assembles a generator.
pub(super) fn finish(
    spec: &GeneratorSpec,
    common: &CommonOptions,
    mut model: RequestModel,
    about: &str,
) -> Result<Generator> {
    spec.done()?;
    if let RequestModel::Patterns(patterns) = &mut model {
        let sum: f64 = patterns.iter().map(|p| p.weight).sum();
        patterns.iter_mut().for_each(|p| p.weight /= sum);
    }
    let spell = |s: &GeneratorSpec| [vec![s.name.clone()], s.spelled.clone()].concat().join(",");
    let parts = spec.parts.iter().map(|p| format!("+{}", spell(p))).collect::<String>();
    Ok(Generator {
        name: spec.name.clone(),
        canonical: format!("{GENERATOR_PREFIX}{}{parts}", spell(spec)),
        reading: reading(about),
        model,
        arrivals: Arrivals { process: common.arrival, gap_ns: common.gap_ns, clock: 0.0 },
        left: common.count,
        random: Random::new(common.seed),
    })
}

/// Builds a generator from patterns.
pub(super) fn build(mut spec: GeneratorSpec) -> Result<Generator> {
    let about = match PATTERNS.iter().find(|p| p.0 == spec.name) {
        Some((name, about)) => format!("{name}, {}", about.split(':').next().unwrap_or(about)),
        None => {
            let models = MODELS.iter().map(|m| m.name).chain(RECIPES.iter().map(|r| r.name));
            let models = models.chain(PERSONALITIES.iter().map(|p| p.name));
            let known: Vec<&str> = PATTERNS.iter().map(|p| p.0).chain(models).collect();
            return Err(spec.bad(&format!(
                "there is no generator '{}'; known generators: {}",
                spec.name,
                known.join(", ")
            )));
        }
    };
    let common = common(&mut spec)?;
    if spec.name != "mix" {
        let pattern = pattern(&mut spec, common.seed)?;
        return finish(&spec, &common, RequestModel::Patterns(vec![pattern]), &about);
    }
    let mut parts = std::mem::take(&mut spec.parts);
    if parts.is_empty() {
        return Err(
            spec.bad("a mix needs parts: gen:mix,count=1M+uniform,weight=3,size=4K+sequential,weight=1")
        );
    }
    let patterns = self::parts(&mut parts, common.seed)?;
    spec.parts = parts;
    finish(&spec, &common, RequestModel::Patterns(patterns), &about)
}

/// Returns the patterns of a mix.
pub(super) fn parts(parts: &mut [GeneratorSpec], seed: u64) -> Result<Vec<Pattern>> {
    let mut patterns = Vec::new();
    for (i, part) in parts.iter_mut().enumerate() {
        let weight = part.take("weight", "1", |v| match v.parse::<f64>() {
            Ok(w) if w > 0.0 && w.is_finite() => Ok(w),
            _ => Err("a weight is more than 0".into()),
        })?;
        // Each part has a seed of its own, so that the hot addresses of the parts are scattered
        // independently.
        let mut p = pattern(part, seed.wrapping_add(1 + i as u64))?;
        p.weight = weight;
        part.done()?;
        patterns.push(p);
    }
    Ok(patterns)
}

fn pattern(spec: &mut GeneratorSpec, seed: u64) -> Result<Pattern> {
    let read = spec.take(
        "read",
        match spec.pairs.iter().find(|p| p.0 == "ops").map(|p| p.1.as_str()) {
            Some("read") => "1",
            _ => "0",
        },
        share,
    )?;
    if spec.pairs.iter().any(|p| p.0 == "ops") {
        let agrees = |v: &str| match v {
            "read" if read >= 1.0 => Ok(()),
            "write" if read <= 0.0 => Ok(()),
            "read" | "write" => Err("read= contradicts it; remove one of the two".into()),
            _ => Err("use ops=read or ops=write, or read=0.3 for a mixture".to_owned()),
        };
        spec.take("ops", "", agrees)?;
    }
    let all = spec.pairs.iter().find(|p| p.0 == "size").map_or("4K".to_owned(), |p| p.1.clone());
    let unit = unit(spec, &all);
    let sizes = |v: &str| SizeDistribution::parse(v, unit);
    spec.take("size", "4K", sizes)?;
    let reads = spec.take("rsize", &all, sizes)?;
    let writes = spec.take("wsize", &all, sizes)?;
    let multiple = |n: u64| reads.multiples_of(n as u32) && writes.multiples_of(n as u32);
    let default_align = match unit {
        SECTOR_BYTES if multiple(4096 / SECTOR_BYTES) => 4096,
        SECTOR_BYTES => SECTOR_BYTES,
        _ => [256, 128, 64, 32, 16, 8, 4, 2].into_iter().find(|n| multiple(*n)).unwrap_or(1),
    };
    let default_align = if default_align == 4096 { "4K".to_owned() } else { default_align.to_string() };
    let align = spec.take("align", &default_align, |v| match size::parse(v)? {
        bytes if bytes > 0 && bytes % unit == 0 => Ok(bytes / unit),
        _ => Err("use a size above 0".into()),
    })?;
    let span = spec.take("span", "1G", sectors)? * (SECTOR_BYTES / unit);
    let base = spec.take("base", "0", |v| match size::parse(v)? {
        bytes if bytes % SECTOR_BYTES == 0 => Ok(bytes / unit),
        _ => Err("use a multiple of 512 bytes".into()),
    })?;
    let largest = u64::from(reads.max().max(writes.max()));
    let limit = crate::request::SECTOR_LIMIT * (SECTOR_BYTES / unit);
    if largest > span || align > span || base.checked_add(span).is_none_or(|e| e > limit) {
        return Err(spec.bad(
            "the span is smaller than the largest request or the alignment, or reaches past 2^64 bytes",
        ));
    }
    let n = AddressDistribution::slots(span, align);
    let law = if spec.name == "zones" {
        zone_writers(spec, span, largest.next_multiple_of(align), unit)?
    } else {
        law(spec, n, align, span, seed)?
    };
    let place = AddressDistribution { base, span, align, law };
    let metadata = spec.take("meta", "0", share)?;
    let flush_every =
        spec.take("flush", "0", |v| v.parse().map_err(|_| "writes between two flushes, or 0".into()))?;
    let unit = unit as u32;
    Ok(Pattern { weight: 1.0, unit, place, read, reads, writes, metadata, flush_every, writes_done: 0 })
}

/// Reads the writers of zones in a span.
fn zone_writers(spec: &mut GeneratorSpec, span: u64, largest: u64, unit: u64) -> Result<AddressLaw> {
    let zone = spec.take("zone", "64M", |v| match size::parse(v)? {
        bytes if bytes > 0 && bytes % unit == 0 && bytes / unit >= largest => Ok(bytes / unit),
        _ => Err("use a size of at least a request".into()),
    })?;
    let writers = spec.take("writers", "1", count)?;
    let zones = span / zone;
    let law = ZoneWriters::new(span, zone, writers).map(AddressLaw::Zones);
    law.ok_or_else(|| {
        spec.bad(&format!("the span has {zones} zones; use at most as many writers, or a larger span"))
    })
}

/// Returns the unit of the addresses and sizes of a pattern in bytes: a byte if a size or the
/// alignment is not whole sectors, otherwise a sector.
fn unit(spec: &GeneratorSpec, all: &str) -> u64 {
    let given = |key: &str| spec.pairs.iter().find(|p| p.0 == key).map(|p| p.1.as_str());
    let mut texts = vec![given("rsize").unwrap_or(all), given("wsize").unwrap_or(all)];
    texts.extend(given("align"));
    let numbers = texts.into_iter().flat_map(|t| t.split("..").flat_map(|t| t.split('/')));
    // A text that is no size is refused where it is read.
    let bytes = numbers.filter_map(|t| size::parse(t.split(':').next().unwrap_or(t)).ok());
    if bytes.into_iter().any(|b| b % SECTOR_BYTES != 0) { 1 } else { SECTOR_BYTES }
}

fn law(spec: &mut GeneratorSpec, n: u64, align: u64, span: u64, seed: u64) -> Result<AddressLaw> {
    let name = spec.name.clone();
    Ok(match name.as_str() {
        "uniform" => AddressLaw::Uniform,
        "sequential" => AddressLaw::Sequential([0, span / 2 / align * align]),
        "zipf" => {
            let theta = spec.take("theta", "0.9", |v| match v.parse::<f64>() {
                Ok(t) if (0.01..=10.0).contains(&t) => Ok(t),
                _ => Err("use an exponent between 0.01 and 10".into()),
            })?;
            AddressLaw::Zipf(Zipf::new(n, theta), Bijection::new(n, seed))
        }
        "hotcold" => {
            let space = spec.take("space", "0.2", share)?;
            let traffic = spec.take("traffic", "0.8", share)?;
            let scatter = spec.take("scatter", "yes", |v| match v {
                "yes" => Ok(true),
                "no" => Ok(false),
                _ => Err("use yes or no (the hot part first)".into()),
            })?;
            let hot = ((n as f64 * space).round() as u64).clamp(1, n);
            AddressLaw::HotCold(hot, traffic, scatter.then(|| Bijection::new(n, seed)))
        }
        _ => {
            return Err(spec.bad(&format!(
                "'{name}' cannot be part of a mix; use uniform, zipf, sequential, hotcold or zones"
            )));
        }
    })
}
