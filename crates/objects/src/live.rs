//! The use of a bucket by one writer at a time.

use crate::bucket::{Bucket, BucketError};
use crate::reader::LiveReader;
use crate::retry::{Stop, retry};
use crate::uploads::{FailedUpload, Uploads, is_own};
use crate::writer::{WriterRecord, Writers};
use crate::{names, process};
use frit_core::{Error, ObjectId, ObjectReader, Result};
use frit_media::object::RemoteObjects;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Settings of the use of a bucket.
#[derive(Clone, Debug)]
pub struct LiveSettings {
    /// Time limit of a request, and the time for which it is repeated.
    pub timeout: Duration,
    /// Largest number of uploads at a time, and of objects in the queue.
    pub connections: usize,
    /// `true` if a claim waits for requests of a former writer that did not release the bucket.
    pub takeover_waits: bool,
    /// Serial number of the medium: a bucket of another medium is refused. 0 if it has none.
    pub serial: u64,
    /// The claim takes the bucket of another medium too, and deletes its objects.
    pub replaces: bool,
}

/// Objects in a bucket, with a queue of uploads.
#[derive(Debug)]
pub struct LiveObjects {
    /// The bucket, for messages.
    store: String,
    bucket: Arc<dyn Bucket>,
    settings: LiveSettings,
    uploads: Uploads,
    reader: Arc<LiveReader>,
    /// Waits of this thread are never ended early.
    stop: Stop,
    /// The epoch that this writer claimed.
    epoch: Option<u32>,
    /// Reason for which writes are refused.
    refused: Option<String>,
}

impl LiveObjects {
    /// Creates a reader of a bucket, which becomes its writer by a claim. `store` names the bucket in
    /// messages.
    #[must_use]
    pub fn new(store: &str, bucket: Arc<dyn Bucket>, settings: LiveSettings) -> LiveObjects {
        let uploads = Uploads::new(bucket.clone(), settings.connections, settings.timeout);
        let reader = LiveReader {
            store: store.into(),
            bucket: bucket.clone(),
            queued: uploads.queued(),
            timeout: settings.timeout,
        };
        LiveObjects {
            store: store.into(),
            bucket,
            settings,
            uploads,
            reader: Arc::new(reader),
            stop: Stop::default(),
            epoch: None,
            refused: None,
        }
    }

    fn failed(&self, what: &str, e: &BucketError) -> Error {
        Error::Medium { what: format!("the object store {}: {what}: {e}", self.store) }
    }

    fn upload_failed(&self, failed: &FailedUpload) -> Error {
        let FailedUpload { id, error } = failed;
        let kept = match error {
            BucketError::Passing(_) => "; the object is kept, and the next flush tries again",
            _ => "",
        };
        let what = format!("the object store {}: put of object {id} failed: {error}{kept}", self.store);
        Error::Medium { what }
    }

    /// Makes a request, and repeats it within the time limit.
    fn request<T>(
        &self,
        what: &str,
        request: impl FnMut() -> std::result::Result<T, BucketError>,
    ) -> Result<T> {
        retry(Instant::now(), self.settings.timeout, &self.stop, request).map_err(|e| self.failed(what, &e))
    }

    fn writable(&self) -> Result<u32> {
        if let Some(why) = &self.refused {
            return Err(Error::ReadOnly { why: why.clone() });
        }
        self.epoch.ok_or_else(|| Error::ReadOnly {
            why: format!("the object store {} was not claimed", self.store),
        })
    }

    fn refuse(&mut self, why: &str) -> Error {
        let why = format!("the object store {}: {why}", self.store);
        self.refused = Some(why.clone());
        Error::ReadOnly { why }
    }

    /// Checks that this writer is the newest.
    fn check_writer(&mut self) -> Result<()> {
        let epoch = self.writable()?;
        let writers = self.request("the list of writers failed", || Writers::list(&*self.bucket))?;
        match writers.last() {
            Some((newest, _)) if newest > epoch => {
                Err(self.refuse(&format!("another writer has taken over (epoch {newest})")))
            }
            _ if !writers.has(epoch) => {
                Err(self.refuse(&format!("the object of this writer (epoch {epoch}) was deleted")))
            }
            _ => Ok(()),
        }
    }

    /// Creates the object of this writer.
    fn create_writer(&mut self, epoch: u32, record: &WriterRecord) -> Result<()> {
        let (name, data) = (names::writer(epoch), record.encode());
        let created = retry(Instant::now(), self.settings.timeout, &self.stop, || {
            match self.bucket.create(&name, &data) {
                Err(BucketError::Exists) => is_own(&*self.bucket, &name, &data),
                created => created,
            }
        });
        created.map_err(|e| match e {
            BucketError::Lasting(_)
                if WriterRecord::read(&*self.bucket, epoch).is_ok_and(|r| r.is_some()) =>
            {
                self.refuse(&format!("another writer claims it at the same time (epoch {epoch})"))
            }
            e => self.failed("the claim failed", &e),
        })
    }

    /// Returns the time for which this writer has to wait after its claim, for requests of the former
    /// writer.
    fn wait_for_former(&self, former: Option<&WriterRecord>) -> Duration {
        let Some(former) = former else { return Duration::ZERO };
        if !self.settings.takeover_waits
            || (self.bucket.ends_with_process() && process::has_ended(&former.process))
        {
            return Duration::ZERO;
        }
        former.wait
    }

