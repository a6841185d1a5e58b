//! Requests that fail, are slow, or lose their answers.

use crate::common::*;
use frit_media::object::RemoteObjects;
use frit_objects::Bucket;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Claims, puts, reads, deletes, flushes and releases, and checks the result.
fn script(bucket: &Arc<FaultyBucket>) {
    let mut live = live(bucket, settings());
    assert_eq!(live.claim(0).unwrap(), 1);
    for number in 0..3 {
        put(&mut live, id(1, number)).unwrap();
    }
    live.flush().unwrap();
    live.delete(id(1, 1)).unwrap();
    live.delete(id(1, 1)).unwrap();
    put(&mut live, id(1, 3)).unwrap();
    assert_eq!(get(&mut live, id(1, 0)).unwrap(), contents(id(1, 0), 1000));
    assert_eq!(get(&mut live, id(1, 3)).unwrap(), contents(id(1, 3), 1000));
    live.flush().unwrap();
    let sizes: Vec<_> = [0, 2, 3].map(|n| (id(1, n), 1000)).into();
    assert_eq!(live.list().unwrap(), sizes);
    live.release().unwrap();
    assert!(put(&mut live, id(1, 9)).unwrap_err().to_string().contains("was not claimed"));
}

#[test]
fn every_request_can_fail_or_lose_its_answer_once() {
    let bucket = FaultyBucket::reliable();
    script(&bucket);
    let requests = bucket.requests.load(Ordering::SeqCst);
    assert!(requests > 10, "{requests}");
    for fate in [Fate::Fails, Fate::AnswerLost] {
        for at in 0..requests + 2 {
            let mut number = 0;
            let bucket = FaultyBucket::new(Arc::default(), move |_| {
                number += 1;
                if number == at + 1 { fate } else { Fate::Normal }
            });
            script(&bucket);
            let mut names: Vec<_> = bucket.inner.list("").unwrap().into_iter().map(|(n, _)| n).collect();
            names.sort();
            assert_eq!(
                names,
                ["seg-1-0", "seg-1-2", "seg-1-3", "writer-1", "writer-1.closed"],
                "{fate:?} {at}"
            );
        }
    }
}

#[test]
fn an_object_of_another_program_is_not_taken_for_an_own_one() {
    let bucket = FaultyBucket::reliable();
    let mut live = claimed(&bucket, settings());
    bucket.inner.create("seg-1-5", &Arc::from(vec![9; 1000])).unwrap();
    put(&mut live, id(1, 5)).unwrap();
    let e = live.flush().unwrap_err().to_string();
    assert_eq!(e, "the object store test://store: put of object 1-5 failed: another object has its name");
}

#[test]
fn a_store_that_is_away_keeps_objects_in_a_bounded_queue_and_loses_none() {
    let bucket = FaultyBucket::reliable();
    let mut live = claimed(&bucket, short());
    put(&mut live, id(1, 0)).unwrap();
    live.flush().unwrap();
    bucket.set_down(true);
    for number in 1..4 {
        put(&mut live, id(1, number)).unwrap();
    }
    // Three objects are the bound.
    let e = put(&mut live, id(1, 4)).unwrap_err().to_string();
    assert!(e.contains("test://store: put of object 1-1 failed: connection refused"), "{e}");
    let e = live.flush().unwrap_err().to_string();
    assert!(e.contains("put of object 1-1 failed") && e.contains("the next flush tries again"), "{e}");
    assert!(live.flush().is_err(), "still away");
    // Objects of the queue can be read, and others cannot.
    assert_eq!(get(&mut live, id(1, 2)).unwrap(), contents(id(1, 2), 1000));
    assert!(get(&mut live, id(1, 0)).unwrap_err().to_string().contains("get of object 1-0 failed"));
    assert!(live.list().is_err() && live.refuses().is_none());
    bucket.set_down(false);
    live.flush().unwrap();
    put(&mut live, id(1, 4)).unwrap();
    live.flush().unwrap();
    assert_eq!(live.list().unwrap(), [0, 1, 2, 3, 4].map(|n| (id(1, n), 1000)));
    assert_eq!(get(&mut live, id(1, 1)).unwrap(), contents(id(1, 1), 1000));
}

#[test]
fn a_put_to_a_full_queue_goes_on_when_the_store_comes_back() {
    let bucket = FaultyBucket::reliable();
    let mut live = claimed(&bucket, settings());
    bucket.set_down(true);
    for number in 0..3 {
        put(&mut live, id(1, number)).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            bucket.set_down(false);
        });
        put(&mut live, id(1, 3)).unwrap();
    });
    assert!(!bucket.down.load(Ordering::SeqCst), "the put waited");
    live.flush().unwrap();
    assert_eq!(live.list().unwrap().len(), 4);
}

