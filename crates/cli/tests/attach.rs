//! `frit attach` and `frit detach` with file systems of the kernel. Skipped without root, FUSE, a
//! loop device, or mkfs. Everything that could hang runs under `timeout`, and a guard detaches at
//! the end.
//!
//! This program is apart, because tools of file systems read all loop devices of the machine, and
//! other tests have some.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Serializes the tests: the tools of btrfs read the files behind all loop devices, and fail when
/// the server of another one was killed.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time limit of a program, in seconds.
const BOUND: &str = "120";

fn frit(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_frit"), args)
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new("timeout").args(["-k", "5", BOUND, program]).args(args).output().unwrap()
}

fn said(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
}

#[track_caller]
fn good(o: &Output) -> String {
    assert!(o.status.success(), "{}", said(o));
    String::from_utf8_lossy(&o.stdout).trim().into()
}

fn missing(tools: &[&str]) -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    for (there, what) in [
        (root, "root"),
        (Path::new("/dev/fuse").exists(), "/dev/fuse"),
        (Path::new("/dev/loop-control").exists(), "loop devices"),
    ] {
        if !there {
            eprintln!("skipped: no {what} on this machine");
            return true;
        }
    }
    let on_path = |tool: &str| {
        let dirs = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/bin"];
        dirs.iter().any(|d| Path::new(d).join(tool).exists())
    };
    let tool = tools.iter().chain(&["losetup", "mount", "umount", "timeout"]).find(|t| !on_path(t));
    if let Some(tool) = tool {
        eprintln!("skipped: no {tool} on this machine");
    }
    tool.is_some()
}

/// A volume, and a directory to mount it on; detached when this is dropped.
struct Volume {
    root: tempfile::TempDir,
    path: String,
    at: String,
    _alone: MutexGuard<'static, ()>,
}

impl Volume {
    fn new(size: &str) -> Volume {
        let _alone = alone();
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().canonicalize().unwrap();
        let path = dir.join("vol").to_str().unwrap().to_owned();
        let at = dir.join("at").to_str().unwrap().to_owned();
        fs::create_dir(&at).unwrap();
        good(&frit(&["create", &path, "--stack", "hfsl-paper", "--size", size]));
        Volume { root, path, at, _alone }
    }

    fn attach(&self) -> String {
        good(&frit(&["attach", &self.path]))
    }

    fn server(&self) -> String {
        let text = fs::read_to_string(Path::new(&self.path).join("attached.json")).unwrap();
        let state: serde_json::Value = serde_json::from_str(&text).unwrap();
        state["server"].to_string()
    }

    fn mount(&self, device: &str) {
        good(&run("mount", &[device, &self.at]));
    }

    fn umount(&self) {
        good(&run("umount", &[&self.at]));
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let o = frit(&["detach", "--force", &self.path]);
        if !std::thread::panicking() {
            assert!(o.status.success(), "{}", said(&o));
        }
        assert!(self.root.path().exists());
    }
}

/// Writes files of many sizes, some of them removed again, as text for comparison.
fn write_tree(at: &Path, seed: u8) {
    for i in 0..120u32 {
        let dir = at.join(format!("d{}", i % 7)).join(format!("e{}", i % 3));
        fs::create_dir_all(&dir).unwrap();
        let len = (i * i * 37 + u32::from(seed)) as usize % 300_000;
        let bytes: Vec<u8> = (0..len).map(|b| (b as u32 * 31 + i + u32::from(seed)) as u8).collect();
        fs::write(dir.join(format!("f{i}")), bytes).unwrap();
        if i % 5 == 4 {
            fs::remove_file(dir.join(format!("f{i}"))).unwrap();
        }
    }
}

fn check_tree(at: &Path, expected: &Path) {
    let o = run("diff", &["-r", "-x", "lost+found", at.to_str().unwrap(), expected.to_str().unwrap()]);
    assert!(o.status.success(), "{}", said(&o));
}

