//! Programs that are written against a served zoned device, and its zones in `frit ctl`.

use crate::device_commands::{Server, example, frit, text};
use frit_client::ZonedClient;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Creates a volume of small zones: ten of 256 KiB.
fn create(dir: &Path) -> String {
    let volume = dir.join("vol").display().to_string();
    let stack = "zns-small,media.nand.blocks_per_plane=16,media.nand.pages_per_block=8";
    let created = frit(&["create", &volume, "--stack", stack]);
    assert!(created.status.success(), "{}", text(&created.stderr));
    volume
}

fn socket(volume: &str) -> PathBuf {
    Path::new(volume).join("ctl.sock")
}

fn open(volume: &str) -> ZonedClient {
    ZonedClient::open(&socket(volume)).unwrap()
}

/// Value of a key in its n-th line: of one block to three, and different in each of them.
fn value(key: u64, n: u64) -> String {
    let length = (key * 37 + n * 101) % 900;
    format!("{n} {}", format!("key {key} line {n} ").repeat(length as usize))
}

/// Number of the line from which a value is. The value has to be complete.
#[track_caller]
fn line_of(key: u64, found: &str) -> u64 {
    let n = found.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(found, value(key, n), "the value of key {key} is torn");
    n
}

/// Feeds lines to a loading store, and kills the server and the program after a time, or at once when the
/// store has reported so many durable lines. Returns the number of durable lines that it has reported.
fn load_and_kill(
    program: &Path,
    server: Server,
    volume: &str,
    first: u64,
    after: Duration,
    lines: u64,
) -> u64 {
    let mut child = Command::new(program)
        .arg(socket(volume))
        .arg("load")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let feed = std::thread::spawn(move || {
        for n in first.. {
            let key = n * n % 13;
            if writeln!(input, "{key} {}", value(key, n)).is_err() {
                return;
            }
        }
    });
    let (reported, reports) = mpsc::channel::<u64>();
    let output = child.stdout.take().unwrap();
    let read = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let lines = line.split(' ').next().unwrap().parse().unwrap();
            if reported.send(lines).is_err() {
                return;
            }
        }
    });
    let (end, mut durable) = (Instant::now() + after, 0);
    while durable < lines
        && let Ok(n) = reports.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        durable = n;
    }
    // The server is killed first, in the middle of what the program does.
    drop(server);
    let _ = child.kill();
    child.wait().unwrap();
    read.join().unwrap();
    feed.join().unwrap();
    reports.iter().last().unwrap_or(durable)
}

#[test]
fn a_store_of_keys_has_all_durable_records_when_the_server_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let volume = create(dir.path());
    let program = example("zone_store");
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut first, mut appended) = (1, 0);
    for round in 0..80u64 {
        // More rounds on a busy machine, whose store appends less in each.
        if round >= 8 && appended > 4 << 20 {
            break;
        }
        let server = Server::start(&volume);
        // Every other time, in the moment in which lines have become durable.
        let (after, lines) = match round % 2 {
            0 => (Duration::from_millis(150 + round % 8 * 170), u64::MAX),
            _ => (Duration::from_secs(60), 8 * (round % 8)),
        };
        let durable = load_and_kill(&program, server, &volume, first, after, lines);
        for n in first..first + durable {
            expected.insert(n * n % 13, n);
            appended += value(n * n % 13, n).len();
        }
        let server = Server::start(&volume);
        let out = Command::new(&program).arg(socket(&volume)).arg("list").output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        let mut found = BTreeMap::new();
        for line in text(&out.stdout).lines() {
            let (key, value) = line.split_once(' ').unwrap();
            let key = key.parse().unwrap();
            found.insert(key, line_of(key, value));
        }
        for (key, n) in &expected {
            let newest = found.get(key).copied();
            assert!(
                newest >= Some(*n),
                "round {round}: key {key} has line {newest:?}, and line {n} is durable"
            );
        }
        // Lines without a flush can be found as well. What is found is durable from now on.
        open(&volume).flush().unwrap();
        first = found.values().copied().max().unwrap_or(0).max(first + durable) + 1;
        expected = found;
        drop(server);
    }
    // Zones have been cleaned and reset, as the device has ten of 256 KiB.
    assert!(appended > 4 << 20, "the store was killed too early: {appended} bytes");
    assert_eq!(expected.len(), [0, 1, 3, 4, 9, 10, 12].len());
}

#[test]
fn zones_are_shown_and_managed_by_ctl() {
    let dir = tempfile::tempdir().unwrap();
    let volume = create(dir.path());
    let ctl = |args: &[&str]| frit(&[&["ctl", &volume], args].concat());
    let good = |args: &[&str]| {
        let out = ctl(args);
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    let server = Server::start(&volume);
    let mut device = ZonedClient::open(&socket(&volume)).unwrap();
    let zones = device.info().unwrap().zones as usize;
    device.append(1, &vec![7; 3 * device.block_bytes()]).unwrap();
    assert_eq!(good(&["zones", "open", "2"]), "zone 2: opened\n");
    assert_eq!(good(&["zones", "finish", "3", "4"]), "zone 3: finished\nzone 4: finished\n");
    let shown = good(&["zones"]);
    assert!(shown.contains("zones of 256 KiB (512 sectors), blocks of 4096 bytes"), "{shown}");
    assert!(shown.contains("2 open (of 4), 2 active (of 8)"), "{shown}");
    let row = |zone: usize| {
        let row = shown.lines().find(|line| line.split_whitespace().next() == Some(&zone.to_string()));
        row.unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row(1), ["1", "implicitly-open", "512", "536", "12", "KiB"]);
    assert_eq!(row(2)[1], "explicitly-open");
    assert_eq!(row(3)[1], "full");
    assert_eq!(row(zones - 1)[1], "empty");

    let json: serde_json::Value = serde_json::from_str(&good(&["zones", "--json"])).unwrap();
    assert_eq!((&json["zones"], &json["max_open"]), (&zones.into(), &4.into()));
    assert_eq!(json["list"].as_array().unwrap().len(), zones);
    assert_eq!(json["list"][1]["write_pointer"], 536);
    let full: serde_json::Value =
        serde_json::from_str(&good(&["zones", "--json", "--state", "full"])).unwrap();
    assert_eq!(full["list"].as_array().unwrap().len(), 2);

    for (args, words) in [
        (&["zones", "--state", "torn"][..], "explicitly-open"),
        (&["zones", "close", "3"], "is not open"),
        (&["zones", "reset", "1000"], "less than"),
        (&["zones", "reset"], "ZONE"),
    ] {
        let out = ctl(args);
        assert!(!out.status.success() && text(&out.stderr).contains(words), "{}", text(&out.stderr));
    }
    assert_eq!(good(&["zones", "reset", "3"]), "zone 3: reset\n");
    drop(device);
    drop(server);

    // Without a server, zones are shown as a recovery finds them, and not managed.
    let shown = good(&["zones"]);
    assert!(shown.contains("0 open"), "{shown}");
    let out = ctl(&["zones", "reset", "4"]);
    assert!(!out.status.success() && text(&out.stderr).contains("frit serve"), "{}", text(&out.stderr));

    let other = dir.path().join("other").display().to_string();
    assert!(frit(&["create", &other, "--stack", "hfsl-small"]).status.success());
    for served in [false, true] {
        let server = served.then(|| Server::start(&other));
        let out = frit(&["ctl", &other, "zones"]);
        let said = text(&out.stderr);
        assert!(!out.status.success() && said.contains("no zones") && said.contains("`zns`"), "{said}");
        drop(server);
    }
}
