//! Contents of files as data of the engine.

use frit_fs::FileContents;
use frit_fuse::Kernel;
use frit_isp::{Destination, Source, SourceError};
use std::sync::{Arc, OnceLock};

/// Contents of a file as data of the processing engine.
#[derive(Debug)]
pub struct EngineContents {
    contents: Arc<dyn FileContents>,
    /// Kernel whose cache has to drop what the engine changes.
    kernel: Option<Arc<OnceLock<Kernel>>>,
}

impl EngineContents {
    /// Returns contents of a file that is not mounted.
    #[must_use]
    pub fn new(contents: Arc<dyn FileContents>) -> EngineContents {
        EngineContents { contents, kernel: None }
    }

    /// Returns contents of a mounted file.
    pub(super) fn mounted(contents: Arc<dyn FileContents>, kernel: Arc<OnceLock<Kernel>>) -> EngineContents {
        EngineContents { contents, kernel: Some(kernel) }
    }
}

fn failed(error: &frit_fs::Error) -> SourceError {
    SourceError(error.to_string())
}

impl Source for EngineContents {
    fn len(&self) -> u64 {
        self.contents.bytes().unwrap_or(0)
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        self.contents.scan(at, len, each).map_err(|e| failed(&e))
    }

    fn version(&self) -> u64 {
        self.contents.version().unwrap_or(0)
    }
}

impl Destination for EngineContents {
    fn write(&self, at: u64, data: &[u8]) -> Result<(), SourceError> {
        self.contents.write(at, data).map_err(|e| failed(&e))?;
        // A thread of the engine holds no lock of the kernel, and answers no request that holds one of a
        // page (`page_invalidation`).
        if let Some(kernel) = self.kernel.as_ref().and_then(|kernel| kernel.get()) {
            // The kernel may have forgotten the inode already.
            let _ = kernel.inval_inode(self.contents.ino().0, at as i64, data.len() as i64);
        }
        Ok(())
    }
}
