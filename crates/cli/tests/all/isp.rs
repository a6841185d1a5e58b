//! `frit isp`: on an image, and on a mount if this machine can mount.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Time limit of a program, in seconds.
const BOUND: &str = "60";
const TEXT: &str = "an error\nno problem\nerror errors\n";

fn frit(args: &[&str]) -> Output {
    Command::new("timeout").args(["-k", "5", BOUND, env!("CARGO_BIN_EXE_frit")]).args(args).output().unwrap()
}

fn said(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
        .replace("\n  │ ", " ")
}

#[track_caller]
fn good(args: &[&str]) -> String {
    let out = frit(args);
    assert!(out.status.success(), "{args:?}: {}", said(&out));
    String::from_utf8(out.stdout).unwrap()
}

#[track_caller]
fn refused(args: &[&str], words: &str) {
    let out = frit(args);
    // Messages have lines of the width of a terminal.
    let said = said(&out).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.status.code() == Some(1) && said.contains(words), "{args:?}, {:?}: {said}", out.status);
}

/// Creates an image with a file, without a mount.
fn image(directory: &Path, options: &[&str]) -> String {
    let path = directory.join("img").to_str().unwrap().to_owned();
    good(&[&["mkfs", &path, "--size", "8M"], options].concat());
    let image = frit_fs::Image::open(Path::new(&path), &frit_fs::OverlayOptions::default()).unwrap();
    let fs = frit_fs::Fs::open(image, frit_fs::FsOptions::default()).unwrap();
    let me = frit_fs::Caller::ROOT;
    frit_fs::Paths::make_directories(&fs, &me, "logs", 0o755).unwrap();
    frit_fs::Paths::store(&fs, &me, "logs/a.txt", TEXT.repeat(1000).as_bytes()).unwrap();
    fs.close().unwrap();
    path
}

#[test]
fn words_of_a_file_in_an_image_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path(), &[]);
    let shown = good(&["isp", "query", "logs/a.txt", "error", "none", "--image", &image, "--positions", "2"]);
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        (&rows[1][..], &rows[2][..]),
        (&["error", "3000", "3", "20"][..], &["none", "0"][..]),
        "{shown}"
    );
    assert!(shown.contains("33000 bytes of logs/a.txt"), "{shown}");
    let json = good(&[
        "isp",
        "query",
        "/logs/a.txt",
        "error",
        "--image",
        &image,
        "--offset",
        "3",
        "--length",
        "5",
        "--json",
    ]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["words"][0]["count"], &json["bytes_scanned"]), (&Value::from(1), &Value::from(5)));
    let lines = good(&[
        "isp",
        "run",
        "logs",
        r#"{"filter": {"regex": "^no"}, "limit": 2, "file": "a.txt"}"#,
        "--image",
        &image,
    ]);
    assert!(lines.starts_with(r#"{"status":"ok""#) && lines.ends_with("no problem\nno problem\n"), "{lines}");
    refused(&["isp", "query", "logs/b.txt", "error", "--image", &image], "there is no such file");
    refused(&["isp", "run", "logs", r#"{"wods": ["a"]}"#, "--image", &image], "invalid");
    refused(&["isp", "query", "a.txt", "error", "--image", place.path().join("no").to_str().unwrap()], "no");
    good(&["fsck", &image]);
}

#[test]
fn registers_and_command_files_can_be_missing() {
    let place = tempfile::tempdir().unwrap();
    let with = image(place.path(), &[]);
    assert!(good(&["isp", "registers", &with]).contains("no instruction since the last mount"));
    assert_eq!(good(&["isp", "registers", &with, "--json"]).trim(), "[]");
    let image = image(place.path(), &["--no-isp", "--force"]);
    refused(&["isp", "registers", &image], "frit isp enable");
    // Files of such an image can be scanned all the same.
    assert!(good(&["isp", "query", "logs/a.txt", "error", "--image", &image]).contains("3000"));
    refused(&["isp", "query", "/proc/version", "Linux"], "is not in a mounted file system of frit");
    let text = place.path().join("text");
    fs::write(&text, "no file system").unwrap();
    refused(&["isp", "registers", text.to_str().unwrap()], "its first bytes are not");
}

#[test]
fn command_files_can_be_added_later() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path(), &["--no-isp", "--force"]);
    let added = good(&["isp", "enable", &image]);
    assert!(added.contains("command files added"), "{added}");
    assert!(good(&["isp", "registers", &image]).contains("no instruction since the last mount"));
    assert!(good(&["isp", "enable", &image]).contains("each directory has a command file"));
    assert!(good(&["isp", "query", "logs/a.txt", "error", "--image", &image]).contains("3000"));
    good(&["fsck", &image]);
    refused(&["isp", "enable", place.path().join("no").to_str().unwrap()], "cannot open");
}

/// Module that emits its argument, and a letter for the length of each piece.
#[cfg(feature = "programs")]
const MODULE: &str = r#"(module
    (import "frit" "emit" (func $emit (param i32 i32) (result i32)))
    (memory (export "memory") 2)
    (func (export "buffer") (param i32) (result i32) (i32.const 16))
    (func (export "start") (param i32 i32) (drop (call $emit (local.get 0) (local.get 1))))
    (func (export "scan_lines") (param $at i32) (param $len i32) (param i64) (result i32)
        (i32.store8 (i32.const 0) (i32.add (i32.const 97) (local.get $len)))
        (call $emit (i32.const 0) (i32.const 1))))"#;

