//! The cache layer: a disk behind a durable write cache in PCM.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::stores::Bytes;
use crate::tree::Table;
use frit_compose::sizing::{DeviceSizes, Resizable};
use frit_core::{BlockDevice, Error, MediumKind, Result, StackDevice};
use frit_layer::cache::policy::PolicyConfig;
use frit_layer::cache::{Cache, CacheConfig};
use frit_media::{Disk, DiskConfig, Hardware, Pcm, PcmConfig};
use frit_wear::WearKeys;

pub(super) const ABOUT: &str =
    "a disk behind a durable write cache in PCM: HALO and its peers (Liu et al., MASCOTS 2012)";

pub(super) const ROLES: &[Role] = &[
    Role {
        key: "pcm",
        needs: Interface::Medium(MediumKind::Pcm),
        optional: false,
        names: RoleNames::One,
        help: "holds the cached blocks and their records",
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
        key: "record_copies",
        value: "2",
        why: "a damaged record can be distinguished from a write torn by a crash",
    }],
    over_files: &[RequiredSetting {
        key: "over_files",
        value: "true",
        why: "wear leveling also keeps its registers as of the last flush",
    }],
};

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<CacheConfig> {
    let config: Option<CacheConfig> = decode_as(path, table, keys_of::<CacheConfig>(), problems);
    let policy = decode_as(path, table, keys_of::<PolicyConfig>(), problems);
    let wear = decode_as(path, table, keys_of::<WearKeys>(), problems);
    Some(CacheConfig { policy: policy?, wear: wear?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<CacheConfig> {
    Some(CacheConfig {
        policy: reread_keys::<PolicyConfig>(table)?,
        wear: reread_keys::<WearKeys>(table)?,
        ..reread_keys::<CacheConfig>(table)?
    })
}

/// The capacity of a cache: the whole blocks of its disk. The size of its PCM does not limit it.
pub(super) struct WholeBlocks;

impl Resizable for WholeBlocks {
    fn sizes_for(&self, _: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        Ok(DeviceSizes::equal(1, bytes.next_multiple_of(frit_layer::cache::BLOCK_BYTES)))
    }
}

/// Opens the PCM of the layer.
pub(crate) fn open_pcm(mut pcm: PcmConfig, stores: &Bytes, hardware: &mut Hardware) -> Result<Pcm> {
    pcm.serial = stores.serial(&pcm.name);
    let store = stores.open(&pcm.name, pcm.geometry.store_bytes())?;
    Pcm::new(pcm, store, hardware).map_err(|what| Error::Medium { what })
}

/// Opens a disk as the device below a layer.
pub(crate) fn open_disk(
    mut disk: DiskConfig,
    stores: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn BlockDevice>> {
    disk.serial = stores.serial(&disk.name);
    let store = stores.open(&disk.name, disk.store_bytes())?;
    let disk = Disk::new(disk, store, hardware).map_err(|what| Error::Medium { what })?;
    Ok(Box::new(disk))
}

/// Builds the layer over its PCM and the device that it caches.
pub(crate) fn build(
    config: CacheConfig,
    pcm: Pcm,
    disk: Box<dyn BlockDevice>,
) -> Result<Box<dyn StackDevice>> {
    Ok(Box::new(Cache::<dyn BlockDevice>::new(config, pcm, disk, None)?))
}