#[test]
fn a_refusal_is_reported_at_once_and_tried_again_by_the_next_flush() {
    let refuses = Arc::new(Mutex::new(true));
    let plan = {
        let refuses = refuses.clone();
        move |request: Request<'_>| match request {
            Request::Create(name) if name.starts_with("seg-") && *refuses.lock().unwrap() => Fate::Refused,
            _ => Fate::Normal,
        }
    };
    let bucket = FaultyBucket::new(Arc::default(), plan);
    let mut live = claimed(&bucket, settings());
    let begin = Instant::now();
    put(&mut live, id(1, 1)).unwrap();
    assert!(live.flush().unwrap_err().to_string().contains("put of object 1-1 failed: 403 Forbidden"));
    assert!(begin.elapsed() < settings().timeout / 2);
    *refuses.lock().unwrap() = false;
    live.flush().unwrap();
}

/// Lets creates of segments pass one by one.
#[derive(Default)]
struct Gate {
    open: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut open = self.open.lock().unwrap();
        while *open == 0 {
            open = self.changed.wait(open).unwrap();
        }
        *open -= 1;
    }

    fn open(&self, by: usize) {
        *self.open.lock().unwrap() += by;
        self.changed.notify_all();
    }
}

/// A bucket whose creates of segments wait for a gate.
#[derive(Debug)]
struct GatedBucket(Arc<FaultyBucket>, Arc<Gate>);

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}

impl Bucket for GatedBucket {
    fn create(&self, name: &str, data: &Arc<[u8]>) -> Result<(), frit_objects::BucketError> {
        if name.starts_with("seg-") {
            self.1.pass();
        }
        self.0.create(name, data)
    }
    fn read(&self, name: &str, at: u64, into: &mut [u8]) -> Result<(), frit_objects::BucketError> {
        self.0.read(name, at, into)
    }
    fn size(&self, name: &str) -> Result<u64, frit_objects::BucketError> {
        self.0.size(name)
    }
    fn remove(&self, name: &str) -> Result<(), frit_objects::BucketError> {
        self.0.remove(name)
    }
    fn list(&self, after: &str) -> Result<Vec<(String, u64)>, frit_objects::BucketError> {
        self.0.list(after)
    }
}

#[test]
fn puts_return_before_their_uploads_and_gets_find_them_in_the_queue() {
    let (bucket, gate) = (FaultyBucket::reliable(), Arc::<Gate>::default());
    let gated = Arc::new(GatedBucket(bucket.clone(), gate.clone()));
    let mut live = frit_objects::LiveObjects::new("test://gated", gated, settings());
    live.claim(0).unwrap();
    for number in 0..3 {
        put(&mut live, id(1, number)).unwrap();
    }
    assert!(bucket.inner.list("seg").unwrap().iter().all(|(name, _)| !name.starts_with("seg-")));
    assert_eq!(get(&mut live, id(1, 2)).unwrap(), contents(id(1, 2), 1000));
    assert_eq!(live.list().unwrap().len(), 3, "a list has the objects of the queue");
    let mut far = [0; 10];
    assert!(live.get(id(1, 2), 995, &mut far).is_err(), "past the end");
    // The fourth put waits for one upload, and no more.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            gate.open(1);
        });
        put(&mut live, id(1, 3)).unwrap();
    });
    assert!(bucket.inner.list("").unwrap().iter().filter(|(name, _)| name.starts_with("seg-")).count() == 1);
    gate.open(3);
    live.flush().unwrap();
    assert_eq!(bucket.inner.list("").unwrap().len(), 5);
}

#[test]
fn slow_uploads_run_in_parallel_and_no_more_than_the_connections() {
    let bucket = FaultyBucket::new(Arc::default(), |r| match r {
        Request::Create(name) if name.starts_with("seg-") => Fate::Slow(Duration::from_millis(60)),
        _ => Fate::Normal,
    });
    let mut live = claimed(&bucket, settings());
    let begin = Instant::now();
    for number in 0..9 {
        put(&mut live, id(1, number)).unwrap();
    }
    live.flush().unwrap();
    let took = begin.elapsed();
    assert_eq!(bucket.most_running.load(Ordering::SeqCst), 3);
    assert!(took >= Duration::from_millis(180) && took < Duration::from_millis(9 * 60), "{took:?}");
}

#[test]
fn a_writer_that_is_dropped_ends_its_threads() {
    let bucket = FaultyBucket::reliable();
    let mut live = claimed(&bucket, settings());
    bucket.set_down(true);
    put(&mut live, id(1, 1)).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    drop(live);
    assert!(begin.elapsed() < Duration::from_secs(5), "a wait for the next attempt is ended");
    let requests = bucket.requests.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(bucket.requests.load(Ordering::SeqCst), requests, "no request after the drop");
}