fn file_system(mkfs: &[&str], fsck: &[&str]) {
    if missing(&[mkfs[0], fsck[0]]) {
        return;
    }
    let v = Volume::new("320M");
    let device = v.attach();
    let with = |words: &[&str]| {
        let args: Vec<&str> = words[1..].iter().copied().chain([&device[..]]).collect();
        good(&run(words[0], &args))
    };
    with(mkfs);
    v.mount(&device);
    let expected = tempfile::tempdir().unwrap();
    for seed in [1, 2] {
        write_tree(Path::new(&v.at), seed);
        write_tree(expected.path(), seed);
    }
    check_tree(Path::new(&v.at), expected.path());
    good(&run("fstrim", &[&v.at]));
    v.umount();
    with(fsck);
    v.mount(&device);
    check_tree(Path::new(&v.at), expected.path());
    v.umount();
    // The same after a detach, from the media.
    good(&frit(&["detach", &v.path]));
    assert_eq!(good(&frit(&["detach", &v.path])), format!("{} is not attached", v.path));
    let device = v.attach();
    v.mount(&device);
    check_tree(Path::new(&v.at), expected.path());
    v.umount();
    good(&frit(&["detach", &v.path]));
    good(&frit(&["check", &v.path]));
}

#[test]
fn ext4() {
    file_system(&["mkfs.ext4", "-q", "-F"], &["e2fsck", "-fn"]);
}

#[test]
fn xfs() {
    file_system(&["mkfs.xfs", "-q", "-f"], &["xfs_repair", "-n"]);
}

#[test]
fn btrfs() {
    file_system(&["mkfs.btrfs", "-q", "-f"], &["btrfs", "check"]);
}

#[test]
fn attaching_twice_and_in_use() {
    if missing(&["mkfs.ext4"]) {
        return;
    }
    let v = Volume::new("64M");
    let device = v.attach();
    assert_eq!(v.attach(), device, "it stays as it is");
    good(&run("mkfs.ext4", &["-q", "-F", &device]));
    v.mount(&device);
    let refused = frit(&["detach", &v.path]);
    assert!(!refused.status.success() && said(&refused).contains("still mounted at"), "{}", said(&refused));
    fs::write(Path::new(&v.at).join("still"), "here").unwrap();
    // The volume can be inspected and changed while it is attached.
    assert!(good(&frit(&["ctl", &v.path, "set", "SSW=8K"])).contains("2048 -> 8192"));
    let stat: serde_json::Value =
        serde_json::from_str(&good(&frit(&["ctl", &v.path, "stat", "--json"]))).unwrap();
    assert!(stat["requests"].as_array().unwrap().iter().any(|r| r["op"] == "write" && r["bytes"] != 0));
    let top = good(&frit(&["ctl", &v.path, "top", "--interval", "0.1", "--count", "2"]));
    assert_eq!(top.lines().count(), 2, "a line an interval, as this is no terminal: {top}");
    good(&frit(&["detach", "--force", &v.path]));
    let value = good(&frit(&["ctl", &v.path, "get", "SSW", "--json"]));
    assert!(value.contains("8192"), "{value}");
}

