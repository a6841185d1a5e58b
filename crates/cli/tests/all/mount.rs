//! `frit mkfs`, `mount`, `unmount` and `fsck`. Skipped without root or FUSE. Everything that could
//! hang runs under `timeout`, and a guard unmounts at the end.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Time limit of a program, in seconds.
const BOUND: &str = "60";

fn run(program: &str, args: &[&str]) -> Output {
    Command::new("timeout").args(["-k", "5", BOUND, program]).args(args).output().unwrap()
}

fn frit(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_frit"), args)
}

fn said(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
}

#[track_caller]
fn good(o: &Output) -> String {
    assert!(o.status.success(), "{}", said(o));
    String::from_utf8_lossy(&o.stdout).trim().into()
}

#[track_caller]
fn refused(o: &Output, code: i32, words: &str) {
    // The terminal width breaks long lines.
    let said = said(o).replace("\n  │ ", " ");
    assert!(o.status.code() == Some(code) && said.contains(words), "{:?}: {said}", o.status);
}

/// An image, and a directory to mount it on; unmounted when this is dropped.
struct Place {
    _root: tempfile::TempDir,
    image: String,
    at: PathBuf,
}

impl Place {
    /// Creates the image and the directory; `None` if mounting is not possible.
    fn new() -> Option<Place> {
        let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        if !root || !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: mounting needs root and /dev/fuse");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().canonicalize().unwrap();
        let at = dir.join("mnt");
        fs::create_dir(&at).unwrap();
        Some(Place { _root: root, image: dir.join("img").to_str().unwrap().into(), at })
    }

    fn at(&self) -> &str {
        self.at.to_str().unwrap()
    }

    fn mkfs(&self) {
        good(&frit(&["mkfs", &self.image, "--size", "32M", "--label", "test"]));
    }

    fn mount(&self, more: &[&str]) -> Output {
        let args: Vec<&str> =
            ["mount", &self.image, self.at()].into_iter().chain(more.iter().copied()).collect();
        frit(&args)
    }

    /// Returns the ID of the process that serves the mount.
    fn server(&self) -> String {
        let busy = said(&frit(&["fsck", &self.image]));
        let pid = busy.split("process ").nth(1).unwrap_or_else(|| panic!("{busy}"));
        pid.chars().take_while(char::is_ascii_digit).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Most tests have unmounted it already.
        let _ = run("umount", &["-l", self.at()]);
    }
}

#[test]
fn made_mounted_and_checked() {
    let Some(p) = Place::new() else { return };
    p.mkfs();
    refused(&frit(&["mkfs", &p.image, "--size", "32M"]), 1, "is there already");
    let made: serde_json::Value =
        serde_json::from_str(&good(&frit(&["mkfs", &p.image, "--force", "--inodes", "2000", "--json"])))
            .unwrap();
    assert_eq!((made["bytes"].as_u64(), made["inodes"].as_u64()), (Some(32 << 20), Some(2000)));
    let line = good(&p.mount(&[]));
    assert!(line.starts_with(&p.image) && line.ends_with(p.at()), "{line}");
    fs::create_dir(p.at.join("d")).unwrap();
    fs::write(p.at.join("d/f"), vec![7; 100_000]).unwrap();
    refused(&p.mount(&[]), 1, "in use by process");
    refused(&frit(&["fsck", &p.image]), 2, "in use by process");
    refused(&frit(&["fsck", &p.image]), 2, &format!("it is mounted at {0}: frit unmount {0}", p.at()));
    refused(&frit(&["mkfs", &p.image, "--force"]), 1, "in use by process");
    let file = fs::File::open(p.at.join("d/f")).unwrap();
    refused(&frit(&["unmount", p.at()]), 1, "still use");
    drop(file);
    good(&frit(&["unmount", p.at()]));
    refused(&frit(&["unmount", p.at()]), 1, "no file system of frit is mounted there");
    let checked: serde_json::Value =
        serde_json::from_str(&good(&frit(&["fsck", &p.image, "--json"]))).unwrap();
    let counts = ["directories", "files", "orphans", "found"].map(|k| checked[k].as_u64().unwrap());
    assert_eq!((counts, checked["closed"].as_bool()), ([2, 1, 0, 0], Some(true)));
    good(&p.mount(&["--read-only", "--threads", "1", "-o", "noatime,fsname=elsewhere"]));
    assert!(fs::read(p.at.join("d/f")).unwrap() == vec![7; 100_000]);
    assert!(fs::write(p.at.join("new"), "").is_err());
    good(&run("umount", &[p.at()]));
}

