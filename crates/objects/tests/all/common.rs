//! A bucket that fails on demand, and helpers.

#![allow(unreachable_pub)] // the module is private

use frit_core::ObjectId;
use frit_media::object::RemoteObjects;
use frit_objects::{Bucket, BucketError, LiveObjects, LiveSettings, MemoryBucket};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request to a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    Create(&'a str),
    Read(&'a str),
    Size(&'a str),
    Remove(&'a str),
    List,
}

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Normal,
    /// The request does not reach the bucket.
    Fails,
    /// The request takes effect, and its answer is lost.
    AnswerLost,
    /// The bucket refuses the request, now and later.
    Refused,
    /// The request takes this long.
    Slow(Duration),
}

type Plan = dyn FnMut(Request<'_>) -> Fate + Send;

/// A bucket in memory whose requests have a fate.
pub struct FaultyBucket {
    pub inner: Arc<MemoryBucket>,
    plan: Mutex<Box<Plan>>,
    /// All requests fail.
    pub down: AtomicBool,
    /// Creates in progress, and the largest number of them.
    pub running: AtomicUsize,
    pub most_running: AtomicUsize,
    pub requests: AtomicUsize,
}

impl fmt::Debug for FaultyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyBucket")
    }
}

impl FaultyBucket {
    pub fn new(
        inner: Arc<MemoryBucket>,
        plan: impl FnMut(Request<'_>) -> Fate + Send + 'static,
    ) -> Arc<FaultyBucket> {
        Arc::new(FaultyBucket {
            inner,
            plan: Mutex::new(Box::new(plan)),
            down: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        })
    }

    pub fn reliable() -> Arc<FaultyBucket> {
        FaultyBucket::new(Arc::default(), |_| Fate::Normal)
    }

    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    fn run<T>(
        &self,
        request: Request<'_>,
        run: impl FnOnce() -> Result<T, BucketError>,
    ) -> Result<T, BucketError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if self.down.load(Ordering::SeqCst) {
            return Err(BucketError::Passing("connection refused".into()));
        }
        let fate = (self.plan.lock().unwrap())(request);
        match fate {
            Fate::Normal => run(),
            Fate::Fails => Err(BucketError::Passing("503 Slow Down".into())),
            Fate::AnswerLost => run().and(Err(BucketError::Passing("connection reset".into()))),
            Fate::Refused => Err(BucketError::Lasting("403 Forbidden".into())),
            Fate::Slow(time) => {
                std::thread::sleep(time);
                run()
            }
        }
    }
}

impl Bucket for FaultyBucket {
    fn create(&self, name: &str, data: &Arc<[u8]>) -> Result<(), BucketError> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let created = self.run(Request::Create(name), || self.inner.create(name, data));
        self.running.fetch_sub(1, Ordering::SeqCst);
        created
    }

    fn read(&self, name: &str, at: u64, into: &mut [u8]) -> Result<(), BucketError> {
        self.run(Request::Read(name), || self.inner.read(name, at, into))
    }

    fn size(&self, name: &str) -> Result<u64, BucketError> {
        self.run(Request::Size(name), || self.inner.size(name))
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.run(Request::Remove(name), || self.inner.remove(name))
    }

    fn list(&self, after: &str) -> Result<Vec<(String, u64)>, BucketError> {
        self.run(Request::List, || self.inner.list(after))
    }
}

pub fn settings() -> LiveSettings {
    LiveSettings {
        timeout: Duration::from_secs(20),
        connections: 3,
        takeover_waits: false,
        serial: 7,
        replaces: false,
    }
}

/// Settings with a short time limit, for stores that stay away.
pub fn short() -> LiveSettings {
    LiveSettings { timeout: Duration::from_millis(300), ..settings() }
}

pub fn live(bucket: &Arc<FaultyBucket>, settings: LiveSettings) -> LiveObjects {
    LiveObjects::new("test://store", bucket.clone(), settings)
}

pub fn claimed(bucket: &Arc<FaultyBucket>, settings: LiveSettings) -> LiveObjects {
    let mut live = live(bucket, settings);
    live.claim(0).unwrap();
    live
}

pub fn id(epoch: u32, number: u32) -> ObjectId {
    ObjectId { epoch, number }
}

pub fn contents(id: ObjectId, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 5) as u8 ^ (id.number * 7 + id.epoch) as u8).collect()
}

pub fn put(live: &mut LiveObjects, id: ObjectId) -> frit_core::Result<()> {
    live.put(id, &contents(id, 1000))
}

pub fn get(live: &mut LiveObjects, id: ObjectId) -> frit_core::Result<Vec<u8>> {
    let mut into = vec![0; 1000];
    live.get(id, 0, &mut into)?;
    Ok(into)
}
