//! Volumes that are divided into name spaces, served over NBD.

use crate::device_commands::{Server, frit, text};
use std::io::{Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(crate) const BLOCK: usize = 4096;

/// A client of one export: fixed newstyle handshake with EXPORT_NAME, simple replies.
pub(crate) struct Nbd {
    socket: UnixStream,
    pub(crate) bytes: u64,
}

impl Nbd {
    pub(crate) fn connect(volume: &str, export: &str) -> Result<Nbd> {
        let mut socket = UnixStream::connect(Path::new(volume).join("nbd.sock"))?;
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting)?;
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1u32.to_be_bytes());
        hello.extend((export.len() as u32).to_be_bytes());
        hello.extend(export.as_bytes());
        socket.write_all(&hello)?;
        let mut chosen = [0; 10];
        socket.read_exact(&mut chosen)?;
        Ok(Nbd { socket, bytes: u64::from_be_bytes(chosen[..8].try_into().unwrap()) })
    }

    /// Sends a request and waits for its reply. An error is that of the reply, or of the connection.
    fn request(&mut self, command: u16, at: u64, len: u32, data: &[u8]) -> Result<()> {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(command.to_be_bytes());
        bytes.extend([7; 8]);
        bytes.extend(at.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend(data);
        self.socket.write_all(&bytes)?;
        let mut reply = [0; 16];
        self.socket.read_exact(&mut reply)?;
        assert_eq!(reply[8..], [7; 8]);
        match u32::from_be_bytes(reply[4..8].try_into().unwrap()) {
            0 => Ok(()),
            errno => Err(std::io::Error::from_raw_os_error(errno as i32)),
        }
    }

    pub(crate) fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.request(1, at, data.len() as u32, data)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.request(3, 0, 0, &[])
    }

    fn trim(&mut self, at: u64, len: u32) -> Result<()> {
        self.request(4, at, len, &[])
    }

    pub(crate) fn read(&mut self, at: u64, len: usize) -> Result<Vec<u8>> {
        self.request(0, at, len as u32, &[])?;
        let mut data = vec![0; len];
        self.socket.read_exact(&mut data)?;
        Ok(data)
    }
}

/// Contents of a block: its name space, its number and its version.
pub(crate) fn stamped(namespace: u64, block: u64, version: u64) -> Vec<u8> {
    let words =
        [namespace + 1, block, version, (namespace + 1) ^ block.rotate_left(20) ^ version.rotate_left(40)];
    words.iter().flat_map(|w| w.to_le_bytes()).cycle().take(BLOCK).collect()
}

/// Version of a block. A block that was never written, or trimmed, has none.
pub(crate) fn version(namespace: u64, block: u64, data: &[u8]) -> Option<u64> {
    if data.iter().all(|&b| b == 0) {
        return None;
    }
    let version = u64::from_le_bytes(data[16..24].try_into().unwrap());
    assert!(data == stamped(namespace, block, version), "block {block} of {namespace} has other contents");
    Some(version)
}

/// Creates a volume with the name spaces `fast` (8 MiB) and `bulk` (4 MiB), on NAND of little more.
fn create(dir: &Path) -> String {
    let volume = dir.join("vol").display().to_string();
    let stack = dir.join("two.toml");
    std::fs::write(
        &stack,
        "[media.nand]\nprofile = \"tlc-2020\"\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\n\
         planes_per_die = 1\nblocks_per_plane = 24\npages_per_block = 48\n\n[ftl]\nmapping_unit = \"4K\"\n\n\
         [[namespace]]\nname = \"fast\"\nsize = \"8M\"\n\n[[namespace]]\nname = \"bulk\"\nsize = \"4M\"\n",
    )
    .unwrap();
    let created = frit(&["create", &volume, "--stack", &stack.display().to_string()]);
    assert!(created.status.success(), "{}", text(&created.stderr));
    volume
}

const NAMES: [&str; 2] = ["fast", "bulk"];

/// Writes blocks of a name space at random until the server is gone. Returns for each block the version
/// that was durable, and the newest one that was sent.
fn write_until_killed(volume: &str, namespace: usize, first: u64, seed: u64) -> Vec<(u64, u64)> {
    let mut nbd = Nbd::connect(volume, NAMES[namespace]).unwrap();
    let blocks = nbd.bytes / BLOCK as u64;
    let mut known = vec![(0, 0); blocks as usize];
    let mut unflushed: Vec<u64> = Vec::new();
    let mut state = seed;
    for n in first.. {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Half of the writes go to a few blocks.
        let range = if state >> 63 == 0 { blocks } else { blocks / 16 };
        let block = (state >> 20) % range;
        known[block as usize].1 = n;
        if nbd.write(block * BLOCK as u64, &stamped(namespace as u64, block, n)).is_err() {
            return known;
        }
        unflushed.push(block);
        if unflushed.len() == 32 {
            if nbd.flush().is_err() {
                return known;
            }
            for block in unflushed.drain(..) {
                known[block as usize].0 = known[block as usize].1;
            }
        }
    }
    known
}

