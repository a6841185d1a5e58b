//! A nameless-write device of NAND without a volume.

use super::{Durability, Interface, LayerConfig, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::sizing::LayerSearch;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_core::{MediumKind, Result, StackDevice};
use frit_layer::nameless::{HostFtl, NamelessConfig};
use frit_layer::{NamelessBlock, NamelessBlockConfig};
use frit_media::{Hardware, NandConfig};

pub(super) const ABOUT: &str = "a nameless-write device of NAND without a volume, for an owner that keeps the addresses of \
     its blocks; the block device is its virtual address space (Zhang et al., FAST 2012)";

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
        why: "a flush writes a checkpoint of the virtual blocks",
    }],
    over_files: &[RequiredSetting {
        key: "erase_after_flush",
        value: "true",
        why: "blocks keep the pages of the last flush until the next one",
    }],
};

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<NamelessBlockConfig> {
    let config: Option<NamelessBlockConfig> =
        decode_as(path, table, keys_of::<NamelessBlockConfig>(), problems);
    let device = decode_as(path, table, keys_of::<NamelessConfig>(), problems);
    Some(NamelessBlockConfig { device: device?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<NamelessBlockConfig> {
    Some(NamelessBlockConfig {
        device: reread_keys::<NamelessConfig>(table)?,
        ..reread_keys::<NamelessBlockConfig>(table)?
    })
}

/// Builds the device over its NAND, whose pages are divided into blocks.
pub(crate) fn build(
    config: NamelessBlockConfig,
    devices: Vec<NandConfig>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    let nand = super::hfsl::open_divided_nand(devices, |nand| config.device.divide(nand), stores, hardware)?;
    Ok(Box::new(NamelessBlock::<HostFtl>::over_nand(config, nand)?))
}

/// Number of times that NAND is made larger because it does not hold the virtual address space.
const GROWTHS: u32 = 4;

/// Returns the overrides with which the device has space for `bytes` of contents, and as many blocks in
/// every plane as it needs.
pub(super) fn media_sizes(search: &LayerSearch<'_>, bytes: u64) -> crate::Result<Vec<String>> {
    let virtual_bytes = match search.config() {
        LayerConfig::NamelessDevice(config) => config.virtual_bytes,
        _ => 0,
    };
    // A virtual address space of a given size does not grow with the NAND: what is missing is a share of
    // contents and of two versions of that space.
    let fixed = u128::from(virtual_bytes) * 2;
    let mut without_space = 0;
    super::hfsl::nand_sizes(search, bytes, &mut |sets| {
        let has = match search.capacity(sets) {
            // The virtual address space alone does not fit.
            Err(_) if fixed > 0 && without_space < GROWTHS => {
                without_space += 1;
                0
            }
            has => has?,
        };
        let share = u128::from(bytes) * (u128::from(has) + fixed) / (u128::from(bytes) + fixed).max(1);
        Ok(if has >= bytes { has } else { u64::try_from(share).unwrap_or(has) })
    })
}
