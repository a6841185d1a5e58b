//! Tests of queries over extents of a volume: results against bytes in memory, changes during a scan,
//! clients that leave, and the counters of the engine's reads.

use crate::common::{device, reopen};
use frit_client::{IspClient, VolumeExtents, WordQuery};
use frit_core::{Hints, split_mix};
use frit_isp::Source;
use frit_serve::ctl::{
    ControlOptions, ControlServer, ControlTarget, DeviceTarget, RefusalKind, Refused, Rights, VolumeInfo,
    wire::{IspAnswer, ZonedOperation, from_hex, to_hex},
};
use frit_serve::testing::MemoryBackend;
use frit_serve::{Device, DeviceExtents, Logger};
use frit_stack::Stack;
use frit_volume::{CreateOptions, Volume};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Part of the volume that the tests write: its last bytes. It is longer than two chunks of the engine.
const WINDOW: usize = 640 << 10;

const WORDS: [&str; 4] = ["a", "ab", "aa", "bab\nb"];

fn volume(dir: &Path, stack: &str, sets: &[&str]) -> Volume {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let stack = Stack::builtin(stack, &sets).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
    reopen(dir)
}

/// Creates small volumes of HFSL, HALO with evictions, and the FTL.
fn volumes(root: &Path) -> Vec<(&'static str, Volume)> {
    let small_cache = ["media.pcm.chip_bytes=256K", "media.disk.bytes=64M", "cache.read_caching=true"];
    vec![
        ("hfsl", volume(&root.join("hfsl"), "hfsl-small", &[])),
        ("halo", volume(&root.join("halo"), "halo-small", &small_cache)),
        ("ftl", volume(&root.join("ftl"), "ftl-small", &[])),
    ]
}

fn ask(target: &DeviceTarget, instruction: &Value) -> Result<IspAnswer, Refused> {
    target.isp(instruction, &|| false)
}

/// Positions of a word, found by comparing it with the bytes at each position.
fn positions(data: &[u8], word: &[u8]) -> Vec<u64> {
    let found = data.windows(word.len()).enumerate().filter(|(_, part)| *part == word);
    found.map(|(at, _)| at as u64).collect()
}

/// Addresses of positions in extents, one after the other.
fn addresses(positions: &[u64], extents: &[(u64, u64)]) -> Vec<u64> {
    let address = |&position: &u64| {
        let mut left = position;
        for &(offset, length) in extents {
            if left < length {
                return offset + left;
            }
            left -= length;
        }
        panic!("position {position} is behind the end");
    };
    positions.iter().map(address).collect()
}

/// A device, and the bytes that it has to have.
struct Shadowed {
    device: Arc<Device>,
    target: DeviceTarget,
    bytes: Vec<u8>,
    /// Address of the first byte of the window.
    base: u64,
    random: u64,
}

impl Shadowed {
    fn new(backend: Volume, seed: u64) -> Shadowed {
        let device = device(backend);
        let target = DeviceTarget::new(Arc::clone(&device), VolumeInfo::default());
        let base = device.bytes() - WINDOW as u64;
        Shadowed { device, target, bytes: vec![0; WINDOW], base, random: seed }
    }

    fn below(&mut self, limit: usize) -> usize {
        (split_mix::next(&mut self.random) % limit as u64) as usize
    }

    /// Writes or discards a part of the window, aligned or not.
    fn change(&mut self) {
        let len = 1 + [100, 5000, 200_000][self.below(3)] * self.below(100) / 100;
        let at = self.below(WINDOW - len);
        let (at, len) = if self.below(2) == 0 { (at, len) } else { (at / 512 * 512, len / 512 * 512) };
        let place = self.base + at as u64;
        if self.below(5) == 0 {
            // Only whole sectors are discarded.
            let (at, len) = (at / 512 * 512, len / 512 * 512);
            let _ = self.device.lock().discard(self.base + at as u64, len as u64).unwrap();
            self.bytes[at..at + len].fill(0);
            return;
        }
        let data: Vec<u8> = (0..len).map(|_| b"aaab\n"[self.below(5)]).collect();
        let _ = self.device.lock().write(place, &data, Hints::NONE).unwrap();
        self.bytes[at..at + len].copy_from_slice(&data);
    }

