//! The drive of a disk, as a key of a medium.

use super::{MediumConfig, Profile};
use crate::disk::{DiskProfile, DiskSpec, DriveConfig, diskspecs};
use frit_core::files::{self, TEXT_BYTES_MAX};
use frit_core::{Error, MediumKind, Result, SECTOR_BYTES, size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A drive: its values, or the path of a DiskSim description.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DriveRef {
    /// Values of the drive.
    Values(Box<DriveConfig>),
    /// Path of a `.diskspecs` file.
    DiskSim(String),
}

impl DriveRef {
    /// Returns the parameters of the drive.
    ///
    /// # Errors
    /// Values that no drive can have, or a file that cannot be read.
    pub fn spec(&self) -> Result<DiskSpec> {
        match self {
            DriveRef::Values(v) => v.spec("drive"),
            DriveRef::DiskSim(path) => load(Path::new(path)),
        }
    }
}

impl fmt::Display for DriveRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveRef::Values(v) => write!(
                f,
                "{}, {} rpm, {} to {} MB/s",
                size::format(v.sectors * SECTOR_BYTES),
                v.rpm,
                v.outer_mb_per_s,
                v.inner_mb_per_s
            ),
            DriveRef::DiskSim(path) => f.write_str(path),
        }
    }
}

fn load(path: &Path) -> Result<DiskSpec> {
    let wrong = |e: diskspecs::DiskspecsError| Error::param("drive", path.display(), e.to_string());
    diskspecs::load(path).map(|l| l.spec).map_err(wrong)
}

/// Returns `true` if the name is that of a DiskSim parameter file.
pub(super) fn is_diskspecs(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "diskspecs")
}

/// Returns `true` if a TOML file describes a drive, whose profile has other keys than a medium. A
/// file that cannot be read or parsed is not a drive: loading it as a medium returns the error.
pub(super) fn is_drive_profile(path: &Path) -> bool {
    let table = || toml::from_str::<toml::Table>(&files::read_text(path, TEXT_BYTES_MAX).ok()?).ok();
    let is_drive =
        |values: &toml::Table| ["sectors", "heads", "rpm"].iter().any(|key| values.contains_key(*key));
    table().is_some_and(|t| t.get("values").and_then(toml::Value::as_table).is_some_and(is_drive))
}

fn profile(name: String, about: String, drive: DriveRef) -> Profile {
    let values = MediumConfig { drive: Some(drive), ..MediumConfig::default() };
    let sources = BTreeMap::from([("drive".to_owned(), format!("the drive {name}"))]);
    Profile { name, medium: MediumKind::Disk, about, values, sources }
}

/// Converts the profile of a drive into a profile of a medium.
pub(super) fn as_profile(p: DiskProfile) -> Profile {
    profile(p.name, p.about, DriveRef::Values(Box::new(p.values)))
}

/// Reads a DiskSim description of a drive as a profile.
pub(super) fn load_diskspecs(path: &Path) -> Result<Profile> {
    let spec = load(path)?;
    let path = path.display().to_string();
    Ok(profile(spec.name, "a drive from a DiskSim description".into(), DriveRef::DiskSim(path)))
}
