//! Profiles: named media with the source of each value.

mod cells;
mod config;
mod drive;
mod resolve;
mod time;

pub use cells::PageLatency;
pub use config::{ByteSize, CurvePoints, KEYS, Key, MediumConfig};
pub use drive::DriveRef;
pub use resolve::MediumSpec;
pub use time::Picos;

use crate::disk::DiskProfile;
use frit_core::files::{self, TEXT_BYTES_MAX};
use frit_core::text::unknown_field;
use frit_core::{Error, MediumKind, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

const BUILTINS: [&str; 21] = [
    include_str!("../../profiles/slc-k9-2016.toml"),
    include_str!("../../profiles/pcm-p8p-2016.toml"),
    include_str!("../../profiles/bnvm-pcm-2019.toml"),
    include_str!("../../profiles/mlc-openssd-2011.toml"),
    include_str!("../../profiles/tlc-2020.toml"),
    include_str!("../../profiles/qlc-2020.toml"),
    include_str!("../../profiles/tlc-pages-2018.toml"),
    include_str!("../../profiles/tlc-slc-2024.toml"),
    include_str!("../../profiles/qlc-pages-2022.toml"),
    include_str!("../../profiles/dimm-optane-2019.toml"),
    include_str!("../../profiles/cxl-mem-2023.toml"),
    include_str!("../../profiles/dram-ddr4.toml"),
    include_str!("../../profiles/pcm-halo-2012.toml"),
    include_str!("../../profiles/bnvm-pcm-bytes.toml"),
    include_str!("../../profiles/reram-2014.toml"),
    include_str!("../../profiles/mram-2019.toml"),
    include_str!("../../profiles/lpddr2-nvm-ispfs-2018.toml"),
    include_str!("../../profiles/s3-standard-2019.toml"),
    include_str!("../../profiles/s3-express-2023.toml"),
    include_str!("../../profiles/nvme-p4500-2017.toml"),
    include_str!("../../profiles/ram-disk-ddr4.toml"),
];

/// Returns the name in the text of a built-in profile, where it has a line of its own.
pub(crate) fn name_of(text: &'static str) -> &'static str {
    let quoted = text.lines().find_map(|line| line.strip_prefix("name = \""));
    quoted.and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

/// A medium as it was measured, published or sold.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// Kind of medium.
    pub medium: MediumKind,
    /// Description of the medium, and of the properties that the profile does not cover.
    pub about: String,
    /// Its values. A `profile` among them provides the values that are not given here.
    pub values: MediumConfig,
    /// Source of each value, by key.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// One value of a profile, for tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileRow {
    /// Key of the value.
    pub key: &'static str,
    /// The value, as text.
    pub value: String,
    /// Source of the value; empty if the profile states none.
    pub source: String,
    /// Meaning of the key.
    pub help: &'static str,
}

/// Page that lists all keys of a profile, for errors.
const KEYS_PAGE: &str = "docs/reference/media.md lists the keys";

impl Profile {
    /// Parses a profile from TOML.
    ///
    /// # Errors
    /// Text that is not a profile, with the line; a source for a value that is not given.
    pub fn parse(text: &str) -> Result<Profile> {
        let p: Profile = toml::from_str(text)
            .map_err(|e| Error::param("profile", "", unknown_field(&e.to_string(), KEYS_PAGE)))?;
        let given = p.values.given_keys();
        if let Some(key) = p.sources.keys().find(|s| !given.iter().any(|(k, _)| k.name == s.as_str())) {
            let why = format!("profile '{}' names a source for a value that it does not give", p.name);
            return Err(Error::param(&format!("sources.{key}"), key, why));
        }
        Ok(p)
    }

    /// Returns all built-in profiles.
    ///
    /// # Errors
    /// None; a unit test parses all built-in profiles.
    pub fn builtins() -> Result<Vec<Profile>> {
        BUILTINS.iter().map(|t| Profile::parse(t)).collect()
    }

    /// Returns the names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTINS.iter().map(|text| name_of(text))
    }

    /// Returns a built-in profile. Only its own text is parsed: a stack looks up several profiles, several times each.
    ///
    /// # Errors
    /// An unknown name; the message lists the built-in profiles.
    pub fn builtin(name: &str) -> Result<Profile> {
        let text = BUILTINS.iter().find(|text| name_of(text) == name).ok_or_else(|| {
            let names: Vec<&str> = Profile::builtin_names().collect();
            let why =
                format!("no such profile; there are {}, the drives of `frit disk list`, or give the path of a .toml file", names.join(", "));
            Error::param("profile", name, why)
        })?;
        Profile::parse(text)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is not a profile.
    pub fn load(path: &Path) -> Result<Profile> {
        let text = files::read_text(path, TEXT_BYTES_MAX).map_err(|source| Error::Io {
            what: format!("cannot read the profile {}", path.display()),
            source,
        })?;
        Profile::parse(&text).map_err(|e| match e {
            Error::Param { key, why, .. } => Error::param(&key, path.display(), why),
            other => other,
        })
    }

    /// Returns a profile by name or by path. A name that contains a `/` or ends in `.toml` or
    /// `.diskspecs` is a path relative to `dir`. The names of drives are found as well.
    ///
    /// # Errors
    /// As for [`Profile::builtin`] and [`Profile::load`].
    pub fn find(name: &str, dir: &Path) -> Result<Profile> {
        if drive::is_diskspecs(name) {
            drive::load_diskspecs(&dir.join(name))
        } else if name.contains('/') || name.ends_with(".toml") {
            let path = dir.join(name);
            if drive::is_drive_profile(&path) {
                DiskProfile::load(&path).map(drive::as_profile)
            } else {
                Profile::load(&path)
            }
        } else if let Ok(disk) = DiskProfile::builtin(name) {
            Ok(drive::as_profile(disk))
        } else {
            Profile::builtin(name)
        }
    }

    /// Its values with their sources, for tables.
    #[must_use]
    pub fn rows(&self) -> Vec<ProfileRow> {
        let row = |(key, value): (&'static Key, String)| ProfileRow {
            key: key.name,
            value,
            source: self.sources.get(key.name).cloned().unwrap_or_default(),
            help: key.help,
        };
        self.values.given_keys().into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests;