    fn extents(&mut self) -> Vec<(u64, u64)> {
        let number = self.below(5);
        let mut extents: Vec<(u64, u64)> = Vec::new();
        for _ in 0..number {
            let len = [0, 1, 3, 512, 4096, 300_000][self.below(6)];
            // Extents can follow each other without a gap, and they can overlap.
            let at = match extents.last() {
                Some(&(at, before)) if self.below(3) == 0 && at + before + len <= self.device.bytes() => {
                    at + before
                }
                _ => self.base + self.below(WINDOW + 1 - len as usize) as u64,
            };
            extents.push((at, len));
        }
        extents
    }

    fn data(&self, extents: &[(u64, u64)]) -> Vec<u8> {
        let range = |&(at, len): &(u64, u64)| &self.bytes[(at - self.base) as usize..][..len as usize];
        extents.iter().flat_map(range).copied().collect()
    }

    /// Compares all kinds of results with the bytes in memory.
    fn check(&mut self) {
        let extents = self.extents();
        let data = self.data(&extents);
        let instruction = json!({"words": WORDS, "positions": 7, "extents": extents});
        let answer = ask(&self.target, &instruction).unwrap().result;
        assert_eq!((&answer["status"], &answer["changed"]), (&json!("ok"), &json!(false)));
        for (word, found) in WORDS.iter().zip(answer["words"].as_array().unwrap()) {
            let all = positions(&data, word.as_bytes());
            let first = &all[..all.len().min(7)];
            assert_eq!(found["count"], all.len(), "{word:?} in {extents:?}");
            assert_eq!(found["positions"], json!(first));
            assert_eq!(found["addresses"], json!(addresses(first, &extents)));
        }
        let text: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
        let matching: Vec<u8> = text
            .iter()
            .filter(|line| !positions(line, b"bab").is_empty())
            .copied()
            .flatten()
            .copied()
            .collect();
        let filter = json!({"filter": {"words": ["bab"]}, "extents": extents});
        let answer = ask(&self.target, &filter).unwrap();
        let lines = if answer.payload.is_empty() { Vec::new() } else { from_hex(&answer.payload).unwrap() };
        // The last line has no line feed, and gets one.
        let trimmed = |lines: &[u8]| lines.strip_suffix(b"\n").unwrap_or(lines).to_vec();
        assert!(trimmed(&lines) == trimmed(&matching), "lines in {extents:?}");
        let answer = ask(&self.target, &json!({"regex": "^ab*", "extents": extents})).unwrap().result;
        let starts = text.iter().filter(|line| line.first() == Some(&b'a')).count();
        assert_eq!((&answer["count"], &answer["lines"]), (&json!(starts), &json!(starts)), "{extents:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    #[test]
    fn queries_equal_a_search_of_the_bytes(seed in any::<u64>()) {
        let root = tempfile::tempdir().unwrap();
        for (name, backend) in volumes(root.path()) {
            let mut shadowed = Shadowed::new(backend, seed);
            for _ in 0..25 {
                (0..3).for_each(|_| shadowed.change());
                shadowed.check();
            }
            // Without extents, a query is for the whole volume, whose other bytes are zeros.
            let whole = json!({"words": ["ab"], "positions": 1});
            let answer = ask(&shadowed.target, &whole).unwrap().result;
            let all = positions(&shadowed.bytes, b"ab");
            prop_assert_eq!(&answer["words"][0]["count"], &json!(all.len()), "{}", name);
            let first = all.first().map(|at| at + shadowed.base);
            prop_assert_eq!(&answer["words"][0]["positions"], &json!(first.into_iter().collect::<Vec<_>>()));
            shadowed.device.close().unwrap();
            // The same holds for the volume that is opened again.
            let again = Shadowed { bytes: shadowed.bytes, ..Shadowed::new(reopen(&root.path().join(name)), seed) };
            let answer = ask(&again.target, &whole).unwrap().result;
            prop_assert_eq!(&answer["words"][0]["count"], &json!(all.len()), "{}", name);
            again.device.close().unwrap();
        }
    }
}

#[test]
fn wrong_extents_and_instructions_are_refused_with_their_reason() {
    let device = device(MemoryBackend::new(1 << 20));
    let namespaces = vec![("a".into(), 0..4096), ("b".into(), 4096..8192)];
    let target = DeviceTarget::new(device, VolumeInfo { namespaces, ..VolumeInfo::default() });
    for (instruction, why) in [
        (json!({"words": ["x"], "extents": [[0, 512], [1 << 20, 1]]}), "extent 1, [1048576, 1], ends behind"),
        (json!({"words": ["x"], "extents": [[1, u64::MAX]]}), "ends behind the 1048576 bytes of the volume"),
        (json!({"words": ["x"], "extents": [[0, 5000]], "namespace": "a"}), "4096 bytes of name space \"a\""),
        (json!({"words": ["x"], "namespace": "c"}), "it has a, b"),
        (json!({"words": ["x"], "extents": [[0]]}), "such as [[4096, 512]]"),
        (json!({"words": ["x"], "extents": [[0, -1]]}), "such as [[4096, 512]]"),
        (json!({"words": ["x"], "file": "log.txt"}), "unknown key \"file\""),
        (json!({"words": []}), "1 to 64"),
        (json!({"regex": "("}), "regex"),
        (json!({"copy": {"words": ["x"]}, "to": "f"}), "a volume has none"),
        (json!({"program": "count.wasm"}), "a volume has no files: give the module of the program as"),
        (json!(["words"]), "not a JSON object"),
        (json!({"extents": []}), "exactly one of the keys"),
    ] {
        let refused = ask(&target, &instruction).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Invalid, "{instruction}");
        assert!(refused.what.contains(why), "{instruction}: {}", refused.what);
    }
    let none = ask(&target, &json!({"words": ["x"], "extents": []})).unwrap().result;
    assert_eq!((&none["words"][0]["count"], &none["bytes_scanned"]), (&json!(0), &json!(0)));
}

#[test]
fn a_name_space_has_its_own_addresses() {
    let device = device(MemoryBackend::new(1 << 20));
    let _ = device.lock().write(4096 + 10, b"word", Hints::NONE).unwrap();
    let namespaces = vec![("a".into(), 0..4096), ("b".into(), 4096..8192)];
    let target = DeviceTarget::new(device, VolumeInfo { namespaces, ..VolumeInfo::default() });
    let found = |instruction: Value| ask(&target, &instruction).unwrap().result["words"][0].clone();
    let all = found(json!({"words": ["word"], "positions": 1, "namespace": "b"}));
    assert_eq!((&all["count"], &all["positions"]), (&json!(1), &json!([10])));
    let part = json!({"words": ["word"], "positions": 1, "namespace": "b", "extents": [[4000, 8], [8, 8]]});
    let part = found(part);
    assert_eq!((&part["positions"], &part["addresses"]), (&json!([10]), &json!([10])));
    assert_eq!(found(json!({"words": ["word"], "namespace": "a"}))["count"], 0);
    assert_eq!(found(json!({"words": ["word"], "positions": 1}))["positions"], json!([4106]));
}

#[test]
fn a_program_computes_on_extents() {
    let device = device(MemoryBackend::new(1 << 20));
    let text = b"a\nb\n".repeat(50_000);
    let _ = device.lock().write(4096, &text, Hints::NONE).unwrap();
    let target = DeviceTarget::new(device, VolumeInfo::default());
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/isp/line_count.wat");
    let module: String = wat::parse_file(source).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let extents = [(100_000_u64, 70_001_u64), (0, 5000), (4097, 1)];
    let shadow = [vec![0; 4096], text].concat();
    let lines: usize = extents
        .iter()
        .map(|&(at, len)| {
            shadow[at as usize..(at + len) as usize].iter().filter(|byte| **byte == b'\n').count()
        })
        .sum();
    let answer = ask(&target, &json!({"program": {"hex": module}, "extents": extents})).unwrap();
    let hex: String = format!("{lines}\n").bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((&answer.result["status"], &answer.payload), (&json!("ok"), &hex), "{answer:?}");
}

#[test]
fn only_changes_of_the_named_bytes_are_noted() {
    let device = device(MemoryBackend::new(1 << 20));
    let source = DeviceExtents::new(&device, &[4096..8192, 100..101, 8192..8292]).unwrap();
    let mut before = source.version();
    let mut changes = |change: &dyn Fn(&mut frit_serve::DeviceGuard<'_>)| {
        change(&mut device.lock());
        std::mem::replace(&mut before, source.version()) != before
    };
    let write = |access: &mut frit_serve::DeviceGuard<'_>, at: u64, len: usize| {
        let _ = access.write(at, &vec![7; len], Hints::NONE).unwrap();
    };
    assert!(changes(&|access| write(access, 4000, 97)), "one byte of an extent");
    assert!(changes(&|access| write(access, 8291, 4096)));
    assert!(changes(&|access| write(access, 100, 1)));
    assert!(changes(&|access| _ = access.discard(4096, 512).unwrap()));
    assert!(changes(&|access| _ = access.write_zeroes(4096, 512, true).unwrap()));
    assert!(!changes(&|access| write(access, 4000, 96)), "the bytes before an extent");
    assert!(!changes(&|access| write(access, 8292, 4096)));
    assert!(!changes(&|access| _ = access.discard(512, 1024).unwrap()));
    assert!(!changes(&|access| _ = access.read(4096, &mut [0; 4096]).unwrap()));
    assert!(!changes(&|access| _ = access.write(2 << 20, &[1; 512], Hints::NONE)), "it is refused");
}

