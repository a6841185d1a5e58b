//! A solid-state cache of NAND without a manager.

use super::{Durability, Interface, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::sizing::LayerSearch;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_core::{MediumKind, Result, StackDevice};
use frit_layer::ssc::{Ssc, SscConfig};
use frit_layer::{SscBlock, SscBlockConfig};
use frit_media::{Hardware, NandConfig};

pub(super) const ABOUT: &str = "a solid-state cache of NAND without a manager, with the addresses of a disk: clients \
     give it the commands of a cache (FlashTier: Saxena et al., EuroSys 2012)";

pub(super) const ROLES: &[Role] = &[Role {
    key: "nand",
    needs: Interface::Medium(MediumKind::Nand),
    optional: false,
    names: RoleNames::OneOrList,
    help: "holds the cached blocks; they are spread over the units of several",
}];

pub(super) const DURABILITY: Durability = super::flashtier::DURABILITY;

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<SscBlockConfig> {
    let config: Option<SscBlockConfig> = decode_as(path, table, keys_of::<SscBlockConfig>(), problems);
    let ssc = decode_as(path, table, keys_of::<SscConfig>(), problems);
    Some(SscBlockConfig { ssc: ssc?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<SscBlockConfig> {
    Some(SscBlockConfig { ssc: reread_keys::<SscConfig>(table)?, ..reread_keys::<SscBlockConfig>(table)? })
}

/// Builds the layer over its NAND, whose pages are divided into blocks.
pub(crate) fn build(
    config: SscBlockConfig,
    devices: Vec<NandConfig>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    let ssc = open(&config.ssc, devices, stores, hardware)?;
    Ok(Box::new(SscBlock::<Ssc>::new(config, ssc)?))
}

/// Creates the cache over its NAND.
pub(super) fn open(
    config: &SscConfig,
    devices: Vec<NandConfig>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Ssc> {
    let nand = super::hfsl::open_divided_nand(devices, |nand| config.divide(nand), stores, hardware)?;
    Ssc::new(config.clone(), nand)
}

/// Largest block, which is a NAND page.
const BLOCK_BYTES_MAX: u64 = 64 << 10;

/// Returns the overrides with which the layer offers `bytes`: the addresses of a disk of that size. The
/// NAND keeps its own.
pub(super) fn media_sizes(search: &LayerSearch<'_>, bytes: u64) -> crate::Result<Vec<String>> {
    Ok(vec![format!("{}.address_bytes={}", search.name(), bytes.next_multiple_of(BLOCK_BYTES_MAX))])
}
