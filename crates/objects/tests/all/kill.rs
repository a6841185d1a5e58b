//! A writer to a directory that is killed.

use crate::common::{contents, id};
use frit_media::object::{ObjectUrl, RemoteObjects};
use frit_objects::{OpenMode, open};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Directory of the child process.
const DIR: &str = "FRIT_TEST_OBJECTS";
const LEN: usize = 300_000;
const ROUNDS: u32 = 6;

fn store(dir: &Path) -> Box<dyn RemoteObjects> {
    // A wait for the former writer would be longer than the test.
    let url = ObjectUrl::parse(&format!("file://{}?timeout_s=600", dir.display())).unwrap();
    open(&url, Path::new("."), 3, 7, OpenMode::ReadWrite).unwrap()
}

#[test]
#[ignore = "a part of the next test, which runs it in a process of its own"]
fn child() {
    let mut store = store(Path::new(&std::env::var(DIR).unwrap()));
    let epoch = store.claim(0).unwrap();
    let mut out = std::io::stderr();
    for number in 0.. {
        store.put(id(epoch, number), &contents(id(epoch, number), LEN)).unwrap();
        if number % 4 == 3 {
            store.flush().unwrap();
            // One write, which a kill does not tear.
            out.write_all(format!("flushed {epoch} {number}\n").as_bytes()).unwrap();
        }
    }
}

#[test]
fn flushed_objects_survive_a_kill_and_no_object_is_torn() {
    let dir = tempfile::tempdir().unwrap();
    let mut flushed: BTreeMap<u32, u32> = BTreeMap::new();
    let begin = Instant::now();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "kill::child", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut line = || lines.next().and_then(Result::ok);
        let mut told = line();
        std::thread::sleep(Duration::from_millis(7 * u64::from(round)));
        child.kill().unwrap();
        child.wait().unwrap();
        while let Some(text) = told {
            let mut words = text.split(' ').skip(1).map(|n| n.parse::<u32>().unwrap());
            let (epoch, number) = (words.next().unwrap(), words.next().unwrap());
            flushed.insert(epoch, number);
            told = line();
        }
        assert!(flushed.contains_key(&(round + 1)), "epoch {} has flushed", round + 1);
    }
    let mut store = store(dir.path());
    assert_eq!(store.claim(0).unwrap(), ROUNDS + 1);
    let listed: BTreeMap<_, _> = store.list().unwrap().into_iter().collect();
    for (&epoch, &last) in &flushed {
        assert!((0..=last).all(|number| listed.contains_key(&id(epoch, number))), "{epoch} {last}");
    }
    for (&id, &len) in &listed {
        assert_eq!(len as usize, LEN, "{id}");
        let mut found = vec![0; LEN];
        store.get(id, 0, &mut found).unwrap();
        assert!(found == contents(id, LEN), "{id}");
    }
    let left = std::fs::read_dir(dir.path()).unwrap();
    let left = left.filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')).count();
    assert_eq!(left, 0, "temporary files are removed");
    assert!(begin.elapsed() < Duration::from_secs(300), "claims did not wait for processes that had ended");
}
