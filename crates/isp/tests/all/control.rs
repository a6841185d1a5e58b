//! Cancellation, changes during a scan, errors of reads, and the foreground gate.

use crate::support::{Pieces, Setting, until_free};
use frit_isp::{
    Algorithm, Checksum, Command, Engine, EngineOptions, Filter, Foreground, Pattern, Regex, Request, Source,
    SourceError, Status, Ticket, User, Words,
};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn words() -> Command {
    Command::Words(Words { words: vec![b"a".to_vec()], positions: 3 })
}

fn request(source: Arc<dyn Source>, command: Command) -> Request {
    Request {
        instruction: Setting::plain().instruction(command, 1 << 20),
        source,
        module: None,
        destination: None,
    }
}

/// Endless file whose reads are counted.
#[derive(Default)]
struct Endless(AtomicU64);

impl Source for Endless {
    fn len(&self) -> u64 {
        u64::MAX
    }

    fn read(&self, _: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        each(&vec![b'\n'; len]);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_cancelled_instruction_ends() {
    for (threads, command) in [
        (1, words()),
        (3, words()),
        (2, Command::Regex(Regex { regex: "a".into(), positions: 0 })),
        (2, Command::Checksum(Checksum { algorithm: Algorithm::Sha256 })),
    ] {
        let engine = Setting { threads, ..Setting::plain() }.engine();
        let source = Arc::new(Endless::default());
        let ticket = engine.submit(request(Arc::<Endless>::clone(&source), command));
        until("the scan begins", || source.0.load(Ordering::SeqCst) > 3);
        assert!(ticket.try_wait().is_none());
        let called = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&called);
        ticket.on_complete(move || flag.store(true, Ordering::SeqCst));
        ticket.cancel();
        let outcome = ticket.wait();
        assert_eq!(outcome.status(), Status::Cancelled);
        until("the callback is called", || called.load(Ordering::SeqCst));
        let reads = source.0.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(source.0.load(Ordering::SeqCst), reads, "reads after the end");
    }
}

/// Expression whose states do not fit the caches of the fast searches.
const LARGE: &str = "(?:a{1,5000}){1,5}[^a]x|(?:aa?){1,200}b";

/// Instructions that need long for one line of 1 MiB, and the line.
fn long_work() -> Vec<(Command, Vec<u8>)> {
    const LINE: usize = 1 << 20;
    let keys = LINE / 2 / r#"{"a":"#.len();
    let deep = format!("{}1{}\n", r#"{"a":"#.repeat(keys), "}".repeat(keys)).into_bytes();
    let flat = format!("{{\"a\":\"{}\"}}\n", "a".repeat(LINE / 2)).into_bytes();
    let digits = format!("{{\"a\":{}}}\n", "1".repeat(LINE / 2)).into_bytes();
    let command =
        |json: serde_json::Value| frit_isp::text::parse(json.to_string().as_bytes()).unwrap().command;
    let object = |fields: &[String]| command(json!({"select": fields, "format": "jsonl", "file": "x"}));
    let fields: Vec<_> = (1..170).map(|depth| vec!["a"; depth].join(".")).collect();
    let conditions: Vec<_> = (0..1000).map(|n| json!(["a", "matches", format!("[a-z]+{n}|\\pL$")])).collect();
    let sums = vec![json!({"sum": "a"}); 4000];
    vec![
        (object(&[vec!["a"; 20_000].join(".")]), deep.clone()),
        (object(&fields), deep),
        (command(json!({"regex": "a[^b]*b|a", "file": "x"})), vec![b'a'; LINE]),
        (command(json!({"regex": LARGE, "file": "x"})), vec![b'a'; LINE]),
        (command(json!({"filter": {"regex": LARGE}, "file": "x"})), vec![b'a'; LINE]),
        (
            command(
                json!({"select": ["a"], "where": [["a", "matches", LARGE]], "format": "jsonl", "file": "x"}),
            ),
            flat.clone(),
        ),
        (command(json!({"select": ["a"], "where": conditions, "format": "jsonl", "file": "x"})), flat),
        (command(json!({"aggregate": sums, "format": "jsonl", "file": "x"})), digits),
    ]
}

#[test]
fn a_long_line_ends_with_its_cancellation() {
    for (command, data) in long_work() {
        let shown = format!("{command:?}");
        let engine = Engine::new(EngineOptions { threads: 1, ..EngineOptions::default() });
        let source = Arc::new(Pieces::new(data, &[]));
        let ticket = engine.submit(request(Arc::<Pieces>::clone(&source), command));
        until("the last read", || source.reads.load(Ordering::SeqCst) > 0);
        ticket.cancel();
        if ticket.wait_for(Duration::from_secs(20)).is_none() {
            // The end of the engine would wait for the line.
            std::mem::forget(engine);
            panic!("{}", &shown[..200.min(shown.len())]);
        }
    }
}

/// File with a lock that each read holds.
struct Locked(Pieces, Mutex<()>);

impl Source for Locked {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        let _held = self.1.lock();
        self.0.read(at, len, each)
    }

    fn version(&self) -> u64 {
        0
    }
}

#[test]
fn a_long_search_holds_no_lock_of_the_file() {
    let text = "a".repeat(1 << 19);
    for (instruction, line) in [
        (json!({"regex": LARGE, "file": "x"}), format!("{text}\n")),
        (json!({"filter": {"regex": LARGE}, "file": "x"}), format!("{text}\n")),
        (
            json!({"select": ["a"], "where": [["a", "matches", LARGE]], "format": "jsonl", "file": "x"}),
            format!("{{\"a\":\"{text}\"}}\n"),
        ),
        (
            json!({"aggregate": [{"max": "a"}], "where": [["a", "matches", LARGE]], "format": "jsonl", "file": "x"}),
            format!("{{\"a\":\"{text}\"}}\n"),
        ),
    ] {
        let engine = Engine::new(EngineOptions { threads: 1, ..EngineOptions::default() });
        let source = Arc::new(Locked(Pieces::new(line.clone(), &[]), Mutex::default()));
        let command = frit_isp::text::parse(instruction.to_string().as_bytes()).unwrap().command;
        let ticket = engine.submit(request(Arc::<Locked>::clone(&source), command));
        let reads = line.len().div_ceil(EngineOptions::default().chunk_bytes) as u64;
        // The last read has passed the end of the line on.
        let is_free = (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            source.0.reads.load(Ordering::SeqCst) == reads && source.1.try_lock().is_some()
        });
        let is_searching = !ticket.is_complete();
        ticket.cancel();
        assert!(is_free && is_searching, "{instruction}");
    }
}

