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
    refused(&["isp", "registers", &image], "--no-isp");
    // Files of such an image can be scanned all the same.
    assert!(good(&["isp", "query", "logs/a.txt", "error", "--image", &image]).contains("3000"));
    refused(&["isp", "query", "/proc/version", "Linux"], "is not in a mounted file system of frit");
    let text = place.path().join("text");
    fs::write(&text, "no file system").unwrap();
    refused(&["isp", "registers", text.to_str().unwrap()], "its first bytes are not");
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
