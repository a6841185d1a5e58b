//! Refusals of commands: images that are not raw, data that would be overwritten, invalid sizes,
//! endless files, and control characters in output.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn frit(dir: &Path, args: &[&str]) -> Output {
    // The time limit is far above the need of any test: reading an endless file fails here, and
    // does not exhaust the machine.
    let mut limited = Command::new("timeout");
    limited.args(["-k", "1", "120", env!("CARGO_BIN_EXE_frit")]).args(args).current_dir(dir).output().unwrap()
}

fn said(o: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    text.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn ends(dir: &Path, args: &[&str], code: i32, words: &str) {
    let o = frit(dir, args);
    assert!(o.status.code() == Some(code) && said(&o).contains(words), "{args:?}: '{words}' in {}", said(&o));
}

fn create(d: &Path, name: &str, stack: &str) {
    ends(d, &["create", name, "--stack", stack, "--size", "8M"], 0, "a volume of 8 MiB");
}

fn exported(d: &Path, volume: &str) -> Vec<u8> {
    ends(d, &["export", volume, "out", "--force"], 0, "exported");
    fs::read(d.join("out")).unwrap()
}

#[test]
fn an_import_replaces_data_only_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    fs::write(d.join("first"), [1; 70_000]).unwrap();
    fs::write(d.join("second"), [2; 512]).unwrap();
    for stack in ["hfsl-small", "halo-small", "ntl-small"] {
        create(d, stack, stack);
        ends(d, &["import", stack, "first"], 0, "imported");
        let before = exported(d, stack);
        ends(d, &["import", stack, "second"], 1, "--force overwrites it");
        assert!(exported(d, stack) == before, "{stack} was changed");
        ends(d, &["import", stack, "second", "--force"], 0, "imported");
        let after = exported(d, stack);
        assert!(after[..512] == [2; 512] && after[512..].iter().all(|&b| b == 0), "{stack}");
    }
}

#[test]
fn an_import_takes_only_raw_images_unless_told() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    create(d, "vol", "hfsl-small");
    let image = |name: &str, magic: &[u8]| {
        let mut bytes = magic.to_vec();
        bytes.resize(4096, 0x5a);
        fs::write(d.join(name), bytes).unwrap();
    };
    image("disk.qcow2", b"QFI\xfb\0\0\0\x03");
    ends(d, &["import", "vol", "disk.qcow2"], 1, "qemu-img convert -f qcow2 -O raw disk.qcow2");
    image("disk.vmdk", b"KDMV\x01\0\0\0");
    ends(d, &["import", "vol", "disk.vmdk"], 1, "disk.vmdk is not a raw image, but vmdk");
    image("disk.gz", b"\x1f\x8b\x08\0");
    ends(d, &["import", "vol", "disk.gz"], 1, "gzip -dc disk.gz | frit import vol -");
    ends(d, &["import", "vol", "disk.gz", "--format", "qcow2"], 2, "raw");
    let piped = |args: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_frit"))
            .current_dir(d)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses the image does not read all of it.
        let _ = child.stdin.take().unwrap().write_all(&fs::read(d.join("disk.qcow2")).unwrap());
        child.wait_with_output().unwrap()
    };
    let o = piped(&["import", "vol", "-"]);
    assert!(o.status.code() == Some(1) && said(&o).contains("qcow2"), "{}", said(&o));
    assert!(exported(d, "vol").iter().all(|&b| b == 0), "nothing was written");
    let o = piped(&["import", "vol", "-", "--format", "raw"]);
    assert!(o.status.success(), "{}", said(&o));
    assert!(exported(d, "vol").starts_with(&fs::read(d.join("disk.qcow2")).unwrap()));
}

#[test]
fn growing_does_not_shrink_and_no_volume_has_size_zero() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    create(d, "vol", "hfsl-small");
    fs::write(d.join("image"), [3; 4096]).unwrap();
    ends(d, &["import", "vol", "image"], 0, "imported");
    ends(d, &["grow", "vol", "--size", "4M"], 1, "would have 4 MiB");
    ends(d, &["inspect", "vol"], 0, "8 MiB");
    ends(d, &["grow", "vol", "--size", "4M", "--shrink"], 0, "4 MiB (4194304 bytes) now");
    ends(d, &["grow", "vol", "--size", "4096", "--shrink"], 0, "now");
    assert!(exported(d, "vol") == [3; 4096]);
    for stack in ["hfsl-small", "halo-small", "ntl-small"] {
        ends(d, &["create", "none", "--stack", stack, "--size", "0"], 1, "a size above zero");
        ends(d, &["grow", "vol", "--size", "0"], 1, "a size above zero");
    }
    assert!(!d.join("none").exists());
}