/// File that notes the thread that reads it.
struct Watched(Vec<u8>, Mutex<Option<std::thread::ThreadId>>);

impl Source for Watched {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        *self.1.lock() = Some(std::thread::current().id());
        self.0.read(at, len, each)
    }

    fn version(&self) -> u64 {
        0
    }
}

#[test]
fn the_callers_thread_does_only_short_work() {
    let short = [
        (json!({"regex": "a", "file": "x"}), 10_000),
        (json!({"select": ["a"], "format": "jsonl", "file": "x"}), 200_000),
    ];
    let long = [
        (json!({"regex": "a", "file": "x"}), 20_000),
        (json!({"select": vec!["a"; 20], "format": "jsonl", "file": "x"}), 20_000),
        (json!({"select": ["a"], "format": "jsonl", "file": "x"}), 300_000),
        (json!({"filter": {"regex": "a{2000}"}, "file": "x"}), 100_000),
        (
            json!({"select": ["a"], "where": [["a", "matches", "a{2000}"]], "format": "jsonl", "file": "x"}),
            100_000,
        ),
    ];
    for (is_short, (instruction, bytes)) in
        short.iter().map(|case| (true, case)).chain(long.iter().map(|case| (false, case)))
    {
        let source = Arc::new(Watched(vec![b'\n'; *bytes], Mutex::default()));
        let command = frit_isp::text::parse(instruction.to_string().as_bytes()).unwrap().command;
        let outcome = Engine::default().run(request(Arc::<Watched>::clone(&source), command));
        assert_eq!(outcome.status(), Status::Ok);
        let is_own = *source.1.lock() == Some(std::thread::current().id());
        assert_eq!(is_own, is_short, "{instruction} on {bytes} bytes");
    }
}

