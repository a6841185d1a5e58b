//! What a stack comes to: sizes, parameters, and what its map costs.

use crate::build::Bytes;
use crate::error::{Problem, Result};
use crate::media::Medium;
use crate::stack::Stack;
use frit_core::{MediumKind, Null, Params, SECTOR_BYTES};
use frit_engine::Scheduler;
use frit_media::disk::WriteBack;
use frit_media::profile::Time;
use frit_media::{MediumConfig, MediumSpec, Profile};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A share of PCM that a map takes, from which on a warning says so.
const MAP_SHARE_WARN: f64 = 0.75;

/// What a stack comes to. As JSON it is what `frit check --json` prints for it.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// What it says that it is.
    pub about: String,
    /// SHA-256 of its [`Identity`](crate::Identity).
    pub sha256: String,
    /// Its media, in the order of the file.
    pub media: Vec<MediumSummary>,
    /// Its layer.
    pub layer: LayerSummary,
    /// Its engine.
    pub engine: EngineSummary,
    /// What is odd.
    pub warnings: Vec<String>,
}

/// One medium.
#[derive(Clone, Debug, Serialize)]
pub struct MediumSummary {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: MediumKind,
    /// The profile that it starts from; empty without one.
    pub profile: String,
    /// Size, in bytes.
    pub bytes: u64,
    /// Channels.
    pub channels: u32,
    /// What can work at a time.
    pub units: u32,
    /// Whether a layer uses it.
    pub used: bool,
    /// All of its values.
    pub values: Vec<ValueSummary>,
}

/// One value of a medium.
#[derive(Clone, Debug, Serialize)]
pub struct ValueSummary {
    /// Its key.
    pub key: &'static str,
    /// It, as a stack file would have it.
    pub value: String,
    /// Whether the stack itself gives it.
    pub given: bool,
    /// Where it comes from: "the stack", or what the profile says.
    pub source: String,
}

/// The layer.
#[derive(Clone, Debug, Serialize)]
pub struct LayerSummary {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// The media that it lies on, by role.
    pub on: BTreeMap<&'static str, String>,
    /// Size of the volume, in bytes.
    pub capacity_bytes: u64,
    /// A mapped page, in bytes.
    pub page_bytes: u32,
    /// DRAM that it holds, in bytes.
    pub dram_bytes: u64,
    /// The same for each mapped page.
    pub dram_bytes_per_page: f64,
    /// Durable memory that its map takes, in bytes.
    pub durable_map_bytes: u64,
    /// Its parameters as they take effect.
    pub parameters: Vec<ParameterSummary>,
}

/// One parameter.
#[derive(Clone, Debug, Serialize)]
pub struct ParameterSummary {
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What it does.
    pub help: &'static str,
    /// Whether it can change while the layer runs.
    pub live: bool,
    /// Whether the stack gives it.
    pub given: bool,
}

/// The engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineSummary {
    /// Which.
    pub kind: &'static str,
    /// Its scheduler.
    pub scheduler: &'static str,
    /// The scheduler's parameters.
    pub parameters: BTreeMap<&'static str, String>,
}

impl Stack {
    /// Builds the stack, without bytes, and says what it comes to, with what is odd about it.
    ///
    /// # Errors
    /// As for [`Stack::build`].
    pub fn summary(&self) -> Result<(Summary, Vec<Problem>)> {
        let mut built = self.build::<Null>(&Bytes::None)?;
        let layer = self.layer_summary(&mut built);
        let mut warnings = self.warnings.clone();
        warnings.extend(self.tight_map(&layer));
        let kind: &str = self.engine.kind.into();
        let list = self.engine.scheduler.clone().params().list();
        let engine = EngineSummary {
            kind,
            scheduler: self.engine.scheduler_name(),
            parameters: list.into_iter().map(|p| (p.key, p.value)).collect(),
        };
        let summary = Summary {
            name: self.name.clone(),
            about: self.about.clone(),
            sha256: self.identity().sha256,
            media: self.media.iter().map(|m| self.medium_summary(m)).collect(),
            layer,
            engine,
            warnings: warnings.iter().map(|w| w.message().to_owned()).collect(),
        };
        Ok((summary, warnings))
    }

