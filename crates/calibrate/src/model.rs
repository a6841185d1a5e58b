//! The model of a drive: a profile and the values that a fit changes, as a stack.

use crate::error::{Error, Result};
use crate::parameters::{COUNT, Parameter, Point, ProfileTimes, Space};
use crate::replay;
use crate::sample::Sample;
use frit_core::{MediumKind, SECTOR_BYTES};
use frit_media::profile::{MediumSpec, PageLatency, Picos, Profile};
use frit_media::{MediumConfig, NandConfig};
use frit_stack::{Bytes, Stack};
use frit_trace::{ReqOp, Request};
use std::fmt::Write;
use std::path::Path;

/// Pages of a block in the model at most (assumed). A multiple of the numbers of types of pages. Smaller
/// blocks than those of the profile keep the model small: nothing is erased, so their size has no effect.
const PAGES_PER_BLOCK_MAX: u32 = 96;
/// Blocks of a plane beyond the data, so that garbage collection never begins: more than the default of
/// `gc_high_blocks`.
const SPARE_BLOCKS: u64 = 10;
/// Mapping unit of NAND pages that are larger, in bytes: the page of a host.
const MAPPING_UNIT: u32 = 4096;

/// Values of the parameters, as a stack has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Settings(pub(crate) [u64; COUNT]);

impl Settings {
    /// Returns the value of a parameter, in its unit.
    #[must_use]
    pub fn get(&self, p: Parameter) -> u64 {
        self.0[p.index()]
    }

    /// Returns the same settings with another value.
    #[must_use]
    pub fn with(mut self, p: Parameter, value: u64) -> Settings {
        self.0[p.index()] = value;
        self
    }
}

/// A drive whose values can be changed, with a volume for a sample.
#[derive(Clone, Debug)]
pub struct Model {
    /// The profile, as stack files name it.
    pub(crate) profile: String,
    /// All values of the profile.
    pub(crate) base: MediumConfig,
    pub(crate) nand: NandConfig,
    pub(crate) space: Space,
    volume_bytes: u64,
    /// NAND pages that the volume and all writes of the sample need.
    pages: u64,
}

impl Model {
    /// Checks that a profile (a name, or a path relative to `dir`) is that of a NAND.
    ///
    /// # Errors
    /// A profile that cannot be read, or of another medium.
    pub fn check(profile: &str, dir: &Path) -> Result<()> {
        let found = Profile::find(profile, dir)?;
        if found.medium == MediumKind::Nand {
            return Ok(());
        }
        let hint = match found.medium {
            MediumKind::Disk => "; `frit disk score` compares drives with a mechanism with measurements",
            _ => "",
        };
        Err(Error::NotNand { profile: profile.into(), kind: found.medium.with_article(), hint })
    }

    /// Creates the model of a NAND profile (a name, or a path relative to `dir`) for a sample.
    ///
    /// # Errors
    /// A profile that cannot be read, or of another medium.
    pub fn new(profile: &str, dir: &Path, sample: &Sample) -> Result<Model> {
        Model::check(profile, dir)?;
        let named = MediumConfig { profile: Some(profile.into()), ..MediumConfig::default() };
        let MediumSpec::Nand(nand) = named.resolve("nand", dir)? else {
            return Err(Error::NotNand { profile: profile.into(), kind: "another", hint: "" });
        };
        let base = named.with_profile(dir)?;
        let path = profile.contains('/') || profile.ends_with(".toml");
        let named = if path { absolute(&dir.join(profile)) } else { profile.into() };
        let mean = |l: Option<&PageLatency>| l.map_or(1.0, mean_ps);
        let times = ProfileTimes {
            t_read_ps: mean(base.t_read.as_ref()),
            t_prog_ps: mean(base.t_prog.as_ref()),
            t_erase_ps: base.t_erase.map_or(1.0, |t| t.0 as f64),
            bus_ps: base.bus_per_byte.map_or(1.0, |t| t.0 as f64),
            units: nand.geometry.units(),
        };
        let page = u64::from(nand.geometry.page_bytes);
        let written = |r: &Request| match r.op {
            // A write that begins inside a page, and one that ends inside a page.
            ReqOp::Write => (u64::from(r.sectors) * SECTOR_BYTES).div_ceil(page) + 2,
            _ => 0,
        };
        let pages = sample.volume_bytes.div_ceil(page) + sample.requests.iter().map(written).sum::<u64>();
        let space = Space::new(times);
        Ok(Model { profile: named, base, nand, space, volume_bytes: sample.volume_bytes, pages })
    }

    /// Returns the settings of the profile: no time outside the NAND, no limit of the link, no cache.
    #[must_use]
    pub fn profile_settings(&self) -> Settings {
        self.settings(&self.space.profile)
    }

    pub(crate) fn settings(&self, point: &Point) -> Settings {
        Settings(self.space.values(point))
    }

