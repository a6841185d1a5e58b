//! Tests with unmodified clients of other projects.
//!
//! Each test serves an HFSL volume with PCM and NAND. If a program is missing, its test prints so
//! and is skipped.

use crate::common::{self, Served};
use std::path::Path;
use std::process::{Command, Output};

/// Returns `true` if a program is available. Prints a message otherwise.
fn have(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("SKIPPED: no {program} on this machine");
    }
    found
}

/// Runs a program with a time limit, and expects success. Returns its output.
fn run(program: &str, args: &[&str]) -> String {
    let out = output(program, args);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        out.status.success(),
        "{program} {args:?}: {}\n{text}{}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    text
}

fn output(program: &str, args: &[&str]) -> Output {
    Command::new("timeout").args(["-k", "1", "50", program]).args(args).output().unwrap()
}

/// Writes a file of pseudorandom bytes with a hole in the middle.
fn image(path: &Path, bytes: usize) {
    let mut x = 1u64;
    let mut data: Vec<u8> = (0..bytes)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 56) as u8
        })
        .collect();
    data[bytes / 3..bytes / 2].fill(0);
    std::fs::write(path, data).unwrap();
}

#[test]
fn nbdinfo_sees_what_is_announced() {
    if !have("nbdinfo") {
        return;
    }
    let served = Served::new();
    let uri = served.uri();
    let list = run("nbdinfo", &["--list", &uri]);
    assert!(list.contains("export=\"scratch\""), "{list}");
    let about = run("nbdinfo", &["--no-content", &uri]);
    for line in [
        "base:allocation",
        "frit:medium",
        "is_read_only: false",
        "can_cache: true",
        "can_df: true",
        "can_fast_zero: true",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "block_size_minimum: 1",
        "block_size_preferred: 4096",
        "block_size_maximum: 33554432",
        "using structured packets",
    ] {
        assert!(about.contains(line), "{line} in\n{about}");
    }
    let bytes = served.device.bytes();
    assert_eq!(run("nbdinfo", &["--size", &uri]).trim(), bytes.to_string());
    // A small write goes to PCM, a large one to NAND (SSW is 2048 bytes).
    let mut client = common::Client::connect(&served.socket).unwrap();
    client.write(0, &[1; 2048], 0).unwrap();
    client.write(1 << 20, &[2; 1 << 20], 0).unwrap();
    client.bye();
    let map = |context: &str| {
        let text = run("nbdinfo", &[context, &uri]);
        let rows = text.lines().map(|l| {
            let row: Vec<u64> = l.split_whitespace().take(3).map(|w| w.parse().unwrap()).collect();
            (row[0], row[1], row[2])
        });
        rows.collect::<Vec<_>>()
    };
    let rest = (2 << 20, bytes - (2 << 20));
    let hole = (2048, (1 << 20) - 2048);
    let base = [(0, 2048, 0), (hole.0, hole.1, 3), (1 << 20, 1 << 20, 0), (rest.0, rest.1, 3)];
    assert_eq!(map("--map"), base);
    let medium = [(0, 2048, 2), (hole.0, hole.1, 0), (1 << 20, 1 << 20, 1), (rest.0, rest.1, 0)];
    assert_eq!(map("--map=frit:medium"), medium);
    served.end();
}

#[test]
fn nbdcopy_copies_both_ways() {
    if !have("nbdcopy") {
        return;
    }
    let served = Served::new();
    let (from, to) = (served.dir.path().join("from"), served.dir.path().join("to"));
    image(&from, 24 << 20);
    let uri = served.uri();
    run("nbdcopy", &["--flush", from.to_str().unwrap(), &uri]);
    run("nbdcopy", &["--connections=4", "--requests=16", &uri, to.to_str().unwrap()]);
    let (from, to) = (std::fs::read(from).unwrap(), std::fs::read(to).unwrap());
    assert!(from == to[..from.len()], "the copied data differs");
    assert!(to[from.len()..].iter().all(|&b| b == 0));
    served.end();
}

#[test]
fn qemu_img_converts_and_compares() {
    if !have("qemu-img") {
        return;
    }
    let served = Served::new();
    let file = served.dir.path().join("image");
    image(&file, 16 << 20);
    let bytes = served.device.bytes().to_string();
    let file = file.to_str().unwrap();
    run("qemu-img", &["resize", "-f", "raw", file, &bytes]);
    let uri = served.uri();
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", file, &uri]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", file, &uri]);
    let map = run("qemu-img", &["map", "-f", "raw", "--output=json", &uri]);
    assert!(map.contains("\"zero\": true"), "{map}");
    served.end();
}

#[test]
fn qemu_io_scripts_do_what_they_say() {
    if !have("qemu-io") {
        return;
    }
    let served = Served::new();
    let script = [
        "write -P 5 1M 256k",
        "read -P 5 1M 256k",
        "write -f -P 6 1100k 4k",
        "read -P 6 1100k 4k",
        "write -z 1M 64k",
        "read -P 0 1M 64k",
        "write -z -u 1088k 4k",
        "read -P 0 1088k 4k",
        "discard 1024k 128k",
        "read -P 0 1024k 128k",
        "write -P 9 12345 6789",
        "read -P 9 12345 6789",
        "read -P 0 12000 345",
        "aio_write -P 1 2M 1M",
        "aio_write -P 2 3M 1M",
        "aio_read -P 5 1216k 64k",
        "aio_flush",
        "read -P 1 2M 1M",
        "read -P 2 3M 1M",
        "flush",
    ];
    let args: Vec<&str> = script.iter().flat_map(|&s| ["-c", s]).collect();
    let uri = served.uri();
    let text = run("qemu-io", &[&["-f", "raw", "-t", "writeback"], &args[..], &[&uri]].concat());
    assert!(!text.to_lowercase().contains("error") && !text.contains("verification failed"), "{text}");
    served.end();
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !have("fio") {
        return;
    }
    let served = Served::new();
    let uri = format!("--uri={}", served.uri());
    let jobs: [&[&str]; 3] = [
        &[
            "--rw=randwrite",
            "--bsrange=512-64k",
            "--blockalign=512",
            "--fsync=64",
            "--iodepth=32",
            "--size=24M",
        ],
        &["--rw=randrw", "--bs=4k", "--iodepth=16", "--fsync=32", "--size=24M", "--offset=24M"],
        &[
            "--rw=randtrimwrite",
            "--bssplit=4k/60:16k/30:128k/10",
            "--iodepth=8",
            "--size=24M",
            "--offset=48M",
        ],
    ];
    for job in jobs {
        let common = [
            "--name=verify",
            "--ioengine=nbd",
            &uri,
            "--verify=crc32c",
            "--do_verify=1",
            "--verify_fatal=1",
            "--verify_state_save=0",
            "--output-format=terse",
        ];
        run("fio", &[&common[..], job].concat());
    }
    served.end();
}

#[test]
fn nbdsh_meets_every_command_and_error() {
    if !have("nbdsh") {
        return;
    }
    let served = Served::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands.py");
    let text = run("nbdsh", &["-u", &served.uri(), "-c", &format!("exec(open('{script}').read())")]);
    assert!(text.ends_with("all commands and errors as expected\n"), "{text}");
    served.end();
}