#[test]
fn name_spaces_keep_what_was_flushed_when_the_server_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let volume = create(dir.path());
    let mut known = [vec![(0, 0); (8 << 20) / BLOCK], vec![(0, 0); (4 << 20) / BLOCK]];
    let mut collected = 0;
    for round in 0..3u64 {
        let server = Server::start(&volume);
        let first = round * 1_000_000 + 1;
        let (fast, bulk) = std::thread::scope(|scope| {
            let writer = |namespace| {
                let volume = &volume;
                scope
                    .spawn(move || write_until_killed(volume, namespace, first, round * 2 + namespace as u64))
            };
            let threads = (writer(0), writer(1));
            std::thread::sleep(Duration::from_millis(900 + 300 * round));
            let stat = frit(&["ctl", &volume, "stat", "--json"]);
            let stat: serde_json::Value = serde_json::from_slice(&stat.stdout).unwrap();
            let commands = stat["media"][0]["commands"].as_array().unwrap().iter();
            collected += commands.filter(|c| c["cause"] == "gc").count();
            drop(server);
            (threads.0.join().unwrap(), threads.1.join().unwrap())
        });
        for (all, new) in known.iter_mut().zip([fast, bulk]) {
            for (block, new) in all.iter_mut().zip(new) {
                *block = (block.0.max(new.0), block.1.max(new.1));
            }
        }
        let server = Server::start(&volume);
        for (namespace, all) in known.iter_mut().enumerate() {
            let mut nbd = Nbd::connect(&volume, NAMES[namespace]).unwrap();
            assert_eq!(nbd.bytes as usize, all.len() * BLOCK);
            for (block, (durable, sent)) in all.iter_mut().enumerate() {
                let data = nbd.read((block * BLOCK) as u64, BLOCK).unwrap();
                let found = version(namespace as u64, block as u64, &data).unwrap_or(0);
                assert!(
                    found >= *durable && found <= *sent,
                    "{namespace}, {block}: {durable} {found} {sent}"
                );
                (*durable, *sent) = (found, found);
            }
            nbd.flush().unwrap();
        }
        drop(server);
    }
    for all in &known {
        let written = all.iter().filter(|b| b.0 > 0).count();
        assert!(written > all.len() / 4, "{written} of {} blocks", all.len());
    }
    assert!(collected > 0, "the garbage collection of the device has moved blocks");
}

#[test]
fn clients_see_name_spaces_as_exports() {
    let dir = tempfile::tempdir().unwrap();
    let volume = create(dir.path());
    let server = Server::start(&volume);
    assert!(Nbd::connect(&volume, "").is_err(), "the volume as a whole is no export");
    assert!(Nbd::connect(&volume, "other").is_err());
    let mut fast = Nbd::connect(&volume, "fast").unwrap();
    let mut bulk = Nbd::connect(&volume, "bulk").unwrap();
    assert_eq!((fast.bytes, bulk.bytes), (8 << 20, 4 << 20));
    // The last block of one, and the first of the other.
    fast.write(fast.bytes - 4096, &stamped(0, 1, 1)).unwrap();
    bulk.write(0, &stamped(1, 2, 2)).unwrap();
    let past = fast.write(fast.bytes - 512, &[1; 1024]).unwrap_err();
    assert_eq!(past.raw_os_error(), Some(28));
    assert_eq!(fast.read(fast.bytes, 512).unwrap_err().raw_os_error(), Some(22));
    assert_eq!(bulk.trim(bulk.bytes - 512, 1024).unwrap_err().raw_os_error(), Some(22));
    fast.trim(0, fast.bytes as u32).unwrap();
    assert_eq!(fast.read(fast.bytes - 4096, BLOCK).unwrap(), [0; BLOCK]);
    assert_eq!(bulk.read(0, BLOCK).unwrap(), stamped(1, 2, 2));
    bulk.flush().unwrap();
    let uri = |name: &str| format!("nbd+unix:///{name}?socket={volume}/nbd.sock");
    if Command::new("nbdinfo").arg("--version").output().is_ok_and(|o| o.status.success()) {
        let listed = Command::new("nbdinfo").args(["--list", "--no-content", &uri("")]).output().unwrap();
        let listed = text(&listed.stdout);
        for (name, size) in [("fast", 8 << 20), ("bulk", 4 << 20)] {
            assert!(listed.contains(&format!("export=\"{name}\"")), "{listed}");
            assert!(listed.contains(&format!("export-size: {size}")), "{listed}");
        }
        let size = Command::new("nbdinfo").args(["--size", &uri("bulk")]).output().unwrap();
        assert_eq!(text(&size.stdout).trim(), (4 << 20).to_string());
        let whole = Command::new("nbdinfo").args(["--size", &uri("")]).output().unwrap();
        assert!(!whole.status.success());
    }
    drop(server);

    // The owner sees the volume as a whole: name spaces lie one after the other.
    let bytes = frit(&["ctl", &volume, "peek", "8M+4K", "--binary"]);
    assert!(bytes.stdout == stamped(1, 2, 2), "{}", text(&bytes.stderr));
    let stack = text(&frit(&["inspect", &volume, "--stack"]).stdout);
    assert!(stack.contains("[[namespace]]\nname = \"fast\"\nsize = 8388608"), "{stack}");
    let shown = text(&frit(&["inspect", &volume]).stdout);
    assert!(shown.contains("name spaces  fast 8 MiB, bulk 4 MiB"), "{shown}");
}

