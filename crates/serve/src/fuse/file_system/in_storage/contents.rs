//! Contents of files as data of the engine.

use crate::fuse::file_system::killpriv::{KillprivCache, PrivilegeLoss, Writer};
use crate::fuse::file_system::requester::Credentials;
use frit_fs::{FILE_MAX, FileContents, FileSystem};
use frit_fuse::Kernel;
use frit_isp::{Destination, Source, SourceError};
use std::sync::{Arc, OnceLock};

/// Contents of a file as data of the processing engine.
#[derive(Debug)]
pub struct EngineContents(Arc<dyn FileContents>);

impl EngineContents {
    /// Returns contents of a file. What the engine writes is not announced to the kernel, so a mounted file
    /// can only be read.
    #[must_use]
    pub fn new(contents: Arc<dyn FileContents>) -> EngineContents {
        EngineContents(contents)
    }
}

fn failed(error: &frit_fs::Error) -> SourceError {
    SourceError(error.to_string())
}

impl Source for EngineContents {
    fn len(&self) -> u64 {
        self.0.bytes().unwrap_or(0)
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        self.0.scan(at, len, each).map_err(|e| failed(&e))
    }

    fn version(&self) -> u64 {
        self.0.version().unwrap_or(0)
    }
}

impl Destination for EngineContents {
    fn write(&self, at: u64, data: &[u8]) -> Result<(), SourceError> {
        self.0.write(at, data).map_err(|e| failed(&e))
    }

    fn bytes_max(&self) -> u64 {
        FILE_MAX
    }
}

/// Mounted file that the engine writes, with the effects of a write by the author of the instruction.
#[derive(Debug)]
pub(super) struct MountedDestination<F> {
    pub(super) contents: Arc<dyn FileContents>,
    pub(super) files: Arc<F>,
    pub(super) killpriv: Arc<KillprivCache>,
    /// Authors of the instruction. Privileges stay that each of them may keep.
    pub(super) authors: Arc<[Credentials]>,
    /// Limit of the sizes of files that the author writes (RLIMIT_FSIZE).
    pub(super) bytes_max: Option<u64>,
    /// Kernel whose cache has to drop what the engine changes.
    pub(super) kernel: Arc<OnceLock<Kernel>>,
}

impl<F: FileSystem> MountedDestination<F> {
    /// Makes the kernel drop pages and attributes, or with a negative offset the attributes.
    ///
    /// A thread of the engine holds no lock of the kernel, and answers no request that holds one of a page
    /// (`page_invalidation`).
    fn invalidate(&self, at: i64, len: i64) {
        if let Some(kernel) = self.kernel.get() {
            // The kernel may have forgotten the inode already.
            let _ = kernel.inval_inode(self.contents.ino().0, at, len);
        }
    }
}

impl<F: FileSystem> Destination for MountedDestination<F> {
    fn write(&self, at: u64, data: &[u8]) -> Result<(), SourceError> {
        let (loss, writer) = (PrivilegeLoss::Unprivileged, Writer::Authors(&self.authors));
        let lost = self.killpriv.remove(&*self.files, self.contents.ino(), loss, writer);
        if lost.map_err(|e| failed(&e))? {
            // The kernel would run a program with the mode that it has cached.
            self.invalidate(-1, 0);
        }
        let most = self.bytes_max.map_or(u64::MAX, |max| max.saturating_sub(at));
        let fits = data.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        if fits > 0 {
            self.contents.write(at, &data[..fits]).map_err(|e| failed(&e))?;
            self.invalidate(at as i64, fits as i64);
        }
        match self.bytes_max {
            Some(max) if fits < data.len() => Err(SourceError(format!(
                "files that the program writes may have at most {max} bytes (ulimit -f); raise this limit before \
                 the program starts"
            ))),
            _ => Ok(()),
        }
    }

    fn bytes_max(&self) -> u64 {
        FILE_MAX
    }
}
