//! Contents of files as data of the engine.

use frit_fs::FileContents;
use frit_isp::{Destination, Source, SourceError};
use std::sync::Arc;

/// Contents of a file as data of the processing engine.
#[derive(Debug)]
pub struct EngineContents(pub Arc<dyn FileContents>);

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
}
