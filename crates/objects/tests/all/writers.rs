//! Two writers: takeovers at every step, claims at the same time, waits after a claim.

use crate::common::*;
use frit_media::object::RemoteObjects;
use frit_objects::{Bucket, LiveObjects, LiveSettings, MemoryBucket, ReadOnlyObjects};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A step of the first writer.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put(u32),
    Delete(u32),
    Flush,
}

const STEPS: [Step; 8] = [
    Step::Put(1),
    Step::Put(2),
    Step::Flush,
    Step::Put(3),
    Step::Delete(1),
    Step::Flush,
    Step::Put(4),
    Step::Flush,
];

fn run(live: &mut LiveObjects, step: Step) -> frit_core::Result<()> {
    match step {
        Step::Put(number) => put(live, id(1, number)),
        Step::Delete(number) => live.delete(id(1, number)),
        Step::Flush => live.flush(),
    }
}

#[test]
fn a_writer_that_was_taken_over_can_neither_flush_nor_delete_at_any_step() {
    for taken_over_at in 0..=STEPS.len() {
        let bucket = FaultyBucket::reliable();
        let mut first = claimed(&bucket, settings());
        let mut flushed = Vec::new();
        let mut living = Vec::new();
        for &step in &STEPS[..taken_over_at] {
            run(&mut first, step).unwrap();
            match step {
                Step::Put(n) => living.push(n),
                Step::Delete(n) => living.retain(|&l| l != n),
                Step::Flush => flushed.clone_from(&living),
            }
            flushed.retain(|n| living.contains(n));
        }
        let mut second = live(&bucket, settings());
        assert_eq!(second.claim(0).unwrap(), 2);
        let listed: Vec<_> = second.list().unwrap().into_iter().map(|(id, _)| id.number).collect();
        assert!(flushed.iter().all(|n| listed.contains(n)), "{taken_over_at}: {flushed:?} in {listed:?}");
        let mut refused = false;
        for &step in &STEPS[taken_over_at..] {
            match (step, run(&mut first, step)) {
                (Step::Put(_), Ok(())) => assert!(!refused, "{taken_over_at}"),
                (_, Ok(())) => panic!("{step:?} after the takeover at {taken_over_at}"),
                (_, Err(e)) => {
                    let e = e.to_string();
                    assert!(e.contains("another writer has taken over (epoch 2)"), "{e}");
                    refused = true;
                }
            }
        }
        assert_eq!(first.refuses().is_some(), refused);
        assert!(first.release().is_err() || !refused);
        for &n in &flushed {
            assert_eq!(get(&mut second, id(1, n)).unwrap(), contents(id(1, n), 1000));
        }
        put(&mut second, id(2, 1)).unwrap();
        second.flush().unwrap();
        second.release().unwrap();
    }
}

/// Runs an action once, before the request that matches.
fn before(
    matches: fn(Request<'_>) -> bool,
    action: impl FnOnce() + Send + 'static,
) -> impl FnMut(Request<'_>) -> Fate + Send {
    let mut action = Some(action);
    move |request| {
        if matches(request)
            && let Some(action) = action.take()
        {
            action();
        }
        Fate::Normal
    }
}

#[test]
fn of_two_claims_at_the_same_time_one_gets_a_clear_error() {
    // The second writer claims between the list and the create of the first one.
    let store = Arc::<MemoryBucket>::default();
    let winner = Arc::new(Mutex::new(LiveObjects::new("w", store.clone(), settings())));
    let claims = {
        let winner = winner.clone();
        move || assert_eq!(winner.lock().unwrap().claim(0).unwrap(), 1)
    };
    let bucket = FaultyBucket::new(store, before(|r| matches!(r, Request::Create(_)), claims));
    let mut loser = live(&bucket, settings());
    let e = loser.claim(0).unwrap_err().to_string();
    assert!(e.contains("test://store: another writer claims it at the same time (epoch 1)"), "{e}");
    assert!(put(&mut loser, id(1, 1)).is_err());
    winner.lock().unwrap().flush().unwrap();
    // The loser can claim later.
    assert_eq!(loser.claim(0).unwrap(), 2);
    assert!(winner.lock().unwrap().flush().unwrap_err().to_string().contains("epoch 2"));
}

#[test]
fn a_claim_that_was_overtaken_by_a_higher_epoch_fails() {
    let store = Arc::<MemoryBucket>::default();
    let other = store.clone();
    let claims = move || {
        LiveObjects::new("w", other, settings()).claim(6).unwrap();
    };
    let bucket = FaultyBucket::new(store, before(|r| matches!(r, Request::Create(_)), claims));
    let e = live(&bucket, settings()).claim(0).unwrap_err().to_string();
    assert!(e.contains("another writer has taken over (epoch 7)"), "{e}");
}

#[test]
fn epochs_are_above_all_others_and_a_bucket_that_was_emptied_is_noticed() {
    let bucket = FaultyBucket::reliable();
    let mut writer = live(&bucket, settings());
    assert_eq!(writer.claim(4).unwrap(), 5);
    assert_eq!(writer.claim(2).unwrap(), 6);
    bucket.inner.remove("writer-6").unwrap();
    let e = writer.flush().unwrap_err().to_string();
    assert!(e.contains("the object of this writer (epoch 6) was deleted"), "{e}");
}

#[test]
fn objects_of_old_writers_are_removed_and_the_last_ones_are_kept() {
    let bucket = FaultyBucket::reliable();
    for _ in 0..5 {
        claimed(&bucket, settings()).release().unwrap();
    }
    let mut names: Vec<_> = bucket.inner.list("").unwrap().into_iter().map(|(n, _)| n).collect();
    names.sort();
    assert_eq!(names, ["writer-4", "writer-4.closed", "writer-5", "writer-5.closed"]);
}

#[test]
fn a_claim_waits_for_a_writer_that_did_not_release() {
    let waiting =
        |millis| LiveSettings { timeout: Duration::from_millis(millis), takeover_waits: true, ..settings() };
    let timed = |bucket: &Arc<FaultyBucket>, settings| {
        let mut live = live(bucket, settings);
        let begin = Instant::now();
        live.claim(0).unwrap();
        (live, begin.elapsed())
    };
    let bucket = FaultyBucket::reliable();
    let (mut first, took) = timed(&bucket, waiting(200));
    assert!(took < Duration::from_millis(200), "nobody to wait for: {took:?}");
    // Twice the limit of the former writer, which its object records, and not that of the new one.
    let (second, took) = timed(&bucket, waiting(60));
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(2), "{took:?}");
    assert!(first.flush().is_err());
    // A writer that ends without a release leaves the longer wait to the next one.
    drop(second);
    let (mut third, took) = timed(&bucket, waiting(10));
    assert!(took >= Duration::from_millis(400), "{took:?}");
    let (_, took) = timed(&bucket, LiveSettings { takeover_waits: false, ..waiting(200) });
    assert!(took < Duration::from_millis(200), "told not to wait: {took:?}");
    assert!(third.release().is_ok(), "a release of an old writer does no harm");
}