#[test]
fn files_that_never_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    for command in [
        &["check", "/dev/zero"][..],
        &["run", "/dev/zero", "gen:uniform,count=9,size=4K,span=1M"],
        &["create", "vol", "--stack", "/dev/zero"],
        &["layers", "--stack", "/dev/zero"],
    ] {
        let o = frit(d, command);
        assert!(matches!(o.status.code(), Some(1 | 2)), "{command:?}: {:?} {}", o.status, said(&o));
    }
    ends(d, &["check", "/dev/zero"], 1, "it is longer than 1 MiB");
    fs::write(d.join("s.toml"), "[media.nand]\nprofile = \"/dev/zero\"\n[hfsl]\n").unwrap();
    ends(d, &["check", "s.toml"], 1, "");
    fs::File::create(d.join("large.toml")).unwrap().set_len(10 << 30).unwrap();
    ends(d, &["check", "large.toml"], 1, "it is longer than 1 MiB");
}

#[test]
fn of_very_many_mistakes_the_first_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let mut text = String::from("[hfsl]\n");
    (0..100_000).for_each(|i| writeln!(text, "k{i}=1").unwrap());
    fs::write(d.join("many.toml"), &text).unwrap();
    let o = frit(d, &["check", "many.toml"]);
    assert_eq!(o.status.code(), Some(1), "{:?}", o.status);
    assert!(o.stdout.len() + o.stderr.len() < 100_000, "{} bytes", o.stderr.len());
    assert!(said(&o).contains("the first 20 are shown"), "{}", &said(&o)[..500]);
    (0..300_000).for_each(|i| writeln!(text, "j{i}=1").unwrap());
    fs::write(d.join("many.toml"), &text).unwrap();
    ends(d, &["check", "many.toml"], 1, "it is longer than 1 MiB");
}

/// Returns the escape sequences that would reach a terminal.
fn control_characters(o: &Output) -> Vec<char> {
    let text = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    text.chars().filter(|c| c.is_control() && *c != '\n').collect()
}

#[test]
fn control_characters_are_shown_and_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let bad = "\x1b[2Jbad\x07\r";
    fs::write(d.join("key.toml"), "\"\\u001b[2Jx\" = 1\n[hfsl]\n").unwrap();
    fs::write(d.join("comment.toml"), "# \x1b[2J\n[hfsl]\n").unwrap();
    fs::write(d.join("name.toml"), "[\"a\\u001b[2J\"]\nkind = \"hfsl\"\n").unwrap();
    fs::write(d.join(bad), "[hfsl]\nnothing = 1\n").unwrap();
    create(d, "vol", "hfsl-small");
    fs::create_dir(d.join(format!("{bad}v"))).unwrap();
    for command in [
        &["check", "key.toml"][..],
        &["check", "comment.toml"],
        &["check", "name.toml"],
        &["check", bad],
        &["check", "hfsl-small", "--set", "SSW=\x1b[2J"],
        &["inspect", &format!("{bad}v")],
        &["run", "hfsl-small", &format!("gen:{bad}")],
        &["run", "hfsl-small", bad],
        &["run", "hfsl-small", "gen:uniform,count=9,size=4K,span=1M", "--json", &format!("{bad}/x")],
        &["export", "vol", bad],
        &["import", "vol", &format!("{bad}no")],
        &["ctl", "vol", "get", bad],
        &["ctl", "vol", "set", &format!("SSW={bad}")],
        &["trace", "stat", bad],
        &["mkfs", &format!("{bad}/no")],
        &["fsck", &format!("{bad}no")],
    ] {
        let o = frit(d, command);
        assert!(!o.status.success(), "{command:?}: {}", said(&o));
        let found = control_characters(&o);
        assert!(found.is_empty(), "{command:?}: {found:?}");
    }
    let o = frit(d, &["create", &format!("{bad}new"), "--stack", "hfsl-small"]);
    assert!(o.status.success() && control_characters(&o).is_empty(), "{}", said(&o));
}
