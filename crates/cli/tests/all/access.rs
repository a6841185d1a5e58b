//! Access of another user of the machine to the files of the programs: reading, locking, planted
//! files. Skipped without root, setpriv or FUSE, where they are needed.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const FRIT: &str = env!("CARGO_BIN_EXE_frit");
/// User ID of another user.
const OTHER: u32 = 65534;

/// A directory that all users can traverse.
struct Place(tempfile::TempDir);

impl Place {
    /// Creates the directory; `None` if processes of another user cannot be started.
    fn new() -> Option<Place> {
        let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        if !root || Command::new("setpriv").arg("--version").output().is_err() {
            eprintln!("skipped: acting as another user needs root and setpriv");
            return None;
        }
        let place = Place(tempfile::tempdir().unwrap());
        chmod(place.0.path(), 0o755);
        Some(place)
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().into()
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs frit with a umask that removes no permissions.
fn frit(args: &[&str]) -> Output {
    Command::new("timeout")
        .args(["60", "sh", "-c", "umask 000; exec \"$0\" \"$@\"", FRIT])
        .args(args)
        .output()
        .unwrap()
}

fn said(o: &Output) -> String {
    let said = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    // The terminal width breaks long lines.
    said.replace("\n  │ ", " ")
}

#[track_caller]
fn good(o: &Output) -> String {
    assert!(o.status.success(), "{}", said(o));
    said(o)
}

#[track_caller]
fn refused(o: &Output, words: &str) {
    assert!(!o.status.success() && said(o).contains(words), "{:?}: {}", o.status, said(o));
}

/// Returns a command of the other user.
fn other(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(words);
    command
}

/// Collects all paths below a directory, except for mounted file systems.
fn below(dir: &Path, all: &mut Vec<PathBuf>) {
    let device = |path: &Path| path.symlink_metadata().unwrap().dev();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() && device(&path) == device(dir) {
            below(&path, all);
        }
        all.push(path);
    }
}

/// Returns the permissions of the other user, one line a permission and path.
fn rights(paths: &[PathBuf]) -> Vec<String> {
    let look = "for f; do [ -r \"$f\" ] && echo read $f; [ -w \"$f\" ] && echo write $f; done; true";
    let found = other(&["sh", "-c", look, "sh"]).args(paths).output().unwrap();
    assert!(found.status.success(), "{}", said(&found));
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A lock of the other user, held until this is dropped.
struct Foreign(Child, i32);

impl Foreign {
    fn locks(how: &str, file: &str) -> Foreign {
        let mut flock = other(&["flock", "--timeout=5", how, file, "sh", "-c", "echo $$; exec sleep 60"]);
        let mut child = flock.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Foreign(child, line.trim().parse().unwrap_or_else(|_| panic!("it could not lock {file}")))
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.1.to_string()).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server or a mount in the foreground, stopped cleanly when this is dropped.
struct Running(Child);

impl Running {
    fn start(args: &[&str]) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$0\" \"$@\"", FRIT]).args(args).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it did not start");
        Running(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

#[test]
fn another_user_can_use_nothing_that_is_left() {
    let Some(place) = Place::new() else { return };
    let [vol, img, pool, raw] = ["vol", "img", "pool", "raw"].map(|name| place.at(name));
    good(&frit(&["create", &vol, "--stack", "hfsl-small"]));
    good(&frit(&["export", &vol, &raw]));
    good(&frit(&["mkfs", &img, "--size", "8M"]));
    good(&frit(&["mkfs", "--pool", &pool, "--size", "20M"]));
    let [nbd, trace] = ["nbd.sock", "trace.csv"].map(|name| place.at(name));
    let _serving = Running::start(&["serve", &vol, "--nbd", &format!("unix:{nbd}"), "--record", &trace]);
    good(&frit(&["ctl", &vol, "set", "SSW=1024"]));
    // The files themselves must be inaccessible, not only their directory.
    chmod(Path::new(&vol), 0o755);
    chmod(Path::new(&pool), 0o755);
    let mnt = place.at("mnt");
    fs::create_dir(&mnt).unwrap();
    let fuse = Path::new("/dev/fuse").exists();
    let _mounted = fuse.then(|| Running::start(&["mount", &img, &mnt, "--foreground", "--sync-every", "0"]));
    if fuse {
        fs::write(Path::new(&mnt).join("f"), [7; 10_000]).unwrap();
    } else {
        eprintln!("skipped: there is no /dev/fuse to mount with");
    }
    let mut all = Vec::new();
    below(place.0.path(), &mut all);
    for name in
        ["vol/frit.lock", "vol/changes.log", "pool/bodies/uuid", "nbd.sock", "vol/ctl.sock", "trace.csv"]
    {
        assert!(all.contains(&place.0.path().join(name)), "{name}: {all:?}");
    }
    all.retain(|path| ![&mnt, &vol, &pool].iter().any(|dir| path == Path::new(dir)));
    let own = Path::new("/dev/shm/frit-0");
    assert!(!fuse || own.is_dir());
    if own.is_dir() {
        // Other tests use this directory at the same time; its contents are protected by its mode.
        assert_eq!(own.metadata().unwrap().mode() & 0o7777, 0o700);
        all.push(own.into());
    }
    assert_eq!(rights(&all), Vec::<String>::new());
    for file in all.iter().filter(|path| path.is_file()) {
        let locked = other(&["flock", "--nonblock", "--shared"]).arg(file).arg("true").output().unwrap();
        assert!(!locked.status.success(), "{}", file.display());
    }
}

#[test]
fn who_may_read_cannot_stop_the_owner() {
    let Some(place) = Place::new() else { return };
    let [vol, img] = ["vol", "img"].map(|name| place.at(name));
    good(&frit(&["create", &vol, "--stack", "hfsl-small"]));
    good(&frit(&["mkfs", &img, "--size", "8M"]));
    chmod(Path::new(&vol), 0o755);
    for name in ["vol/frit.volume", "vol/nand.medium", "vol/pcm.medium", "img"] {
        chmod(Path::new(&place.at(name)), 0o644);
    }
    for how in ["--shared", "--exclusive"] {
        let _volume = Foreign::locks(how, &place.at("vol/frit.volume"));
        let _image = Foreign::locks(how, &img);
        let checked = good(&frit(&["check", &vol, "--repair"]));
        let warning = "warning: other users of this machine can read or change";
        assert!(checked.contains(warning) && checked.contains("chmod go-rwx"), "{checked}");
        let checked = good(&frit(&["fsck", &img]));
        assert!(checked.contains(warning) && checked.contains("img (mode 0644)"), "{checked}");
        // Users who may write still lock each other out.
        if Path::new("/dev/fuse").exists() {
            let mnt = place.at("mnt");
            fs::create_dir_all(&mnt).unwrap();
            good(&frit(&["mount", &img, &mnt]));
            refused(&frit(&["fsck", &img]), "in use by process");
            good(&frit(&["unmount", &mnt, "--timeout", "20"]));
        }
    }
    // Reading the volume needs the right to lock it, which its owner can grant.
    let check = || other(&["timeout", "60", FRIT, "check", &vol]).output().unwrap();
    if other(&["test", "-x", FRIT]).status().unwrap().success() {
        refused(&check(), "chmod g+r");
        chmod(Path::new(&place.at("vol/frit.lock")), 0o644);
        good(&check());
    } else {
        eprintln!("skipped: the program cannot be run by another user");
    }
}

#[test]
fn what_another_user_puts_in_the_way_is_not_used() {
    let Some(place) = Place::new() else { return };
    chmod(place.0.path(), 0o1777);
    let precious = place.at("precious");
    fs::write(&precious, b"precious").unwrap();
    let foreign = |path: &str| std::os::unix::fs::lchown(path, Some(OTHER), Some(OTHER)).unwrap();
    let [vol, img, pool, raw] = ["vol", "img", "pool", "raw"].map(|name| place.at(name));
    for dir in [&vol, &pool] {
        fs::create_dir(dir).unwrap();
        foreign(dir);
    }
    fs::write(&img, b"").unwrap();
    foreign(&img);
    refused(&frit(&["create", &vol, "--stack", "hfsl-small"]), "belongs to user 65534");
    refused(&frit(&["mkfs", &img, "--size", "8M"]), "belongs to user 65534");
    refused(&frit(&["mkfs", "--pool", &pool, "--size", "20M"]), "belongs to user 65534");
    // Creating a file does not follow symbolic links.
    let links =
        [place.at("img2"), place.at("img3.sync"), raw.clone(), place.at("vol2"), place.at("trace.csv")];
    for link in &links {
        symlink(&precious, link).unwrap();
        foreign(link);
    }
    refused(&frit(&["mkfs", &links[0], "--size", "8M"]), "");
    refused(&frit(&["create", &links[3], "--stack", "hfsl-small"]), "");
    good(&frit(&["mkfs", &place.at("img3"), "--size", "8M"]));
    good(&frit(&["create", &place.at("vol3"), "--stack", "hfsl-small"]));
    refused(&frit(&["export", &place.at("vol3"), &raw]), "");
    let nbd = format!("unix:{}", place.at("nbd.sock"));
    refused(&frit(&["serve", &place.at("vol3"), "--nbd", &nbd, "--record", &links[4]]), "");
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    // A world-writable directory in memory, with files that have the names which the program would
    // use.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    chmod(memory.path(), 0o1777);
    fs::write(memory.path().join("frit-0"), b"").unwrap();
    chown(memory.path().join("frit-0"), Some(OTHER), None).unwrap();
    good(&frit(&["fsck", &place.at("img3"), "--overlay", memory.path().to_str().unwrap()]));
    assert_eq!(fs::read_dir(memory.path()).unwrap().count(), 1, "nothing is left");
}

/// The rights of the HFSL paper (section 2.7.4): only users that the administrator named use
/// physical addresses, and no other user reads or writes bytes of the volume.
#[test]
fn a_second_user_has_physical_addresses_only_by_name() {
    let Some(place) = Place::new() else { return };
    let own = format!("uid:{OTHER}");
    for (name, named) in [("named", own.as_str()), ("unnamed", "uid:4000000000")] {
        let (vol, socket) = (place.at(name), place.at(&format!("{name}.sock")));
        let raw = format!("raw_access=[\"{named}\"]");
        good(&frit(&["create", &vol, "--stack", "hfsl-small", "--set", &raw, "--set", "raw_bytes=4K"]));
        let _server = Running::start(&["serve", &vol, "--nbd", "tcp:127.0.0.1:0", "--ctl", &socket]);
        // The volume's directory is closed to the other user, who uses the socket only.
        let ctl = |words: &[&str]| {
            let mut command = other(&["timeout", "60", FRIT, "ctl", "--socket", &socket, &vol]);
            command.args(words).output().unwrap()
        };
        refused(&ctl(&["peek", "0+64"]), "may not read its bytes");
        refused(&ctl(&["poke", "0", "00"]), "may not write its bytes");
        refused(&ctl(&["get"]), "may not read its state");
        refused(&ctl(&["set", "SSW=512"]), "may not change parameters");
        // The last 4 KiB of 4 MiB of PCM are free.
        let last = (4 << 20) - 4096;
        let poke = ctl(&["poke", "--raw", "pcm", &last.to_string(), "c0ffee"]);
        let peek = ctl(&["peek", "--raw", "pcm", &format!("{last}+3")]);
        if named == own {
            good(&poke);
            assert!(good(&peek).contains("c0 ff ee"));
            refused(&ctl(&["poke", "--raw", "pcm", "0", "00"]), "belongs to the layer");
        } else {
            refused(&poke, "may not address media directly");
            refused(&peek, "raw_access");
        }
        // Neither has root the right without a name.
        refused(&frit(&["ctl", &vol, "--socket", &socket, "peek", "--raw", "pcm", "0+3"]), "raw_access");
        good(&frit(&["ctl", &vol, "--socket", &socket, "poke", "100", "c0ffee"]));
        assert!(good(&frit(&["ctl", &vol, "--socket", &socket, "peek", "99+5"])).contains("00 c0 ff ee 00"));
    }
}