#[test]
fn a_release_and_the_end_of_a_local_process_make_a_claim_immediate() {
    let waiting = LiveSettings { timeout: Duration::from_secs(60), takeover_waits: true, ..settings() };
    let bucket = FaultyBucket::reliable();
    claimed(&bucket, waiting.clone()).release().unwrap();
    let begin = Instant::now();
    let mut second = claimed(&bucket, waiting.clone());
    second.flush().unwrap();
    assert_eq!(second.claim(0).unwrap(), 3, "the same writer claims again");
    second.release().unwrap();
    // The process of a local bucket has ended: nothing of it can arrive.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let record = format!(
        "frit writer 1\nprocess={}/{}/999999999/5\nwait_ms=120000\nserial=0000000000000007\nnonce=00\n",
        boot.trim(),
        space.display()
    );
    let local = Arc::<MemoryBucket>::default();
    local.create("writer-3", &Arc::from(record.as_bytes())).unwrap();
    assert_eq!(LiveObjects::new("local", local, waiting).claim(0).unwrap(), 4);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_bucket_of_another_volume_is_refused_unless_it_is_replaced() {
    let bucket = FaultyBucket::reliable();
    let mut other = claimed(&bucket, LiveSettings { serial: 8, ..settings() });
    put(&mut other, id(1, 1)).unwrap();
    other.flush().unwrap();
    other.release().unwrap();
    let e = live(&bucket, settings()).claim(0).unwrap_err().to_string();
    assert!(e.contains("belongs to another volume: serial number 0000000000000008"), "{e}");
    let mut new = claimed(&bucket, LiveSettings { replaces: true, ..settings() });
    assert_eq!(new.list().unwrap(), []);
    put(&mut new, id(2, 1)).unwrap();
    new.flush().unwrap();
    assert!(other.claim(0).is_err());
}

#[test]
fn a_reader_changes_nothing_and_sees_its_own_changes() {
    let bucket = FaultyBucket::reliable();
    let mut writer = claimed(&bucket, settings());
    put(&mut writer, id(1, 1)).unwrap();
    put(&mut writer, id(1, 2)).unwrap();
    writer.flush().unwrap();
    let before = bucket.inner.list("").unwrap();
    let mut reader = ReadOnlyObjects::new(live(&bucket, settings()));
    assert_eq!(reader.claim(0).unwrap(), 2);
    reader.put(id(2, 1), &[5; 100]).unwrap();
    reader.delete(id(1, 1)).unwrap();
    reader.flush().unwrap();
    assert_eq!(reader.list().unwrap(), [(id(1, 2), 1000), (id(2, 1), 100)]);
    let mut into = [0; 10];
    reader.get(id(2, 1), 90, &mut into).unwrap();
    assert_eq!(into, [5; 10]);
    assert!(reader.get(id(2, 1), 91, &mut into).is_err() && reader.get(id(1, 1), 0, &mut into).is_err());
    reader.get(id(1, 2), 0, &mut into).unwrap();
    assert_eq!(into, contents(id(1, 2), 10)[..]);
    reader.release().unwrap();
    assert_eq!(bucket.inner.list("").unwrap(), before);
    writer.flush().unwrap();
}
