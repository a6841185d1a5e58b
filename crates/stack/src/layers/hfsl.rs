//! HFSL: PCM and NAND fused by software-defined methods.

use super::{Choice, Role};
use crate::decode::keys_of;
use crate::{Bytes, Stack};
use frit_core::{Error, MediumKind, Null, ParamInfo, Result, Sink, Top};
use frit_layer::flash::{Gc, Wear};
use frit_layer::hfsl::buffer::Buffer;
use frit_layer::hfsl::heat::Heat;
use frit_layer::hfsl::placement::Placement;
use frit_layer::hfsl::{FusionMethod, MapPersist, SswCompare};
use frit_layer::{Hfsl, HfslConfig};
use frit_media::{Hardware, Nand, NandConfig, NoStore, Pcm, PcmConfig, Store};
use strum::VariantNames;

pub(super) const ABOUT: &str = "PCM and NAND under one page map, fused as cache, as one level, or as both; without PCM \
     a page-mapped FTL (Li et al., J. Syst. Archit. 2016)";

pub(super) const ROLES: &[Role] = &[
    Role { key: "nand", medium: MediumKind::Nand, optional: false, help: "where pages lie" },
    Role {
        key: "pcm",
        medium: MediumKind::Pcm,
        optional: true,
        help: "where the map lies, and what the fusion method puts there; \"none\" leaves a PCM of the stack out",
    },
];

pub(super) const CHOICES: &[Choice] = &[
    Choice { key: "FUSION_METHOD", names: FusionMethod::VARIANTS },
    Choice { key: "ssw_compare", names: SswCompare::VARIANTS },
    Choice { key: "map_persist", names: MapPersist::VARIANTS },
    Choice { key: "gc", names: Gc::VARIANTS },
    Choice { key: "wear_leveling", names: Wear::VARIANTS },
    Choice { key: "heat", names: Heat::VARIANTS },
    Choice { key: "placement", names: Placement::VARIANTS },
    Choice { key: "buffer", names: Buffer::VARIANTS },
];

pub(super) fn keys() -> &'static [&'static str] {
    keys_of::<HfslConfig>()
}

/// A stack to ask a layer for its parameters.
const SMALL: &str = r#"
media.nand = { profile = "slc-k9-2016", blocks_per_plane = 16 }
media.pcm = { profile = "pcm-p8p-2016", chip_bytes = "64K" }
hfsl = {}
"#;

/// Parameters that follow from the media unless they are given.
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
    let mut built = Stack::parse("hfsl", SMALL, &[])?.build::<Null>(&Bytes::None)?;
    let mut all = built.layer.params().list();
    for p in all.iter_mut().filter(|p| DERIVED.contains(&p.key)) {
        p.value = "by the media".into();
    }
    all.push(ParamInfo {
        key: "raw_access",
        help: "callers that may address media directly, a list of names",
        value: "[]".into(),
        live: false,
    });
    Ok(all)
}

/// The layer over its media.
pub(crate) fn build<S: Sink>(
    config: HfslConfig,
    nand: NandConfig,
    pcm: Option<PcmConfig>,
    bytes: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn Top<S>>>
where
    S::Tok: 'static,
{
    match bytes {
        Bytes::None => compose(config, nand, pcm, hardware, |_, _| Ok(NoStore)),
        _ => compose(config, nand, pcm, hardware, |name, len| bytes.store(name, len)),
    }
}

fn compose<S: Sink, St: Store + 'static>(
    config: HfslConfig,
    nand: NandConfig,
    pcm: Option<PcmConfig>,
    hardware: &mut Hardware,
    store: impl Fn(&str, u64) -> Result<St>,
) -> Result<Box<dyn Top<S>>>
where
    S::Tok: 'static,
{
    let refused = |name: &str, why: String| Error::param(name, "media", why);
    let name = nand.name.clone();
    let held = store(&name, nand.geometry.store_bytes())?;
    let nand = Nand::new(nand, held, hardware).map_err(|why| refused(&name, why))?;
    let pcm = match pcm {
        Some(pcm) => {
            let name = pcm.name.clone();
            let held = store(&name, pcm.geometry.store_bytes())?;
            Some(Pcm::new(pcm, held, hardware).map_err(|why| refused(&name, why))?)
        }
        None => None,
    };
    Ok(Box::new(Hfsl::<S::Tok, St, St>::new(config, nand, pcm)?))
}
