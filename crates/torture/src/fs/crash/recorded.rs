//! A medium that remembers what was written to it, and in which order it was fenced.

use super::bodies::Contents;
use frit_fs::{BodyId, Medium};
use std::sync::{Mutex, PoisonError};

/// Bytes of an aligned word: the most that a power cut leaves whole.
pub(super) const WORD: u64 = 8;

/// What happened to the medium.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// Aligned words were written from this one on.
    Words(u64, Vec<u64>),
    /// All before is durable.
    Fence,
    /// An operation returned.
    Done,
    /// A body holds this from now on, or is removed.
    Body(BodyId, Option<Contents>),
}

/// A medium in memory, for one thread.
#[derive(Debug)]
pub(super) struct Recorded(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    image: Vec<u8>,
    log: Vec<Event>,
}

impl Recorded {
    /// One that holds `image`.
    pub(super) fn new(image: Vec<u8>) -> Self {
        Self(Mutex::new(Inner { image, log: Vec::new() }))
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it holds now; from here on the log begins anew.
    pub(super) fn start(&self) -> Vec<u8> {
        let mut inner = self.inner();
        inner.log.clear();
        inner.image.clone()
    }

    /// An operation returned.
    pub(super) fn done(&self) {
        self.note(Event::Done);
    }

    /// Something happened beside the medium.
    pub(super) fn note(&self, event: Event) {
        self.inner().log.push(event);
    }

    /// What happened since the start.
    pub(super) fn log(&self) -> Vec<Event> {
        std::mem::take(&mut self.inner().log)
    }

    /// Changes bytes, and notes the words that they are in.
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
        inner.log.push(Event::Words(first as u64, words));
    }
}

impl Medium for Recorded {
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
        self.inner().log.push(Event::Fence);
    }

    fn sync(&self) -> frit_fs::Result<()> {
        Ok(())
    }
}