#[test]
fn an_engine_that_is_dropped_cancels_its_instructions() {
    let engine = Setting::plain().engine();
    let tickets: Vec<_> =
        (0..5).map(|_| engine.submit(request(Arc::new(Endless::default()), words()))).collect();
    drop(engine);
    assert!(tickets.iter().all(|ticket| ticket.wait().status() == Status::Cancelled));
}

#[test]
fn a_short_instruction_does_not_wait_for_a_long_one() {
    let engine = Setting { threads: 1, ..Setting::plain() }.engine();
    let long = engine.submit(request(Arc::new(Endless::default()), words()));
    let short = engine.run(request(Arc::new(Pieces::new(*b"banana", &[])), words()));
    assert_eq!(short.status(), Status::Ok);
    assert!(!long.is_complete());
}

#[test]
fn results_that_are_not_read_occupy_the_memory_of_their_user() {
    const MIB: u64 = 1 << 20;
    // 48 MiB are for instructions, and so at most 24 for one user.
    let engine = Engine::new(EngineOptions { memory_bytes_max: 96 * MIB, ..EngineOptions::default() });
    let source = Arc::new(Pieces::new(b"aaaaaaa\n".repeat(1 << 17), &[]));
    let filter = || {
        let filter = Filter { pattern: Pattern::Regex("a".into()), invert: false, limit: None };
        let mut request = request(Arc::<Pieces>::clone(&source), Command::Filter(filter));
        // The limit is not what counts.
        request.instruction.memory_bytes = 1 << 30;
        request
    };
    let (one, other) = (User(1), User(2));
    let mut kept: Vec<Ticket> = Vec::new();
    let refused = loop {
        let ticket = engine.submit_for(one, filter());
        match ticket.wait().status() {
            Status::Ok => kept.push(ticket),
            _ => break ticket.wait().result.clone().unwrap_err(),
        }
        assert!(kept.len() < 30);
    };
    assert!((20..=24).contains(&kept.len()), "{}", kept.len());
    assert!(engine.memory_bytes() <= 24 * MIB);
    assert_eq!(refused.status, Status::Busy);
    assert!(refused.message.contains("the share of user 1"), "{refused}");
    // The other one has memory at once, and the first one again when results are given up.
    assert_eq!(engine.submit_for(other, filter()).wait().status(), Status::Ok);
    kept.truncate(10);
    assert_eq!(engine.submit_for(one, filter()).wait().status(), Status::Ok);
    drop(kept);
    until_free(&engine, 0);
}

#[test]
fn an_instruction_waits_for_memory_before_it_begins() {
    let engine = Engine::new(EngineOptions { memory_bytes_max: 96 << 20, ..EngineOptions::default() });
    let filter = |bytes: usize| {
        let filter = Filter { pattern: Pattern::Regex("a".into()), invert: false, limit: None };
        let mut request =
            request(Arc::new(Pieces::new(b"aaaaaaa\n".repeat(bytes / 8), &[])), Command::Filter(filter));
        request.instruction.memory_bytes = 1 << 30;
        engine.submit(request)
    };
    let kept = filter((24 << 20) - (256 << 10));
    assert_eq!(kept.wait().status(), Status::Ok);
    let waiting = filter(8 << 20);
    assert!(waiting.wait_for(Duration::from_millis(300)).is_none());
    drop(kept);
    assert_eq!(waiting.wait().status(), Status::Ok);
}