#[test]
fn name_spaces_that_cannot_be_served_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let volume = create(dir.path());
    let mountpoint = dir.path().join("mnt");
    std::fs::create_dir(&mountpoint).unwrap();
    let mountpoint = mountpoint.display().to_string();
    let nbd = format!("unix:{volume}/nbd.sock");
    for (options, words) in [
        (&["--nbd", &nbd, "--export", "scratch"][..], "fast, bulk"),
        (&["--nbd", &nbd, "--fuse", &mountpoint], "as a whole"),
    ] {
        let out = frit(&[&["serve", &volume], options].concat());
        assert!(!out.status.success() && text(&out.stderr).contains(words), "{}", text(&out.stderr));
    }
    // The volume was closed in order all the same.
    assert!(text(&frit(&["inspect", &volume]).stdout).contains("never: always closed properly"));

    let bad = dir.path().join("bad").display().to_string();
    for (namespaces, words) in [
        (r#"[{name="a",size="400M"}]"#, "the volume has"),
        (r#"[{name="a",size="1M"},{name="a",size="1M"}]"#, "two name spaces 'a'"),
        (r#"[{name="a/b",size="1M"}]"#, "letters, digits"),
        (r#"[{name="a"}]"#, "has no size"),
    ] {
        let set = format!("namespace={namespaces}");
        let out = frit(&["create", &bad, "--stack", "ftl-small", "--set", &set]);
        let said = text(&out.stderr).replace("\n  │ ", " ");
        assert!(!out.status.success() && said.contains(words), "{namespaces}: {said}");
    }
    assert!(!Path::new(&bad).join("frit.volume").exists());
}

/// Writes a trace of two devices, each of which writes its sectors up to `last`.
fn trace(path: &Path, names: [&str; 2], last: u64) {
    let mut text = "at,device,sector,sectors,op\n".to_owned();
    for n in 0..400u64 {
        let (device, sector) = (names[(n % 2) as usize], (n * 8 * 7) % last / 8 * 8);
        text += &format!("{n},{device},{sector},8,W\n");
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_run_directs_devices_of_a_trace_to_name_spaces() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (stack, good) = (path("two.toml"), path("good.csv"));
    let columns = "time=at:us,device=device,sector=sector,sectors=sectors,op=op";
    let run = |stack: &str, trace: &str, more: &[&str]| {
        let read =
            ["run", "--stack", stack, "--trace", trace, "--format", "csv", "--columns", columns, "--quiet"];
        frit(&[&read[..], more].concat())
    };
    trace(Path::new(&good), ["bulk", "fast"], 4 << 11);
    let out = run(&stack, &good, &["--namespaces", "--verify"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for (names, last, words) in [
        (["bulk", "other"], 64, "no name space for its device 'other'"),
        (["bulk", "fast"], 12 << 11, "behind the name space, which has 8192 sectors"),
    ] {
        let bad = path("bad.csv");
        trace(Path::new(&bad), names, last);
        let out = run(&stack, &bad, &["--namespaces"]);
        let said = text(&out.stderr).replace("\n  │ ", " ");
        assert!(!out.status.success() && said.contains(words), "{said}");
    }
    let out = run("ftl-small", &good, &["--namespaces"]);
    assert!(!out.status.success() && text(&out.stderr).contains("[[namespace]]"), "{}", text(&out.stderr));
    let out = run(&stack, &good, &["--namespaces", "--wrap"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    let out = frit(&["run", "--stack", &stack, "--trace", "gen:uniform,count=10", "--namespaces"]);
    assert!(text(&out.stderr).contains("trace with devices"), "{}", text(&out.stderr));
}
