//! The cache layer: a disk behind a durable write cache in PCM.

use super::{Durability, RequiredSetting, Role};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::stores::Stores;
use crate::tree::Table;
use frit_core::{Error, MediumKind, Result, Sink, StackDevice};
use frit_layer::cache::policy::PolicyConfig;
use frit_layer::cache::{Cache, CacheConfig};
use frit_media::{Disk, DiskConfig, Hardware, Pcm, PcmConfig};
use frit_wear::WearKeys;

pub(super) const ABOUT: &str =
    "a disk behind a durable write cache in PCM: HALO and its peers (Liu et al., MASCOTS 2012)";

pub(super) const ROLES: &[Role] = &[
    Role {
        key: "pcm",
        medium: MediumKind::Pcm,
        optional: false,
        help: "holds the cached blocks and their records",
    },
    Role { key: "disk", medium: MediumKind::Disk, optional: false, help: "the disk that is cached" },
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

/// Builds the layer over its media.
pub(crate) fn build<S: Sink, B: Stores>(
    config: CacheConfig,
    mut pcm: PcmConfig,
    mut disk: DiskConfig,
    stores: &B,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    pcm.serial = stores.serial(&pcm.name);
    disk.serial = stores.serial(&disk.name);
    let refused = |what: String| Error::Medium { what };
    let pcm_store = stores.open(&pcm.name, pcm.geometry.store_bytes())?;
    let pcm = Pcm::new(pcm, pcm_store, hardware).map_err(refused)?;
    let disk_store = stores.open(&disk.name, disk.store_bytes())?;
    let disk = Disk::new(disk, disk_store, hardware).map_err(refused)?;
    Ok(Box::new(Cache::<S::Tok, B::Store, B::Store>::new(config, pcm, disk, None)?))
}