#[test]
fn a_change_during_the_scan_is_reported() {
    for (change_after, fail_if_changed) in [(0, false), (0, true), (5, false), (5, true), (u64::MAX, true)] {
        let mut source = Pieces::new(vec![b'a'; 1000], &[]);
        source.change_after = change_after;
        let mut request = request(Arc::new(source), words());
        request.instruction.fail_if_changed = fail_if_changed;
        let outcome = Setting::plain().engine().run(request);
        let changes = change_after < 10;
        assert_eq!(outcome.changed, changes);
        let expected = if changes && fail_if_changed { Status::Changed } else { Status::Ok };
        assert_eq!(outcome.status(), expected);
    }
}

#[test]
fn a_failure_after_a_change_says_so() {
    for (changes, fail_if_changed) in [(true, true), (true, false), (false, true)] {
        let mut source = Pieces::new(vec![b'a'; 4000], &[]);
        source.broken_at = Some(3000);
        source.change_after = if changes { 5 } else { u64::MAX };
        let mut request = request(Arc::new(source), words());
        request.instruction.fail_if_changed = fail_if_changed;
        let outcome = Setting::plain().engine().run(request);
        let failure = outcome.result.clone().unwrap_err();
        let expected = if changes && fail_if_changed { Status::Changed } else { Status::Io };
        assert_eq!((failure.status, outcome.changed), (expected, changes));
        assert_eq!(failure.message.contains("changed during the scan"), changes, "{failure}");
        assert!(failure.message.contains("broken"), "{failure}");
    }
}

#[test]
fn what_fails_before_its_scan_has_not_changed() {
    let line = br#"{"select": ["none"], "format": "csv", "file": "x"}"#;
    let command = frit_isp::text::parse(line).unwrap().command;
    let source = Pieces::new(*b"a,b\n1,2\n", &[]);
    source.version.store(7, Ordering::SeqCst);
    let outcome = Setting::plain().engine().run(request(Arc::new(source), command));
    assert!(outcome.status() == Status::Format && !outcome.changed);
}

#[test]
fn bytes_that_cannot_be_read_are_named() {
    for threads in 1..=4 {
        let mut source = Pieces::new(vec![b'a'; 4000], &[]);
        source.broken_at = Some(3000);
        let outcome =
            Setting { threads, ..Setting::plain() }.engine().run(request(Arc::new(source), words()));
        assert_eq!(outcome.status(), Status::Io);
        let message = outcome.result.clone().unwrap_err().message;
        assert!(message.contains("2944 to 3008") && message.contains("broken"), "{message}");
    }
}

#[test]
fn the_engine_yields_to_foreground_requests() {
    let foreground = Arc::new(Foreground::new(Duration::from_secs(60)));
    let engine = Engine::new(EngineOptions {
        threads: 2,
        chunk_bytes: 64,
        part_bytes: 128,
        foreground: Arc::clone(&foreground),
        ..EngineOptions::default()
    });
    let source = Arc::new(Endless::default());
    let ticket = engine.submit(request(Arc::<Endless>::clone(&source), words()));
    until("the scan begins", || source.0.load(Ordering::SeqCst) > 10);
    let guard = foreground.enter();
    let second = foreground.enter();
    // Each thread, a spare one among them, may have passed the gate before the requests began.
    std::thread::sleep(Duration::from_millis(20));
    let reads = source.0.load(Ordering::SeqCst);
    drop(second);
    std::thread::sleep(Duration::from_millis(50));
    assert!(source.0.load(Ordering::SeqCst) <= reads + 3, "progress during a foreground request");
    drop(guard);
    until("the scan goes on", || source.0.load(Ordering::SeqCst) > reads + 10);
    // Waits end by a cancellation too.
    let guard = foreground.enter();
    ticket.cancel();
    let outcome = ticket.wait();
    drop(guard);
    // The other thread leaves its processor to the requests, without a wait at the gate.
    assert!(outcome.work.yields >= 1, "{outcome:?}");
    // How long a thread was at the gate depends on when it came there.
    assert!((1..=foreground.yielded_ns()).contains(&outcome.work.yielded_ns), "{outcome:?}");
    assert!(foreground.yields() >= outcome.work.yields);
}

