//! Nameless writes: a device that chooses the places of blocks, with a block volume over it.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, keys_of};
use crate::error::Problem;
use crate::sizing::LayerSearch;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_core::{MediumKind, Result, StackDevice};
use frit_layer::nameless::{HostFtl, Nameless, NamelessConfig};
use frit_media::{Hardware, NandConfig};

pub(super) const ABOUT: &str = "a nameless-write device of NAND with an FTL in the host, and a volume whose map has \
     physical addresses (Zhang et al., FAST 2012; Saxena et al., FAST 2013)";

pub(super) const ROLES: &[Role] = &[Role {
    key: "nand",
    needs: Interface::Medium(MediumKind::Nand),
    optional: false,
    names: RoleNames::OneOrList,
    help: "holds the blocks; request queues are spread over the units of several",
}];

pub(super) const DURABILITY: Durability = Durability {
    each_request: &[RequiredSetting {
        key: "recovery",
        value: "scan",
        why: "the map is saved in virtual blocks, and the device writes checkpoints",
    }],
    over_files: &[RequiredSetting {
        key: "erase_after_flush",
        value: "true",
        why: "blocks keep the pages of the last flush until the next one",
    }],
};

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<NamelessConfig> {
    decode_as(path, table, keys_of::<NamelessConfig>(), problems)
}

/// Builds the volume over its NAND, whose pages are divided into blocks.
pub(crate) fn build(
    config: NamelessConfig,
    devices: Vec<NandConfig>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    let nand = super::hfsl::open_divided_nand(devices, |nand| config.divide(nand), stores, hardware)?;
    Ok(Box::new(Nameless::<HostFtl>::over_nand(config, nand)?))
}

/// Returns the overrides with which the layer offers `bytes`: its capacity, and as many blocks in every
/// plane as it needs.
pub(super) fn media_sizes(search: &LayerSearch<'_>, bytes: u64) -> crate::Result<Vec<String>> {
    super::hfsl::nand_sizes(search, bytes, &mut |sets| search.capacity(sets))
}
