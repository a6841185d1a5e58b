//! The cache layer: a disk behind a durable write cache in PCM.

use super::{Choice, Durability, RequiredSetting, Role, keyword, policy};
use crate::Bytes;
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::tree::Table;
use frit_core::{Error, MediumKind, Result, Sink, StackDevice};
use frit_layer::cache::policy::{Policy, PolicyConfig};
use frit_layer::cache::{Cache, CacheConfig, DiskFlush, Mode, Overwrite};
use frit_media::{Disk, DiskConfig, Hardware, NoStore, Pcm, PcmConfig, Store};
use frit_wear::{LevelerKind, WearKeys};
use std::sync::OnceLock;
use strum::VariantNames;

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

pub(super) const CHOICES: &[Choice] = &[
    policy("policy", Policy::VARIANTS),
    policy("wear_leveling", LevelerKind::VARIANTS),
    keyword("mode", Mode::VARIANTS),
    keyword("overwrite", Overwrite::VARIANTS),
    keyword("disk_flush", DiskFlush::VARIANTS),
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

/// Keys of the layer, of its policies and of wear leveling, in one table.
pub(super) fn keys() -> &'static [&'static str] {
    static KEYS: OnceLock<Vec<&str>> = OnceLock::new();
    KEYS.get_or_init(|| [keys_of::<CacheConfig>(), keys_of::<PolicyConfig>(), keys_of::<WearKeys>()].concat())
}

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

/// Returns the parameters without effect under the given configuration, each with the reason.
pub(super) fn ineffective(c: &CacheConfig) -> Vec<(&'static str, &'static str)> {
    let mut ineffective = Vec::new();
    if c.bypass_bytes == 0 {
        ineffective.push(("bypass_streams", "no stream bypasses the cache"));
    }
    if c.mode == Mode::WriteAround {
        ineffective.push(("bypass_bytes", "all writes bypass the cache"));
        if !c.read_caching {
            ineffective.push(("policy", "nothing is cached: writes go around, and reads are not cached"));
        }
    }
    for (_, why, keys) in OF_POLICIES.iter().filter(|(policy, ..)| *policy != c.policy.policy) {
        ineffective.extend(keys.iter().map(|key| (*key, *why)));
    }
    ineffective.extend(super::wear::ineffective(&c.wear));
    ineffective
}

/// Parameters that only one policy has: the policy, the reason given for other policies, the keys.
const OF_POLICIES: [(&str, &str, &[&str]); 5] = [
    ("halo", "the policy is not halo", &["TH_BCOUNTS", "TH_RECENCY", "OUTDATE_RECENCY", "halo_scan"]),
    ("2q", "the policy is not 2q", &["two_q_in", "two_q_out"]),
    ("s3-fifo", "the policy is not s3-fifo", &["s3_small", "s3_ghost", "s3_threshold"]),
    ("wow", "the policy is not wow", &["wow_group"]),
    (
        "sweep",
        "the policy is not sweep",
        &["sweep_batch", "sweep_gap", "sweep_age", "sweep_dense", "sweep_scan"],
    ),
];

/// A small stack that is built to list the parameters of the layer.
pub(super) const SMALL: &str = r#"
media.pcm = { profile = "pcm-p8p-2016", chip_bytes = "256K" }
media.disk = { profile = "st3500320as-2008", bytes = "64M" }
cache = {}
"#;

/// Builds the layer over its media.
pub(crate) fn build<S: Sink>(
    config: CacheConfig,
    mut pcm: PcmConfig,
    mut disk: DiskConfig,
    bytes: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    pcm.serial = bytes.serial(&pcm.name);
    disk.serial = bytes.serial(&disk.name);
    match bytes {
        Bytes::None => compose(config, pcm, disk, hardware, |_, _| Ok(NoStore)),
        _ => compose(config, pcm, disk, hardware, |name, len| bytes.store(name, len)),
    }
}

fn compose<S: Sink, St: Store + Send + 'static>(
    config: CacheConfig,
    pcm: PcmConfig,
    disk: DiskConfig,
    hardware: &mut Hardware,
    store: impl Fn(&str, u64) -> Result<St>,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    let refused = |what: String| Error::Medium { what };
    let held = store(&pcm.name, pcm.geometry.store_bytes())?;
    let pcm = Pcm::new(pcm, held, hardware).map_err(refused)?;
    let held = store(&disk.name, disk.store_bytes())?;
    let disk = Disk::new(disk, held, hardware).map_err(refused)?;
    Ok(Box::new(Cache::<S::Tok, St, St>::new(config, pcm, disk, None)?))
}