#[test]
fn a_kill_loses_nothing_that_was_written() {
    let Some(p) = Place::new() else { return };
    p.mkfs();
    for round in 0..3u8 {
        let o = p.mount(&[]);
        good(&o);
        assert_eq!(said(&o).contains("a killed frit"), round > 0, "{}", said(&o));
        for before in 0..round {
            assert!(fs::read(p.at.join(format!("f{before}"))).unwrap() == vec![before; 50_000]);
        }
        let open = fs::File::create(p.at.join("open")).unwrap();
        fs::remove_file(p.at.join("open")).unwrap();
        fs::write(p.at.join(format!("f{round}")), vec![round; 50_000]).unwrap();
        good(&run("kill", &["-9", &p.server()]));
        drop(open);
    }
    let unmounted = frit(&["unmount", p.at()]);
    good(&unmounted);
    assert!(said(&unmounted).contains("was killed"), "{}", said(&unmounted));
    let checked = good(&frit(&["fsck", &p.image]));
    assert!(checked.contains("Nothing is wrong") && checked.contains("not unmounted in order"), "{checked}");
}

/// Waits until the image file itself holds some bytes. Returns the time taken.
fn in_the_file(image: &str, bytes: &[u8]) -> std::time::Duration {
    let begin = std::time::Instant::now();
    while !fs::read(image).unwrap().windows(bytes.len()).any(|found| found == bytes) {
        assert!(begin.elapsed() < std::time::Duration::from_secs(30), "it is not synced");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    begin.elapsed()
}

#[test]
fn s95_an_image_on_a_disk_is_synced_from_time_to_time() {
    let Some(p) = Place::new() else { return };
    p.mkfs();
    good(&p.mount(&["--sync-every", "0.2"]));
    fs::write(p.at.join("f"), "nobody asked for a sync of this").unwrap();
    in_the_file(&p.image, b"nobody asked for a sync of this");
    good(&frit(&["unmount", p.at()]));
    assert!(!Path::new(&format!("{}.sync", p.image)).exists());
    // The default interval is 5 s.
    good(&p.mount(&[]));
    fs::write(p.at.join("f"), "nor a sync of that").unwrap();
    assert!(in_the_file(&p.image, b"nor a sync of that").as_secs() < 20);
    good(&frit(&["unmount", p.at()]));
    refused(&p.mount(&["--overlay", p.at()]), 1, "is not a directory in memory");
    refused(&p.mount(&["--sync-every", "x"]), 2, "invalid");
}

#[test]
fn a_signal_unmounts() {
    let Some(p) = Place::new() else { return };
    for signal in ["-TERM", "-HUP"] {
        good(&frit(&["mkfs", &p.image, "--size", "32M", "--force"]));
        good(&p.mount(&["--writeback"]));
        fs::write(p.at.join("f"), "not synced").unwrap();
        let server = p.server();
        good(&run("kill", &[signal, &server]));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while Path::new("/proc").join(&server).join("fd/0").exists() {
            assert!(std::time::Instant::now() < end, "it ends");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let checked = good(&frit(&["fsck", &p.image]));
        assert!(
            checked.contains("it was unmounted in order") && checked.contains("1 files"),
            "{signal}: {checked}"
        );
        good(&p.mount(&[]));
        assert_eq!(fs::read(p.at.join("f")).unwrap(), b"not synced");
        good(&frit(&["unmount", p.at()]));
    }
}

#[test]
fn a_server_without_a_mount_serves_open_files_also_after_a_signal() {
    let Some(p) = Place::new() else { return };
    good(&frit(&["mkfs", &p.image, "--size", "32M"]));
    good(&p.mount(&[]));
    let server = p.server();
    let mut file = fs::File::create(p.at.join("f")).unwrap();
    good(&frit(&["unmount", p.at(), "--lazy"]));
    // Another file system at the same place is not its own.
    let other = format!("{}.other", p.image);
    good(&frit(&["mkfs", &other, "--size", "32M"]));
    good(&frit(&["mount", &other, p.at()]));
    good(&run("kill", &["-TERM", &server]));
    std::thread::sleep(std::time::Duration::from_secs(1));
    file.write_all(b"served").unwrap();
    fs::write(p.at.join("g"), "other").unwrap();
    drop(file);
    good(&frit(&["unmount", p.at()]));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while Path::new("/proc").join(&server).join("fd/0").exists() {
        assert!(std::time::Instant::now() < end, "it ends with its last file");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let checked = good(&frit(&["fsck", &p.image]));
    assert!(checked.contains("it was unmounted in order") && checked.contains("1 files"), "{checked}");
}

/// Each open file of a pool is an open file of the server.
#[test]
fn a_server_that_may_open_no_more_files_says_so() {
    let Some(p) = Place::new() else { return };
    let pool = p.at.parent().unwrap().join("pool").to_str().unwrap().to_string();
    good(&frit(&["mkfs", "--pool", &pool, "--size", "32M"]));
    good(&frit(&["mount", &pool, p.at()]));
    let path = |i: u32| p.at.join(format!("f{i}"));
    for i in 0..100 {
        fs::write(path(i), i.to_string()).unwrap();
    }
    let busy = said(&frit(&["fsck", &pool]));
    let server: String =
        busy.split("process ").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    if !run("prlimit", &["--pid", &server, "--nofile=60:60"]).status.success() {
        eprintln!("skipped: no prlimit");
        return;
    }
    let open = |i: u32| fs::File::options().read(true).write(true).create(true).truncate(false).open(path(i));
    let opened: Vec<_> = (0..100).map(|i| (i, open(i))).collect();
    let (some, none): (Vec<_>, Vec<_>) = opened.into_iter().partition(|(_, file)| file.is_ok());
    assert!(some.len() > 10 && none.len() > 10, "{} of 100 were opened", some.len());
    for (_, file) in &none {
        // ENFILE, see errno(3).
        assert_eq!(file.as_ref().unwrap_err().raw_os_error(), Some(23));
    }
    assert_eq!(open(1000).unwrap_err().raw_os_error(), Some(23));
    assert!(!path(1000).exists(), "what fails makes nothing");
    for (i, file) in some {
        let (mut file, mut words) = (file.unwrap(), String::new());
        std::io::Read::read_to_string(&mut file, &mut words).unwrap();
        assert_eq!(words, i.to_string());
        file.write_all_at(b"new", 0).unwrap();
    }
    // File descriptors are available again.
    for i in 0..100 {
        let words = fs::read(path(i)).unwrap();
        assert!(words == i.to_string().as_bytes() || words == b"new", "file {i} holds {words:?}");
    }
    good(&frit(&["unmount", p.at()]));
    good(&frit(&["fsck", &pool]));
}

#[test]
fn what_is_damaged_is_repaired() {
    let Some(p) = Place::new() else { return };
    p.mkfs();
    let mut image = fs::read(&p.image).unwrap();
    image[9] ^= 1;
    fs::write(&p.image, &image).unwrap();
    let found = frit(&["fsck", &p.image]);
    refused(&found, 1, "");
    assert!(String::from_utf8_lossy(&found.stdout).contains("--repair repairs"), "{found:?}");
    let repaired: serde_json::Value =
        serde_json::from_str(&good(&frit(&["fsck", &p.image, "--repair", "--json"]))).unwrap();
    assert_eq!((repaired["repaired"].as_u64(), repaired["ok"].as_bool()), (Some(1), Some(true)));
    assert!(repaired["repairs"][0].as_str().unwrap().contains("superblock was written anew"), "{repaired}");
    assert!(good(&frit(&["fsck", &p.image, "--repair"])).contains("Nothing is wrong"));
}

#[test]
fn damaged_contents_are_told_where_they_have_checksums() {
    let Some(p) = Place::new() else { return };
    good(&frit(&["mkfs", &p.image, "--size", "32M", "--data-checksums"]));
    good(&p.mount(&[]));
    let text: Vec<u8> = (0..50_000u32).map(|i| (i * i / 128) as u8).collect();
    fs::write(p.at.join("f"), &text).unwrap();
    good(&frit(&["unmount", p.at()]));
    let sound: serde_json::Value =
        serde_json::from_str(&good(&frit(&["fsck", &p.image, "--data", "--json"]))).unwrap();
    assert_eq!((sound["verified"].as_u64(), sound["unsummed"].as_u64()), (Some(13), Some(0)));
    let mut image = fs::read(&p.image).unwrap();
    let at = image.windows(100).position(|part| part == &text[9000..9100]).unwrap();
    image[at] ^= 4;
    fs::write(&p.image, &image).unwrap();
    let found = frit(&["fsck", &p.image, "--data"]);
    refused(&found, 1, "");
    assert!(String::from_utf8_lossy(&found.stdout).contains("from byte 8192 on"), "{found:?}");
    good(&p.mount(&[]));
    let refused = fs::read(p.at.join("f")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(5), "EIO: {refused}");
    fs::write(p.at.join("f"), &text).unwrap();
    good(&frit(&["unmount", p.at()]));
    assert!(good(&frit(&["fsck", &p.image, "--data"])).contains("13 blocks of files are what was written"));
}

#[test]
fn pieces_are_put_together() {
    use std::os::unix::fs::FileExt;
    let Some(p) = Place::new() else { return };
    p.mkfs();
    good(&p.mount(&[]));
    let file = fs::File::create(p.at.join("f")).unwrap();
    for i in (0..200u64).step_by(2).chain((1..200).step_by(2)) {
        file.write_all_at(&[i as u8; 4096], i * 4096).unwrap();
        file.sync_data().unwrap();
    }
    drop(file);
    let before = fs::read(p.at.join("f")).unwrap();
    refused(&frit(&["defrag", &p.image]), 1, "in use by process");
    good(&frit(&["unmount", p.at()]));
    let done: serde_json::Value =
        serde_json::from_str(&good(&frit(&["defrag", &p.image, "--json"]))).unwrap();
    let pieces = ["pieces_before", "pieces_after"].map(|k| done[k].as_u64().unwrap());
    assert!(pieces[0] > 100 && pieces[1] <= 3, "{done}");
    assert!(good(&frit(&["defrag", &p.image])).contains("0 of them changed"));
    good(&frit(&["fsck", &p.image]));
    good(&p.mount(&[]));
    assert!(fs::read(p.at.join("f")).unwrap() == before);
    good(&frit(&["unmount", p.at()]));
}

#[test]
fn what_cannot_be_mounted() {
    let Some(p) = Place::new() else { return };
    refused(&p.mount(&[]), 1, "cannot open");
    refused(&frit(&["mkfs", &p.image]), 1, "give its size with --size");
    assert!(!Path::new(&p.image).exists(), "nothing is left");
    refused(&frit(&["mkfs", &p.image, "--size", "4K"]), 1, "cannot make a file system");
    assert!(!Path::new(&p.image).exists(), "nothing is left");
    fs::write(&p.image, vec![1; 1 << 20]).unwrap();
    refused(&p.mount(&[]), 1, "not a frit file system");
    refused(&frit(&["fsck", &p.image]), 2, "not a frit file system");
    refused(&frit(&["mkfs", "/dev/null", "--size", "1M"]), 1, "no regular file");
    good(&frit(&["mkfs", &p.image, "--size", "32M", "--force"]));
    refused(&p.mount(&["-o", "colour"]), 1, "'colour' is not a mount option");
    fs::write(p.at.join("hidden"), "").unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let overlay = ["--overlay", memory.path().to_str().unwrap()];
    let overlays = || fs::read_dir(memory.path()).unwrap().count();
    refused(&p.mount(&overlay), 1, "not empty");
    assert_eq!(overlays(), 0, "a mount that fails leaves nothing in memory");
    good(&p.mount(&[&overlay[..], &["-o", "nonempty"]].concat()));
    assert_ne!(overlays(), 0);
    assert!(!p.at.join("hidden").exists());
    good(&frit(&["unmount", p.at()]));
}

/// Returns how often the request threads of a server were woken.
fn wakeups(server: &str) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{server}/task")).unwrap().map(|task| task.unwrap().path());
    let answering = tasks.filter(|task| fs::read_to_string(task.join("comm")).unwrap().starts_with("fuse-"));
    let of = |task: PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    answering.map(of).sum()
}

#[test]
fn who_has_a_file_of_a_pool_open_asks_the_server_for_nothing() {
    use std::os::unix::fs::FileExt;

    let Some(p) = Place::new() else { return };
    good(&frit(&["mkfs", "--pool", &p.image, "--inodes", "1000"]));
    let o = p.mount(&[]);
    good(&o);
    if said(&o).contains("requests do") {
        eprintln!("skipped: {}", said(&o));
        return;
    }
    let file = fs::File::options().create_new(true).read(true).write(true).open(p.at.join("f")).unwrap();
    file.write_all_at(&[1; 8192], 0).unwrap();
    let server = p.server();
    let before = wakeups(&server);
    let mut back = [0; 100];
    for i in 0..1000u64 {
        file.write_all_at(&[i as u8; 100], i * 8).unwrap();
        file.read_exact_at(&mut back, i * 8).unwrap();
        assert_eq!(back, [i as u8; 100]);
    }
    let asked = wakeups(&server) - before;
    assert!(asked < 20, "{asked} requests for 1000 writes and 1000 reads");
    drop(file);
    good(&frit(&["unmount", p.at()]));
}

#[test]
fn a_pool_is_made_mounted_killed_and_checked() {
    let Some(p) = Place::new() else { return };
    let pool = || frit(&["mkfs", "--pool", &p.image, "--inodes", "2000", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&good(&pool())).unwrap();
    assert_eq!((made["bytes"].as_u64(), made["inodes"].as_u64()), (Some(17_801_216), Some(2000)));
    refused(&pool(), 1, "is there already");
    refused(&p.mount(&["--writeback"]), 1, "--writeback");
    for round in 0..3u8 {
        let o = p.mount(&[]);
        good(&o);
        for before in 0..round {
            assert!(fs::read(p.at.join(format!("f{before}"))).unwrap() == vec![before; 50_000]);
        }
        let open = fs::File::create(p.at.join("open")).unwrap();
        fs::remove_file(p.at.join("open")).unwrap();
        fs::write(p.at.join(format!("f{round}")), vec![round; 50_000]).unwrap();
        good(&run("kill", &["-9", &p.server()]));
        drop(open);
    }
    let checked = good(&frit(&["fsck", &p.image]));
    assert!(checked.contains("Nothing is wrong") && checked.contains("not unmounted in order"), "{checked}");
    good(&p.mount(&[]));
    assert_eq!(fs::read_dir(&p.at).unwrap().count(), 3);
    good(&frit(&["unmount", p.at()]));
    let checked: serde_json::Value =
        serde_json::from_str(&good(&frit(&["fsck", &p.image, "--json"]))).unwrap();
    assert_eq!((checked["strays"].as_u64(), checked["closed"].as_bool()), (Some(0), Some(true)));
    // A content file that belongs to no inode is reported and removed.
    let body = Path::new(&p.image).join("bodies/77/777-1");
    fs::write(&body, "of nobody").unwrap();
    refused(&frit(&["fsck", &p.image]), 1, "777-1 belongs to no inode");
    good(&frit(&["fsck", &p.image, "--repair"]));
    assert!(!body.exists());
    let image = Path::new(&p.image).join("image");
    refused(&frit(&["mount", image.to_str().unwrap(), p.at()]), 1, "are in a pool");
    refused(&frit(&["mount", "/proc", p.at()]), 1, "is not a pool");
    // A pool that is made again is empty, and keeps its size.
    let made = good(&frit(&["mkfs", "--pool", &p.image, "--force", "--json"]));
    assert!(made.contains("17801216"), "{made}");
    good(&p.mount(&[]));
    assert_eq!(fs::read_dir(&p.at).unwrap().count(), 0);
    good(&frit(&["unmount", p.at()]));
}

#[test]
fn a_file_system_on_a_volume_has_what_was_synced_after_a_kill() {
    let Some(p) = Place::new() else { return };
    good(&frit(&["create", &p.image, "--stack", "nameless-files", "--size", "64M"]));
    refused(&frit(&["mkfs", &p.image, "--size", "32M"]), 1, "--size is for images");
    let made: serde_json::Value =
        serde_json::from_str(&good(&frit(&["mkfs", &p.image, "--label", "test", "--json"]))).unwrap();
    assert_eq!(made["bytes"].as_u64(), Some(64 << 20));
    refused(&frit(&["mkfs", &p.image]), 1, "--force overwrites it");
    for round in 0..3u8 {
        let line = good(&p.mount(&["--sync-every", "0"]));
        assert!(line.contains("64 MiB on a nameless-write device"), "{line}");
        for before in 0..round {
            assert!(fs::read(p.at.join(format!("f{before}"))).unwrap() == vec![before; 50_000]);
        }
        assert!(!p.at.join("unsynced").exists());
        let synced = fs::File::create(p.at.join(format!("f{round}"))).unwrap();
        synced.write_all_at(&[round; 50_000], 0).unwrap();
        synced.sync_all().unwrap();
        drop(synced);
        fs::write(p.at.join("unsynced"), vec![9; 50_000]).unwrap();
        refused(&frit(&["fsck", &p.image]), 2, "in use by process");
        good(&run("kill", &["-9", &p.server()]));
    }
    good(&frit(&["unmount", p.at()]));
    let checked: serde_json::Value =
        serde_json::from_str(&good(&frit(&["fsck", &p.image, "--data", "--json"]))).unwrap();
    let counts = ["files", "placed", "found"].map(|k| checked[k].as_u64().unwrap());
    assert_eq!((counts, checked["closed"].as_bool()), ([3, 3 * 13, 0], Some(false)));
    good(&p.mount(&[]));
    good(&frit(&["unmount", p.at()]));
    assert!(
        good(&frit(&["fsck", &p.image]))
            .contains("39 blocks of contents on the device; it was unmounted in order")
    );
    // Volumes of other layers are block devices.
    let other = format!("{}-block", p.image);
    good(&frit(&["create", &other, "--stack", "nameless-small"]));
    refused(&frit(&["mkfs", &other]), 1, "is a volume of another layer");
    refused(&frit(&["mount", &other, p.at(), "--foreground"]), 1, "is a volume of another layer");
}