#[cfg(feature = "programs")]
#[test]
fn a_program_processes_a_file_in_an_image() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path(), &[]);
    let files = frit_fs::Image::open(Path::new(&image), &frit_fs::OverlayOptions::default()).unwrap();
    let fs = frit_fs::Fs::open(files, frit_fs::FsOptions::default()).unwrap();
    let me = frit_fs::Caller::ROOT;
    frit_fs::Paths::store(&fs, &me, "program.wasm", &wat::parse_str(MODULE).unwrap()).unwrap();
    frit_fs::Paths::store(&fs, &me, "logs/b.txt", b"abc\nde").unwrap();
    fs.close().unwrap();
    let run = |more: &[&str]| {
        let common = ["isp", "program", "program.wasm", "logs/b.txt", "--image", &image];
        [&common[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let texts = |args: &[String]| good(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(texts(&run(&[])), "ec");
    assert_eq!(texts(&run(&["--argument", "x="])), "x=ec");
    assert_eq!(texts(&run(&["--offset", "4"])), "c");
    assert_eq!(texts(&run(&["--length", "4", "--fuel", "1000", "--memory", "1M", "--time-ms", "500"])), "e");
    let json = texts(&run(&["--json", "--fuel", "1000"]));
    let line: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(
        line["status"] == "ok" && line["fuel_used"].as_u64() > Some(0) && json.ends_with("\nec"),
        "{json}"
    );
    let failed = |more: &[&str], words: &str| {
        let args = run(more);
        refused(&args.iter().map(String::as_str).collect::<Vec<_>>(), words);
    };
    failed(&["--fuel", "1"], "1 units of fuel");
    failed(&["--memory", "64K"], "the limit is 65536");
    failed(&["--time-ms", "99999999"], "this engine allows at most");
    refused(
        &["isp", "program", "no.wasm", "logs/b.txt", "--image", &image],
        "\"no.wasm\": there is no such file",
    );
    refused(&["isp", "program", "logs/a.txt", "logs/b.txt", "--image", &image], "not a valid module");
    refused(&["isp", "program", "/proc/version", "/proc/version"], "is not in a mounted file system of frit");
}

#[test]
fn wrong_arguments_are_named() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path(), &[]);
    let at = place.path().to_str().unwrap();
    for empty in ["", "  ", "\n"] {
        refused(&["isp", "run", at, empty], "the instruction is empty");
        refused(&["isp", "run", "logs", empty, "--image", &image], "the instruction is empty");
    }
    refused(&["isp", "registers", at], "is a directory, and not a pool");
    let checksum = r#"{"checksum": "xxh3", "file": "a.txt"}"#;
    refused(&["isp", "run", "nodir", checksum, "--image", &image], "there is no directory nodir: ");
    refused(&["isp", "query", "no/a.txt", "error", "--image", &image], "there is no directory no: ");
    refused(&["isp", "run", "logs/a.txt", checksum, "--image", &image], "there is no directory logs/a.txt: ");
    good(&["isp", "run", "/logs/", checksum, "--image", &image]);
    let itself = r#"{"copy": {"words": ["error"]}, "to": "./a.txt", "file": "a.txt"}"#;
    refused(&["isp", "run", "logs", itself, "--image", &image], "the one that the instruction reads");
    let missing = place.path().join("no/f");
    refused(&["isp", "query", missing.to_str().unwrap(), "x"], "cannot find the directory");
    let (module, text) = (place.path().join("m.wasm"), place.path().join("text"));
    fs::write(&module, "").unwrap();
    fs::write(&text, "").unwrap();
    let (module, text) = (module.to_str().unwrap(), text.to_str().unwrap());
    refused(&["isp", "program", module, "/proc/version"], "must be on the same mounted file system");
    refused(&["isp", "program", module, text], "is not in a mounted file system of frit");
    refused(&["isp", "query", &format!("{text}/x"), "x"], "is not a directory");
    refused(&["isp", "query", at, "x"], "is a directory; name a file in it");
    let memory = r#"{"words": ["x"], "file": "a.txt", "memory": -1}"#;
    refused(&["isp", "run", "logs", memory, "--image", &image], "a whole number from 0 to 1073741824");
}

#[test]
fn all_files_with_the_name_of_command_files_are_listed() {
    let place = tempfile::tempdir().unwrap();
    let path = image(place.path(), &["--no-isp", "--force"]);
    let image = frit_fs::Image::open(Path::new(&path), &frit_fs::OverlayOptions::default()).unwrap();
    let fs = frit_fs::Fs::open(image, frit_fs::FsOptions::default()).unwrap();
    for name in [".isp", "logs/.isp"] {
        frit_fs::Paths::store(&fs, &frit_fs::Caller::ROOT, name, b"").unwrap();
    }
    fs.close().unwrap();
    refused(&["isp", "enable", &path], "`.isp`: /.isp, /logs/.isp. Mount");
}

#[cfg(feature = "programs")]
#[test]
fn an_image_is_locked_while_the_engine_uses_it() {
    let place = tempfile::tempdir().unwrap();
    let path = image(place.path(), &[]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/isp/failing/loops.wat");
    let image = frit_fs::Image::open(Path::new(&path), &frit_fs::OverlayOptions::default()).unwrap();
    let fs = frit_fs::Fs::open(image, frit_fs::FsOptions::default()).unwrap();
    let module = wat::parse_file(source).unwrap();
    frit_fs::Paths::store(&fs, &frit_fs::Caller::ROOT, "loops.wasm", &module).unwrap();
    fs.close().unwrap();
    let program = ["isp", "program", "loops.wasm", "logs/a.txt", "--image", &path, "--time-ms", "600000"];
    let mut program = Command::new(env!("CARGO_BIN_EXE_frit")).args(program).spawn().unwrap();
    let (mut locked, end) = (false, std::time::Instant::now() + std::time::Duration::from_secs(30));
    while !locked && std::time::Instant::now() < end {
        locked = frit(&["fsck", &path]).status.code() == Some(2);
    }
    // It has opened the image by now.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let checked = frit(&["fsck", &path]);
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(locked && checked.status.code() == Some(2), "{}", said(&checked));
    good(&["fsck", &path]);
}

/// A mounted image, which is unmounted when this is dropped.
struct Mounted {
    at: PathBuf,
    server: std::process::Child,
}

impl Mounted {
    /// Mounts an image in a directory beside it. Returns `None` if this machine cannot mount.
    fn new(image: &str, options: &[&str]) -> Option<Mounted> {
        let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        if !root || !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: mounting needs root and /dev/fuse");
            return None;
        }
        let at = Path::new(image).parent().unwrap().canonicalize().unwrap().join("mnt");
        let _ = fs::create_dir(&at);
        let mut server = Command::new(env!("CARGO_BIN_EXE_frit"))
            .args(["mount", image, at.to_str().unwrap(), "--foreground"])
            .args(options)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read(server.stdout.as_mut().unwrap(), &mut [0; 16]).unwrap();
        Some(Mounted { at, server })
    }

    fn path(&self, name: &str) -> String {
        self.at.join(name).to_str().unwrap().to_owned()
    }

    fn unmount(mut self) {
        good(&["unmount", self.at.to_str().unwrap()]);
        assert!(self.server.wait().unwrap().success(), "the image was closed in order");
    }

    /// Kills the server; the mount is removed by the drop.
    fn kill(mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if rustix::fs::statfs(&self.at).is_ok_and(|found| found.f_type != 0x6573_5546) {
            return;
        }
        let _ = frit(&["unmount", "--lazy", self.at.to_str().unwrap()]);
        let _ = self.server.wait();
    }
}

/// Returns a directory in memory, if there is one.
fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

#[test]
fn a_mounted_file_is_queried_by_its_path() {
    // On a disk, the registers of a mounted image are in memory until a sync.
    let place = in_memory();
    let image = image(place.path(), &[]);
    let Some(mounted) = Mounted::new(&image, &[]) else { return };
    let json = good(&["isp", "query", &mounted.path("logs/a.txt"), "error", "problem", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let words: Vec<u64> =
        json["words"].as_array().unwrap().iter().map(|w| w["count"].as_u64().unwrap()).collect();
    assert_eq!(words, [3000, 1000]);
    assert_eq!(json["caller_requests"], 5, "open, begin, write, read, close");
    let is_memory = place.path().starts_with("/dev/shm");
    if is_memory {
        let registers = good(&["isp", "registers", &image]);
        assert!(
            registers.contains("complete") && registers.contains("error 3000, problem 1000"),
            "{registers}"
        );
    }
    let failing = [&mounted.path(""), r#"{"select": ["none"], "format": "csv", "file": "logs/a.txt"}"#];
    let run = Command::new(env!("CARGO_BIN_EXE_frit")).args(["isp", "run"]).args(failing).output().unwrap();
    assert!(!run.status.success());
    if is_memory {
        let registers = good(&["isp", "registers", &image]);
        assert!(registers.contains("failed: format"), "{registers}");
    }
    // A name that is not UTF-8.
    use std::os::unix::ffi::OsStrExt;
    let odd = mounted.at.join("logs").join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::write(&odd, "error").unwrap();
    let query = |more: &[&str]| {
        let mut query = Command::new(env!("CARGO_BIN_EXE_frit"));
        query.args(["isp", "query"]).arg(&odd).arg("error").args(more).output().unwrap()
    };
    let shown = query(&[]);
    assert!(shown.status.success() && said(&shown).contains("error      1"), "{}", said(&shown));
    let shown = query(&["--image", "img"]);
    assert!(!shown.status.success() && said(&shown).contains("the name is not UTF-8"), "{}", said(&shown));
    fs::remove_file(&odd).unwrap();
    good(&["isp", "query", &mounted.path("logs/a.txt"), "error", "problem"]);
    mounted.unmount();
    good(&["fsck", &image]);
    assert!(good(&["isp", "registers", &image]).contains("error 3000"), "they stay until the next mount");
}

#[cfg(feature = "programs")]
#[test]
fn a_killed_program_does_not_hold_up_an_unmount() {
    let place = in_memory();
    let image = image(place.path(), &[]);
    let Some(mounted) = Mounted::new(&image, &[]) else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/isp/failing/loops.wat");
    let module = mounted.path("loops.wasm");
    fs::write(&module, wat::parse_file(source).unwrap()).unwrap();
    let file = mounted.path("logs/a.txt");
    let mut client = Command::new(env!("CARGO_BIN_EXE_frit"))
        .args(["isp", "program", &module, &file, "--time-ms", "600000"])
        .spawn()
        .unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while place.path().starts_with("/dev/shm") && !good(&["isp", "registers", &image]).contains("running") {
        assert!(std::time::Instant::now() < end, "the program runs");
    }
    client.kill().unwrap();
    client.wait().unwrap();
    mounted.unmount();
    let checked = good(&["fsck", &image]);
    assert!(!checked.contains("not unmounted"), "{checked}");
}

#[test]
fn mounts_without_command_files_say_what_to_do() {
    let place = in_memory();
    let path = image(place.path(), &[]);
    let Some(mounted) = Mounted::new(&path, &["--read-only"]) else { return };
    let file = mounted.path("logs/a.txt");
    refused(&["isp", "query", &file, "error"], "only, so no instruction can be written to");
    refused(&["isp", "query", &file, "error"], "--image IMAGE");
    mounted.unmount();
    let path = image(place.path(), &["--no-isp", "--force"]);
    let mounted = Mounted::new(&path, &[]).unwrap();
    refused(&["isp", "query", &mounted.path("logs/a.txt"), "error"], "frit isp enable IMAGE adds them");
    mounted.unmount();
}

#[test]
fn stale_overlays_of_other_images_are_one_line() {
    let (place, overlays) = (tempfile::tempdir().unwrap(), in_memory());
    let overlay = overlays.path().to_str().unwrap();
    for i in 0..3 {
        let path = image(place.path(), &["--force"]);
        let Some(mounted) = Mounted::new(&path, &["--overlay", overlay, "--sync-every", "0"]) else { return };
        fs::write(mounted.path("f"), "changes").unwrap();
        mounted.kill();
        fs::rename(&path, place.path().join(format!("moved{i}"))).unwrap();
    }
    let path = image(place.path(), &[]);
    let shown = frit(&["isp", "query", "logs/a.txt", "error", "--image", &path, "--overlay", overlay]);
    let notes = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(shown.status.success(), "{notes}");
    if notes.is_empty() {
        eprintln!("skipped: the directory of temporary files is in memory");
        return;
    }
    assert_eq!(notes.lines().filter(|line| line.contains("not synced")).count(), 1, "{notes}");
    // Other tests may leave some in another directory.
    let (before, _) = notes.split_once(" overlays of other images").unwrap();
    assert!(before.trim_start_matches("frit: ").parse::<u32>().unwrap() >= 3, "{notes}");
}

#[test]
fn only_a_command_file_of_the_mount_of_the_directory_gets_an_instruction() {
    use std::os::unix::fs::symlink;
    let place = in_memory();
    let path = image(place.path(), &["--no-isp", "--force"]);
    let Some(mounted) = Mounted::new(&path, &[]) else { return };
    let victim = place.path().join("victim");
    fs::write(&victim, "of root").unwrap();
    let command = mounted.at.join("logs/.isp");
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("a.txt"), TEXT).unwrap();
    // In the file system without command files, beside it, and through another one that is mounted inside.
    for directory in [mounted.at.join("logs"), elsewhere] {
        let command = directory.join(".isp");
        let query = |words: &str| {
            refused(&["isp", "query", directory.join("a.txt").to_str().unwrap(), "error"], words);
            let instruction = r#"{"words": ["error"], "file": "a.txt"}"#;
            refused(&["isp", "run", directory.to_str().unwrap(), instruction], words);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "of root");
        };
        symlink(&victim, &command).unwrap();
        query("it is a symbolic link");
        fs::remove_file(&command).unwrap();
        fs::hard_link(&victim, &command).or_else(|_| fs::write(&command, "of root")).unwrap();
        let is_mounted = directory.starts_with(&mounted.at);
        query(if is_mounted {
            "it takes no instructions"
        } else {
            "is not in a mounted file system of frit"
        });
        assert_eq!(fs::read_to_string(&command).unwrap(), "of root");
        fs::remove_file(&command).unwrap();
        let made = Command::new("mkfifo").arg(&command).status().unwrap();
        assert!(made.success());
        query("it is not a regular file");
        fs::remove_file(&command).unwrap();
    }
    fs::write(&command, "").unwrap();
    let bound = Command::new("mount").arg("--bind").args([&victim, &command]).status();
    if bound.is_ok_and(|status| status.success()) {
        refused(
            &["isp", "query", &mounted.path("logs/a.txt"), "error"],
            "another file system is mounted there",
        );
        assert_eq!(fs::read_to_string(&victim).unwrap(), "of root");
        assert!(Command::new("umount").arg(&command).status().unwrap().success());
    }
    mounted.unmount();
}

/// Runs a script in a directory, with the program in its path.
fn script(directory: &Path, text: &str) -> String {
    let frit = Path::new(env!("CARGO_BIN_EXE_frit")).parent().unwrap().to_str().unwrap().to_owned();
    let path = format!("{frit}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("timeout");
    shell.args(["-k", "5", BOUND, "sh", "-c", text]).current_dir(directory).env("PATH", path);
    said(&shell.output().unwrap())
}

#[test]
fn a_shell_begins_instructions() {
    let place = in_memory();
    let path = image(place.path(), &[]);
    let Some(mounted) = Mounted::new(&path, &[]) else { return };
    let logs = mounted.at.join("logs");
    let ask = |begin: &str, print: &str| {
        let text = r#"exec 3<>.isp; BEGIN; PRINT '{"words": ["error"], "file": "a.txt"}\n' >&3; IFS= read -r line <&3; echo "$line""#;
        script(&logs, &text.replace("BEGIN", begin).replace("PRINT", print))
    };
    let found = r#""count":3000"#;
    assert!(ask("frit isp begin <&3", "printf").contains(found));
    assert!(!ask("true", "printf").contains(found), "nobody began");
    let shown = ask("frit isp begin <&3", "env printf");
    assert!(!shown.contains(found) && shown.contains("not permitted"), "another program: {shown}");
    assert!(ask("frit isp begin --share <&3", "env printf").contains(found));
    let other = script(&logs, "exec 3<>.isp; exec setpriv --reuid 1000 --clear-groups frit isp begin <&3");
    assert!(other.contains("with other rights") || other.contains("cannot execute"), "{other}");
    assert!(script(&logs, "frit isp begin < a.txt").contains("is not an open command file of frit"));
    mounted.unmount();
    let mounted = Mounted::new(&path, &["--isp", "off"]).unwrap();
    refused(&["isp", "query", &mounted.path("logs/a.txt"), "error"], "is mounted with --isp off");
    mounted.unmount();
}
