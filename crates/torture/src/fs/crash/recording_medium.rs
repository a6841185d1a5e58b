//! A medium that records every write and every fence.

use super::stored_content::StoredContent;
use frit_fs::{ContentId, Medium};
use std::sync::{Mutex, PoisonError};

/// Bytes of an aligned word, the largest unit that a power cut does not tear.
pub(super) const WORD: u64 = 8;

/// An access to the medium, or a step of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum MediumEvent {
    /// A write of aligned words, from this one on.
    Words(u64, Vec<u64>),
    /// A fence: all writes before it are durable.
    Fence,
    /// An operation returned.
    Done,
    /// New contents of a content file, or its removal.
    ContentFile(ContentId, Option<StoredContent>),
}

/// A medium in memory that records its accesses, for one thread.
#[derive(Debug)]
pub(super) struct RecordingMedium(Mutex<RecordedImage>);

#[derive(Debug)]
struct RecordedImage {
    image: Vec<u8>,
    log: Vec<MediumEvent>,
}

impl RecordingMedium {
    /// Creates a medium that holds `image`.
    pub(super) fn new(image: Vec<u8>) -> Self {
        Self(Mutex::new(RecordedImage { image, log: Vec::new() }))
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, RecordedImage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a new log and returns the current image.
    pub(super) fn start(&self) -> Vec<u8> {
        let mut inner = self.inner();
        inner.log.clear();
        inner.image.clone()
    }

    /// Records the return of an operation.
    pub(super) fn done(&self) {
        self.note(MediumEvent::Done);
    }

    /// Records an event that is not an access to the medium.
    pub(super) fn note(&self, event: MediumEvent) {
        self.inner().log.push(event);
    }

    /// Returns the events since the start.
    pub(super) fn log(&self) -> Vec<MediumEvent> {
        std::mem::take(&mut self.inner().log)
    }

    /// Changes bytes and records the words that contain them.
    fn change(&self, at: u64, len: usize, change: impl FnOnce(&mut [u8])) {
        if len == 0 {
            return;
        }
        let mut inner = self.inner();
        let (at, end) = (at as usize, at as usize + len);
        change(&mut inner.image[at..end]);
        let first = at / WORD as usize;
        let words = inner.image[first * WORD as usize..end.next_multiple_of(WORD as usize)]
            .chunks_exact(WORD as usize)
            .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
            .collect();
        inner.log.push(MediumEvent::Words(first as u64, words));
    }
}

impl Medium for RecordingMedium {
    fn bytes(&self) -> u64 {
        self.inner().image.len() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.inner().image[at as usize..at as usize + into.len()]);
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.change(at, data.len(), |to| to.copy_from_slice(data));
    }

    fn write_data(&self, at: u64, data: &[u8]) {
        self.change(at, data.len(), |to| to.copy_from_slice(data));
    }

    fn zero(&self, at: u64, len: u64) {
        self.change(at, len as usize, |to| to.fill(0));
    }

    fn fence(&self) {
        self.inner().log.push(MediumEvent::Fence);
    }

    fn sync(&self) -> frit_fs::Result<()> {
        Ok(())
    }
}