    /// Deletes objects of epochs before this one, and the objects of writers that nobody needs.
    fn clean_up(&self, epoch: u32, writers: &Writers, former: Option<u32>) -> Result<()> {
        if self.settings.replaces {
            let all = self.request("the list of objects failed", || self.bucket.list(""))?;
            let old = all.iter().filter(|(n, _)| names::parse_segment(n).is_some_and(|id| id.epoch < epoch));
            for (name, _) in old {
                self.request("a delete failed", || self.bucket.remove(name))?;
            }
        }
        // A writer that is left over does no harm, so failures do not matter.
        for old in writers.before(former.unwrap_or(0)) {
            let removed = self.bucket.remove(&names::closed(old));
            drop(removed.and_then(|()| self.bucket.remove(&names::writer(old))));
        }
        Ok(())
    }
}

impl RemoteObjects for LiveObjects {
    fn put(&mut self, id: ObjectId, data: &[u8]) -> Result<()> {
        self.writable()?;
        self.uploads.put(id, data).map_err(|failed| self.upload_failed(&failed))
    }

    fn get(&mut self, id: ObjectId, at: u32, into: &mut [u8]) -> Result<()> {
        self.reader.get(id, at, into)
    }

    fn reader(&self) -> Option<Arc<dyn ObjectReader>> {
        Some(self.reader.clone())
    }

    fn delete(&mut self, id: ObjectId) -> Result<()> {
        self.uploads.cancel(id);
        let limit = self.settings.timeout;
        let mut checked = Instant::now();
        self.check_writer()?;
        // The delete of a writer that was taken over must not arrive later than the new writer waits,
        // so it follows its check closely. The process may have been suspended between them.
        while checked.elapsed() > limit {
            checked = Instant::now();
            self.check_writer()?;
        }
        let name = names::segment(id);
        retry(checked, limit, &self.stop, || self.bucket.remove(&name))
            .map_err(|e| self.failed(&format!("delete of object {id} failed"), &e))
    }

    /// The check of the writer comes after the uploads: a writer that claims later finds all of them in
    /// its list.
    fn flush(&mut self) -> Result<()> {
        self.writable()?;
        self.uploads.flush().map_err(|failed| self.upload_failed(&failed))?;
        self.check_writer()
    }

    fn list(&mut self) -> Result<Vec<(ObjectId, u32)>> {
        let all = self.request("the list of objects failed", || self.bucket.list(""))?;
        let stored = all.iter().filter_map(|(name, size)| Some((names::parse_segment(name)?, *size)));
        let queued = self.uploads.sizes().into_iter().map(|(id, size)| (id, size as u64));
        let found: BTreeMap<ObjectId, u64> = stored.chain(queued).collect();
        let size = |(id, size): (ObjectId, u64)| {
            let what = format!("the object store {}: object {id} has {size} bytes, too many", self.store);
            u32::try_from(size).map(|size| (id, size)).map_err(|_| Error::Medium { what })
        };
        found.into_iter().map(size).collect()
    }

    fn claim(&mut self, epoch: u32) -> Result<u32> {
        let listed =
            |live: &LiveObjects| live.request("the list of writers failed", || Writers::list(&*live.bucket));
        let writers = listed(self)?;
        let last = writers.last();
        let former = match last {
            Some((last, _)) => self.request("the object of a writer cannot be read", || {
                WriterRecord::read(&*self.bucket, last)
            })?,
            None => None,
        };
        let serial = self.settings.serial;
        if let Some(former) = &former
            && former.serial != serial
            && former.serial != 0
            && !self.settings.replaces
        {
            let what = format!(
                "the object store {} belongs to another volume: serial number {:016x}, expected {serial:016x}",
                self.store, former.serial
            );
            return Err(Error::Medium { what });
        }
        // A writer whose record cannot be read may have any limit; that of this one is assumed.
        let own_wait = self.settings.timeout * 2;
        // No request of this writer itself is under way, apart from uploads.
        let own = self.epoch;
        let open = last.filter(|&(last, closed)| !closed && own != Some(last)).map(|_| {
            former
                .clone()
                .unwrap_or_else(|| WriterRecord { wait: own_wait, ..WriterRecord::new(own_wait, 0) })
        });
        // A writer that ends while it waits leaves its wait to the next one.
        let wait = open.as_ref().map_or(own_wait, |former| former.wait.max(own_wait));
        let above = last.map_or(0, |(last, _)| last).max(epoch);
        let next = above.checked_add(1).ok_or_else(|| Error::NoSpace {
            what: format!("the object store {} has used all of its epochs", self.store),
        })?;
        (self.refused, self.epoch) = (None, None);
        self.create_writer(next, &WriterRecord::new(wait, serial))?;
        self.epoch = Some(next);
        // Another writer may have claimed a higher epoch since the list.
        let complete = self.check_writer().and_then(|()| {
            std::thread::sleep(self.wait_for_former(open.as_ref()));
            self.clean_up(next, &writers, last.map(|(last, _)| last))
        });
        // A claim that is not complete allows no writes.
        complete.inspect_err(|_| self.epoch = None)?;
        // Later claims find the objects of this one.
        self.settings.replaces = false;
        Ok(next)
    }

    fn release(&mut self) -> Result<()> {
        let epoch = self.writable()?;
        let (name, data): (_, Arc<[u8]>) = (names::closed(epoch), Arc::new([]));
        self.request("the release failed", || match self.bucket.create(&name, &data) {
            Err(BucketError::Exists) => Ok(()),
            created => created,
        })?;
        self.epoch = None;
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.refused.clone()
    }
}
