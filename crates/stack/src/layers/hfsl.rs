//! The HFSL layer: PCM and NAND fused by software-defined methods.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::sizing::LayerSearch;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_core::{Error, MediumKind, Result, SECTOR_BYTES, StackDevice};
use frit_layer::{Hfsl, HfslConfig};
use frit_media::{
    Dram, DramConfig, Hardware, MediumSpec, Nand, NandArray, NandConfig, NandGeometry, Pcm, PcmConfig,
    PcmGeometry,
};
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
pub(crate) fn build(
    config: HfslConfig,
    media: Media,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    let refused = |what: String| Error::Medium { what };
    let nand = open_nand(media.nand, stores, hardware)?;
    let pcm = match media.pcm {
        Some(mut pcm) => {
            pcm.serial = stores.serial(&pcm.name);
            let pcm_store = stores.open(&pcm.name, pcm.geometry.store_bytes())?;
            Some(Pcm::new(pcm, pcm_store, hardware).map_err(refused)?)
        }
        None => None,
    };
    let layer = Hfsl::new(config, nand, pcm)?;
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

/// Opens the NAND devices of a layer.
pub(super) fn open_nand(
    devices: Vec<NandConfig>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<NandArray> {
    let mut nand = Vec::new();
    for mut device in devices {
        device.serial = stores.serial(&device.name);
        let store = stores.open(&device.name, device.geometry.store_bytes())?;
        nand.push(Nand::new(device, store, hardware).map_err(|what| Error::Medium { what })?);
    }
    NandArray::new(nand)
}

/// Opens the NAND devices of a layer, whose pages are divided first.
pub(super) fn open_divided_nand(
    mut devices: Vec<NandConfig>,
    divide: impl Fn(NandGeometry) -> Result<NandGeometry>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<NandArray> {
    for device in &mut devices {
        device.geometry = divide(device.geometry)?;
    }
    open_nand(devices, stores, hardware)
}

/// Maximum number of block counts that are tried above the first estimate.
const TRIES: u32 = 64;

/// Returns the overrides with which the layer offers `bytes`: its capacity, and as many blocks in
/// every plane as it needs. The PCM keeps its size while the map fits, and is doubled until it fits
/// otherwise.
pub(super) fn media_sizes(search: &LayerSearch<'_>, bytes: u64) -> crate::Result<Vec<String>> {
    let mut pcm = search.media("pcm", |spec| match spec {
        MediumSpec::Pcm(c) => Some(c.geometry),
        _ => None,
    });
    let sets = nand_sizes(search, bytes, &mut |sets| capacity(search, sets, &mut pcm, bytes))?;
    Ok([sets, pcm_sets(search, &pcm)].concat())
}

/// Returns the overrides with which a layer over NAND offers `bytes`: its capacity, and as many
/// blocks in every plane as it needs. `capacity` returns the capacity of the layer with some
/// overrides.
pub(super) fn nand_sizes(
    search: &LayerSearch<'_>,
    bytes: u64,
    capacity: &mut dyn FnMut(&[String]) -> crate::Result<u64>,
) -> crate::Result<Vec<String>> {
    let nand: Vec<(&str, NandGeometry)> = search.media("nand", |spec| match spec {
        MediumSpec::Nand(c) => Some(c.geometry),
        _ => None,
    });
    let layer = search.name();
    let pages = bytes.next_multiple_of(SECTOR_BYTES);
    // Capacity of one more block in every plane, in bytes.
    let row: u64 = nand.iter().map(|(_, g)| g.bytes() / u64::from(g.blocks_per_plane.max(1))).sum();
    let mut blocks = u32::try_from(bytes / row.max(1)).unwrap_or(u32::MAX).max(1);
    let mut last = None;
    for _ in 0..TRIES {
        let with_capacity = |capacity: u64| {
            let sizes = nand.iter().map(|(name, _)| format!("media.{name}.blocks_per_plane={blocks}"));
            sizes.chain([format!("{layer}.capacity={capacity}")]).collect::<Vec<_>>()
        };
        match capacity(&with_capacity(0)) {
            Ok(has) if has >= pages => return Ok(with_capacity(pages)),
            Ok(has) => {
                // The block count grows in proportion to the missing capacity, and by at least one.
                let more = (f64::from(blocks) * (pages as f64 / has.max(1) as f64 - 1.0)) as u32;
                blocks = blocks.saturating_add(more.max(1));
                last = None;
            }
            Err(e) => {
                blocks = blocks.saturating_add(1);
                last = Some(e);
            }
        }
    }
    Err(last.unwrap_or_else(|| search.refused("blocks_per_plane", blocks, "does not give this capacity")))
}

/// Returns the capacity with some blocks. If the layer cannot be built, its PCM is doubled, up to the
/// size of the volume, until it can.
fn capacity(
    search: &LayerSearch<'_>,
    sets: &[String],
    pcm: &mut Vec<(&str, PcmGeometry)>,
    bytes: u64,
) -> crate::Result<u64> {
    let of = |pcm: &[(&str, PcmGeometry)]| search.capacity(&[sets.to_vec(), pcm_sets(search, pcm)].concat());
    let first = match of(pcm) {
        Ok(has) => return Ok(has),
        Err(e) => e,
    };
    let mut larger = pcm.clone();
    while larger.iter().any(|(_, g)| g.bytes() < bytes) {
        larger.iter_mut().for_each(|(_, g)| g.chip_bytes *= 2);
        if let Ok(has) = of(&larger) {
            *pcm = larger;
            return Ok(has);
        }
    }
    Err(first)
}

/// Returns the overrides of a PCM that is larger than that of the stack.
fn pcm_sets(search: &LayerSearch<'_>, pcm: &[(&str, PcmGeometry)]) -> Vec<String> {
    let of_stack = |name: &str| search.stack().media().iter().find(|m| m.name == name).map(|m| &m.spec);
    let changed = |(name, g): &&(&str, PcmGeometry)| !matches!(of_stack(name), Some(MediumSpec::Pcm(c)) if c.geometry.chip_bytes == g.chip_bytes);
    pcm.iter().filter(changed).map(|(name, g)| format!("media.{name}.chip_bytes={}", g.chip_bytes)).collect()
}
