//! `frit ctl query` and `frit ctl isp` beside programs of other projects: NBD clients write, the server is
//! killed, and grep searches the exported image. Without these programs, the test is skipped.

use super::control::{frit, good, said};
use super::direct::short_or_long;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn have(program: &str, args: &[&str]) -> bool {
    let found = Command::new(program).args(args).output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("skipped: there is no {program} that runs with {args:?}");
    }
    found
}

/// A server that is killed when this is dropped.
struct Server(Child);

impl Server {
    fn start(volume: &str, more: &[&str]) -> Server {
        let socket = format!("unix:{volume}/nbd.sock");
        let _ = std::fs::remove_file(Path::new(volume).join("ctl.sock"));
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

    /// Ends the server in order.
    fn stop(mut self) {
        good(&Command::new("kill").arg(self.0.id().to_string()).output().unwrap());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writer of random blocks, which ends with this value.
struct Writer(Child);

impl Writer {
    fn start(uri: &str, offset: u64, size: u64) -> Writer {
        let mut fio = Command::new("fio");
        fio.args(["--name=w", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=8", "--time_based"])
            .args(["--runtime=600", "--allow_mounted_write=1"])
            .args([format!("--uri={uri}"), format!("--offset={offset}"), format!("--size={size}")]);
        let writer = Writer(fio.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(700));
        writer
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns text with words that no writer of random bytes writes.
fn text(bytes: usize) -> Vec<u8> {
    let lines = (0u64..).flat_map(|n| {
        match n % 7 {
            0 => format!("{n} error: the disk is full\n"),
            3 => format!("{n} warning, error, error\n"),
            _ => format!("{n} a line without a word\n"),
        }
        .into_bytes()
    });
    lines.take(bytes).collect()
}

/// Counts occurrences and lines with grep in bytes.
fn grep(bytes: &[u8], dir: &Path, word: &str) -> (u64, u64) {
    let path = dir.join("searched");
    std::fs::write(&path, bytes).unwrap();
    let run = |flags: &str| {
        let out = Command::new("grep").env("LC_ALL", "C").args([flags, word]).arg(&path).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    (run("-abo").lines().count() as u64, run("-ac").trim().parse().unwrap())
}

fn query(volume: &str, extents: &[(u64, u64)], more: &[&str]) -> Value {
    let extents: Vec<String> = extents.iter().map(|(at, len)| format!("--extent={at}+{len}")).collect();
    let mut args = vec!["ctl", volume, "query", "error", "--json"];
    args.extend(extents.iter().map(String::as_str));
    args.extend(more);
    serde_json::from_slice(&frit(&args).stdout).unwrap()
}

/// Compares a volume that is not in use with grep over its exported image.
fn compare_with_image(dir: &Path, volume: &str, extents: &[(u64, u64)]) -> u64 {
    let server = Server::start(volume, &[]);
    let served = [query(volume, &[], &[]), query(volume, extents, &[])];
    let lines: Value =
        serde_json::from_str(&good(&frit(&["ctl", volume, "isp", r#"{"regex": "error"}"#]))).unwrap();
    server.stop();
    assert_eq!(query(volume, extents, &[])["words"], served[1]["words"], "without a server");
    let image = dir.join("image");
    let _ = std::fs::remove_file(&image);
    good(&frit(&["export", volume, image.to_str().unwrap()]));
    let image = File::open(image).unwrap();
    let read = |&(at, len): &(u64, u64)| {
        let mut bytes = vec![0; len as usize];
        image.read_exact_at(&mut bytes, at).unwrap();
        bytes
    };
    let all = grep(&read(&(0, image.metadata().unwrap().len())), dir, "error");
    assert_eq!((&lines["count"], &lines["lines"]), (&json!(all.0), &json!(all.1)));
    let part = grep(&extents.iter().flat_map(read).collect::<Vec<u8>>(), dir, "error");
    for (found, counted) in served.iter().zip([all.0, part.0]) {
        assert_eq!((&found["status"], &found["changed"]), (&json!("ok"), &json!(false)));
        assert_eq!(found["words"][0]["count"], counted, "{volume}");
    }
    part.0
}

fn queries_of(dir: &Path, stack: &str) {
    let volume = dir.join(stack).to_str().unwrap().to_owned();
    let uri = format!("nbd+unix:///?socket={volume}/nbd.sock");
    good(&frit(&["create", &volume, "--stack", stack]));
    let server = Server::start(&volume, &[]);
    let (text, file) = (text(6 << 20), dir.join("text"));
    File::create(&file).unwrap().write_all(&text).unwrap();
    let file = file.to_str().unwrap();
    for at in [1u64 << 20, 40 << 20] {
        let write = format!("write -s {file} {at} {}", text.len());
        good(
            &Command::new("qemu-io").args(["-f", "raw", &uri, "-c", &write, "-c", "flush"]).output().unwrap(),
        );
    }
    // The second extent continues the text of the first one, so a word is on their border.
    let border = text.windows(5).position(|part| part == b"error").unwrap() as u64 + 2;
    let extents = [(1 << 20, border), ((40 << 20) + border, text.len() as u64 - border)];
    let counted = grep(&text, dir, "error").0;
    let found = query(&volume, &extents, &["--positions", "1"]);
    assert_eq!(found["words"][0]["count"], counted);
    assert_eq!(found["words"][0]["positions"], json!([border - 2]));
    assert_eq!(found["words"][0]["addresses"], json!([(1 << 20) + border - 2]));

    let beside = Writer::start(&uri, 80 << 20, 32 << 20);
    for _ in 0..5 {
        let found = query(&volume, &extents, &["--fail-if-changed"]);
        assert_eq!(
            (&found["status"], &found["words"][0]["count"]),
            (&json!("ok"), &json!(counted)),
            "{stack}"
        );
    }
    // The whole volume has the blocks of the writer.
    assert_eq!(query(&volume, &[], &["--fail-if-changed"])["status"], "changed", "{stack}");
    assert_eq!(query(&volume, &[], &[])["changed"], true);
    let mut searching = Command::new(env!("CARGO_BIN_EXE_frit"));
    searching.args(["ctl", &volume, "isp", r#"{"checksum": "sha256"}"#, "--socket"]);
    searching.arg(format!("{volume}/ctl.sock"));
    let searching = searching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    drop(server);
    let ended = searching.wait_with_output().unwrap();
    // The hash of a volume takes longer than the program has had.
    // Messages are wrapped.
    let what = said(&ended).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!ended.status.success() && ended.stdout.is_empty(), "{what}");
    assert!(what.contains("the server has ended") || what.contains("cannot connect"), "{what}");
    drop(beside);
    assert_eq!(compare_with_image(dir, &volume, &extents), counted, "{stack}");

    // What is written inside, and killed, is what the image has.
    let server = Server::start(&volume, &[]);
    let inside = Writer::start(&uri, 1 << 20, 4 << 20);
    drop(server);
    drop(inside);
    compare_with_image(dir, &volume, &extents);
}

#[test]
fn queries_equal_grep_over_the_image_under_writes_and_after_a_kill() {
    let programs = [("qemu-io", &["--version"][..]), ("fio", &["--enghelp=nbd"]), ("grep", &["--version"])];
    if !programs.iter().all(|(program, args)| have(program, args)) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for stack in short_or_long(&["hfsl-small"][..], &["hfsl-small", "halo-small", "ftl-small"]) {
        queries_of(dir.path(), stack);
    }
}

#[test]
fn queries_name_their_mistakes_and_need_the_rights_of_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let volume = dir.path().join("vol").to_str().unwrap().to_owned();
    good(&frit(&["create", &volume, "--stack", "hfsl-paper", "--size", "16M"]));
    for served in [false, true] {
        let server = served.then(|| Server::start(&volume, &["--ctl-read-all"]));
        for (args, why) in [
            (&["query", "error", "--extent", "1G+1"][..], "ends behind the 16777216 bytes"),
            (&["query", "error", "--extent", "12"], "OFFSET+LENGTH"),
            (&["query", "error", "--namespace", "a"], "no name space \"a\""),
            (&["query"], "WORD"),
            (&["query", ""], "a word has 1 to 256"),
            (&["isp", "{\"word\": 1}"], "exactly one of the keys"),
            (&["isp", "words"], "not valid JSON"),
            (&["query", "error", "--filefrag", "/no/such"], "cannot read /no/such"),
        ] {
            let o = frit(&[&["ctl", &volume], args].concat());
            assert!(!o.status.success() && o.stdout.is_empty(), "{args:?}: {}", said(&o));
            let text = said(&o).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
            assert!(text.contains(why), "{args:?}: {text}");
        }
        let shown = good(&frit(&["ctl", &volume, "query", "error", "--extent", "0+1"]));
        assert!(shown.contains("1 bytes in"), "{shown}");
        if let Some(server) = server {
            std::fs::set_permissions(&volume, std::fs::Permissions::from_mode(0o711)).unwrap();
            let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", env!("CARGO_BIN_EXE_frit")];
            let other = |args: &[&str]| Command::new("setpriv").args(user).args(args).output();
            if other(&["ctl", &volume, "stat"]).is_ok_and(|o| o.status.success()) {
                let o = other(&["ctl", &volume, "query", "error"]).unwrap();
                assert!(!o.status.success() && said(&o).contains("user 65534 may not read its bytes"));
            } else {
                eprintln!("skipped: another user needs root, setpriv, and a program that everybody may run");
            }
            server.stop();
        }
    }
}
