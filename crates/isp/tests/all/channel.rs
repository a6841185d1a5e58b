//! Command files: instructions in pieces, results in order, readiness and callbacks.

use crate::binary::structure;
use crate::support::{Pieces, Setting, Written, until_free};
use frit_isp::{
    Channel, ChannelError, Destination, Engine, EngineOptions, Foreground, ResolveError, Resolver, Source,
    Target, User,
};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Files by their names.
pub(crate) struct Directory(HashMap<String, Arc<Pieces>>);

impl Directory {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        Self(
            files
                .iter()
                .map(|(name, data)| ((*name).into(), Arc::new(Pieces::new(*data, &[3, 0, 5]))))
                .collect(),
        )
    }
}

impl Resolver for Directory {
    fn source(&self, target: &Target) -> Result<Arc<dyn Source>, ResolveError> {
        let Target::Name(name) = target else { return Err(ResolveError::Denied) };
        // A name in the binary form need not be UTF-8.
        let found = name.to_str().and_then(|name| self.0.get(name)).ok_or(ResolveError::NotFound)?;
        Ok(Arc::<Pieces>::clone(found))
    }

    fn destination(&self, _: &Target) -> Result<Arc<dyn Destination>, ResolveError> {
        Ok(Arc::<Written>::default())
    }
}

pub(crate) fn channel() -> Channel {
    Channel::new(Arc::new(Setting::plain().engine()))
}

fn directory() -> Directory {
    Directory::new(&[("log.txt", b"an error\na warning\nan error"), ("dir/empty", b"")])
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)))
}

#[test]
fn a_line_is_answered_by_a_line() {
    let channel = channel();
    let line = b"{\"words\":[\"error\",\"warn\",{\"hex\":\"ff\"}],\"positions\":1,\"file\":\"log.txt\"}\n";
    assert_eq!(channel.write(line, &directory()), Ok(line.len()));
    let reply = json(&channel.read(1 << 16));
    assert_eq!(reply["status"], "ok");
    assert_eq!(reply["words"][0], serde_json::json!({"word": "error", "count": 2, "positions": [3]}));
    assert_eq!(reply["words"][2]["word"]["hex"], "ff");
    assert_eq!((&reply["changed"], &reply["truncated"]), (&false.into(), &false.into()));
    assert!(reply["wall_ns"].as_u64().unwrap() > 0);
    assert!(channel.read(100).is_empty(), "no instruction is outstanding");
}

#[test]
fn a_payload_follows_the_line() {
    let channel = channel();
    let line = b"{\"filter\":{\"words\":[\"error\"]},\"file\":\"log.txt\"}";
    channel.write(line, &directory()).unwrap();
    // Small reads continue where the last one ended.
    let mut reply = Vec::new();
    loop {
        let bytes = channel.read(7);
        if bytes.is_empty() {
            break;
        }
        reply.extend_from_slice(&bytes);
    }
    let line = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    assert_eq!(json(&reply[..line])["payload_bytes"], 18);
    assert_eq!(&reply[line..], b"an error\nan error\n");
}

#[test]
fn instructions_in_pieces_and_together_are_answered_in_order() {
    let mut bytes = b"\n {\"checksum\":\"xxh3\",\"file\":\"dir/empty\"}\n".to_vec();
    bytes.extend_from_slice(&structure(&["error"]));
    bytes.extend_from_slice(b"{\"regex\":\"^an\",\"file\":\"log.txt\"}\n\n{\"no\": 1}\nnonsense\n");
    for piece in [1, 2, 7, 4096, 10_000] {
        let channel = channel();
        for part in bytes.chunks(piece) {
            assert_eq!(channel.write(part, &directory()), Ok(part.len()));
        }
        assert_eq!(json(&channel.read(9000))["checksum"], "2d06800538d394c2");
        let reply = channel.read(9000);
        assert_eq!((&reply[..8], reply[2656]), (&b"fritISP1"[..], 2), "pieces of {piece}");
        assert_eq!(json(&channel.read(9000))["lines"], 2);
        let error = json(&channel.read(9000))["error"].as_str().unwrap().to_owned();
        assert!(error.contains("exactly one of the keys words, regex"), "{error}");
        assert!(json(&channel.read(9000))["error"].as_str().unwrap().contains("line 1 column 2"));
        assert!(channel.read(9000).is_empty());
    }
}

