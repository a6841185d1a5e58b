//! The HFSL layer: PCM and NAND fused by software-defined methods.

use super::{Choice, Durability, RequiredSetting, Role, keyword, policy};
use crate::Bytes;
use crate::decode::keys_of;
use frit_core::{Error, MediumKind, ParamInfo, Result, Sink, StackDevice};
use frit_layer::flash::{Gc, Wear};
use frit_layer::hfsl::buffer::Buffer;
use frit_layer::hfsl::heat::Heat;
use frit_layer::hfsl::placement::Placement;
use frit_layer::hfsl::{FusionMethod, MapPersist, SswCompare};
use frit_layer::{Hfsl, HfslConfig};
use frit_media::{
    AnyStore, Dram, DramConfig, Hardware, MemoryStore, Nand, NandConfig, NoStore, Pcm, PcmConfig, Store,
};
use strum::VariantNames;

pub(super) const ABOUT: &str = "PCM and NAND under one page map, fused as cache, as one level, or as both; without PCM \
     a page-mapped FTL (Li et al., J. Syst. Archit. 2016)";

pub(super) const ROLES: &[Role] = &[
    Role { key: "nand", medium: MediumKind::Nand, optional: false, help: "holds the pages" },
    Role {
        key: "pcm",
        medium: MediumKind::Pcm,
        optional: true,
        help: "holds the map, and data as the fusion method decides; \"none\" disables a PCM of the stack",
    },
    Role {
        key: "dram",
        medium: MediumKind::Dram,
        optional: true,
        help: "a buffer for pages that are read from NAND; \"none\" disables a DRAM of the stack",
    },
];

pub(super) const CHOICES: &[Choice] = &[
    keyword("FUSION_METHOD", FusionMethod::VARIANTS),
    keyword("ssw_compare", SswCompare::VARIANTS),
    keyword("map_persist", MapPersist::VARIANTS),
    policy("gc", Gc::VARIANTS),
    policy("wear_leveling", Wear::VARIANTS),
    policy("heat", Heat::VARIANTS),
    policy("placement", Placement::VARIANTS),
    policy("buffer", Buffer::VARIANTS),
];

pub(super) const DURABILITY: Durability = Durability {
    each_request: &[RequiredSetting {
        key: "map_persist",
        value: "each",
        why: "map entries are durable before a request is acknowledged",
    }],
    over_files: &[RequiredSetting {
        key: "flush_map",
        value: "true",
        why: "a second map keeps the state of the last flush",
    }],
};

/// Returns the parameters without effect under the given configuration, each with the reason.
pub(super) fn ineffective(c: &HfslConfig) -> Vec<(&'static str, &'static str)> {
    let method = c.fusion_method;
    let level = matches!(method, FusionMethod::SameLevel | FusionMethod::Both);
    let mut ineffective = Vec::new();
    let mut add = |when: bool, keys: &[&'static str], why| {
        if when {
            ineffective.extend(keys.iter().map(|&k| (k, why)));
        }
    };
    add(!level, &["SSW", "ssw_compare", "placement"], "only the methods same-level and both use it");
    add(level && c.placement != "ssw", &["SSW", "ssw_compare"], "only the placement ssw uses it");
    add(method == FusionMethod::None, &["pcm_low", "pcm_high"], "PCM holds no data");
    add(method != FusionMethod::Both, &["cache_ratio"], "only the method both divides PCM");
    add(c.wear_leveling != "static", &["wear_threshold"], "only static wear leveling has a threshold");
    add(c.heat == "off", &["heat_window"], "the heat module is off");
    ineffective
}

pub(super) fn keys() -> &'static [&'static str] {
    keys_of::<HfslConfig>()
}

/// A small stack that is built to list the parameters of the layer.
const SMALL: &str = r#"
media.nand = { profile = "slc-k9-2016", blocks_per_plane = 16 }
media.pcm = { profile = "pcm-p8p-2016", chip_bytes = "64K" }
hfsl = {}
"#;

/// Parameters that are derived from the media unless the stack gives them.
const DERIVED: [&str; 8] = [
    "ADDR_GRAN_flash",
    "SUBPAGE_SIZE",
    "FLASHSIZE",
    "PAGESIZE",
    "BLOCKSIZE",
    "BLOCKNUM",
    "PCMSIZE",
    "capacity",
];

pub(super) fn parameters() -> crate::Result<Vec<ParamInfo>> {
    let mut all = super::parameters_in(SMALL)?;
    for p in all.iter_mut().filter(|p| DERIVED.contains(&p.key)) {
        p.value = "by the media".into();
    }
    Ok(all)
}

/// The media below the layer.
pub(crate) struct Media {
    pub(crate) nand: NandConfig,
    pub(crate) pcm: Option<PcmConfig>,
    pub(crate) dram: Option<DramConfig>,
}

/// Builds the layer over its media.
pub(crate) fn build<S: Sink>(
    config: HfslConfig,
    mut media: Media,
    bytes: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    media.nand.serial = bytes.serial(&media.nand.name);
    if let Some(pcm) = &mut media.pcm {
        pcm.serial = bytes.serial(&pcm.name);
    }
    match bytes {
        Bytes::None => compose(config, media, hardware, |_, _| Ok(NoStore), |_| NoStore),
        // The contents of DRAM do not outlive the process, so DRAM has no file.
        _ => compose(
            config,
            media,
            hardware,
            |name, len| bytes.store(name, len),
            |len| AnyStore::Memory(MemoryStore::new(len)),
        ),
    }
}

fn compose<S: Sink, St: Store + Send + 'static>(
    config: HfslConfig,
    media: Media,
    hardware: &mut Hardware,
    store: impl Fn(&str, u64) -> Result<St>,
    volatile: impl Fn(u64) -> St,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    let refused = |what: String| Error::Medium { what };
    let held = store(&media.nand.name, media.nand.geometry.store_bytes())?;
    let nand = Nand::new(media.nand, held, hardware).map_err(refused)?;
    let pcm = match media.pcm {
        Some(pcm) => {
            let held = store(&pcm.name, pcm.geometry.store_bytes())?;
            Some(Pcm::new(pcm, held, hardware).map_err(refused)?)
        }
        None => None,
    };
    let layer = Hfsl::<S::Tok, St, St>::new(config, nand, pcm)?;
    Ok(match media.dram {
        Some(dram) => {
            let held = volatile(dram.bytes);
            let dram = Dram::new(dram, held, hardware).map_err(refused)?;
            Box::new(layer.with_dram(dram)?)
        }
        None => Box::new(layer),
    })
}