#[test]
fn the_engine_is_never_starved() {
    let foreground = Arc::new(Foreground::new(Duration::from_millis(2)));
    let engine = Engine::new(EngineOptions {
        threads: 1,
        chunk_bytes: 64,
        foreground: Arc::clone(&foreground),
        ..EngineOptions::default()
    });
    let _guard = foreground.enter();
    let outcome = engine.run(request(Arc::new(Pieces::new(vec![b'a'; 640], &[])), words()));
    assert_eq!(outcome.status(), Status::Ok);
    assert_eq!(outcome.work.yields, 10);
}

#[test]
fn threads_have_the_niceness_of_the_engine() {
    struct Niceness(Mutex<Vec<i32>>);
    impl Source for Niceness {
        fn len(&self) -> u64 {
            1000
        }
        fn read(&self, _: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
            self.0.lock().push(rustix::process::getpriority_process(None).unwrap());
            each(&vec![b'a'; len]);
            Ok(())
        }
        fn version(&self) -> u64 {
            0
        }
    }
    let own = rustix::process::getpriority_process(None).unwrap();
    for (niceness, expected) in [(None, own), (Some(own + 3), own + 3), (Some(own - 1), own)] {
        let options = EngineOptions { niceness, inline_bytes: 0, ..EngineOptions::default() };
        let source = Arc::new(Niceness(Mutex::default()));
        let outcome = Engine::new(options).run(request(Arc::<Niceness>::clone(&source), words()));
        assert_eq!(outcome.status(), Status::Ok);
        assert_eq!(*source.0.lock(), [expected]);
    }
    assert_eq!(rustix::process::getpriority_process(None).unwrap(), own, "of the caller");
}

#[test]
fn reads_are_smaller_while_foreground_requests_come() {
    let foreground = Arc::new(Foreground::new(Duration::ZERO));
    let engine = Engine::new(EngineOptions {
        threads: 1,
        chunk_bytes: 640,
        foreground_chunk_bytes: 64,
        foreground: Arc::clone(&foreground),
        ..EngineOptions::default()
    });
    let source = Arc::new(Pieces::new(vec![b'a'; 640], &[]));
    let reads = || {
        let before = source.reads.load(Ordering::SeqCst);
        assert_eq!(engine.run(request(Arc::<Pieces>::clone(&source), words())).status(), Status::Ok);
        source.reads.load(Ordering::SeqCst) - before
    };
    assert_eq!(reads(), 1);
    let _guard = foreground.enter();
    assert_eq!(reads(), 10);
}

#[test]
fn the_work_of_an_instruction_is_measured() {
    let source = Arc::new(Pieces::new(vec![b'a'; 1 << 20], &[]));
    let engine = Setting { threads: 1, chunk_bytes: 4096, part_bytes: 1 << 16, ..Setting::plain() }.engine();
    let work = engine.run(request(source, words())).work;
    assert_eq!(work.bytes_scanned, 1 << 20);
    assert!(work.cpu_ns > 0 && work.wall_ns >= work.cpu_ns, "{work:?}");
    assert_eq!(work.yields, 0);
}

#[test]
fn a_bug_in_a_source_does_not_end_the_engine() {
    struct Panics;
    impl Source for Panics {
        fn len(&self) -> u64 {
            1000
        }
        fn read(&self, _: u64, _: usize, _: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
            panic!("planted");
        }
        fn version(&self) -> u64 {
            0
        }
    }
    let engine = Setting::plain().engine();
    assert_eq!(engine.run(request(Arc::new(Panics), words())).status(), Status::Internal);
    assert_eq!(engine.run(request(Arc::new(Pieces::new(*b"a", &[])), words())).status(), Status::Ok);
}
