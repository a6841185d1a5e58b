//! Objects as files of a directory.
//!
//! An object is written to a temporary file, which is synced and then linked to its name. A link
//! fails if the name exists, so of two writers one wins. The sync of the directory makes the name
//! durable. A crash leaves at most a temporary file, which the next opening for writing removes.

use crate::bucket::{Bucket, BucketError};
use frit_core::paths;
use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat, statat, unlinkat};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prefix of the names of temporary files, followed by the number of the process, and one that others cannot guess.
const TEMPORARY: &str = ".frit-";

/// Objects as files of a directory.
#[derive(Debug)]
pub struct DirectoryBucket {
    path: PathBuf,
    /// The directory. All objects are reached through it, wherever its path leads meanwhile.
    dir: File,
}

impl DirectoryBucket {
    /// Opens a directory. If `creates` is true, it is created if it is missing, and temporary files
    /// of processes that have ended are removed.
    ///
    /// # Errors
    /// The directory does not exist or cannot be used.
    pub fn open(path: &Path, creates: bool) -> Result<DirectoryBucket, BucketError> {
        let failed = |e: std::io::Error| BucketError::Lasting(format!("{}: {e}", path.display()));
        if creates {
            paths::create_dir_all(path, 0o700).map_err(failed)?;
        }
        let dir = paths::open_dir(path).map_err(failed)?;
        let bucket = DirectoryBucket { dir, path: path.into() };
        if creates {
            bucket.remove_temporary_files().map_err(failed)?;
        }
        Ok(bucket)
    }

    fn remove_temporary_files(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let process =
                name.to_str().and_then(|n| n.strip_prefix(TEMPORARY)?.split_once('-')?.0.parse::<u32>().ok());
            if let Some(process) = process
                && !Path::new(&format!("/proc/{process}")).exists()
            {
                drop(self.unlink(&name));
            }
        }
        Ok(())
    }

    fn unlink(&self, name: impl rustix::path::Arg) -> std::io::Result<()> {
        Ok(unlinkat(&self.dir, name, AtFlags::empty())?)
    }

    fn write_temporary_file(&self, name: &str, data: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.dir, name, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(data)?;
        file.sync_all()
    }
}

fn failed(e: &std::io::Error) -> BucketError {
    match e.kind() {
        ErrorKind::NotFound => BucketError::Missing,
        ErrorKind::AlreadyExists => BucketError::Exists,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::InvalidInput => {
            BucketError::Lasting(e.to_string())
        }
        // A full disk gets space, and a network file system comes back.
        _ => BucketError::Passing(e.to_string()),
    }
}

impl Bucket for DirectoryBucket {
    fn create(&self, name: &str, data: &Arc<[u8]>) -> Result<(), BucketError> {
        let temporary = format!("{TEMPORARY}{}-{:016x}", std::process::id(), paths::secret_number());
        let written = self
            .write_temporary_file(&temporary, data)
            .and_then(|()| Ok(linkat(&self.dir, &temporary, &self.dir, name, AtFlags::empty())?));
        // The name of the temporary file does not matter any more, and a crash may leave it.
        drop(self.unlink(&temporary));
        match written {
            // The directory is gone, which is not the meaning of a missing object.
            Err(e) if e.kind() == ErrorKind::NotFound => Err(BucketError::Lasting(e.to_string())),
            // A repetition finds the name of an attempt whose sync of the directory failed. The
            // name is durable only after a sync.
            written => self.dir.sync_all().and(written).map_err(|e| failed(&e)),
        }
    }

    fn read(&self, name: &str, at: u64, into: &mut [u8]) -> Result<(), BucketError> {
        // A link or a pipe in the place of an object would lead out of the directory, or be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.dir, name, flags, Mode::empty()).map_err(|e| failed(&e.into()))?;
        let file = File::from(file);
        match file.read_exact_at(into, at) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                Err(BucketError::Lasting("the range is past the end".into()))
            }
            read => read.map_err(|e| failed(&e)),
        }
    }

    fn size(&self, name: &str) -> Result<u64, BucketError> {
        let found = statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        found.map(|found| found.st_size as u64).map_err(|e| failed(&e.into()))
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        match self.unlink(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|e| failed(&e)),
        }
    }

    fn list(&self, after: &str) -> Result<Vec<(String, u64)>, BucketError> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(|e| failed(&e))? {
            let entry = entry.map_err(|e| failed(&e))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.as_str() <= after || name.starts_with(TEMPORARY) {
                continue;
            }
            match entry.metadata() {
                Ok(meta) if meta.is_file() => found.push((name, meta.len())),
                Ok(_) => {}
                // Deleted since its name was read.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(failed(&e)),
            }
        }
        Ok(found)
    }

    fn ends_with_process(&self) -> bool {
        true
    }
}
