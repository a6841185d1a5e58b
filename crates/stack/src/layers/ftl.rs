//! The FTL: an SSD of NAND alone.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, keys_of};
use crate::error::Problem;
use crate::sizing::LayerSearch;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_core::{MediumKind, Result, StackDevice};
use frit_layer::ftl::{Ftl, FtlConfig};
use frit_media::{Hardware, NandConfig};

pub(super) const ABOUT: &str = "page-mapped flash translation layer: an SSD of NAND alone, with a merge buffer and a \
     read buffer (Saxena et al., FAST 2013)";

pub(super) const ROLES: &[Role] = &[Role {
    key: "nand",
    needs: Interface::Medium(MediumKind::Nand),
    optional: false,
    names: RoleNames::OneOrList,
    help: "holds the pages; pages are striped over the units of several",
}];

pub(super) const DURABILITY: Durability = Durability {
    each_request: &[RequiredSetting {
        key: "recovery",
        value: "scan",
        why: "marks of flushes and discards are written beside the data",
    }],
    over_files: &[RequiredSetting {
        key: "erase_after_flush",
        value: "true",
        why: "blocks keep the pages of the last flush until the next one",
    }],
};

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<FtlConfig> {
    decode_as(path, table, keys_of::<FtlConfig>(), problems)
}

/// Builds the layer over its NAND, whose pages are divided into mapping units.
pub(crate) fn build(
    config: FtlConfig,
    devices: Vec<NandConfig>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    let nand = super::hfsl::open_divided_nand(devices, |nand| config.divide(nand), stores, hardware)?;
    Ok(Box::new(Ftl::new(config, nand)?))
}

/// Returns the overrides with which the layer offers `bytes`: its capacity, and as many blocks in
/// every plane as it needs.
pub(super) fn media_sizes(search: &LayerSearch<'_>, bytes: u64) -> crate::Result<Vec<String>> {
    super::hfsl::nand_sizes(search, bytes, &mut |sets| search.capacity(sets))
}
