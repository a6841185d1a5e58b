//! Summary of a stack: sizes, parameters, and the cost of its map.

use crate::error::{Problem, Result};
use crate::media::StackMedium;
use crate::stack::{Layer, Stack};
use crate::stores::Bytes;
use frit_core::{Info, MediumKind, ParamInfo, SECTOR_BYTES};
use frit_engine::Scheduler;
use frit_media::disk::{DriveModel, WriteBack};
use frit_media::profile::Picos;
use frit_media::{MediumConfig, MediumSpec, Profile};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Share of PCM taken by the map above which a warning is given.
const MAP_SHARE_WARN: f64 = 0.75;

/// Summary of a stack. As JSON it is the output of `frit check --json`.
#[derive(Clone, Debug, Serialize)]
pub struct StackSummary {
    /// Name of the stack.
    pub name: String,
    /// Description that the stack gives.
    pub about: String,
    /// SHA-256 of the stack's [`StackIdentity`](crate::StackIdentity).
    pub sha256: String,
    /// Media, in the order of the file.
    pub media: Vec<MediumSummary>,
    /// The layers, an upper one before those below it.
    pub layers: Vec<LayerSummary>,
    /// The engine.
    pub engine: EngineSummary,
    /// Messages of the warnings.
    pub warnings: Vec<String>,
}

/// Summary of a medium.
#[derive(Clone, Debug, Serialize)]
pub struct MediumSummary {
    /// Name of the medium.
    pub name: String,
    /// Kind of the medium.
    pub kind: MediumKind,
    /// Profile that the medium is based on; empty if none.
    pub profile: String,
    /// Size, in bytes.
    pub bytes: u64,
    /// Number of channels.
    pub channels: u32,
    /// Number of units that work in parallel.
    pub units: u32,
    /// `true` if a layer uses the medium.
    pub used: bool,
    /// All values of the medium.
    pub values: Vec<ValueSummary>,
}

/// A value of a medium.
#[derive(Clone, Debug, Serialize)]
pub struct ValueSummary {
    /// Key of the value.
    pub key: &'static str,
    /// The value, as a stack file would have it.
    pub value: String,
    /// `true` if the stack itself gives the value.
    pub given: bool,
    /// Source of the value: "the stack", or the source that the profile states.
    pub source: String,
}

/// Summary of a layer.
#[derive(Clone, Debug, Serialize)]
pub struct LayerSummary {
    /// Name of the layer.
    pub name: String,
    /// Kind of the layer.
    pub kind: &'static str,
    /// Media and layers below the layer, by role.
    pub on: BTreeMap<&'static str, Vec<String>>,
    /// Capacity of the layer, in bytes.
    pub capacity_bytes: u64,
    /// Size of a mapped page, in bytes.
    pub page_bytes: u32,
    /// DRAM that the layer uses, in bytes.
    pub dram_bytes: u64,
    /// DRAM that the layer uses per mapped page, in bytes.
    pub dram_bytes_per_page: f64,
    /// Durable memory that the map takes, in bytes.
    pub durable_map_bytes: u64,
    /// Parameters as they take effect.
    pub parameters: Vec<ParameterSummary>,
}

/// A parameter of the layer.
#[derive(Clone, Debug, Serialize)]
pub struct ParameterSummary {
    /// Key of the parameter.
    pub key: Cow<'static, str>,
    /// Value of the parameter.
    pub value: String,
    /// Description of the parameter.
    pub help: &'static str,
    /// `true` if the parameter can change while the layer runs.
    pub live: bool,
    /// `true` if the stack gives the parameter.
    pub given: bool,
}

/// Summary of the engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineSummary {
    /// Kind of engine.
    pub kind: &'static str,
    /// Name of the scheduler.
    pub scheduler: &'static str,
    /// Parameters of the scheduler.
    pub parameters: BTreeMap<String, String>,
}

impl Stack {
    /// Builds the stack without stored bytes, and returns its summary with all warnings.
    ///
    /// # Errors
    /// As for [`Stack::build`].
    pub fn summary(&self) -> Result<(StackSummary, Vec<Problem>)> {
        let mut built = self.build(&Bytes::None)?;
        let mut layers = Vec::new();
        let info = built.layer.info();
        // In a stack of several layers, the parameters of the top layer have paths too.
        let top = built.layer.params().list();
        layers.push(self.layer_summary(self.layer(), &info, top));
        built.layer.each_layer_below(&mut |name, info, params| {
            if let Some(layer) = self.layers.iter().find(|l| l.name == name) {
                layers.push(self.layer_summary(layer, info, params.list()));
            }
        });
        let mut warnings = self.warnings.clone();
        for (layer, summary) in self.layers.iter().zip(&layers) {
            warnings.extend(self.large_map_warning(layer, summary));
        }
        let kind: &str = self.engine.kind.into();
        let list = self.engine.scheduler.clone().params().list();
        let engine = EngineSummary {
            kind,
            scheduler: self.engine.scheduler_name(),
            parameters: list.into_iter().map(|p| (p.key.into_owned(), p.value)).collect(),
        };
        let summary = StackSummary {
            name: self.name.clone(),
            about: self.about.clone(),
            sha256: self.identity().sha256,
            media: self.media.iter().map(|m| self.medium_summary(m)).collect(),
            layers,
            engine,
            warnings: warnings.iter().map(|w| w.message().to_owned()).collect(),
        };
        Ok((summary, warnings))
    }

