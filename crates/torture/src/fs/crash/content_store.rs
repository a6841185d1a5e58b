//! External contents in memory, for power cuts of a file system that keeps contents in a pool. Each
//! change is durable at once and recorded in the medium's log. Only a removal may be undone by a
//! cut.

use super::recording_medium::{MediumEvent, RecordingMedium};
use super::stored_content::{ContentSnapshot, PAGE, StoredContent};
use frit_fs::{
    Allocate, ContentFile, ContentId, ContentMetadata, ContentStore, Error, Result, Seek, StatFs, Time,
};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A pool of content files in memory.
#[derive(Debug)]
pub(super) struct MemoryContentStore {
    uuid: u128,
    inner: Arc<SharedContents>,
}

#[derive(Debug)]
struct SharedContents {
    store: Mutex<BTreeMap<ContentId, Arc<Mutex<StoredContent>>>>,
    log: Option<Arc<RecordingMedium>>,
}

/// An open content file.
#[derive(Debug)]
struct OpenContent {
    of: ContentId,
    contents: Arc<Mutex<StoredContent>>,
    inner: Arc<SharedContents>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryContentStore {
    /// Creates a pool with the content files of a store. Changes are recorded in `log`.
    pub(super) fn new(uuid: u128, store: &ContentSnapshot, log: Option<Arc<RecordingMedium>>) -> Arc<Self> {
        let store =
            store.iter().map(|(of, contents)| (*of, Arc::new(Mutex::new(contents.clone())))).collect();
        Arc::new(Self { uuid, inner: Arc::new(SharedContents { store: Mutex::new(store), log }) })
    }

    /// Returns a copy of all content files.
    pub(super) fn store(&self) -> ContentSnapshot {
        locked(&self.inner.store).iter().map(|(of, contents)| (*of, locked(contents).clone())).collect()
    }
}

impl SharedContents {
    fn note(&self, event: MediumEvent) {
        if let Some(log) = &self.log {
            log.note(event);
        }
    }
}

impl ContentStore for MemoryContentStore {
    fn uuid(&self) -> u128 {
        self.uuid
    }

    fn open(&self, of: ContentId, make: bool) -> Result<Option<Arc<dyn ContentFile>>> {
        let mut store = locked(&self.inner.store);
        if make && !store.contains_key(&of) {
            store.insert(of, Arc::default());
            self.inner.note(MediumEvent::ContentFile(of, Some(StoredContent::default())));
        }
        let found = store.get(&of).map(Arc::clone);
        Ok(found.map(|contents| Arc::new(OpenContent { of, contents, inner: Arc::clone(&self.inner) }) as _))
    }

    fn look(&self, of: ContentId) -> Result<Option<ContentMetadata>> {
        Ok(locked(&self.inner.store).get(&of).map(|contents| locked(contents).look()))
    }

    fn remove(&self, of: ContentId) -> Result<()> {
        if locked(&self.inner.store).remove(&of).is_some() {
            self.inner.note(MediumEvent::ContentFile(of, None));
        }
        Ok(())
    }

    fn all(&self) -> Result<Vec<ContentId>> {
        Ok(locked(&self.inner.store).keys().copied().collect())
    }

    fn usage(&self) -> Result<StatFs> {
        Ok(StatFs { block_bytes: PAGE as u32, blocks: 1 << 20, blocks_free: 1 << 19 })
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

impl OpenContent {
    /// Changes the content file, and records the change unless the file was removed: a removed file
    /// does not exist after a cut.
    fn change(&self, change: impl FnOnce(&mut StoredContent)) {
        let mut contents = locked(&self.contents);
        change(&mut contents);
        contents.mtime += 1;
        let store = locked(&self.inner.store);
        if store.get(&self.of).is_some_and(|there| Arc::ptr_eq(there, &self.contents)) {
            self.inner.note(MediumEvent::ContentFile(self.of, Some(contents.clone())));
        }
    }
}

impl ContentFile for OpenContent {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        Ok(locked(&self.contents).read(at, into))
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<usize> {
        self.change(|contents| contents.write(at, data));
        Ok(data.len())
    }

    fn resize(&self, to: u64) -> Result<()> {
        self.change(|contents| {
            contents.zero(to, u64::MAX / PAGE * PAGE);
            contents.size = to;
        });
        Ok(())
    }

    fn allocate(&self, how: Allocate, at: u64, len: u64) -> Result<()> {
        self.change(|contents| {
            if !matches!(how, Allocate::Extend | Allocate::Keep) {
                contents.zero(at, at + len);
            }
            if matches!(how, Allocate::Extend | Allocate::Zero) {
                contents.size = contents.size.max(at + len);
            }
        });
        Ok(())
    }

    fn seek(&self, what: Seek, at: u64) -> Result<u64> {
        let contents = locked(&self.contents);
        if at >= contents.size {
            return Err(Error::BeyondEnd);
        }
        let there = |number: u64| contents.pages.contains_key(&number);
        match what {
            Seek::Data if there(at / PAGE) => Ok(at),
            Seek::Data => {
                let next = contents.pages.range(at / PAGE..).next().ok_or(Error::BeyondEnd)?;
                Ok(next.0 * PAGE)
            }
            Seek::Hole if !there(at / PAGE) => Ok(at),
            Seek::Hole => {
                let hole = (at / PAGE..).find(|number| !there(*number)).unwrap_or(u64::MAX / PAGE);
                Ok((hole * PAGE).min(contents.size))
            }
        }
    }

    fn look(&self) -> Result<ContentMetadata> {
        Ok(locked(&self.contents).look())
    }

    fn set_times(&self, atime: Option<Time>, mtime: Option<Time>) -> Result<()> {
        self.change(|contents| {
            contents.atime = atime.map_or(contents.atime, |time| time.0);
            // `change` advances the time by one afterwards.
            contents.mtime = mtime.map_or(contents.mtime, |time| time.0 - 1);
        });
        Ok(())
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        None
    }
}
