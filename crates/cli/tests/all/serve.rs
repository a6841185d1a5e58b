//! `frit serve` for a script: one line when it is ready, a clean volume after it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

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

/// Starts a server. Returns it when it is ready, with its line of output. Signals have their
/// default actions, also when the tests themselves run under nohup.
fn serve(args: &[&str]) -> (Child, String) {
    let mut child = Command::new("env")
        .args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_frit"), "serve"])
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
    // The dead server's socket file is left; the next server replaces it.
    let (child, line) = serve(&[&volume, "--nbd", &nbd, "--read-only"]);
    assert!(line.contains("read-only"), "{line}");
    signal(&child, "-INT");
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    assert!(text(&out.stderr).starts_with("recovered in "), "{}", text(&out.stderr));
}

/// A disk without the page cache is served over NBD, killed, checked and read.
#[test]
fn a_killed_server_of_a_direct_disk_leaves_all_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (volume, socket, image) = (path("vol"), path("s"), path("image"));
    let stack = "halo-small,media.pcm.chip_bytes=256K,media.disk.bytes=64M,media.disk.access=io-uring";
    let out = frit(&["create", &volume, "--stack", stack]);
    assert!(out.status.success() && text(&out.stdout).contains("file, io-uring"), "{}", text(&out.stderr));
    let (child, _) = serve(&[&volume, "--nbd", &format!("unix:{socket}")]);
    write(Path::new(&socket));
    signal(&child, "-KILL");
    child.wait_with_output().unwrap();
    for args in [&["recover", &volume][..], &["check", &volume, "--data"], &["export", &volume, &image]] {
        let out = frit(args);
        assert!(out.status.success(), "{args:?}: {}{}", text(&out.stdout), text(&out.stderr));
    }
    assert_eq!(std::fs::read(&image).unwrap()[..513], [&[9; 512][..], &[0]].concat());
}

/// Closing the terminal stops a server cleanly; a server that was started with SIGHUP ignored
/// (nohup) keeps running.
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
        (&["--nbd", "unix:/"][..], "is not a socket"),
        (&["--nbd", "tcp:127.0.0.1:0", "--record", &volume][..], "exists"),
    ] {
        let out = frit(&[&["serve", volume.as_str()][..], args].concat());
        let said = text(&out.stderr).replace("\n  │ ", " ");
        assert!(!out.status.success() && said.contains(words), "{args:?}: {said}");
    }
    let out = frit(&["inspect", &volume]);
    assert!(text(&out.stdout).contains("clean"), "none of them left it dirty");
}

/// Connects a client and selects the export.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let mut s = UnixStream::connect(socket)?;
    s.set_read_timeout(Some(Duration::from_secs(30)))?;
    s.set_write_timeout(Some(Duration::from_secs(30)))?;
    s.read_exact(&mut [0; 18])?;
    s.write_all(&[&3u32.to_be_bytes()[..], b"IHAVEOPT\0\0\0\x01\0\0\0\0"].concat())?;
    s.read_exact(&mut [0; 10])?;
    Ok(s)
}

fn head(number: u16, len: u32) -> Vec<u8> {
    [&[0x25, 0x60, 0x95, 0x13, 0, 0][..], &number.to_be_bytes(), &[0; 16], &len.to_be_bytes()].concat()
}

/// Returns the peak anonymous memory of a process in KiB. Pages of its files are not included.
fn own_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("vol").display().to_string();
    create(&volume);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (nbd, free) = (format!("tcp:{address}"), "tcp:127.0.0.1:0");
    for (words, what) in [
        (vec!["--nbd", &nbd], format!("cannot listen on {nbd}:")),
        (vec!["--nbd", free, "--metrics", &address], format!("cannot listen for metrics at {address}")),
    ] {
        let out = frit(&[&["serve", &volume], &words[..]].concat());
        let said = text(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
        assert!(!out.status.success() && said.contains(&what), "{said}");
        assert!(said.contains("end it, or choose another port (0: a free one)"), "{said}");
    }
    drop(taken);
    let (child, _) = serve(&[&volume, "--nbd", &nbd]);
    signal(&child, "-TERM");
    assert!(child.wait_with_output().unwrap().status.success());
}

/// 40 clients send half of a write of 32 MiB each: 640 MiB that the server must not hold.
#[test]
fn half_sent_writes_do_not_fill_the_memory() {
    const MEMORY: u64 = 400 << 20;
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("vol").display().to_string();
    let socket = dir.path().join("s");
    let out = frit(&["create", &volume, "--stack", "hfsl-small", "--size", "40M"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    if !Command::new("prlimit").arg("--version").output().is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: no prlimit on this machine");
        return;
    }
    let mut child = Command::new("prlimit")
        .arg(format!("--data={MEMORY}"))
        .args([env!("CARGO_BIN_EXE_frit"), "serve", &volume])
        .args(["--nbd", &format!("unix:{}", socket.display()), "--buffers", "64M"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("nbd+unix"), "{line}");
    let half = [head(1, 32 << 20), vec![7; 16 << 20]].concat();
    let mut halves: Vec<UnixStream> = (0..40)
        .map(|i| {
            let mut s = connect(&socket).unwrap_or_else(|e| panic!("client {i}: {e}"));
            s.write_all(&half).unwrap_or_else(|e| panic!("client {i}: {e}"));
            s
        })
        .collect();
    assert_eq!(child.try_wait().unwrap(), None, "the server has ended");
    let kib = own_kib(child.id());
    assert!(kib < 200 << 10, "the server holds {kib} KiB");
    // The server serves others, and completes a write whose data arrives.
    write(&socket);
    halves[0].write_all(&vec![7; 16 << 20]).unwrap();
    let mut reply = [0; 16];
    halves[0].read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], [0; 4]);
    let mut reader = connect(&socket).unwrap();
    reader.write_all(&head(0, 32 << 20)).unwrap();
    let mut data = vec![0; (32 << 20) + 16];
    reader.read_exact(&mut data).unwrap();
    assert!(data[16 + 512..].iter().all(|&b| b == 7));
    drop((halves, reader));
    signal(&child, "-TERM");
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
}
