//! NTL: address mapping for an SSD of byte-addressable memory.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::sizing::LayerSearch;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_core::{Error, MediumKind, Result, SECTOR_BYTES, StackDevice};
use frit_layer::ntl::{Ntl, NtlConfig};
use frit_media::{Hardware, MediumSpec, Pcm, PcmConfig};
use frit_wear::WearKeys;

pub(super) const ABOUT: &str = "address mapping for an SSD made of byte-addressable memory alone: static, dynamic, \
     block-level, with logs (Kwon, IEEE Access 2019)";

pub(super) const ROLES: &[Role] = &[Role {
    key: "pcm",
    needs: Interface::Medium(MediumKind::Pcm),
    optional: false,
    names: RoleNames::One,
    help: "the chips, one per channel",
}];

pub(super) const DURABILITY: Durability = Durability {
    each_request: &[RequiredSetting {
        key: "protect",
        value: "redo",
        why: "pages have records, and an overwrite is in the log before it reaches its page",
    }],
    over_files: &[RequiredSetting {
        key: "over_files",
        value: "true",
        why: "wear leveling also keeps its registers as of the last flush",
    }],
};

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<NtlConfig> {
    let config: Option<NtlConfig> = decode_as(path, table, keys_of::<NtlConfig>(), problems);
    let wear = decode_as(path, table, keys_of::<WearKeys>(), problems);
    Some(NtlConfig { wear: wear?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<NtlConfig> {
    Some(NtlConfig { wear: reread_keys(table)?, ..reread_keys(table)? })
}

/// Builds the layer over its memory.
pub(crate) fn build(
    config: NtlConfig,
    mut pcm: PcmConfig,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    pcm.serial = stores.serial(&pcm.name);
    let pcm_store = stores.open(&pcm.name, pcm.geometry.store_bytes())?;
    let pcm = Pcm::new(pcm, pcm_store, hardware).map_err(|what| Error::Medium { what })?;
    Ok(Box::new(Ntl::new(config, pcm)?))
}

/// Sizes of memory chips are multiples of this, which all refresh and interleave units of the
/// profiles divide.
const CHIP_STEP: u64 = 1 << 20;

/// Returns the overrides with which the layer offers `bytes`: its capacity, and larger chips.
pub(super) fn media_sizes(search: &LayerSearch<'_>, bytes: u64) -> crate::Result<Vec<String>> {
    let memory = search.media("pcm", |spec| match spec {
        MediumSpec::Pcm(c) => Some(u64::from(c.geometry.channels) * u64::from(c.geometry.chips_per_channel)),
        _ => None,
    });
    let Some(&(name, chips)) = memory.first() else {
        return Err(search.refused("pcm", "", "is needed"));
    };
    let layer = search.name();
    let wanted = bytes.next_multiple_of(SECTOR_BYTES);
    let mut chip = (bytes / chips).next_multiple_of(CHIP_STEP).max(CHIP_STEP);
    loop {
        let sets = vec![format!("media.{name}.chip_bytes={chip}"), format!("{layer}.capacity={wanted}")];
        match search.capacity(&sets) {
            Ok(_) => return Ok(sets),
            // Records, log and registers take a tenth of the memory, or half of it with small
            // pages.
            Err(e) if chip > 2 * (bytes / chips) + 64 * CHIP_STEP => return Err(e),
            Err(_) => chip = (chip + chip / 64 + 1).next_multiple_of(CHIP_STEP),
        }
    }
}
