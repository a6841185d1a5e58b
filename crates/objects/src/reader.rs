//! Reads of objects in a bucket and in the queue of uploads.

use crate::bucket::{Bucket, BucketError};
use crate::names;
use crate::retry::{Stop, retry};
use crate::uploads::Queued;
use frit_core::{Error, ObjectId, ObjectReader, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads of the objects of a bucket, from any thread.
#[derive(Debug)]
pub(crate) struct LiveReader {
    /// The bucket, for messages.
    pub(crate) store: String,
    pub(crate) bucket: Arc<dyn Bucket>,
    pub(crate) queued: Queued,
    /// Time for which a request is repeated.
    pub(crate) timeout: Duration,
}

impl LiveReader {
    fn failed(&self, id: ObjectId, e: &BucketError) -> Error {
        Error::Medium { what: format!("the object store {}: get of object {id} failed: {e}", self.store) }
    }
}

impl ObjectReader for LiveReader {
    fn get(&self, id: ObjectId, at: u32, into: &mut [u8]) -> Result<()> {
        if let Some(data) = self.queued.find(id) {
            let at = at as usize;
            let part = data.get(at..at.saturating_add(into.len()));
            let past_end = BucketError::Lasting("the range is past the end".into());
            into.copy_from_slice(part.ok_or_else(|| self.failed(id, &past_end))?);
            return Ok(());
        }
        let name = names::segment(id);
        // The wait of a read is never ended early.
        let read = retry(Instant::now(), self.timeout, &Stop::default(), || {
            self.bucket.read(&name, at.into(), into)
        });
        read.map_err(|e| self.failed(id, &e))
    }
}
