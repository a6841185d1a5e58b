//! A disk's drive as a key of a medium.

use super::{MediumConfig, Profile};
use crate::disk::{DiskProfile, DiskSpec, DriveConfig, diskspecs};
use frit_core::{Error, MediumKind, Result, SECTOR_BYTES, size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A drive: its values, or where DiskSim's description of it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DriveRef {
    /// Its values.
    Values(Box<DriveConfig>),
    /// The path of a `.diskspecs` file.
    Described(String),
}

impl DriveRef {
    /// What it is.
    ///
    /// # Errors
    /// Values that no drive has, a file that cannot be read.
    pub fn spec(&self) -> Result<DiskSpec> {
        match self {
            DriveRef::Values(v) => v.spec("drive"),
            DriveRef::Described(path) => load(Path::new(path)),
        }
    }
}

impl fmt::Display for DriveRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveRef::Values(v) => write!(
                f,
                "{}, {} rpm, {} to {} MB/s",
                size::show(v.sectors * SECTOR_BYTES),
                v.rpm,
                v.outer_mb_per_s,
                v.inner_mb_per_s
            ),
            DriveRef::Described(path) => f.write_str(path),
        }
    }
}

fn load(path: &Path) -> Result<DiskSpec> {
    let wrong = |e: diskspecs::ReadError| Error::param("drive", path.display(), e.to_string());
    diskspecs::load(path).map(|l| l.spec).map_err(wrong)
}

/// Whether the name is that of a file of DiskSim's.
pub(super) fn is_described(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "diskspecs")
}

fn profile(name: String, about: String, drive: DriveRef) -> Profile {
    let values = MediumConfig { drive: Some(drive), ..MediumConfig::default() };
    let sources = BTreeMap::from([("drive".to_owned(), format!("the drive {name}"))]);
    Profile { name, medium: MediumKind::Disk, about, values, sources }
}

/// A profile of a drive, as one of a medium.
pub(super) fn as_profile(p: DiskProfile) -> Profile {
    profile(p.name, p.about, DriveRef::Values(Box::new(p.values)))
}

/// A drive that DiskSim describes, as a profile.
pub(super) fn described(path: &Path) -> Result<Profile> {
    let spec = load(path)?;
    let path = path.display().to_string();
    Ok(profile(spec.name, "a drive that DiskSim describes".into(), DriveRef::Described(path)))
}