/// Sets a flag when it is dropped.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn writes_beside_the_extents_disturb_no_query_and_writes_inside_show() {
    let root = tempfile::tempdir().unwrap();
    for (name, backend) in volumes(root.path()) {
        let shadowed = Shadowed::new(backend, 1);
        let (device, target) = (&shadowed.device, &shadowed.target);
        let text: Vec<u8> = b"some words of text, ".iter().copied().cycle().take(2 << 20).collect();
        let _ = device.lock().write(0, &text, Hints::NONE).unwrap();
        let count = positions(&text, b"words").len();
        let query = |fail: bool| {
            let extents = [[0, text.len()]];
            let query = json!({"words": ["words"], "extents": extents, "fail_if_changed": fail});
            ask(target, &query).unwrap().result
        };
        for inside in [false, true] {
            let stop = AtomicBool::new(false);
            thread::scope(|s| {
                s.spawn(|| {
                    let base = if inside { 0 } else { text.len() as u64 };
                    for i in 0u64.. {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let at = base + i * 7919 % 1000 * 4096;
                        let data = &text[(at % 2_000_000) as usize..][..4096];
                        let _ = device.lock().write(at, data, Hints::NONE).unwrap();
                    }
                });
                thread::sleep(Duration::from_millis(20));
                // A failed assertion ends the writer, too.
                let _stop = StopAtEnd(&stop);
                for fail in [false, true, false] {
                    if !inside {
                        let found = query(fail);
                        assert_eq!(
                            (&found["status"], &found["changed"]),
                            (&json!("ok"), &json!(false)),
                            "{name}"
                        );
                        assert_eq!(found["words"][0]["count"], count);
                        continue;
                    }
                    // A short scan may lie between two writes.
                    let found = (0..200).map(|_| query(fail)).find(|found| found["changed"] == true);
                    let found =
                        found.unwrap_or_else(|| panic!("{name}: no query beside writes was disturbed"));
                    if fail {
                        assert_eq!(found["status"], "changed", "{name}");
                        assert!(found["error"].as_str().unwrap().contains("changed during the scan"));
                    } else {
                        assert_eq!(found["status"], "ok", "{name}");
                    }
                }
            });
        }
        device.close().unwrap();
    }
}

