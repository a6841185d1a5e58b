//! Gets that the caller makes without the lock of the layer.

use super::entry::checksum;
use super::layer::Segments;
use crate::deferral::BufferScope;
use frit_core::{
    BlockingAccess, BlockingMedium, DeferredPart, Error, MediumKind, ObjectId, ObjectReader, Result,
};
use std::ops::Range;
use std::sync::Arc;

/// Deferred gets of the current request.
#[derive(Default)]
pub(super) struct Gets {
    /// Handle of the store; `None` as long as nothing is deferred.
    pub(super) reader: Option<Arc<dyn ObjectReader>>,
    pub(super) scope: BufferScope,
    parts: Vec<DeferredPart>,
}

impl Gets {
    /// Defers a get, if it goes into the buffer of the current request. Returns `true` if it did.
    pub(super) fn defer(&mut self, id: ObjectId, at: u32, into: &[u8]) -> bool {
        let (Some(reader), Some(part)) = (&self.reader, self.scope.find(into)) else { return false };
        let medium = Arc::new(OneObject { reader: reader.clone(), id });
        let accesses = vec![BlockingAccess::Read { at: at.into(), into: part }];
        self.parts.push(DeferredPart { medium, accesses });
        true
    }

    pub(super) fn end(&mut self) -> Vec<DeferredPart> {
        self.scope.end();
        std::mem::take(&mut self.parts)
    }
}

/// An object as a medium. Its addresses are bytes of the object.
#[derive(Debug)]
struct OneObject {
    reader: Arc<dyn ObjectReader>,
    id: ObjectId,
}

impl OneObject {
    fn immutable(at: u64) -> Result<()> {
        Err(Error::Rule { medium: MediumKind::Object, at, what: "a change of an object" })
    }
}

impl BlockingMedium for OneObject {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.reader.get(self.id, at as u32, into)
    }

    fn write(&self, at: u64, _: &[u8]) -> Result<()> {
        OneObject::immutable(at)
    }

    fn zero(&self, at: u64, _: u64) -> Result<()> {
        OneObject::immutable(at)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

impl Segments {
    /// Returns `true` if the whole chunks of a range have these bytes. Chunks that are read in part
    /// are not deferred.
    pub(super) fn has_checksums_of(&self, at: u64, bytes: &[u8]) -> bool {
        let chunk = self.chunk_len();
        let skipped = (at.next_multiple_of(chunk as u64) - at) as usize;
        let first = ((at + skipped as u64) / chunk as u64) as usize;
        let whole = bytes.get(skipped..).unwrap_or_default().chunks_exact(chunk);
        whole.zip(first..).all(|(b, i)| {
            let entry = &self.entries[i];
            !entry.is_mapped() || checksum(b, i as u32) == entry.sum
        })
    }

    pub(super) fn share_store(&mut self) -> bool {
        self.gets.reader = self.store.reader();
        self.gets.reader.is_some()
    }

    pub(super) fn begin_gets(&mut self, buffer: Range<usize>) {
        self.gets.scope.begin(buffer);
    }
}
