//! NTL: address mapping for an SSD of byte-addressable memory.

use super::{Durability, Interface, RequiredSetting, Role, RoleNames};
use crate::decode::{decode as decode_as, decode_checked as reread_keys, keys_of};
use crate::error::Problem;
use crate::stores::Stores;
use crate::tree::Table;
use frit_core::{Error, MediumKind, Result, Sink, StackDevice};
use frit_layer::ntl::{Ntl, NtlConfig};
use frit_media::{Hardware, Pcm, PcmConfig};
use frit_wear::WearKeys;

pub(super) const ABOUT: &str = "address mapping for an SSD made of byte-addressable memory alone: static, dynamic, \
     block-level, with logs (Kwon, IEEE Access 2019)";

pub(super) const ROLES: &[Role] = &[Role {
    key: "pcm",
    needs: Interface::Medium(MediumKind::Pcm),
    optional: false,
    names: RoleNames::One,
    help: "the chips, one per channel",
}];

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

pub(super) fn decode(path: &str, table: &Table, problems: &mut Vec<Problem>) -> Option<NtlConfig> {
    let config: Option<NtlConfig> = decode_as(path, table, keys_of::<NtlConfig>(), problems);
    let wear = decode_as(path, table, keys_of::<WearKeys>(), problems);
    Some(NtlConfig { wear: wear?, ..config? })
}

pub(super) fn decode_checked(table: &toml::Table) -> Option<NtlConfig> {
    Some(NtlConfig { wear: reread_keys(table)?, ..reread_keys(table)? })
}

/// Builds the layer over its memory.
pub(crate) fn build<S: Sink, B: Stores>(
    config: NtlConfig,
    mut pcm: PcmConfig,
    stores: &B,
    hardware: &mut Hardware,
) -> Result<Box<dyn StackDevice<S>>>
where
    S::Tok: 'static,
{
    pcm.serial = stores.serial(&pcm.name);
    let pcm_store = stores.open(&pcm.name, pcm.geometry.store_bytes())?;
    let pcm = Pcm::new(pcm, pcm_store, hardware).map_err(|what| Error::Medium { what })?;
    Ok(Box::new(Ntl::<S::Tok, B::Store>::new(config, pcm)?))
}
