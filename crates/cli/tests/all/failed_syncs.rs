//! A disk that fails one sync, and tells one caller, under a served volume with several clients.

use crate::device_commands::{frit, text};
use crate::namespaces::{BLOCK, Nbd, stamped, version};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Clients of a volume, each with blocks of its own.
const CLIENTS: u64 = 3;
/// Requests of each client.
const REQUESTS: u64 = 260;
/// Largest number of blocks that clients write, so that they are written again and again.
const BLOCKS_MAX: u64 = 900;

/// A stack, changes of it, and the medium of which a sync fails.
#[derive(Clone, Copy, Debug)]
struct Case {
    stack: &'static str,
    sets: &'static [&'static str],
    medium: &'static str,
}

const fn case(stack: &'static str, sets: &'static [&'static str], medium: &'static str) -> Case {
    Case { stack, sets, medium }
}

const CASES: [Case; 17] = [
    // Blocks are written to the disk soon, with their flushes beside those of clients.
    case("halo-small", &["cache.cache_bytes=1M"], "disk.medium"),
    case("halo-small", &["cache.mode=write-through", "cache.cache_bytes=1M"], "disk.medium"),
    case("hfsl-small", &[], "nand.medium"),
    case("halo-small", &["cache.mode=write-around", "cache.cache_bytes=1M"], "disk.medium"),
    case("halo-small", &["cache.bypass_bytes=8K", "cache.cache_bytes=1M"], "disk.medium"),
    case("halo-small", &[], "pcm.medium"),
    case("halo-mirror", &["cache.cache_bytes=1M"], "left.medium"),
    case("halo-mirror", &["cache.cache_bytes=1M"], "right.medium"),
    case("halo-hfsl", &["cache.cache_bytes=1M"], "nand.medium"),
    case("halo-thin", &["cache.cache_bytes=1M"], "disk.medium"),
    case("hfsl-small", &[], "pcm.medium"),
    case("hfsl-two-nand", &[], "nand-a.medium"),
    case("ntl-small", &[], "pcm.medium"),
    case("ftl-small", &[], "nand.medium"),
    case("flashtier-small", &[], "nand.medium"),
    case("flashtier-small", &["flashtier.dirty_threshold=0.01"], "disk.medium"),
    case("nameless-small", &[], "nand.medium"),
];

/// A volume, the copy of its media as they are durable, and the library that makes a sync fail.
struct Place {
    root: tempfile::TempDir,
    library: PathBuf,
}

/// What clients know of a block: the version that a flush covered, and the newest one that was sent.
type Known = Vec<(u64, u64)>;

fn program() -> PathBuf {
    // Another program, as a control, by hand.
    std::env::var_os("FRIT").map_or_else(|| env!("CARGO_BIN_EXE_frit").into(), PathBuf::from)
}

impl Place {
    fn new(case: &Case) -> Place {
        let root = tempfile::tempdir().unwrap();
        let library = root.path().join("failed_sync.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/failed_sync.c");
        let built = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-pthread", "-o"])
            .args([&library, &source])
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", text(&built.stderr));
        let place = Place { root, library };
        let new = place.path("new");
        let mut args = vec!["create", &new, "--stack", case.stack, "--size", "16M"];
        case.sets.iter().for_each(|set| args.extend(["--set", set]));
        let created = frit(&args);
        assert!(created.status.success(), "{}: {}", case.stack, text(&created.stderr));
        place
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }

    /// Begins with a new volume, and durable media that are the same.
    fn begin(&self) {
        for name in ["vol", "durable"] {
            drop(fs::remove_dir_all(self.path(name)));
            let copied = Command::new("cp")
                .args(["-r", "--sparse=always", &self.path("new"), &self.path(name)])
                .status()
                .unwrap();
            assert!(copied.success());
        }
        drop(fs::remove_file(self.path("log")));
    }

    /// Returns `None` if the volume cannot be opened, which is right if a sync of the opening fails.
    fn serve(&self, fails: Option<(&str, u64)>) -> Option<Child> {
        let volume = self.path("vol");
        let mut command = Command::new(program());
        command.args(["serve", &volume, "--nbd", &format!("unix:{volume}/nbd.sock")]);
        if let Some((medium, number)) = fails {
            command.env("LD_PRELOAD", &self.library).env("SYNC_FAILS", number.to_string());
            command.env("SYNC_MEDIUM", medium);
            let variables = [("SYNC_FILES", "vol"), ("SYNC_DURABLE", "durable"), ("SYNC_LOG", "log")];
            for (name, path) in variables {
                command.env(name, self.path(path));
            }
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.contains("nbd+unix") {
            return Some(child);
        }
        assert!(!child.wait().unwrap().success(), "{line}");
        None
    }

    /// The media lose what was not synced.
    fn power_loss(&self) {
        for entry in fs::read_dir(self.path("durable")).unwrap() {
            let entry = entry.unwrap();
            if entry.path().extension().is_some_and(|e| e == "medium") {
                let to = Path::new(&self.path("vol")).join(entry.file_name());
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }

    fn is_clean(&self) -> bool {
        let said = Command::new(program()).args(["inspect", &self.path("vol")]).output().unwrap();
        let said = text(&said.stdout);
        let line = said.lines().find(|line| line.trim_start().starts_with("state"));
        line.unwrap_or_else(|| panic!("{said}")).contains("clean")
    }
}

/// Writes and flushes. Errors of the volume are part of the test.
fn client(volume: &str, number: u64, seed: u64) -> Known {
    let mut nbd = Nbd::connect(volume, "").unwrap();
    let blocks = (nbd.bytes / BLOCK as u64 / CLIENTS).min(BLOCKS_MAX);
    let first = number * blocks;
    let mut known = vec![(0, 0); blocks as usize];
    let mut written: Vec<(usize, u64)> = Vec::new();
    let mut state = seed * 31 + number;
    for n in 1..=REQUESTS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (block, long) = ((state >> 20) % (blocks - 16), (state >> 60) == 0);
        let count = if long { 16 } else { 1 + (state >> 57) % 2 };
        let data: Vec<u8> = (block..block + count).flat_map(|b| stamped(number, first + b, n)).collect();
        (block..block + count).for_each(|b| known[b as usize].1 = n);
        if nbd.write((first + block) * BLOCK as u64, &data).is_ok() {
            written.extend((block..block + count).map(|b| (b as usize, n)));
        }
        if state >> 33 & 15 == 0 && nbd.flush().is_ok() {
            written.drain(..).for_each(|(b, n)| known[b].0 = n);
        }
    }
    known
}

/// Checks what a volume has after a power loss. Returns the number of flushed blocks that are lost.
fn lost(place: &Place, known: &[Known]) -> usize {
    let mut child = place.serve(None).expect("opened after a power loss");
    let mut nbd = Nbd::connect(&place.path("vol"), "").unwrap();
    let mut lost = 0;
    for (number, known) in (0..).zip(known) {
        let first = number * known.len() as u64;
        for (block, &(flushed, sent)) in (first..).zip(known) {
            let found = match nbd.read(block * BLOCK as u64, BLOCK) {
                Ok(data) => version(number, block, &data).unwrap_or(0),
                Err(_) => 0,
            };
            assert!(found <= sent, "block {block}: version {found} of {sent}");
            lost += usize::from(found < flushed);
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lost
}

/// Lets clients use a served volume, and ends the server.
fn used(place: &Place, mut server: Child, seed: u64, stops: bool) -> Vec<Known> {
    let volume = place.path("vol");
    let known = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let volume = &volume;
                scope.spawn(move || client(volume, number, seed))
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    if stops {
        let pid = rustix::process::Pid::from_child(&server);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    } else {
        server.kill().unwrap();
    }
    server.wait().unwrap();
    known
}

/// Returns the number of lost blocks, and whether a sync failed.
fn tried(place: &Place, medium: &str, fails: u64) -> (usize, bool) {
    place.begin();
    let stops = fails.is_multiple_of(2);
    let known =
        place.serve(Some((medium, fails))).map(|child| used(place, child, fails, stops)).unwrap_or_default();
    let failure = fs::read_to_string(place.path("log")).unwrap_or_default();
    place.power_loss();
    let was_clean = stops && place.is_clean();
    let lost = lost(place, &known);
    eprintln!("{failure}; stopped {stops}, clean {was_clean}, lost {lost}");
    (lost, !failure.is_empty())
}

fn every(cases: &[Case], numbers: &[u64]) {
    for case in cases {
        eprintln!("{case:?}");
        let place = Place::new(case);
        let mut failures = 0;
        for &fails in numbers {
            let (lost, failed) = tried(&place, case.medium, fails);
            assert_eq!(lost, 0, "{case:?}: blocks that were flushed, after sync {fails} failed");
            failures += usize::from(failed);
        }
        assert!(failures > 0, "{case:?}: no sync failed");
    }
}

#[test]
fn a_sync_that_fails_once_loses_nothing_that_was_flushed() {
    if std::env::var_os("LONG").is_some() {
        let only = std::env::var("ONLY").unwrap_or_default();
        let cases: Vec<Case> = CASES.into_iter().filter(|case| format!("{case:?}").contains(&only)).collect();
        every(&cases, &Vec::from_iter(1..=50));
    } else {
        every(&CASES[..3], &[4, 9]);
    }
}