#[test]
fn a_killed_server_hangs_nobody_and_is_recovered() {
    if missing(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let v = Volume::new("64M");
    let device = v.attach();
    good(&run("mkfs.ext4", &["-q", "-F", &device]));
    v.mount(&device);
    let at = PathBuf::from(&v.at);
    write_tree(&at.join("a"), 3);
    good(&run("sync", &["-f", &v.at]));
    good(&run("kill", &["-9", &v.server()]));
    // Every pending request gets an error.
    let o = run("dd", &["if=/dev/zero", &format!("of={}/more", v.at), "bs=64k", "count=100", "oflag=direct"]);
    assert!(!o.status.success() && o.status.code() != Some(124), "{}", said(&o));
    v.umount();
    let refused = frit(&["attach", &v.path]);
    assert!(!refused.status.success() && said(&refused).contains("frit detach"), "{}", said(&refused));
    let told = frit(&["detach", &v.path]);
    assert_eq!(told.status.code(), Some(1), "what was not synced may be lost: {}", said(&told));
    for words in ["had ended without closing", "is kept", "recovers it", "did not sync may be lost"] {
        assert!(said(&told).contains(words), "'{words}' in {}", said(&told));
    }
    assert!(good(&frit(&["detach", &v.path])).contains("is not attached"), "it is told once");
    let device = v.attach();
    let log = fs::read_to_string(Path::new(&v.path).join("serve.log")).unwrap();
    assert!(log.contains("recovered in"), "{log}");
    v.mount(&device);
    let expected = tempfile::tempdir().unwrap();
    write_tree(&expected.path().join("a"), 3);
    check_tree(&at.join("a"), &expected.path().join("a"));
    v.umount();
    good(&run("e2fsck", &["-fn", &device]));
}

/// Runs a few rounds; scripts/kill-loop.sh runs any number.
#[test]
fn databases_find_what_was_acknowledged_after_kills() {
    let _alone = alone();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/kill-loop.sh");
    let o = run(
        script,
        &["--frit", env!("CARGO_BIN_EXE_frit"), "--kills", "2", "--load", "0.5", "--seconds", "90"],
    );
    if o.status.code() == Some(77) {
        eprintln!("{}", String::from_utf8_lossy(&o.stderr).trim());
        return;
    }
    let said = said(&o);
    assert!(o.status.success() && said.contains("kills of the server under load"), "{said}");
}

/// Returns the sectors that dumpe2fs calls metadata: superblocks, descriptors, bitmaps, inode
/// tables.
fn metadata_of_ext4(device: &str) -> std::collections::BTreeSet<u64> {
    let text = good(&run("dumpe2fs", &[device]));
    let block = text.lines().find_map(|l| l.strip_prefix("Block size:")).unwrap();
    let sectors = block.trim().parse::<u64>().unwrap() / 512;
    let mut all = std::collections::BTreeSet::new();
    for line in text.lines().filter(|l| !l.starts_with("Filesystem")) {
        // "Primary superblock at 1, Group descriptors at 2-3", "Inode table at 97-352 (+97)"
        for (_, place) in line.split(", ").filter_map(|part| part.split_once(" at ")) {
            let place = place.split(' ').next().unwrap_or("");
            let (from, to) = place.split_once('-').unwrap_or((place, place));
            if let (Ok(from), Ok(to)) = (from.parse::<u64>(), to.parse::<u64>()) {
                all.extend(from * sectors..(to + 1) * sectors);
            }
        }
    }
    all
}

/// Every write of the kernel to metadata of a mounted ext4 goes to PCM, and no file does.
#[test]
fn metadata_of_a_mounted_file_system_goes_to_pcm() {
    if missing(&["mkfs.ext4", "dumpe2fs"]) {
        return;
    }
    let v = Volume::new("64M");
    good(&frit(&["ctl", &v.path, "set", "placement=hint"]));
    good(&run("mkfs.ext4", &["-q", "-F", &v.attach()]));
    good(&frit(&["detach", &v.path]));
    let trace = v.root.path().join("writes.csv");
    let record = ["--record", trace.to_str().unwrap()];
    let device = good(&frit(&["attach", &v.path, "--", "--detect-metadata", record[0], record[1]]));
    assert!(good(&frit(&["ctl", &v.path, "hint", "list"])).contains("detected: ext4"));
    v.mount(&device);
    for i in 0..300 {
        fs::write(Path::new(&v.at).join(format!("file-{i}")), vec![i as u8 | 1; 3000 + i * 100]).unwrap();
    }
    v.umount();
    let metadata = metadata_of_ext4(&device);
    let stat: serde_json::Value =
        serde_json::from_str(&good(&frit(&["ctl", &v.path, "stat", "--json"]))).unwrap();
    good(&frit(&["detach", &v.path]));
    let (mut marked, mut plain) = (0, 0);
    for line in fs::read_to_string(&trace).unwrap().lines().filter(|l| l.contains(",W,")) {
        let columns: Vec<&str> = line.split(',').collect();
        let (from, sectors): (u64, u64) = (columns[2].parse().unwrap(), columns[3].parse().unwrap());
        if columns[4].contains('M') {
            marked += sectors * 512;
        } else {
            plain += sectors * 512;
            let touched = metadata.range(from..from + sectors).count();
            assert_eq!(touched, 0, "a write of metadata without a hint: {line}");
        }
    }
    assert!(marked > 100_000 && plain > 4_000_000, "metadata {marked}, files {plain}");
    let hints = &stat["hints"][0];
    assert_eq!((hints["by"].as_str(), hints["hint"].as_str()), (Some("detector"), Some("metadata")));
    // All of it, and nothing else, was written to PCM for the host.
    let pcm = stat["media"].as_array().unwrap().iter().find(|m| m["kind"] == "pcm").unwrap();
    let commands = pcm["commands"].as_array().unwrap().iter();
    let host = commands.filter(|c| c["cause"] == "host" && c["op"].as_str().unwrap().contains("write"));
    let written: u64 = host.map(|c| c["bytes"].as_u64().unwrap()).sum();
    assert_eq!(Some(written), hints["bytes"].as_u64(), "{stat}");
}
