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
    let said = said(&out);
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
const MODULE: &str = r#"(module
    (import "frit" "emit" (func $emit (param i32 i32) (result i32)))
    (memory (export "memory") 2)
    (func (export "buffer") (param i32) (result i32) (i32.const 16))
    (func (export "start") (param i32 i32) (drop (call $emit (local.get 0) (local.get 1))))
    (func (export "scan_lines") (param $at i32) (param $len i32) (param i64) (result i32)
        (i32.store8 (i32.const 0) (i32.add (i32.const 97) (local.get $len)))
        (call $emit (i32.const 0) (i32.const 1))))"#;

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

/// A mounted image, which is unmounted when this is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = frit(&["unmount", self.0.to_str().unwrap()]);
    }
}

#[test]
fn a_mounted_file_is_queried_by_its_path() {
    let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    if !root || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: mounting needs root and /dev/fuse");
        return;
    }
    // On a disk, the registers of a mounted image are in memory until a sync.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let image = image(place.path(), &[]);
    let at = place.path().canonicalize().unwrap().join("mnt");
    fs::create_dir(&at).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_frit"))
        .args(["mount", &image, at.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read(server.stdout.as_mut().unwrap(), &mut [0; 16]).unwrap();
    let mounted = Mounted(at.clone());
    let file = at.join("logs/a.txt");
    let json = good(&["isp", "query", file.to_str().unwrap(), "error", "problem", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let words: Vec<u64> =
        json["words"].as_array().unwrap().iter().map(|w| w["count"].as_u64().unwrap()).collect();
    assert_eq!(words, [3000, 1000]);
    assert_eq!(json["caller_requests"], 4, "open, write, read, close");
    if memory.is_dir() {
        let registers = good(&["isp", "registers", &image]);
        assert!(
            registers.contains("complete") && registers.contains("error 3000, problem 1000"),
            "{registers}"
        );
    }
    drop(mounted);
    assert!(server.wait().unwrap().success());
    good(&["fsck", &image]);
    assert!(good(&["isp", "registers", &image]).contains("error 3000"), "they stay until the next mount");
}
