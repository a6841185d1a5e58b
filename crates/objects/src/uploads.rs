//! A bounded queue of uploads, and the threads that make them.
//!
//! An object stays in the queue until the bucket has it. An object whose upload failed stays too, and
//! counts towards the bound, so that memory is bounded while a bucket is away.

use crate::bucket::{Bucket, BucketError};
use crate::names;
use crate::retry::{Stop, retry};
use frit_core::ObjectId;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// State of an upload.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Stage {
    Waiting,
    Running,
    Failed(BucketError),
}

#[derive(Debug)]
struct Upload {
    data: Arc<[u8]>,
    stage: Stage,
}

#[derive(Default, Debug)]
struct Queue {
    objects: BTreeMap<ObjectId, Upload>,
    ended: bool,
}

impl Queue {
    fn is_busy(&self) -> bool {
        self.objects.values().any(|u| !matches!(u.stage, Stage::Failed(_)))
    }

    fn failed(&self) -> Option<FailedUpload> {
        self.objects.iter().find_map(|(&id, u)| match &u.stage {
            Stage::Failed(error) => Some(FailedUpload { id, error: error.clone() }),
            _ => None,
        })
    }

    fn restart(&mut self) {
        for u in self.objects.values_mut().filter(|u| matches!(u.stage, Stage::Failed(_))) {
            u.stage = Stage::Waiting;
        }
    }
}

/// An upload that failed, and stays in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FailedUpload {
    pub(crate) id: ObjectId,
    pub(crate) error: BucketError,
}

#[derive(Debug)]
struct Shared {
    bucket: Arc<dyn Bucket>,
    limit: Duration,
    stop: Stop,
    queue: Mutex<Queue>,
    /// An object waits for a thread.
    work: Condvar,
    /// An upload ended.
    done: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_done<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.done.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes uploads until the end of the queue.
    fn work(&self) {
        loop {
            let mut queue = self.queue();
            let (id, data) = loop {
                if queue.ended {
                    return;
                }
                if let Some((&id, u)) = queue.objects.iter_mut().find(|(_, u)| u.stage == Stage::Waiting) {
                    u.stage = Stage::Running;
                    break (id, u.data.clone());
                }
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            let uploaded = catch_unwind(AssertUnwindSafe(|| self.upload(id, &data)))
                .unwrap_or_else(|_| Err(BucketError::Lasting("the upload panicked".into())));
            let mut queue = self.queue();
            match uploaded {
                Ok(()) => drop(queue.objects.remove(&id)),
                Err(error) => {
                    if let Some(u) = queue.objects.get_mut(&id) {
                        u.stage = Stage::Failed(error);
                    }
                }
            }
            self.done.notify_all();
        }
    }

    fn upload(&self, id: ObjectId, data: &Arc<[u8]>) -> Result<(), BucketError> {
        let name = names::segment(id);
        retry(Instant::now(), self.limit, &self.stop, || match self.bucket.create(&name, data) {
            Err(BucketError::Exists) => is_own(&*self.bucket, &name, data),
            created => created,
        })
    }
}

/// Accepts an object that exists if it has these contents: an earlier attempt reached the bucket, and
/// its answer was lost.
pub(crate) fn is_own(bucket: &dyn Bucket, name: &str, data: &[u8]) -> Result<(), BucketError> {
    let size = match bucket.size(name) {
        // The bucket refused the name because of a request that is still in progress.
        Err(BucketError::Missing) => {
            return Err(BucketError::Passing("another request for the name is in progress".into()));
        }
        size => size?,
    };
    if size == data.len() as u64 {
        let mut found = vec![0; data.len()];
        bucket.read(name, 0, &mut found)?;
        if found == data {
            return Ok(());
        }
    }
    Err(BucketError::Lasting("another object has its name".into()))
}

/// The objects in a queue of uploads.
#[derive(Debug)]
pub(crate) struct Queued(Arc<Shared>);

impl Queued {
    /// Returns the bytes of an object in the queue.
    pub(crate) fn find(&self, id: ObjectId) -> Option<Arc<[u8]>> {
        self.0.queue().objects.get(&id).map(|u| u.data.clone())
    }
}

/// Uploads to a bucket.
#[derive(Debug)]
pub(crate) struct Uploads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    most: usize,
}

impl Uploads {
    /// Creates an empty queue for at most `most` objects, each with a thread when it needs one. An
    /// upload is repeated for `limit`.
    pub(crate) fn new(bucket: Arc<dyn Bucket>, most: usize, limit: Duration) -> Uploads {
        let shared = Shared {
            bucket,
            limit,
            stop: Stop::default(),
            queue: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
        };
        Uploads { shared: Arc::new(shared), threads: Vec::new(), most: most.max(1) }
    }

    /// Returns a handle for the objects in the queue.
    pub(crate) fn queued(&self) -> Queued {
        Queued(self.shared.clone())
    }

    /// Returns the objects in the queue and their sizes in bytes.
    pub(crate) fn sizes(&self) -> Vec<(ObjectId, usize)> {
        self.shared.queue().objects.iter().map(|(&id, u)| (id, u.data.len())).collect()
    }

    /// Adds an object. Waits while the queue is full.
    ///
    /// # Errors
    /// The queue is full of objects whose uploads failed, and failed again.
    pub(crate) fn put(&mut self, id: ObjectId, data: &[u8]) -> Result<(), FailedUpload> {
        let mut queue = self.shared.queue();
        if queue.objects.contains_key(&id) {
            return Err(FailedUpload { id, error: BucketError::Exists });
        }
        let mut restarted = false;
        while queue.objects.len() >= self.most {
            if !queue.is_busy() {
                if let Some(failed) = queue.failed().filter(|_| restarted) {
                    return Err(failed);
                }
                queue.restart();
                restarted = true;
                self.shared.work.notify_all();
            }
            queue = self.shared.wait_done(queue);
        }
        if self.threads.len() <= queue.objects.len() {
            let shared = self.shared.clone();
            let spawned = std::thread::Builder::new().name("upload".into()).spawn(move || shared.work());
            match spawned {
                Ok(thread) => self.threads.push(thread),
                Err(e) if self.threads.is_empty() => {
                    let error = BucketError::Passing(format!("cannot start a thread: {e}"));
                    return Err(FailedUpload { id, error });
                }
                // The threads that exist make the upload.
                Err(_) => {}
            }
        }
        queue.objects.insert(id, Upload { data: data.into(), stage: Stage::Waiting });
        self.shared.work.notify_one();
        Ok(())
    }

    /// Removes an object from the queue, after its current upload has ended.
    pub(crate) fn cancel(&self, id: ObjectId) {
        let mut queue = self.shared.queue();
        while queue.objects.get(&id).is_some_and(|u| u.stage == Stage::Running) {
            queue = self.shared.wait_done(queue);
        }
        queue.objects.remove(&id);
        // A caller may wait for space.
        self.shared.done.notify_all();
    }

    /// Waits for all uploads. Those that failed before are tried again.
    ///
    /// # Errors
    /// The first upload that failed. It stays in the queue.
    pub(crate) fn flush(&self) -> Result<(), FailedUpload> {
        let mut queue = self.shared.queue();
        queue.restart();
        self.shared.work.notify_all();
        while queue.is_busy() {
            queue = self.shared.wait_done(queue);
        }
        queue.failed().map_or(Ok(()), Err)
    }
}

impl Drop for Uploads {
    /// Ends the threads. Requests that have begun are completed; uploads that wait are dropped.
    fn drop(&mut self) {
        self.shared.stop.stop();
        self.shared.queue().ended = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}
