//! Threads that scan: those of the engine, or the thread that gives a short instruction.

use crate::support::Setting;
use frit_isp::{
    Command, Copy, Destination, Engine, EngineOptions, Foreground, Pattern, RecordUnit, Request, Source,
    SourceError, Status, Target, Words,
};
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

/// Data that note the threads that read and write them.
struct Watched {
    bytes: Vec<u8>,
    threads: Mutex<HashSet<ThreadId>>,
}

impl Watched {
    fn new(len: usize) -> Arc<Self> {
        Arc::new(Self { bytes: b"a line\n".repeat(len / 7), threads: Mutex::default() })
    }

    fn note(&self) {
        self.threads.lock().unwrap().insert(std::thread::current().id());
    }

    fn threads(&self) -> HashSet<ThreadId> {
        self.threads.lock().unwrap().clone()
    }
}

impl Source for Watched {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        self.note();
        // Other threads have time to take a part.
        std::thread::sleep(Duration::from_micros(200));
        each(&self.bytes[at as usize..][..len]);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

impl Destination for Watched {
    fn write(&self, _: u64, _: &[u8]) -> Result<(), SourceError> {
        self.note();
        Ok(())
    }
}

fn request(source: &Arc<Watched>, command: Command, destination: Option<Arc<dyn Destination>>) -> Request {
    let instruction = Setting::plain().instruction(command, 1 << 20);
    Request { instruction, source: Arc::<Watched>::clone(source), module: None, destination }
}

fn words() -> Command {
    Command::Words(Words { words: vec![b"line".to_vec()], positions: 0 })
}

fn engine(foreground: &Arc<Foreground>) -> Engine {
    Engine::new(EngineOptions {
        threads: 4,
        chunk_bytes: 1024,
        part_bytes: 4096,
        inline_bytes: 8192,
        foreground: Arc::clone(foreground),
        ..EngineOptions::default()
    })
}

#[test]
fn a_short_range_is_scanned_by_the_caller() {
    let foreground = Arc::new(Foreground::new(Duration::ZERO));
    let engine = engine(&foreground);
    let caller = HashSet::from([std::thread::current().id()]);
    let short = Watched::new(8000);
    assert_eq!(engine.run(request(&short, words(), None)).status(), Status::Ok);
    assert_eq!(short.threads(), caller);
    let long = Watched::new(100_000);
    assert_eq!(engine.run(request(&long, words(), None)).status(), Status::Ok);
    assert!(long.threads().len() > 1 && long.threads().is_disjoint(&caller));
    // Not while a request is in progress, and not if it writes a file, which may wait for requests.
    let guard = foreground.enter();
    let short = Watched::new(8000);
    assert_eq!(engine.run(request(&short, words(), None)).status(), Status::Ok);
    assert!(short.threads().is_disjoint(&caller));
    drop(guard);
    let (short, copied) = (Watched::new(8000), Watched::new(0));
    let copy = Copy {
        pattern: Pattern::Words(vec![b"line".to_vec()]),
        invert: false,
        limit: None,
        unit: RecordUnit::Lines,
        to: Target::Name("other".into()),
        at: 0,
    };
    let to = Some(Arc::<Watched>::clone(&copied) as Arc<dyn Destination>);
    assert_eq!(engine.run(request(&short, Command::Copy(copy), to)).status(), Status::Ok);
    assert!(!copied.threads().is_empty() && copied.threads().is_disjoint(&caller));
}

#[test]
fn one_thread_works_while_requests_come() {
    // Without patience, the engine goes on beside a request.
    let foreground = Arc::new(Foreground::new(Duration::ZERO));
    let engine = engine(&foreground);
    let _guard = foreground.enter();
    let source = Watched::new(100_000);
    assert_eq!(engine.run(request(&source, words(), None)).status(), Status::Ok);
    assert_eq!(source.threads().len(), 1);
}

/// Data whose reads wait until a lock is released, and then fail.
struct Held(Mutex<()>);

impl Source for Held {
    fn len(&self) -> u64 {
        1 << 20
    }

    fn read(&self, _: u64, _: usize, _: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        drop(self.0.lock());
        Err(SourceError("released".into()))
    }

    fn version(&self) -> u64 {
        0
    }
}

#[test]
fn long_steps_hold_up_no_other_instruction() {
    for is_foreground in [false, true] {
        let foreground = Arc::new(Foreground::new(Duration::ZERO));
        let engine = engine(&foreground);
        let _guard = is_foreground.then(|| foreground.enter());
        let held = Arc::new(Held(Mutex::default()));
        let lock = held.0.lock().unwrap();
        // More than the usual threads of the engine. Beside requests there is one.
        let long: Vec<_> = (0..if is_foreground { 3 } else { 6 })
            .map(|_| {
                let instruction = Setting::plain().instruction(words(), 1 << 20);
                let source = Arc::<Held>::clone(&held);
                engine.submit(Request { instruction, source, module: None, destination: None })
            })
            .collect();
        for _ in 0..3 {
            let other = engine.submit(request(&Watched::new(100_000), words(), None));
            assert_eq!(
                other.wait_for(Duration::from_secs(60)).map(|outcome| outcome.status()),
                Some(Status::Ok)
            );
        }
        assert!(long.iter().all(|ticket| !ticket.is_complete()));
        drop(lock);
        for ticket in long {
            assert_eq!(ticket.wait().status(), Status::Io);
        }
    }
}

/// Data whose reads wait until two threads read at a time.
struct Pair {
    threads: Mutex<HashSet<ThreadId>>,
    changed: Condvar,
}

impl Pair {
    /// Waits for a number of threads. Returns `false` if they do not come within a minute.
    fn wait_for(&self, threads: usize) -> bool {
        let seen = self.threads.lock().unwrap();
        let few = |seen: &mut HashSet<ThreadId>| seen.len() < threads;
        !self.changed.wait_timeout_while(seen, Duration::from_secs(60), few).unwrap().1.timed_out()
    }
}

impl Source for Pair {
    fn len(&self) -> u64 {
        100_000
    }

    fn read(&self, _: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        self.threads.lock().unwrap().insert(std::thread::current().id());
        self.changed.notify_all();
        if !self.wait_for(2) {
            return Err(SourceError("no other thread has come".into()));
        }
        each(&vec![b'a'; len]);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

#[test]
fn all_threads_work_again_after_requests() {
    let foreground = Arc::new(Foreground::new(Duration::ZERO));
    let engine = engine(&foreground);
    let guard = foreground.enter();
    let pair = Arc::new(Pair { threads: Mutex::default(), changed: Condvar::new() });
    let (instruction, source) = (Setting::plain().instruction(words(), 1 << 20), Arc::<Pair>::clone(&pair));
    let ticket = engine.submit(Request { instruction, source, module: None, destination: None });
    // A thread that was about to work when the request came may work beside the first one.
    assert!(pair.wait_for(1));
    std::thread::sleep(Duration::from_millis(20));
    // Nothing tells the others that the requests have ended.
    drop(guard);
    assert_eq!(ticket.wait().status(), Status::Ok);
}