#[test]
fn reads_of_the_engine_are_counted_apart_and_fill_no_cache() {
    let root = tempfile::tempdir().unwrap();
    for (name, backend) in volumes(root.path()) {
        let shadowed = Shadowed::new(backend, 1);
        let text = vec![b'x'; 2 << 20];
        let _ = shadowed.device.lock().write(0, &text, Hints::NONE).unwrap();
        // Random contents behind them leave nothing of the text in a small cache.
        let _ = shadowed.device.lock().write(16 << 20, &vec![b'y'; 8 << 20], Hints::NONE).unwrap();
        let _ = shadowed.device.flush().unwrap();
        let commands = |cause: &str| -> u64 {
            let media = shadowed.target.stat().media;
            let all = media.iter().flat_map(|medium| &medium.commands);
            all.filter(|c| c.op.ends_with("read") && c.cause == cause).map(|c| c.bytes).sum()
        };
        let requests = |op: &str| -> u64 {
            shadowed.target.stat().requests.iter().find(|r| r.op == op).map_or(0, |r| r.bytes)
        };
        let query = json!({"words": ["x"], "extents": [[0, text.len()]]});
        let host = commands("host");
        let mut engine = Vec::new();
        for _ in 0..3 {
            let before = commands("isp");
            assert_eq!(ask(&shadowed.target, &query).unwrap().result["words"][0]["count"], text.len());
            engine.push(commands("isp") - before);
        }
        assert!(engine[0] >= text.len() as u64, "{name}: {engine:?}");
        assert!(engine.iter().all(|bytes| *bytes == engine[0]), "{name}: a query fills no cache: {engine:?}");
        assert_eq!(commands("host"), host, "{name}");
        assert_eq!(requests("isp"), 3 * text.len() as u64, "{name}");
        assert_eq!(requests("read"), 0, "{name}");
        shadowed.device.close().unwrap();
    }
}

