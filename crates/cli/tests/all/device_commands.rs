//! Programs that are written against a served device with its own commands.

use frit_client::{CacheClient, CacheState, ClientError, PresentBlock};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server that is killed at the end of the test.
struct Server(Child);

impl Server {
    fn start(volume: &str) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_frit"))
            .args(["serve", volume, "--nbd", &format!("unix:{volume}/nbd.sock")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("nbd+unix"), "{line}");
        Server(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Returns the path of an example of this crate. `cargo test` builds examples, unless it gets the name of a
/// test.
fn example(name: &str) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--locked", "--package", "frit-cli", "--example", name])
        .status();
    assert!(built.unwrap().success());
    Path::new(env!("CARGO_BIN_EXE_frit")).with_file_name("examples").join(name)
}

#[test]
fn a_cache_manager_of_a_file_keeps_all_blocks_when_the_server_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (volume, disk) = (path("vol"), path("disk.img"));
    let created = frit(&["create", &volume, "--stack", "ssc-small"]);
    assert!(created.status.success(), "{}", text(&created.stderr));
    let socket = format!("{volume}/ctl.sock");
    let program = example("ssc_cache");
    let manager = |args: &[&str]| {
        let out = Command::new(&program).args([&socket, &disk]).args(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };

    let server = Server::start(&volume);
    for round in 0..2 {
        for block in ["0", "7", "131072", "262143"] {
            manager(&["put", block, &format!("block {block}, round {round}")]);
        }
    }
    // The program is killed while it works, and then the server.
    let mut killed = Command::new(&program).args([&socket, &disk, "clean"]).spawn().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(server);
    let server = Server::start(&volume);
    assert_eq!(manager(&["get", "131072"]), "block 131072, round 1");
    manager(&["clean"]);
    manager(&["put", "7", "written after the cleaning"]);
    drop(server);
    let file = std::fs::read(&disk).unwrap();
    assert!(file.starts_with(b"block 0, round 1\0") && file[7 * 4096..].starts_with(b"block 7, round 1\0"));

    let _server = Server::start(&volume);
    let mut cache = CacheClient::open(Path::new(&socket)).unwrap();
    let dirty = cache.exists(0..262_144).unwrap().into_iter().filter(|b| b.state == CacheState::Dirty);
    assert!(dirty.map(|b| b.block).eq([7]));
    drop(cache);
    for (block, contents) in
        [("7", "written after the cleaning"), ("0", "block 0, round 1"), ("262143", "block 262143, round 1")]
    {
        assert_eq!(manager(&["get", block]), contents);
    }
}

#[test]
fn commands_of_a_cache_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("vol").display().to_string();
    assert!(frit(&["create", &volume, "--stack", "hfsl-small"]).status.success());
    let server = Server::start(&volume);
    let e = CacheClient::open(&Path::new(&volume).join("ctl.sock")).unwrap_err().to_string();
    assert!(e.contains("no solid-state cache") && e.contains("kind `ssc`"), "{e}");
    drop(server);

    let volume = dir.path().join("cache").display().to_string();
    assert!(frit(&["create", &volume, "--stack", "ssc-small"]).status.success());
    let _server = Server::start(&volume);
    let mut cache = CacheClient::open(&Path::new(&volume).join("ctl.sock")).unwrap();
    let refused = |result: Result<(), ClientError>| result.unwrap_err().to_string();
    assert!(refused(cache.write_dirty(0, &[0; 100])).contains("whole blocks of 4096 bytes"));
    // Errors of ranges are in sectors.
    assert!(refused(cache.evict(262_144..262_145)).contains("2097152"));
    assert!(refused(cache.read(262_144).map(drop)).contains("2097152"));
    assert_eq!(cache.exists(0..262_144).unwrap(), []);
    assert!(cache.read(5).unwrap().is_none());

    // More than one message holds.
    let data: Vec<u8> = (0..20 * 4096).map(|i| (i / 4096) as u8).collect();
    cache.write_clean(100, &data).unwrap();
    cache.write_dirty(110, &data).unwrap();
    cache.clean(110..112).unwrap();
    cache.evict(100..105).unwrap();
    assert_eq!(cache.read(129).unwrap().unwrap(), [19; 4096]);
    let present = cache.exists(0..262_144).unwrap();
    assert!(present.iter().map(|b| b.block).eq(105..130));
    let dirty = |b: &&PresentBlock| b.state == CacheState::Dirty;
    assert!(present.iter().filter(dirty).map(|b| b.block).eq(112..130));
    assert_eq!(cache.info().unwrap().dirty_blocks, 18);
}