    /// Summarizes a layer. `list` is the list of its parameters; those whose path names another
    /// layer are left out.
    fn layer_summary(&self, layer: &Layer, info: &Info, list: Vec<ParamInfo>) -> LayerSummary {
        let capacity_bytes = info.sectors * SECTOR_BYTES;
        let pages = (capacity_bytes / u64::from(info.page_bytes)).max(1);
        let given = |key: &str| self.root.table(&layer.name).is_some_and(|t| t.get(key).is_some());
        let mut on: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for &(role, below) in &layer.on {
            on.entry(role.key).or_default().push(self.name_of(below).to_owned());
        }
        let own = |p: ParamInfo| {
            let key = match p.key.split_once('.') {
                Some((name, key)) if name == layer.name => Cow::Owned(key.to_owned()),
                Some(_) => return None,
                None => p.key,
            };
            let given = given(&key);
            Some(ParameterSummary { key, value: p.value, help: p.help, live: p.live, given })
        };
        LayerSummary {
            name: layer.name.clone(),
            kind: layer.kind.name(),
            on,
            capacity_bytes,
            page_bytes: info.page_bytes,
            dram_bytes: info.dram_bytes,
            dram_bytes_per_page: info.dram_bytes as f64 / pages as f64,
            durable_map_bytes: info.durable_map_bytes,
            parameters: list.into_iter().filter_map(own).collect(),
        }
    }

    fn medium_summary(&self, m: &StackMedium) -> MediumSummary {
        let mut sources = sources(m, &self.dir);
        let complete = in_effect(m);
        for key in DRIVE_KEYS {
            sources.entry(key.to_owned()).or_insert_with(|| "the drive".to_owned());
        }
        let given = m.given.given_keys();
        let value = |(key, value): (&'static frit_media::profile::Key, String)| {
            let is_given = given.iter().any(|(k, _)| k.name == key.name);
            let source = match sources.get(key.name) {
                _ if is_given => "the stack".to_owned(),
                Some(source) => source.clone(),
                None => "the profile".to_owned(),
            };
            ValueSummary { key: key.name, value, given: is_given, source }
        };
        MediumSummary {
            name: m.name.clone(),
            kind: m.spec.kind(),
            profile: m.given.profile.clone().unwrap_or_default(),
            bytes: m.spec.bytes(),
            channels: m.channels(),
            units: m.units(),
            used: m.used,
            values: complete.given_keys().into_iter().map(value).collect(),
        }
    }

    /// Returns a warning if the map leaves little of the PCM for data.
    fn large_map_warning(&self, layer: &Layer, summary: &LayerSummary) -> Option<Problem> {
        let pcm = self.on(layer, "pcm")?;
        let share = summary.durable_map_bytes as f64 / pcm.spec.bytes() as f64;
        let takes_data = !layer.config.unused().iter().any(|(key, _)| *key == "pcm_low");
        (share > MAP_SHARE_WARN && takes_data).then(|| {
            let span = self.root.table("media").and_then(|t| t.get(&pcm.name)).map(|e| e.span.clone());
            let message = format!(
                "the map takes {:.0} % of the PCM '{}': little is left for data",
                100.0 * share,
                pcm.name
            );
            Problem::warning(message).at(span, "this medium").help("make the PCM larger, or the NAND smaller")
        })
    }
}

/// Keys of a disk that override properties of its drive.
const DRIVE_KEYS: [&str; 5] = ["write_back", "queue_depth", "order", "max_wait", "background"];

/// Returns the values of a medium in effect; for a disk also the values that the drive sets.
fn in_effect(m: &StackMedium) -> MediumConfig {
    let MediumSpec::Disk(disk) = &m.spec else { return m.complete.clone() };
    let DriveModel::Mechanical(s) = &disk.drive else { return m.complete.clone() };
    let of_drive = MediumConfig {
        write_back: Some(s.cache.write_back != WriteBack::Off),
        queue_depth: Some(s.queue_depth),
        order: Some(s.scheduler),
        max_wait: Some(Picos(s.max_wait.0.saturating_mul(1000))),
        background: Some(s.background),
        ..MediumConfig::default()
    };
    m.complete.clone().completed_by(of_drive)
}

/// Returns the source of each value of a medium's profile: the source that the profile states, or
/// the name of the profile.
fn sources(m: &StackMedium, dir: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut next = m.given.profile.clone();
    // The chain was followed when the medium was resolved, so the loop ends.
    while let Some(profile) = next.and_then(|name| Profile::find(&name, dir).ok()) {
        for (key, _) in profile.values.given_keys() {
            let source = match profile.sources.get(key.name) {
                Some(s) => s.clone(),
                None => format!("profile '{}'", profile.name),
            };
            all.entry(key.name.to_owned()).or_insert(source);
        }
        next = profile.values.profile;
    }
    all
}
