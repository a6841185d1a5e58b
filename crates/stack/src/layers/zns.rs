//! A zoned device of NAND.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, keys_of};
use crate::error::Problem;
use crate::sizing::LayerSearch;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_core::{MediumKind, Result, StackDevice};
use frit_layer::{Zns, ZnsConfig};
use frit_media::{Hardware, NandConfig};

pub(super) const ABOUT: &str = "zones of NAND that are written in order and reset as a whole, with a write buffer for \
     each open zone (NVMe ZNS 1.1; Bjørling et al., USENIX ATC 2021)";

pub(super) const ROLES: &[Role] = &[Role {
    key: "nand",
    needs: Interface::Medium(MediumKind::Nand),
    optional: false,
    names: RoleNames::OneOrList,
    help: "holds the zones, which are striped over the units of one medium or several",
}];

pub(super) const DURABILITY: Durability = Durability {
    each_request: &[RequiredSetting {
        key: "recovery",
        value: "scan",
        why: "a flush writes the table of zones",
    }],
    over_files: &[],
};

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<ZnsConfig> {
    decode_as(path, table, keys_of::<ZnsConfig>(), problems)
}

/// Builds the device over its NAND, whose pages are divided into logical blocks.
pub(crate) fn build(
    config: ZnsConfig,
    devices: Vec<NandConfig>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    let nand = super::hfsl::open_divided_nand(devices, |nand| config.divide(nand), stores, hardware)?;
    Ok(Box::new(Zns::new(config, nand)?))
}

/// Returns the overrides with which the layer offers `bytes`: its capacity, which is rounded up to whole
/// zones, and as many blocks in every plane as it needs.
pub(super) fn media_sizes(search: &LayerSearch<'_>, bytes: u64) -> crate::Result<Vec<String>> {
    super::hfsl::nand_sizes(search, bytes, &mut |sets| search.capacity(sets))
}
