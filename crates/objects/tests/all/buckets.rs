//! The contract of a bucket, for a directory and memory.

use frit_objects::{Bucket, BucketError, DirectoryBucket, MemoryBucket};
use std::sync::{Arc, Barrier};

/// Checks what every bucket promises.
pub(crate) fn check(bucket: &dyn Bucket) {
    let data = |text: &str| Arc::<[u8]>::from(text.as_bytes());
    bucket.create("seg-1-1", &data("hello world")).unwrap();
    assert_eq!(bucket.create("seg-1-1", &data("other")), Err(BucketError::Exists));
    bucket.create("seg-1-2", &data("second")).unwrap();
    bucket.create("writer-1", &data("me")).unwrap();
    bucket.create("writer-1.closed", &data("")).unwrap();
    assert_eq!((bucket.size("seg-1-1"), bucket.size("writer-1.closed")), (Ok(11), Ok(0)));
    assert_eq!(bucket.size("seg-9-9"), Err(BucketError::Missing));
    let mut part = [0; 5];
    bucket.read("seg-1-1", 6, &mut part).unwrap();
    assert_eq!(&part, b"world");
    assert!(matches!(bucket.read("seg-1-1", 7, &mut part), Err(BucketError::Lasting(_))), "past the end");
    assert_eq!(bucket.read("seg-9-9", 0, &mut part), Err(BucketError::Missing));
    let list = |after: &str| {
        let mut found = bucket.list(after).unwrap();
        found.sort();
        found.into_iter().map(|(name, size)| format!("{name}:{size}")).collect::<Vec<_>>()
    };
    assert_eq!(list(""), ["seg-1-1:11", "seg-1-2:6", "writer-1:2", "writer-1.closed:0"]);
    assert_eq!(list("writer-"), ["writer-1:2", "writer-1.closed:0"]);
    bucket.remove("seg-1-1").unwrap();
    bucket.remove("seg-1-1").unwrap();
    assert_eq!(list("seg-1-1").len(), 3);
    // Of writers that create a name at the same time, one wins.
    for round in 0..20 {
        let (name, barrier) = (format!("race-{round}"), Barrier::new(4));
        let won = std::thread::scope(|scope| {
            let race = |n: usize| {
                let (name, barrier) = (&name, &barrier);
                move || {
                    barrier.wait();
                    bucket.create(name, &Arc::from(vec![n as u8; 5000])).is_ok()
                }
            };
            let all: Vec<_> = (0..4).map(|n| scope.spawn(race(n))).collect();
            let won: Vec<bool> = all.into_iter().map(|t| t.join().unwrap()).collect();
            won
        });
        assert_eq!(won.iter().filter(|w| **w).count(), 1, "{round}");
        let mut found = [0; 5000];
        bucket.read(&name, 0, &mut found).unwrap();
        let winner = won.iter().position(|w| *w).unwrap();
        assert!(found.iter().all(|&b| usize::from(b) == winner));
    }
}

#[test]
fn a_directory_and_memory_keep_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    check(&DirectoryBucket::open(&dir.path().join("a/b"), true).unwrap());
    check(&*MemoryBucket::named("contract"));
}

#[test]
fn a_directory_is_private_and_keeps_its_objects() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("objects");
    assert!(DirectoryBucket::open(&path, false).is_err(), "a reader creates nothing");
    let bucket = DirectoryBucket::open(&path, true).unwrap();
    bucket.create("seg-1-1", &Arc::from(*b"data")).unwrap();
    let mode = |p: &std::path::Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("seg-1-1"))), (0o700, 0o600));
    drop(bucket);
    // What a process left that was killed before it linked its file.
    std::fs::write(path.join(".frit-999999999-0"), "torn").unwrap();
    std::fs::write(path.join(format!(".frit-{}-999", std::process::id())), "in progress").unwrap();
    let reader = DirectoryBucket::open(&path, false).unwrap();
    assert_eq!(reader.list("").unwrap(), [("seg-1-1".to_owned(), 4)]);
    assert!(path.join(".frit-999999999-0").exists(), "a reader removes nothing");
    DirectoryBucket::open(&path, true).unwrap();
    assert!(!path.join(".frit-999999999-0").exists());
    assert!(path.join(format!(".frit-{}-999", std::process::id())).exists());
}

#[test]
fn a_directory_that_is_gone_or_read_only_is_a_failure_and_not_a_missing_object() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("objects");
    let bucket = DirectoryBucket::open(&path, true).unwrap();
    std::fs::remove_dir(&path).unwrap();
    assert!(matches!(bucket.create("seg-1-1", &Arc::from([1])), Err(BucketError::Lasting(_))));
}

#[test]
fn memory_is_shared_by_name_while_it_is_used() {
    let first = MemoryBucket::named("shared");
    first.create("a", &Arc::from([1])).unwrap();
    assert_eq!(MemoryBucket::named("shared").size("a"), Ok(1));
    assert_eq!(MemoryBucket::named("another").size("a"), Err(BucketError::Missing));
    drop(first);
    assert_eq!(MemoryBucket::named("shared").size("a"), Err(BucketError::Missing));
}

/// Others who may write the directory place links, pipes and temporary files there.
#[test]
fn what_others_place_in_the_directory_is_neither_followed_nor_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let (secret, store) = (dir.path().join("secret"), dir.path().join("store"));
    let bucket = DirectoryBucket::open(&store, true).unwrap();
    let data: Arc<[u8]> = b"object".as_slice().into();
    std::fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, store.join("link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, store.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let mut found = [0; 6];
    for planted in ["link", "pipe"] {
        assert!(bucket.read(planted, 0, &mut found).is_err(), "{planted}");
        assert_eq!(bucket.create(planted, &data), Err(BucketError::Exists), "{planted}");
    }
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
    for number in 0..1000 {
        std::fs::write(store.join(format!(".frit-{}-{number}", std::process::id())), "").unwrap();
    }
    bucket.create("new", &data).unwrap();
    bucket.read("new", 0, &mut found).unwrap();
    assert_eq!(&found, b"object");
}
