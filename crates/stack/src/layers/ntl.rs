//! NTL: address mapping for an SSD of byte-addressable memory.

use super::{Choice, Durability, RequiredSetting, Role, keyword, policy};
use crate::Bytes;
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::tree::Table;
use frit_core::{Error, MediumKind, Result, Sink, StackDevice};
use frit_layer::ntl::{ChipPlacement, LogBuffer, LogKind, MappingKind, MergeUnit, Ntl, NtlConfig, Protect};
use frit_media::{Hardware, NoStore, Pcm, PcmConfig, Store};
use frit_wear::{LevelerKind, WearKeys};
use std::sync::OnceLock;
use strum::VariantNames;

pub(super) const ABOUT: &str = "address mapping for an SSD made of byte-addressable memory alone: static, dynamic, \
     block-level, with logs (Kwon, IEEE Access 2019)";

pub(super) const ROLES: &[Role] =
    &[Role { key: "pcm", medium: MediumKind::Pcm, optional: false, help: "the chips, one per channel" }];

pub(super) const CHOICES: &[Choice] = &[
    policy("mapping", MappingKind::VARIANTS),
    policy("wear_leveling", LevelerKind::VARIANTS),
    keyword("placement", ChipPlacement::VARIANTS),
    keyword("log", LogKind::VARIANTS),
    keyword("log_buffer", LogBuffer::VARIANTS),
    keyword("merge", MergeUnit::VARIANTS),
    keyword("protect", Protect::VARIANTS),
];

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

/// Keys of the layer and of wear leveling, in one table.
pub(super) fn keys() -> &'static [&'static str] {
    static KEYS: OnceLock<Vec<&str>> = OnceLock::new();
    KEYS.get_or_init(|| [keys_of::<NtlConfig>(), keys_of::<WearKeys>()].concat())
}

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<NtlConfig> {
    let config: Option<NtlConfig> = decode_as(path, table, keys_of::<NtlConfig>(), problems);
    let wear = decode_as(path, table, keys_of::<WearKeys>(), problems);
    Some(NtlConfig { wear: wear?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<NtlConfig> {
    Some(NtlConfig { wear: reread_keys(table)?, ..reread_keys(table)? })
}

/// Returns the parameters without effect under the given configuration, each with the reason.
pub(super) fn ineffective(c: &NtlConfig) -> Vec<(&'static str, &'static str)> {
    let mut ineffective = super::wear::ineffective(&c.wear);
    let log = c.log_kind();
    if c.mapping == "static" {
        ineffective.push(("placement", "static mapping fixes the chip of each page"));
    }
    if c.mapping != "block" {
        ineffective.push(("block_pages", "only the mapping `block` has blocks"));
    }
    if log == LogKind::None {
        ineffective.push(("log_share", "there is no log"));
    }
    if matches!(log, LogKind::None | LogKind::Coarse) {
        ineffective.push(("merge", "only a log that all pages share is merged by rows"));
    }
    if c.log != LogKind::Full {
        ineffective.push(("log_buffer", "only `log` = full collects updates"));
        ineffective.push(("log_request_pages", "only `log` = full excludes large requests"));
    } else if c.protect == Protect::Redo {
        ineffective.push(("log_request_pages", "all protected updates go to the log"));
    }
    if log != LogKind::Remap {
        ineffective.push(("hot_updates", "only `log` = remap, unprotected, looks for hot pages"));
    }
    ineffective
}

/// A small stack that is built to list the parameters of the layer.
pub(super) const SMALL: &str = r#"
media.pcm = { profile = "bnvm-pcm-2019", chip_bytes = "1M" }
ntl = {}
"#;

/// Builds the layer over its memory.
pub(crate) fn build<S: Sink>(
    config: NtlConfig,
    mut pcm: PcmConfig,
    bytes: &Bytes,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    pcm.serial = bytes.serial(&pcm.name);
    match bytes {
        Bytes::None => compose(config, pcm, NoStore, hardware),
        _ => {
            let held = bytes.store(&pcm.name, pcm.geometry.store_bytes())?;
            compose(config, pcm, held, hardware)
        }
    }
}

fn compose<S: Sink, St: Store + Send + 'static>(
    config: NtlConfig,
    pcm: PcmConfig,
    held: St,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    let pcm = Pcm::new(pcm, held, hardware).map_err(|what| Error::Medium { what })?;
    Ok(Box::new(Ntl::<S::Tok, St>::new(config, pcm)?))
}
