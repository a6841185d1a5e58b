//! Programs that are written against a served device with its own commands.

use frit_client::{
    BlockAddress, CacheClient, CacheState, ClientError, NamelessClient, OwnedBlock, PresentBlock,
};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server that is killed at the end of the test.
pub(crate) struct Server(Child);

impl Server {
    pub(crate) fn start(volume: &str) -> Server {
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
/// test. With `--package`, dependencies would have other features, and would be built once more.
pub(crate) fn example(name: &str) -> PathBuf {
    // With the variable of a shuffled run, cargo would build everything again.
    let built = Command::new(env!("CARGO"))
        .env_remove("RUSTC_BOOTSTRAP")
        .args(["build", "--quiet", "--offline", "--locked", "--workspace", "--example", name])
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

/// Replaces blocks until the device has moved one of the store, whose owners are below 256.
fn move_blocks(socket: &Path) {
    let mut device = NamelessClient::open(socket).unwrap();
    let data = vec![9; 4 * device.block_bytes()];
    let mut ring: Vec<[OwnedBlock; 4]> = Vec::new();
    for n in 0..20_000usize {
        let placed = device.nameless_write(&[1000; 4], &data).unwrap();
        let new = [0, 1, 2, 3].map(|i| OwnedBlock::new(1000, placed[i]));
        if ring.len() < 300 {
            ring.push(new);
            continue;
        }
        let old = std::mem::replace(&mut ring[n * 7919 % 300], new);
        device.free(&old).unwrap();
        if n % 16 == 0 && device.migrations().unwrap().iter().any(|m| m.owner < 256) {
            return device.free(&ring.concat()).unwrap();
        }
    }
    panic!("the device has moved no block of the store");
}

#[test]
fn a_store_of_files_keeps_them_when_the_server_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("vol").display().to_string();
    let stack = "nameless-files,nameless-device.wear_leveling=static,nameless-device.wear_threshold=2,\
                 media.nand.channels=1,media.nand.pages_per_block=16";
    let created = frit(&["create", &volume, "--stack", stack, "--size", "8M"]);
    assert!(created.status.success(), "{}", text(&created.stderr));
    let socket = format!("{volume}/ctl.sock");
    let program = example("nameless_store");
    let store = |args: &[&str]| {
        let out = Command::new(&program).arg(&socket).args(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    let long = "a text of several blocks. ".repeat(1_500);

    let server = Server::start(&volume);
    store(&["put", "long", &long]);
    for n in 0..20 {
        store(&["put", &format!("file {n}"), &format!("text {n}")]);
    }
    // The device moves the blocks, and their old addresses stay good: in the index, and after a crash.
    move_blocks(Path::new(&socket));
    let mut device = NamelessClient::open(Path::new(&socket)).unwrap();
    assert!(device.info().unwrap().pending_migrations > 0);
    drop(device);
    drop(server);
    let server = Server::start(&volume);
    let mut device = NamelessClient::open(Path::new(&socket)).unwrap();
    assert!(device.info().unwrap().awaits_claims);
    let e = device.flush().unwrap_err().to_string();
    assert!(e.contains("claim"), "{e}");
    let e = device.nameless_write(&[1], &vec![0; device.block_bytes()]).unwrap_err().to_string();
    assert!(e.contains("claim"), "{e}");
    drop(device);
    assert_eq!(store(&["get", "long"]), long);

    // Moves are taken while the server runs.
    move_blocks(Path::new(&socket));
    assert_eq!(store(&["get", "file 7"]), "text 7");
    let mut device = NamelessClient::open(Path::new(&socket)).unwrap();
    assert_eq!(device.info().unwrap().pending_migrations, 0);
    let stored = device.info().unwrap().stored;
    assert_eq!(stored as usize, long.len().div_ceil(device.block_bytes()) + 20);

    // A program that is killed before its flush changes nothing, together with its server.
    let placed = device.nameless_write(&[0], &vec![7; device.block_bytes()]).unwrap();
    device.virtual_write(&[0], &vec![0; device.block_bytes()]).unwrap();
    drop(device);
    drop(server);
    let _server = Server::start(&volume);
    assert_eq!(store(&["get", "long"]), long);
    store(&["put", "file 7", "other text"]);
    store(&["remove", "file 8"]);
    assert_eq!(store(&["get", "file 7"]), "other text");
    assert_eq!(store(&["list"]).lines().count(), 20);
    let mut device = NamelessClient::open(Path::new(&socket)).unwrap();
    assert_eq!(device.info().unwrap().stored, stored - 1);
    let at: BlockAddress = placed[0];
    assert!(device.physical_read(&[OwnedBlock::new(0, at)]).is_err());
}

#[test]
fn commands_of_a_nameless_write_device_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("cache").display().to_string();
    assert!(frit(&["create", &volume, "--stack", "ssc-small"]).status.success());
    let server = Server::start(&volume);
    let e = NamelessClient::open(&Path::new(&volume).join("ctl.sock")).unwrap_err().to_string();
    assert!(e.contains("no nameless-write device") && e.contains("kind `nameless-device`"), "{e}");
    drop(server);

    let volume = dir.path().join("vol").display().to_string();
    assert!(frit(&["create", &volume, "--stack", "nameless-files", "--size", "16M"]).status.success());
    let _server = Server::start(&volume);
    let mut device = NamelessClient::open(&Path::new(&volume).join("ctl.sock")).unwrap();
    let refused = |result: Result<(), ClientError>| result.unwrap_err().to_string();
    let block = device.block_bytes();
    let info = device.info().unwrap();
    assert_eq!((info.capacity as usize * block, info.virtual_blocks), (16 << 20, 256));
    assert!(refused(device.virtual_write(&[0], &[0; 100])).contains("blocks of 4096 bytes"));
    assert!(refused(device.virtual_write(&[256], &vec![0; block])).contains("below 256"));
    assert!(refused(device.virtual_read(256).map(drop)).contains("0 to 255"));
    assert!(refused(device.nameless_write(&[1 << 31], &vec![0; block]).map(drop)).contains("owner"));
    let nowhere = OwnedBlock { owner: 1, page: u32::MAX, version: 1 };
    assert!(refused(device.physical_read(&[nowhere]).map(drop)).contains("no block of owner 1"));
    assert!(refused(device.claim(&[nowhere]).map(drop)).contains("recovery"));
    device.free(&[nowhere]).unwrap();

    // More than one message and one request queue hold.
    let data: Vec<u8> = (0..40 * block).map(|i| (i / block) as u8).collect();
    let placed = device.nameless_write(&[5; 40], &data).unwrap();
    let blocks: Vec<OwnedBlock> = placed.into_iter().map(|at| OwnedBlock::new(5, at)).collect();
    assert!(device.physical_read(&blocks).unwrap() == data);
    device.virtual_write(&(100..140).collect::<Vec<_>>(), &data).unwrap();
    assert_eq!(device.virtual_read(139).unwrap(), vec![39; block]);
    device.virtual_discard(&[139]).unwrap();
    assert_eq!(device.virtual_read(139).unwrap(), vec![0; block]);
    device.flush().unwrap();
    device.free(&blocks).unwrap();
    assert_eq!(device.info().unwrap().stored, 0);
}
