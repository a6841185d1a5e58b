//! FlashTier: a disk behind a solid-state cache of NAND.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_compose::sizing::{DeviceSizes, Resizable};
use frit_core::{BlockDevice, MediumKind, Result, StackDevice};
use frit_layer::flashtier::{Flashtier, FlashtierConfig};
use frit_layer::ssc::SscConfig;
use frit_media::{Hardware, NandConfig};

pub(super) const ABOUT: &str = "a disk behind a solid-state cache of NAND, which drops clean blocks instead of \
     copying them (FlashTier: Saxena et al., EuroSys 2012 and FAST 2013)";

pub(super) const ROLES: &[Role] = &[
    Role {
        key: "nand",
        needs: Interface::Medium(MediumKind::Nand),
        optional: false,
        names: RoleNames::OneOrList,
        help: "holds the cached blocks; they are spread over the units of several",
    },
    Role {
        key: "disk",
        needs: Interface::Block,
        optional: false,
        names: RoleNames::One,
        help: "the disk that is cached",
    },
];

pub(super) const DURABILITY: Durability = Durability {
    each_request: &[RequiredSetting {
        key: "metadata_copies",
        value: "2",
        why: "damage to the log and to checkpoints is told from an interrupted program",
    }],
    over_files: &[RequiredSetting {
        key: "over_files",
        value: "true",
        why: "the NAND is synced before its blocks are erased",
    }],
};

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<FlashtierConfig> {
    let config: Option<FlashtierConfig> = decode_as(path, table, keys_of::<FlashtierConfig>(), problems);
    let ssc = decode_as(path, table, keys_of::<SscConfig>(), problems);
    Some(FlashtierConfig { ssc: ssc?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<FlashtierConfig> {
    Some(FlashtierConfig { ssc: reread_keys::<SscConfig>(table)?, ..reread_keys::<FlashtierConfig>(table)? })
}

/// The capacity of a cached disk: its whole blocks. The size of the NAND does not limit it.
pub(super) struct WholeBlocks;

/// Largest block, which is a NAND page.
const BLOCK_BYTES_MAX: u64 = 64 << 10;

impl Resizable for WholeBlocks {
    fn sizes_for(&self, _: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        Ok(DeviceSizes::equal(1, bytes.next_multiple_of(BLOCK_BYTES_MAX)))
    }
}

/// Builds the layer over its NAND, whose pages are divided into blocks, and the device that it caches.
pub(crate) fn build(
    config: FlashtierConfig,
    devices: Vec<NandConfig>,
    disk: Box<dyn BlockDevice>,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice>> {
    let ssc = super::ssc::open(&config.ssc, devices, stores, hardware)?;
    Ok(Box::new(Flashtier::<_, dyn BlockDevice>::new(config, ssc, disk)?))
}