#[test]
fn errors_name_what_is_wrong_and_what_is_possible() {
    for (line, text) in [
        (r#"{"words":["a"]}"#, "either \"file\" or \"inode\""),
        (r#"{"words":["a"],"file":"a","inode":1}"#, "either"),
        (r#"{"words":["a"],"file":"../a"}"#, "without .."),
        (r#"{"words":["a"],"file":"/a"}"#, "leading /"),
        (r#"{"words":["a"],"inode":1}"#, "no right"),
        (r#"{"words":["a"],"file":"missing"}"#, "no such file"),
        (
            r#"{"words":["a"],"fil":"log.txt","file":"log.txt"}"#,
            "unknown key \"fil\"; its keys are words, positions",
        ),
        (r#"{"words":"a","file":"log.txt"}"#, "a list of strings"),
        (r#"{"words":[],"file":"log.txt"}"#, "1 to 64"),
        (r#"{"words":["a"],"offset":-1,"file":"log.txt"}"#, "\"offset\" is -1"),
        (r#"{"words":["a"],"memory":9999999999,"file":"log.txt"}"#, "from 0 to 1073741824"),
        (r#"{"checksum":"md5","file":"log.txt"}"#, "crc32c, crc64-nvme, sha256, xxh3, blake3"),
        (r#"{"select":["a"],"file":"log.txt"}"#, "\"format\" is missing"),
        (r#"{"select":["a"],"format":"xml","file":"log.txt"}"#, "\"csv\" or \"jsonl\""),
        (r#"{"select":["a"],"format":"jsonl","where":[["a"]],"file":"log.txt"}"#, "comparisons are = != <"),
        (r#"{"aggregate":[{"median":"a"}],"format":"jsonl","file":"log.txt"}"#, "count, sum, min, max, mean"),
        (
            r#"{"histogram":{"field":"a","low":2,"high":1,"bins":2},"format":"jsonl","file":"log.txt"}"#,
            "below",
        ),
        (r#"{"copy":{"regex":"a"},"file":"log.txt"}"#, "needs \"to\""),
        (r#"{"copy":{"regex":"a"},"to":"log.txt","file":"log.txt"}"#, "overwrite"),
        (r#"{"copy":{"regex":"a"},"to":"x","block":0,"file":"log.txt"}"#, "1 to 1048576"),
        (r#"{"filter":{"regex":"(","words":["a"]},"file":"log.txt"}"#, "either \"words\" or \"regex\""),
        (
            r#"{"filter":"a","file":"log.txt"}"#,
            "filter is not a JSON object, such as {\"words\": [\"error\"]}",
        ),
        (r#"{"copy":["a"],"to":"x","file":"log.txt"}"#, "copy is not a JSON object, such as {\"words\""),
        ("5", "the instruction is not a JSON object, such as {\"words\": [\"error\"]}"),
        (
            r#"{"select":"a","format":"csv","file":"log.txt"}"#,
            "a list of strings, such as [\"host\", \"size\"]",
        ),
        (r#"{"words":5,"file":"log.txt"}"#, "a list of strings, such as [\"error\", \"warn\"], or of bytes"),
        (r#"{"select":["a"],"format":"csv","where":5,"file":"log.txt"}"#, "such as [[\"size\", \">\", 100]]"),
        (r#"{"histogram":5,"file":"log.txt"}"#, "{\"field\": \"size\", \"low\": 0, "),
        (
            r#"{"words":["a"],"offset":18446744073709551616,"file":"log.txt"}"#,
            "a whole number from 0 to 18446744073709551615",
        ),
        (r#"{"program":"p.wasm","fuel":-1,"file":"log.txt"}"#, "from 0 to 9223372036854775807"),
        (
            r#"{"program":"p.wasm","fuel":9223372036854775808,"file":"log.txt"}"#,
            "from 0 to 9223372036854775807",
        ),
        (r#"{"words":["a"],"file":"log.txt/"}"#, "ends as that of a directory"),
        (r#"{"words":["a"],"words":["b"],"file":"log.txt"}"#, "the instruction has the key \"words\" twice"),
        (r#"{"filter":{"regex":"a","regex":"b"},"file":"log.txt"}"#, "has the key \"regex\" twice"),
        (r#"{"words":[{"hex":"00","\u0068ex":"01"}],"file":"log.txt"}"#, "has the key \"hex\" twice"),
        (
            r#"{"filter":{"regex":"(\\w{1000}){1000}"},"file":"log.txt"}"#,
            "needs more than 8388608 bytes of memory: use smaller numbers of repetitions",
        ),
    ] {
        let channel = channel();
        channel.write(line.as_bytes(), &directory()).unwrap();
        let reply = json(&channel.read(9000));
        let error = reply["error"].as_str().unwrap_or_else(|| panic!("{line}: {reply}")).to_owned();
        assert!(error.contains(text), "{line}: {error}");
    }
}

#[test]
fn failures_to_find_a_file_have_a_status() {
    /// Fails to find every file.
    struct Failing(ResolveError);
    impl Resolver for Failing {
        fn source(&self, _: &Target) -> Result<Arc<dyn Source>, ResolveError> {
            Err(self.0.clone())
        }
        fn destination(&self, _: &Target) -> Result<Arc<dyn Destination>, ResolveError> {
            Err(self.0.clone())
        }
    }
    for (error, status) in [
        (ResolveError::NotFound, "not-found"),
        (ResolveError::NotDirectory, "not-found"),
        (ResolveError::Denied, "denied"),
        (ResolveError::Refused("it is a link".into()), "denied"),
        (ResolveError::NotFile, "invalid"),
        (ResolveError::Invalid("the path is a loop".into()), "invalid"),
        (ResolveError::Other("the disk is broken".into()), "io"),
    ] {
        let channel = channel();
        channel.write(b"{\"checksum\":\"xxh3\",\"file\":\"log.txt\"}\n", &Failing(error.clone())).unwrap();
        let reply = json(&channel.read(1000));
        assert_eq!(reply["status"], status);
        assert_eq!(reply["error"], format!("\"log.txt\": {error}"));
    }
}

#[test]
fn results_that_are_not_read_limit_instructions() {
    let channel = channel();
    let line = b"{\"checksum\":\"xxh3\",\"file\":\"log.txt\"}\n";
    let many = line.repeat(20);
    assert_eq!(channel.write(&many, &directory()), Ok(16 * line.len()));
    assert_eq!(channel.write(line, &directory()), Err(ChannelError::WouldBlock));
    assert!(!channel.readiness().writable);
    assert!(!channel.read(1000).is_empty());
    assert!(channel.readiness().writable);
    assert_eq!(channel.write(line, &directory()), Ok(line.len()));
}

#[test]
fn a_read_before_the_end_of_an_instruction_is_an_error_result() {
    let channel = channel();
    channel.write(b"{\"words\":", &directory()).unwrap();
    assert!(json(&channel.read(1000))["error"].as_str().unwrap().contains("is not complete"));
    channel.write(&structure(&["a"])[..100], &directory()).unwrap();
    let reply = channel.read(5000);
    assert_eq!((reply.len(), reply[3460]), (4096, 1));
    channel.write(&vec![b'x'; 100_000], &directory()).unwrap();
    assert!(json(&channel.read(1000))["error"].as_str().unwrap().contains("more than 65536"));
    assert!(channel.read(10).is_empty());
}

#[test]
fn readiness_and_callbacks_follow_the_engine() {
    let foreground = Arc::new(Foreground::new(Duration::from_secs(60)));
    let options = EngineOptions { foreground: Arc::clone(&foreground), ..EngineOptions::default() };
    let channel = Channel::new(Arc::new(Engine::new(options)));
    let calls = Arc::new(AtomicU64::new(0));
    let count = || {
        let calls = Arc::clone(&calls);
        move || _ = calls.fetch_add(1, Ordering::SeqCst)
    };
    channel.on_ready(count());
    assert_eq!(calls.load(Ordering::SeqCst), 1, "nothing to wait for");
    let guard = foreground.enter();
    channel.write(b"{\"checksum\":\"xxh3\",\"file\":\"log.txt\"}\n", &directory()).unwrap();
    assert_eq!(channel.try_read(100), Err(ChannelError::WouldBlock));
    assert!(!channel.readiness().readable);
    channel.on_ready(count());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    drop(guard);
    assert!(!channel.read(1).is_empty());
    while calls.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    assert!(channel.readiness().readable, "the rest of the result");
    channel.on_ready(count());
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[test]
fn the_text_of_a_result_counts_for_the_memory_of_the_engine() {
    // A position takes 8 bytes, and up to 8 characters in JSON. A payload stays where it is.
    let options = EngineOptions { memory_bytes_max: 96 << 20, ..EngineOptions::default() };
    let engine = Arc::new(Engine::new(options));
    let channel = Channel::new(Arc::clone(&engine));
    let files = Directory::new(&[("x", &vec![b'a'; 500_000])]);
    let write = |line: &str| channel.write(line.as_bytes(), &files).unwrap();
    write("{\"words\":[\"a\"],\"positions\":500000,\"file\":\"x\"}\n");
    write("{\"filter\":{\"words\":[\"a\"]},\"file\":\"x\"}\n");
    while !channel.readiness().readable {
        std::thread::yield_now();
    }
    let read = |len: usize| channel.read(len).len();
    assert_eq!(read(1), 1);
    let with_text = engine.memory_bytes();
    let text = 1 + read(1 << 30);
    assert!(text > 3_000_000);
    // The positions and their text.
    until_free(&engine, with_text - 4_000_000 - text as u64);
    let rest = engine.memory_bytes();
    assert!(read(1) == 1 && engine.memory_bytes() < rest + 100_000, "{} {rest}", engine.memory_bytes());
    assert!(read(1 << 30) > 500_000);
    until_free(&engine, 100_000);
}

#[test]
fn a_result_without_memory_for_its_text_is_not_kept() {
    // A million positions occupy 8 MB, and one user has at most 12 MiB, so that their text does not fit.
    let options = EngineOptions { memory_bytes_max: 48 << 20, ..EngineOptions::default() };
    let engine = Arc::new(Engine::new(options));
    let files = Directory::new(&[("x", &vec![b'a'; 1_000_000])]);
    for binary in [false, true] {
        let channel = Channel::new(Arc::clone(&engine));
        let line = br#"{"words": ["a"], "positions": 1000000, "file": "x"}"#;
        let mut instruction = line.to_vec();
        if binary {
            instruction = structure(&["a"]);
            // Number of positions, and name.
            instruction[20..24].copy_from_slice(&1_000_000_u32.to_le_bytes());
            instruction[2144..2656].fill(0);
            instruction[2144] = b'x';
        }
        channel.write(&instruction, &files).unwrap();
        let result = channel.read(1 << 30);
        let text = String::from_utf8_lossy(&result);
        assert!(result.len() < 5000 && text.contains("the share of user 0"), "{} {text}", result.len());
        until_free(&engine, 100_000);
    }
}

#[test]
fn open_command_files_of_a_user_have_a_limit_and_count_their_lines() {
    let options = EngineOptions { memory_bytes_max: 96 << 20, ..EngineOptions::default() };
    let engine = Arc::new(Engine::new(options));
    let files = Directory::new(&[("x", b"banana")]);
    let open = |user| Channel::for_user(Arc::clone(&engine), User(user));
    let mut channels: Vec<_> = std::iter::from_fn(|| open(1).ok()).collect();
    assert_eq!((channels.len(), open(1).unwrap_err()), (1024, ChannelError::TooMany));
    // Lines that are not complete: the share of the user is 24 MiB.
    let line = [b"{\"words\": [\"".as_slice(), &[b'a'; 60_000]].concat();
    let refused = channels.iter().position(|channel| channel.write(&line, &files).is_err()).unwrap();
    assert!((200..500).contains(&refused), "{refused}");
    assert_eq!(channels[refused].write(&line, &files), Err(ChannelError::NoMemory));
    // Others have theirs.
    let other = open(2).unwrap();
    other.write(b"{\"words\":[\"a\"],\"file\":\"x\"}\n", &files).unwrap();
    assert_eq!(json(&other.read(1 << 16))["words"][0]["count"], 3);
    channels.truncate(1023);
    assert!(open(1).is_ok());
    drop((channels, other));
    until_free(&engine, 0);
}

#[test]
fn a_watcher_is_called_for_events_only() {
    let foreground = Arc::new(Foreground::new(Duration::from_secs(60)));
    let options = EngineOptions { foreground: Arc::clone(&foreground), ..EngineOptions::default() };
    let channel = Channel::new(Arc::new(Engine::new(options)));
    let (calls, replaced) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let watch = |calls: &Arc<AtomicU64>| {
        let calls = Arc::clone(calls);
        channel.watch(move || _ = calls.fetch_add(1, Ordering::SeqCst));
    };
    let expect = |count: u64, what: &str| {
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while calls.load(Ordering::SeqCst) < count && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(calls.load(Ordering::SeqCst), count, "{what}");
    };
    let line = b"{\"checksum\":\"xxh3\",\"file\":\"log.txt\"}\n";
    watch(&replaced);
    watch(&calls);
    assert!(channel.read(10).is_empty());
    channel.write(b"{\"words\":", &directory()).unwrap();
    watch(&calls);
    expect(0, "nothing has completed");
    assert!(!channel.read(1000).is_empty(), "the instruction is not complete");
    let guard = foreground.enter();
    channel.write(line, &directory()).unwrap();
    watch(&calls);
    expect(0, "the instruction is in progress");
    drop(guard);
    expect(1, "it has completed");
    watch(&calls);
    assert!(!channel.read(1000).is_empty());
    expect(1, "there was room for other instructions");
    channel.write(b"{\"wrong\":1}\n", &directory()).unwrap();
    expect(2, "an instruction that completes within the write");
    for _ in 0..15 {
        channel.write(b"{\"wrong\":1}\n", &directory()).unwrap();
    }
    expect(17, "each one is an event");
    assert!(!channel.readiness().writable);
    assert!(!channel.read(1).is_empty());
    expect(17, "a part of a result makes no room");
    assert!(!channel.read(1000).is_empty());
    expect(18, "there is room for an instruction");
    assert!(!channel.read(1000).is_empty());
    expect(19, "the next result is complete");
    channel.close();
    channel.write(b"{\"wrong\":1}\n", &directory()).unwrap();
    expect(19, "the watcher was removed");
    assert_eq!(replaced.load(Ordering::SeqCst), 0, "another one has replaced it");
}

#[test]
fn a_closed_engine_cancels_and_accepts_nothing() {
    let foreground = Arc::new(Foreground::new(Duration::from_secs(60)));
    let options = EngineOptions { foreground: Arc::clone(&foreground), ..EngineOptions::default() };
    let engine = Arc::new(Engine::new(options));
    let channel = Channel::new(Arc::clone(&engine));
    let _guard = foreground.enter();
    let line = b"{\"checksum\":\"xxh3\",\"file\":\"log.txt\"}\n";
    channel.write(line, &directory()).unwrap();
    engine.close();
    assert!(channel.readiness().readable, "its threads have ended");
    channel.write(line, &directory()).unwrap();
    for _ in 0..2 {
        assert_eq!(json(&channel.read(1000))["status"], "cancelled");
    }
}

#[test]
fn a_cancelled_instruction_has_a_result() {
    let foreground = Arc::new(Foreground::new(Duration::from_secs(60)));
    let options = EngineOptions { foreground: Arc::clone(&foreground), ..EngineOptions::default() };
    let channel = Channel::new(Arc::new(Engine::new(options)));
    let _guard = foreground.enter();
    channel.write(b"{\"checksum\":\"xxh3\",\"file\":\"log.txt\"}\n", &directory()).unwrap();
    channel.cancel();
    assert_eq!(json(&channel.read(1000))["status"], "cancelled");
}

/// Reads in a callback, as a mount answers a read that waited.
fn read_when_ready(channel: &Arc<Channel>, done: Arc<AtomicU64>) {
    match channel.try_read(1000) {
        Ok(_) => _ = done.fetch_add(1, Ordering::SeqCst),
        Err(_) => {
            let again = Arc::clone(channel);
            channel.on_ready(move || read_when_ready(&again, done));
        }
    }
}

#[test]
fn a_reader_waits_while_instructions_complete_at_once() {
    let foreground = Arc::new(Foreground::new(Duration::from_secs(60)));
    let options = EngineOptions { foreground: Arc::clone(&foreground), ..EngineOptions::default() };
    let channel = Arc::new(Channel::new(Arc::new(Engine::new(options))));
    let guard = foreground.enter();
    channel.write(b"{\"checksum\":\"xxh3\",\"file\":\"log.txt\"}\n", &directory()).unwrap();
    let done = Arc::new(AtomicU64::new(0));
    read_when_ready(&channel, Arc::clone(&done));
    // Both calls complete an instruction within the write: a wrong one, and one of a file that is missing.
    channel.write(b"{\"wrong\":1}\n{\"words\":[\"a\"],\"file\":\"missing\"}\n", &directory()).unwrap();
    assert_eq!(done.load(Ordering::SeqCst), 0, "the first result is not complete");
    drop(guard);
    while done.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(json(&channel.read(1000))["status"], "invalid");
    assert_eq!(json(&channel.read(1000))["status"], "not-found");
}