#[test]
fn appends_and_resets_of_zones_change_their_bytes_only() {
    let root = tempfile::tempdir().unwrap();
    let device = device(volume(&root.path().join("zns"), "zns-small", &[]));
    let target = DeviceTarget::new(Arc::clone(&device), VolumeInfo::default());
    let watch = |range| DeviceExtents::new(&device, &[range]).unwrap();
    let (first, second, other) = (watch(0..4096), watch(4096..8192), watch(2 << 20..3 << 20));
    let versions = || [first.version(), second.version(), other.version()].map(|version| version > 0);
    let data = to_hex(&b"word".repeat(1024));
    target.zoned(&ZonedOperation::Append { zone: 0, data }).unwrap();
    assert_eq!(versions(), [true, false, false]);
    let query = json!({"words": ["word"], "extents": [[0, 8192]]});
    assert_eq!(ask(&target, &query).unwrap().result["words"][0]["count"], 1024);
    target.zoned(&ZonedOperation::Finish { zone: 0 }).unwrap();
    assert_eq!(versions(), [true, false, false]);
    target.zoned(&ZonedOperation::Reset { zone: 0 }).unwrap();
    assert_eq!(versions(), [true, true, false]);
    assert_eq!(ask(&target, &query).unwrap().result["words"][0]["count"], 0);
    drop((first, second, other));
    device.close().unwrap();
}

/// A slow volume behind a control socket: a read of the engine takes 5 ms.
struct Slow {
    dir: tempfile::TempDir,
    device: Arc<Device>,
    server: Option<ControlServer>,
}

impl Slow {
    fn new() -> Slow {
        // The whole volume takes 2.5 s.
        Slow::with_reads_of(Duration::from_millis(5))
    }

    /// Each read of a query takes so long. A query of the whole volume has 512.
    fn with_reads_of(time: Duration) -> Slow {
        let dir = tempfile::tempdir().unwrap();
        let memory = MemoryBackend::new(64 << 20);
        memory.knobs().pace_us.store(time.as_micros() as u64, Ordering::Relaxed);
        let device = device(memory);
        let target = Arc::new(DeviceTarget::new(Arc::clone(&device), VolumeInfo::default()));
        let options = ControlOptions {
            socket: dir.path().join("ctl.sock"),
            volume: dir.path().into(),
            rights: Rights::of_this_process(false),
        };
        let server = Some(ControlServer::start(&options, target, Logger::none()).unwrap());
        Slow { dir, device, server }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("ctl.sock")
    }

    fn raw(&self, instruction: &Value) -> UnixStream {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        let line = json!({"v": 1, "do": "isp", "command": instruction});
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        stream
    }

    fn reads(&self) -> u64 {
        self.device.counters().isp.requests
    }

