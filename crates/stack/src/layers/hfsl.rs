//! The HFSL layer: PCM and NAND fused by software-defined methods.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::stores::Stores;
use crate::tree::Table;
use frit_core::{Error, MediumKind, Result, Sink, StackDevice};
use frit_layer::{Hfsl, HfslConfig};
use frit_media::{Dram, DramConfig, Hardware, Nand, NandArray, NandConfig, Pcm, PcmConfig};
use frit_wear::PcmWearKeys;

pub(super) const ABOUT: &str = "PCM and NAND under one page map, fused as cache, as one level, or as both; without PCM \
     a page-mapped FTL (Li et al., J. Syst. Archit. 2016)";

pub(super) const ROLES: &[Role] = &[
    Role {
        key: "nand",
        needs: Interface::Medium(MediumKind::Nand),
        optional: false,
        names: RoleNames::OneOrList,
        help: "holds the pages; pages are striped over the units of several",
    },
    Role {
        key: "pcm",
        needs: Interface::Medium(MediumKind::Pcm),
        optional: true,
        names: RoleNames::One,
        help: "holds the map, and data as the fusion method decides; \"none\" disables a PCM of the stack",
    },
    Role {
        key: "dram",
        needs: Interface::Medium(MediumKind::Dram),
        optional: true,
        names: RoleNames::One,
        help: "a buffer for pages that are read from NAND; \"none\" disables a DRAM of the stack",
    },
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

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<HfslConfig> {
    let config: Option<HfslConfig> = decode_as(path, table, keys_of::<HfslConfig>(), problems);
    let pcm_wear = decode_as(path, table, keys_of::<PcmWearKeys>(), problems);
    Some(HfslConfig { pcm_wear: pcm_wear?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<HfslConfig> {
    Some(HfslConfig { pcm_wear: reread_keys(table)?, ..reread_keys(table)? })
}

/// The media below the layer.
pub(crate) struct Media {
    pub(crate) nand: Vec<NandConfig>,
    pub(crate) pcm: Option<PcmConfig>,
    pub(crate) dram: Option<DramConfig>,
}

/// Builds the layer over its media.
pub(crate) fn build<S: Sink, B: Stores>(
    config: HfslConfig,
    media: Media,
    stores: &B,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    let refused = |what: String| Error::Medium { what };
    let mut nand = Vec::new();
    for mut device in media.nand {
        device.serial = stores.serial(&device.name);
        let store = stores.open(&device.name, device.geometry.store_bytes())?;
        nand.push(Nand::new(device, store, hardware).map_err(refused)?);
    }
    let nand = NandArray::new(nand)?;
    let pcm = match media.pcm {
        Some(mut pcm) => {
            pcm.serial = stores.serial(&pcm.name);
            let pcm_store = stores.open(&pcm.name, pcm.geometry.store_bytes())?;
            Some(Pcm::new(pcm, pcm_store, hardware).map_err(refused)?)
        }
        None => None,
    };
    let layer = Hfsl::<S::Tok, B::Store, B::Store>::new(config, nand, pcm)?;
    Ok(match media.dram {
        Some(dram) => {
            // The contents of DRAM do not outlive the process, so DRAM has no file.
            let dram_store = stores.open_volatile(dram.bytes);
            let dram = Dram::new(dram, dram_store, hardware).map_err(refused)?;
            Box::new(layer.with_dram(dram)?)
        }
        None => Box::new(layer),
    })
}