    /// Returns the keys of the medium that differ from the profile, as lines of TOML. `blocks` are its
    /// blocks per plane, as a function of the number of planes.
    pub(crate) fn medium_keys(
        &self,
        s: &Settings,
        blocks: impl Fn(u64) -> u64,
    ) -> Vec<(&'static str, String)> {
        let own = self.profile_settings();
        let mut keys = Vec::new();
        for (p, base) in [(Parameter::TRead, &self.base.t_read), (Parameter::TProg, &self.base.t_prog)] {
            if let Some(base) = base.as_ref().filter(|_| s.get(p) != own.get(p)) {
                keys.push((p.name(), scaled(base, s.get(p) as f64 / own.get(p) as f64)));
            }
        }
        for p in [Parameter::TErase, Parameter::BusPerByte] {
            if s.get(p) != own.get(p) {
                keys.push((p.name(), quoted(Picos(s.get(p)))));
            }
        }
        let g = &self.nand.geometry;
        let units = s.get(Parameter::Units);
        let mut planes = [g.channels, g.chips_per_channel, g.dies_per_chip, g.planes_per_die]
            .map(u64::from)
            .iter()
            .product();
        if units != own.get(Parameter::Units) {
            let channels = (1..=u64::from(g.channels)).rev().find(|c| units.is_multiple_of(*c)).unwrap_or(1);
            planes = units;
            keys.push(("channels", channels.to_string()));
            keys.push(("chips_per_channel", (units / channels).to_string()));
            keys.push(("dies_per_chip", "1".into()));
            keys.push(("planes_per_die", "1".into()));
            keys.push(("plane_ops", "\"single\"".into()));
        }
        let blocks = blocks(planes).max(1);
        if blocks != u64::from(g.blocks_per_plane) {
            keys.push(("blocks_per_plane", blocks.to_string()));
        }
        keys
    }

    /// Returns the stack file of the model: a drive that is as large as the sample needs.
    #[must_use]
    pub fn stack_text(&self, s: &Settings) -> String {
        let g = &self.nand.geometry;
        let pages_per_block = g.pages_per_block.min(PAGES_PER_BLOCK_MAX);
        let blocks = |planes: u64| self.pages.div_ceil(planes * u64::from(pages_per_block)) + SPARE_BLOCKS;
        let mut text = format!("[media.nand]\nprofile = {:?}\n", self.profile);
        for (key, value) in self.medium_keys(s, blocks) {
            let _ = writeln!(text, "{key} = {value}");
        }
        if pages_per_block != g.pages_per_block {
            let _ = writeln!(text, "pages_per_block = {pages_per_block}");
        }
        let _ = write!(text, "\n[ftl]\ncapacity = {}\n", self.volume_bytes);
        if g.page_bytes > MAPPING_UNIT && g.page_bytes.is_multiple_of(MAPPING_UNIT) {
            let _ = writeln!(text, "mapping_unit = {MAPPING_UNIT}");
        }
        let _ = writeln!(text, "merge_buffer = {}", s.get(Parameter::MergeBuffer));
        let _ = writeln!(text, "\n[link]\nkind = \"delay\"\ndevice = \"ftl\"");
        for p in [Parameter::ReadUs, Parameter::WriteUs, Parameter::LinkMbPerS] {
            let _ = writeln!(text, "{} = {}", p.name(), s.get(p));
        }
        text
    }

    /// Replays the first `count` requests of the sample and returns their modelled service times in
    /// nanoseconds.
    ///
    /// # Errors
    /// A stack that cannot be built, or refuses a request.
    pub fn service_times(&self, s: &Settings, sample: &Sample, count: usize) -> Result<Vec<u64>> {
        let stack = Stack::parse("calibration", &self.stack_text(s), &[]).map_err(Box::new)?;
        let mut built = stack.build(&Bytes::None).map_err(Box::new)?;
        built.layer.precondition(frit_core::Precondition::Fill)?;
        let requests = &sample.requests[..count.min(sample.requests.len())];
        replay::service_times(built, requests, sample.depth)
    }
}

fn absolute(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Returns the mean over the types of pages, in picoseconds.
fn mean_ps(latency: &PageLatency) -> f64 {
    match latency {
        PageLatency::One(t) => t.0 as f64,
        PageLatency::ByType(times) => {
            times.iter().map(|t| t.0 as f64).sum::<f64>() / times.len().max(1) as f64
        }
    }
}

fn quoted(t: Picos) -> String {
    format!("\"{t}\"")
}

/// Returns a latency times a factor as TOML, in whole nanoseconds.
fn scaled(latency: &PageLatency, factor: f64) -> String {
    let time = |t: &Picos| quoted(Picos(((t.0 as f64 * factor / 1000.0).round() as u64).max(1) * 1000));
    match latency {
        PageLatency::One(t) => time(t),
        PageLatency::ByType(times) => {
            format!("[{}]", times.iter().map(time).collect::<Vec<_>>().join(", "))
        }
    }
}