    fn wait_for_reads(&self, number: u64) {
        let until = Instant::now() + Duration::from_secs(20);
        while self.reads() < number {
            assert!(Instant::now() < until, "the query does not begin");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn a_client_that_leaves_ends_its_query_and_one_that_listens_gets_its_answer() {
    let slow = Slow::new();
    let whole = json!({"words": ["x"]});
    let stream = slow.raw(&whole);
    slow.wait_for_reads(2);
    drop(stream);
    let until = Instant::now() + Duration::from_secs(20);
    let mut before = slow.reads();
    loop {
        thread::sleep(Duration::from_millis(200));
        let now = slow.reads();
        if now == before {
            break;
        }
        before = now;
        assert!(Instant::now() < until, "the query goes on");
    }
    // A query of the whole volume has 512 reads.
    assert!(before < 400, "{before} reads");
    let mut stream = slow.raw(&json!({"words": ["x"], "extents": [[0, 1 << 20]]}));
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"status\":\"ok\"") && answer.contains("\"count\":0"), "{answer}");
}

#[test]
fn a_fifth_query_at_a_time_is_refused_and_requests_go_on() {
    // The four last longer than a busy machine takes to ask once more.
    let slow = Slow::with_reads_of(Duration::from_millis(40));
    let mut streams: Vec<UnixStream> = (0..4).map(|_| slow.raw(&json!({"words": ["x"]}))).collect();
    slow.wait_for_reads(1);
    let until = Instant::now() + Duration::from_secs(60);
    let query = WordQuery {
        words: vec![b"x".to_vec()],
        extents: VolumeExtents { list: Some(vec![(0, 512)]), namespace: None },
        ..WordQuery::default()
    };
    let refused = loop {
        match IspClient::connect(&slow.socket()).unwrap().words(&query) {
            Err(frit_client::ClientError::Refused(refused)) => break refused,
            other => assert!(Instant::now() < until, "{other:?}"),
        }
        // It may have come before the last of the four, which was refused.
        streams.push(slow.raw(&json!({"words": ["x"]})));
    };
    assert_eq!(refused.kind, RefusalKind::Busy);
    assert!(refused.what.contains("try again"), "{}", refused.what);
    let begin = Instant::now();
    let _ = slow.device.lock().write(0, &[1; 4096], Hints::NONE).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10), "the queries have 20 s");
    drop(streams);
    let found = loop {
        match IspClient::connect(&slow.socket()).unwrap().words(&query) {
            Ok(found) => break found,
            Err(other) => assert!(Instant::now() < until, "{other}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((found.words[0].count, found.changed, found.bytes_scanned), (0, false, 512));
}

#[test]
fn a_server_that_stops_ends_its_queries() {
    let mut slow = Slow::new();
    let mut stream = slow.raw(&json!({"words": ["x"]}));
    slow.wait_for_reads(1);
    let begin = Instant::now();
    slow.device.close().unwrap();
    drop(slow.server.take());
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let status = &answer["ok"]["isp"]["result"]["status"];
    assert!(status == "io" || status == "cancelled", "{answer}");
    assert!(begin.elapsed() < Duration::from_secs(2), "a query has 2.5 s");
}

#[test]
fn damage_and_long_results_have_a_status() {
    let memory = MemoryBackend::new(4 << 20);
    let knobs = memory.knobs();
    let device = device(memory);
    let target = DeviceTarget::new(Arc::clone(&device), VolumeInfo::default());
    let text: Vec<u8> = b"ab\n".iter().copied().cycle().take(3 << 20).collect();
    let _ = device.lock().write(0, &text, Hints::NONE).unwrap();
    let many = ask(&target, &json!({"words": ["ab"], "positions": 1 << 30, "extents": [[0, 3 << 20]]}));
    let many = many.unwrap().result;
    assert_eq!((&many["words"][0]["count"], &many["truncated"]), (&json!(1 << 20), &json!(true)));
    assert_eq!(many["words"][0]["positions"].as_array().unwrap().len(), (2 << 20) / 8);
    knobs.damaged_page.store(5, Ordering::Relaxed);
    let damaged = ask(&target, &json!({"words": ["ab"], "extents": [[16384, 4096], [20480, 8]]})).unwrap();
    assert_eq!(damaged.result["status"], "io");
    assert!(damaged.result["error"].as_str().unwrap().contains("injected damage"), "{}", damaged.result);
    let beside = ask(&target, &json!({"words": ["ab"], "extents": [[16384, 4096]]})).unwrap().result;
    assert_eq!(beside["status"], "ok");
}
