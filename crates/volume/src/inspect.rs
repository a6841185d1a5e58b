//! Looking at a volume without touching it.

use crate::access::{exposed, of_volume};
use crate::backing::path_of;
use crate::error::Result;
use crate::superblock::{Backing, Superblock, SuperblockFile};
use frit_core::MediumKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A medium's file as it is found.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MediumFound {
    /// Its name in the stack.
    pub name: String,
    /// What it is.
    pub kind: MediumKind,
    /// What holds it.
    pub backing: Backing,
    /// Where.
    pub path: PathBuf,
    /// How many bytes it has to have.
    pub bytes: u64,
    /// How many are allocated; `None` for a device.
    pub allocated: Option<u64>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

/// What can be told of a volume from outside.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The newest copy.
    pub superblock: Superblock,
    /// What is wrong with the other copy.
    pub damaged_copy: Option<String>,
    /// The media that hold bytes.
    pub media: Vec<MediumFound>,
    /// Who has it open, when somebody has.
    pub in_use: Option<String>,
    /// Other users can read or change files of it: which, and the command that ends that.
    pub exposed: Option<String>,
}

/// Reads what a volume says of itself. Takes no lock, so that it works while the volume is served, and
/// changes nothing.
///
/// # Errors
/// No volume, or a superblock that cannot be read.
pub fn inspect(dir: impl AsRef<Path>) -> Result<Inspection> {
    let dir = dir.as_ref();
    let (superblock, damaged_copy, in_use) = SuperblockFile::peek(dir)?;
    let media = superblock.media.iter().map(|record| {
        let path = path_of(dir, record);
        let meta = std::fs::metadata(&path);
        let problem = match &meta {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some("is missing".to_owned()),
            Err(e) => Some(format!("cannot be looked at: {e}")),
            Ok(m) if m.is_file() && m.len() != record.bytes => {
                Some(format!("has {} bytes and had {} when the volume was made", m.len(), record.bytes))
            }
            Ok(_) => None,
        };
        let allocated = meta.ok().filter(std::fs::Metadata::is_file).map(|m| m.blocks() * 512);
        MediumFound {
            name: record.name.clone(),
            kind: record.kind,
            backing: record.backing,
            path,
            bytes: record.bytes,
            allocated,
            problem,
        }
    });
    let media: Vec<MediumFound> = media.collect();
    let files = of_volume(dir, media.iter().map(|medium| medium.path.clone()));
    let exposed = exposed(files.iter().map(PathBuf::as_path));
    Ok(Inspection { media, superblock, damaged_copy, in_use, exposed })
}
