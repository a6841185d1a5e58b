//! `frit serve` as a script sees it: one line when it is ready, a clean volume when it ends.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn create(volume: &str) {
    let out = frit(&["create", volume, "--stack", "hfsl-small"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// A server that is ready, and the line that said so.
fn serve(args: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_frit"))
        .arg("serve")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Writes 512 bytes with FUA at the start of the export.
fn write(socket: &Path) {
    let mut s = UnixStream::connect(socket).unwrap();
    s.read_exact(&mut [0; 18]).unwrap();
    s.write_all(&[&3u32.to_be_bytes()[..], b"IHAVEOPT\0\0\0\x01\0\0\0\0"].concat()).unwrap();
    s.read_exact(&mut [0; 10]).unwrap();
    let head =
        [0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    s.write_all(&[&head[..], &[9; 512]].concat()).unwrap();
    let mut reply = [0; 16];
    s.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], [0; 4]);
}

#[test]
fn a_signal_ends_it_in_order_and_a_kill_is_recovered_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (volume, socket, record) = (path("vol"), path("s"), path("clients.csv"));
    let (pidfile, nbd) = (path("pid"), format!("unix:{socket}"));
    create(&volume);
    let (child, line) = serve(&[
        &volume,
        "--nbd",
        &nbd,
        "--nbd",
        "tcp:127.0.0.1:0",
        "--export",
        "a b",
        "--record",
        &record,
        "--pidfile",
        &pidfile,
    ]);
    assert!(line.contains(&format!("at nbd+unix:///a%20b?socket={socket} and nbd://127.0.0.1:")), "{line}");
    assert_eq!(std::fs::read_to_string(&pidfile).unwrap().trim(), child.id().to_string());
    let second = frit(&["serve", &volume, "--nbd", "tcp:127.0.0.1:0"]);
    assert!(!second.status.success() && text(&second.stderr).contains("in use"), "{}", text(&second.stderr));
    write(Path::new(&socket));
    signal(&child, "-TERM");
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    assert_eq!(text(&out.stderr), "", "nothing that nobody needs");
    assert!(!Path::new(&socket).exists() && !Path::new(&pidfile).exists());
    let recorded = std::fs::read_to_string(&record).unwrap();
    assert!(recorded.starts_with("time_us,op,sector,sectors,flags\n") && recorded.ends_with(",W,0,1,F\n"));

    let (child, _) = serve(&[&volume, "--nbd", &nbd]);
    write(Path::new(&socket));
    signal(&child, "-KILL");
    child.wait_with_output().unwrap();
    // The socket's name was left; the next server takes it.
    let (child, line) = serve(&[&volume, "--nbd", &nbd, "--read-only"]);
    assert!(line.contains("read-only"), "{line}");
    signal(&child, "-INT");
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    assert!(text(&out.stderr).starts_with("recovered in "), "{}", text(&out.stderr));
}

/// A terminal that is closed stops a server in order; one that was started to ignore that (nohup) goes on.
#[test]
fn a_hangup_ends_it_in_order_unless_it_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (volume, socket) = (path("vol"), path("s"));
    let nbd = format!("unix:{socket}");
    create(&volume);
    let (child, _) = serve(&[&volume, "--nbd", &nbd]);
    write(Path::new(&socket));
    signal(&child, "-HUP");
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{:?}", out.status);
    assert!(!Path::new(&socket).exists());
    let inspected = frit(&["inspect", &volume]);
    assert!(text(&inspected.stdout).contains("clean"), "{}", text(&inspected.stdout));

    let script = format!("trap '' HUP; exec {} serve {volume} --nbd {nbd}", env!("CARGO_BIN_EXE_frit"));
    let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    signal(&child, "-HUP");
    write(Path::new(&socket));
    signal(&child, "-TERM");
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn what_cannot_be_served_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("vol").display().to_string();
    create(&volume);
    for (args, words) in [
        (&["--nbd", "tcp:0.0.0.0:0"][..], "--allow-remote"),
        (&[][..], "--nbd"),
        (&["--nbd", "nowhere"][..], "unix:PATH or tcp:HOST:PORT"),
        (&["--nbd", "unix:/"][..], "is no socket"),
        (&["--nbd", "tcp:127.0.0.1:0", "--record", &volume][..], "exists"),
    ] {
        let out = frit(&[&["serve", volume.as_str()][..], args].concat());
        let said = text(&out.stderr).replace("\n  │ ", " ");
        assert!(!out.status.success() && said.contains(words), "{args:?}: {said}");
    }
    let out = frit(&["inspect", &volume]);
    assert!(text(&out.stdout).contains("clean"), "none of them left it dirty");
}
