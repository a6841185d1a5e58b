//! Inspection of a volume without locking or changing it.

use crate::access::exposed;
use crate::backing::path_of;
use crate::error::Result;
use crate::lock;
use crate::superblock::{Backing, FILE_NAME, MediumRecord, Superblock, SuperblockFile};
use frit_core::MediumKind;
use frit_media::FileAccess;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// State of a medium's file.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MediumStatus {
    /// Its name in the stack.
    pub name: String,
    /// Kind of the medium.
    pub kind: MediumKind,
    /// Kind of file that holds its bytes.
    pub backing: Backing,
    /// Path of the file, or URL of the store of objects.
    pub path: PathBuf,
    /// The way in which the file is accessed.
    pub access: FileAccess,
    /// Required size, in bytes.
    pub bytes: u64,
    /// Allocated bytes; `None` for a device.
    pub allocated: Option<u64>,
    /// The defect, if any.
    pub problem: Option<String>,
}

/// State of a volume as visible without opening it.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The newest valid copy of the superblock.
    pub superblock: Superblock,
    /// The defect of the other copy, if any.
    pub damaged_copy: Option<String>,
    /// The media that hold the volume's bytes.
    pub media: Vec<MediumStatus>,
    /// The process that has the volume open, if any; empty if it is unknown.
    pub in_use: Option<String>,
    /// A message that names the files that other users can read or change, and the command that
    /// prevents it.
    pub exposed: Option<String>,
}

/// Returns the state of a store of objects, which an inspection does not access.
fn object_store_status(record: &MediumRecord) -> MediumStatus {
    MediumStatus {
        name: record.name.clone(),
        kind: record.kind,
        backing: record.backing,
        path: (&record.path).into(),
        access: record.access,
        bytes: record.bytes,
        allocated: None,
        problem: None,
    }
}

/// Reads the superblock of a volume and the state of its files. Takes no lock, so that it works
/// while the volume is served, and changes nothing.
///
/// # Errors
/// The directory is not a volume, or the superblock cannot be read.
pub fn inspect(dir: impl AsRef<Path>) -> Result<Inspection> {
    let dir = dir.as_ref();
    let (superblock, damaged_copy, in_use) = SuperblockFile::peek(dir)?;
    let media = superblock.media.iter().map(|record| {
        if !record.is_file() {
            return object_store_status(record);
        }
        let path = path_of(dir, record);
        let meta = std::fs::metadata(&path);
        let problem = match &meta {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some("is missing".to_owned()),
            Err(e) => Some(format!("cannot be examined: {e}")),
            Ok(m) if m.is_file() && m.len() != record.bytes => {
                Some(format!("has {} bytes and had {} when the volume was created", m.len(), record.bytes))
            }
            Ok(_) => None,
        };
        let allocated = meta.ok().filter(std::fs::Metadata::is_file).map(|m| m.blocks() * 512);
        MediumStatus {
            name: record.name.clone(),
            kind: record.kind,
            backing: record.backing,
            path,
            access: record.access,
            bytes: record.bytes,
            allocated,
            problem,
        }
    });
    let media: Vec<MediumStatus> = media.collect();
    let own = media.iter().filter(|medium| medium.backing != Backing::ObjectStore);
    let files = volume_paths(dir, own.map(|medium| medium.path.clone()));
    let exposed = exposed(files.iter().map(PathBuf::as_path));
    Ok(Inspection { media, superblock, damaged_copy, in_use, exposed })
}

/// Returns the directory and files of a volume that [`exposed`] examines.
fn volume_paths(dir: &Path, media: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let volume_files = [dir.to_owned(), dir.join(FILE_NAME), dir.join(lock::FILE_NAME)];
    volume_files.into_iter().chain(media).collect()
}
