//! `frit ctl` on the command line, with its access rights. Tests that need another user are skipped
//! without root.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

pub(crate) fn said(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
}

#[track_caller]
pub(crate) fn good(o: &Output) -> String {
    assert!(o.status.success(), "{}", said(o));
    String::from_utf8_lossy(&o.stdout).into()
}

fn volume(dir: &Path) -> String {
    let path = dir.join("vol").to_str().unwrap().to_owned();
    good(&frit(&["create", &path, "--stack", "hfsl-paper", "--size", "16M"]));
    path
}

/// A server that is stopped when this is dropped.
struct Server(Child);

impl Server {
    fn start(volume: &str, more: &[&str]) -> Server {
        let socket = format!("unix:{volume}/nbd.sock");
        let mut serve = Command::new(env!("CARGO_BIN_EXE_frit"));
        serve.args(["serve", volume, "--nbd", &socket]).args(more);
        let server = Server(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let end = Instant::now() + Duration::from_secs(60);
        while !Path::new(volume).join("ctl.sock").exists() {
            assert!(Instant::now() < end, "the server does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

#[test]
fn a_volume_is_controlled_served_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let v = volume(dir.path());
    assert!(good(&frit(&["ctl", &v, "get"])).contains("cache_ratio"));
    assert_eq!(
        good(&frit(&["ctl", &v, "set", "SSW=1K", "gc=fifo"])),
        "SSW: 2048 -> 1024\ngc: greedy -> fifo\n"
    );
    assert!(said(&frit(&["ctl", &v, "top"])).contains("frit serve"), "it says how to start a server");
    let server = Server::start(&v, &[]);
    assert!(good(&frit(&["ctl", &v, "get", "SSW"])).contains("1024"));
    assert_eq!(good(&frit(&["ctl", &v, "set", "SSW=1K"])), "SSW: had this value already\n");
    let more = frit(&["ctl", &v, "set", "SSW=4K"]);
    assert_eq!(good(&more), "SSW: 1024 -> 4096\n");
    assert!(said(&more).contains("Flushes for space"), "{}", said(&more));
    assert!(!said(&frit(&["ctl", &v, "set", "SSW=2K"])).contains("Flushes for space"));
    for wrong in [&["get", "no_such"][..], &["set", "SSW=x"], &["set", "capacity=1G"], &["set", "SSW"]] {
        let o = frit(&[&["ctl", &v], wrong].concat());
        assert!(!o.status.success() && o.stdout.is_empty(), "{wrong:?}: {}", said(&o));
    }
    let stat: serde_json::Value = serde_json::from_str(&good(&frit(&["ctl", &v, "stat", "--json"]))).unwrap();
    assert_eq!(stat["server"]["pid"], server.0.id());
    drop(server);
    assert!(good(&frit(&["ctl", &v, "stat"])).contains("where pages lie"));
    let log = std::fs::read_to_string(Path::new(&v).join("changes.log")).unwrap();
    assert_eq!(log.lines().count(), 4, "{log}");
}

/// Runs frit as user 65534 (nobody).
fn as_nobody(args: &[&str]) -> Output {
    let frit = env!("CARGO_BIN_EXE_frit");
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", frit];
    Command::new("setpriv").args(user).args(args).output().unwrap()
}

#[test]
fn others_look_when_they_may_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let v = volume(dir.path());
    let root = std::fs::metadata(&v).is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    let possible = root && as_nobody(&["--version"]).status.success();
    if !possible {
        eprintln!("skipped: another user needs root, setpriv, and a program that everybody may run");
        return;
    }
    let server = Server::start(&v, &[]);
    let o = as_nobody(&["ctl", &v, "get"]);
    assert!(!o.status.success() && said(&o).contains("--ctl-read-all"), "{}", said(&o));
    drop(server);
    let server = Server::start(&v, &["--ctl-read-all"]);
    // The directory belongs to its owner alone until its mode is changed; its files stay protected.
    assert!(!as_nobody(&["ctl", &v, "get"]).status.success());
    std::fs::set_permissions(&v, std::fs::Permissions::from_mode(0o711)).unwrap();
    assert!(good(&as_nobody(&["ctl", &v, "get"])).contains("SSW"));
    assert!(good(&as_nobody(&["ctl", &v, "stat"])).contains("served by process"));
    let o = as_nobody(&["ctl", &v, "set", "SSW=1K"]);
    assert!(!o.status.success() && said(&o).contains("user 65534 may not change parameters"), "{}", said(&o));
    assert!(good(&frit(&["ctl", &v, "get", "SSW"])).contains("2048"));
    drop(server);
}

/// Writes blocks through the server, as an NBD client does.
fn write_blocks(volume: &str, blocks: &[u64]) {
    for at in blocks {
        let command = format!("write -P 7 {at} 4096");
        let socket = format!("nbd+unix:///?socket={volume}/nbd.sock");
        let out = Command::new("qemu-io").args(["-f", "raw", "-c", &command, &socket]).output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
    }
}

#[test]
fn hints_are_given_served_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let v = volume(dir.path());
    assert!(good(&frit(&["ctl", &v, "hint", "list"])).contains("no hints"));
    assert_eq!(good(&frit(&["ctl", &v, "hint", "add", "64K+4K=metadata"])), "64K+4K=metadata\n");
    assert!(said(&frit(&["ctl", &v, "hint", "add", "99T+4K=metadata"])).contains("beyond the volume"));
    assert!(said(&frit(&["ctl", &v, "hint", "remove", "0+4K=hot"])).contains("no range 0+4K=hot"));
    assert!(said(&frit(&["ctl", &v, "hint", "add", "64K=metadata"])).contains("OFFSET+LENGTH=HINT"));
    let list = {
        let _server = Server::start(&v, &["--hint", "128K+4K=cold", "--detect-metadata"]);
        let list = good(&frit(&["ctl", &v, "hint", "list"]));
        assert!(good(&frit(&["ctl", &v, "hint", "add", "0+4K=hot"])).starts_with("0+4K=hot\n"));
        let json = good(&frit(&["ctl", &v, "hint", "list", "--json"]));
        assert!(json.contains("\"detect_saved\": false"), "{json}");
        if Command::new("qemu-io").arg("--version").output().is_ok() {
            write_blocks(&v, &[0, 65_536, 131_072]);
            let stat = good(&frit(&["ctl", &v, "stat"]));
            for (hint, by) in [("metadata", "range"), ("hot", "range"), ("cold", "range")] {
                let found =
                    stat.lines().any(|l| l.trim().starts_with(hint) && l.contains(by) && l.contains("4 KiB"));
                assert!(found, "{hint} {by} is not in\n{stat}");
            }
        }
        list
    };
    assert_eq!(
        list,
        "64K+4K=metadata\n128K+4K=cold   (until the server ends)\nmetadata is detected   (until the server ends)\n"
    );
    assert_eq!(good(&frit(&["ctl", &v, "hint", "remove", "0+4K=hot"])), "64K+4K=metadata\n");
    let log = std::fs::read_to_string(Path::new(&v).join("changes.log")).unwrap();
    assert_eq!(log.lines().filter(|l| l.contains(" hint ")).count(), 3, "{log}");
    good(&frit(&["create", &v, "--stack", "hfsl-paper", "--size", "16M", "--force"]));
    assert!(good(&frit(&["ctl", &v, "hint", "list"])).contains("no hints"), "another volume");
}
