//! Objects in memory, shared by name within the process.

use crate::bucket::{Bucket, BucketError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Objects in memory.
#[derive(Default, Debug)]
pub struct MemoryBucket {
    objects: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

/// The buckets that have a name. They live as long as they are used.
static NAMED: Mutex<BTreeMap<String, Weak<MemoryBucket>>> = Mutex::new(BTreeMap::new());

impl MemoryBucket {
    /// Returns the bucket of a name, which all users in this process share.
    #[must_use]
    pub fn named(name: &str) -> Arc<MemoryBucket> {
        let mut all = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = all.get(name).and_then(Weak::upgrade) {
            return bucket;
        }
        let bucket = Arc::new(MemoryBucket::default());
        all.retain(|_, bucket| bucket.strong_count() > 0);
        all.insert(name.into(), Arc::downgrade(&bucket));
        bucket
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Arc<[u8]>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket for MemoryBucket {
    fn create(&self, name: &str, data: &Arc<[u8]>) -> Result<(), BucketError> {
        let mut objects = self.objects();
        if objects.contains_key(name) {
            return Err(BucketError::Exists);
        }
        objects.insert(name.into(), data.clone());
        Ok(())
    }

    fn read(&self, name: &str, at: u64, into: &mut [u8]) -> Result<(), BucketError> {
        let objects = self.objects();
        let data = objects.get(name).ok_or(BucketError::Missing)?;
        let range = usize::try_from(at).ok().and_then(|at| data.get(at..at.checked_add(into.len())?));
        into.copy_from_slice(range.ok_or_else(|| BucketError::Lasting("the range is past the end".into()))?);
        Ok(())
    }

    fn size(&self, name: &str) -> Result<u64, BucketError> {
        self.objects().get(name).map(|data| data.len() as u64).ok_or(BucketError::Missing)
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.objects().remove(name);
        Ok(())
    }

    fn list(&self, after: &str) -> Result<Vec<(String, u64)>, BucketError> {
        let objects = self.objects();
        let all = objects.iter().filter(|(name, _)| name.as_str() > after);
        Ok(all.map(|(name, data)| (name.clone(), data.len() as u64)).collect())
    }

    fn ends_with_process(&self) -> bool {
        true
    }
}