    fn layer_summary(&self, built: &mut crate::Built<Null>) -> LayerSummary {
        let info = built.layer.info();
        let capacity_bytes = info.sectors * SECTOR_BYTES;
        let pages = (capacity_bytes / u64::from(info.page_bytes)).max(1);
        let given = |key: &str| self.root.table(&self.layer.name).is_some_and(|t| t.get(key).is_some());
        let list = Params::list(built.layer.params());
        LayerSummary {
            name: self.layer.name.clone(),
            kind: self.layer.kind.name(),
            on: self.layer.on.iter().map(|&(r, i)| (r.key, self.media[i].name.clone())).collect(),
            capacity_bytes,
            page_bytes: info.page_bytes,
            dram_bytes: info.dram_bytes,
            dram_bytes_per_page: info.dram_bytes as f64 / pages as f64,
            durable_map_bytes: info.durable_map_bytes,
            parameters: list
                .into_iter()
                .map(|p| ParameterSummary {
                    key: p.key,
                    value: p.value,
                    help: p.help,
                    live: p.live,
                    given: given(p.key),
                })
                .collect(),
        }
    }

    fn medium_summary(&self, m: &Medium) -> MediumSummary {
        let mut sources = sources(m, &self.dir);
        let complete = in_effect(m);
        for key in OF_THE_DRIVE {
            sources.entry(key.to_owned()).or_insert_with(|| "the drive".to_owned());
        }
        let given = m.given.given();
        let value = |(key, value): (&'static frit_media::profile::Key, String)| {
            let own = given.iter().any(|(k, _)| k.name == key.name);
            let source = match sources.get(key.name) {
                _ if own => "the stack".to_owned(),
                Some(source) => source.clone(),
                None => "the profile".to_owned(),
            };
            ValueSummary { key: key.name, value, given: own, source }
        };
        MediumSummary {
            name: m.name.clone(),
            kind: m.spec.kind(),
            profile: m.given.profile.clone().unwrap_or_default(),
            bytes: m.spec.bytes(),
            channels: m.channels(),
            units: m.units(),
            used: m.used,
            values: complete.given().into_iter().map(value).collect(),
        }
    }

    /// A map that leaves little of PCM for data.
    fn tight_map(&self, layer: &LayerSummary) -> Option<Problem> {
        let pcm = self.on("pcm")?;
        let share = layer.durable_map_bytes as f64 / pcm.spec.bytes() as f64;
        let takes_data = !self.layer.config.idle().iter().any(|(key, _)| *key == "buffer");
        (share > MAP_SHARE_WARN && takes_data).then(|| {
            let spot = self.root.table("media").and_then(|t| t.get(&pcm.name)).map(|e| e.spot.clone());
            let message = format!(
                "the map takes {:.0} % of the PCM '{}': little is left for data",
                100.0 * share,
                pcm.name
            );
            Problem::warning(message).at(spot, "this medium").help("make the PCM larger, or the NAND smaller")
        })
    }
}

/// Keys of a disk that say what differs from its drive.
const OF_THE_DRIVE: [&str; 5] = ["write_back", "queue_depth", "order", "max_wait", "background"];

/// The values of a medium; of a disk also those that are its drive's.
fn in_effect(m: &Medium) -> MediumConfig {
    let MediumSpec::Disk(disk) = &m.spec else { return m.complete.clone() };
    let s = &disk.spec;
    let of_drive = MediumConfig {
        write_back: Some(s.cache.write_back != WriteBack::Off),
        queue_depth: Some(s.queue_depth),
        order: Some(s.scheduler),
        max_wait: Some(Time(s.max_wait.0.saturating_mul(1000))),
        background: Some(s.background),
        ..MediumConfig::default()
    };
    m.complete.clone().over(of_drive)
}

/// Where the values of a medium's profile come from: its own words, and those of the profiles below it.
fn sources(m: &Medium, dir: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut next = m.given.profile.clone();
    // The chain was followed when the medium was resolved: it ends.
    while let Some(profile) = next.and_then(|name| Profile::find(&name, dir).ok()) {
        for (key, _) in profile.values.given() {
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
