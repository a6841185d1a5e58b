//! Output files of commands are complete, or unchanged: full disks, kills, links, devices.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const RUN: [&str; 3] = ["run", "hfsl-small", "gen:uniform,count=2000,size=4K,span=16M"];

fn frit(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).current_dir(dir).args(args).output().unwrap()
}

/// Returns the output, without the line breaks of a narrow terminal.
fn said(o: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    text.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn good(o: &Output) {
    assert!(o.status.success(), "{}", said(o));
}

#[track_caller]
fn fails(o: &Output, words: &str) {
    assert!(!o.status.success() && said(o).contains(words), "'{words}' in {}", said(o));
}

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn a_run_that_is_killed_leaves_the_report_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    fs::write(d.join("old.json"), "precious").unwrap();
    fs::write(d.join("old.html"), "precious").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_frit"))
        .current_dir(d)
        .args(["run", "hfsl-small", "gen:uniform,count=2000M,size=4K,span=16M", "--quiet"])
        .args(["--json", "old.json", "--html", "old.html"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The run takes much longer than this second; a report that is truncated at the start would be
    // empty by then.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(child.try_wait().unwrap(), None, "it runs still");
    child.kill().unwrap();
    child.wait().unwrap();
    for name in ["old.json", "old.html"] {
        assert_eq!(fs::read_to_string(d.join(name)).unwrap(), "precious", "{name}");
    }
    fails(
        &frit(d, &["run", "hfsl-small", "gen:uniform,count=9,size=4K,span=900G", "--json", "old.json"]),
        "",
    );
    assert_eq!(fs::read_to_string(d.join("old.json")).unwrap(), "precious");
    good(&frit(d, &[&RUN[..], &["--json", "old.json"]].concat()));
    assert!(fs::read_to_string(d.join("old.json")).unwrap().starts_with('['));
    assert_eq!(names(d), ["old.html", "old.json"]);
}

#[test]
fn paths_that_cannot_be_written_are_named_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    fs::create_dir(d.join("sub")).unwrap();
    fails(&frit(d, &[&RUN[..], &["--json", "/dev/full"]].concat()), "cannot write /dev/full: No space left");
    fails(
        &frit(d, &[&RUN[..], &["--html", "no/such.html"]].concat()),
        "cannot write no/such.html: No such file",
    );
    fails(&frit(d, &[&RUN[..], &["--json", "sub"]].concat()), "cannot write sub: ");
    fails(&frit(d, &["trace", "generate", "uniform,count=9,size=4K,span=1M", "no/t.csv"]), "no/t.csv");
    good(&frit(d, &[&RUN[..], &["--json", "/dev/null"]].concat()));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let out = frit(d, &[&RUN[..], &["--json", "/dev/stdout"]].concat());
    good(&out);
    assert!(out.stdout.starts_with(b"["), "{}", said(&out));
    assert_eq!(names(d), ["sub"]);
}

#[test]
fn links_are_replaced_and_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let victim = d.join("victim");
    fs::write(&victim, "precious").unwrap();
    let link = |name: &str| {
        let _ = fs::remove_file(d.join(name));
        symlink(&victim, d.join(name)).unwrap();
    };
    link("report");
    good(&frit(d, &[&RUN[..], &["--json", "report"]].concat()));
    good(&frit(d, &["create", "vol", "--stack", "hfsl-small", "--size", "8M"]));
    link("image");
    fails(&frit(d, &["export", "vol", "image"]), "image is there already");
    good(&frit(d, &["export", "vol", "image", "--force"]));
    assert_eq!(fs::metadata(d.join("image")).unwrap().len(), 8 << 20);
    // A dangling link must not create its target either.
    symlink(d.join("made"), d.join("dangling")).unwrap();
    fails(&frit(d, &["export", "vol", "dangling"]), "dangling is there already");
    link("pid");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_frit"))
        .current_dir(d)
        .args(["serve", "vol", "--nbd", "unix:s", "--pidfile", "pid"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(d.join("pid")).ok() != Some(format!("{}\n", serve.id())) {
        assert!(Instant::now() < until, "no pid file");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").arg(serve.id().to_string()).status().unwrap().success());
    assert!(serve.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!d.join("made").exists());
}

#[test]
fn full_disks_leave_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let small = d.join("small");
    fs::create_dir(&small).unwrap();
    let path = small.to_str().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "none", path]).output();
    if !mounted.is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: a small file system needs root");
        return;
    }
    let full = || {
        fs::write(small.join("old"), "precious").unwrap();
        let trace =
            frit(d, &["trace", "generate", "uniform,count=90000,size=4K,span=1M", "small/old", "--force"]);
        fails(&trace, "small/old");
        fails(
            &frit(d, &["trace", "generate", "uniform,count=90000,size=4K,span=1M", "small/new"]),
            "small/new",
        );
        good(&frit(d, &["create", "vol", "--stack", "hfsl-small", "--size", "8M"]));
        fs::write(d.join("data"), vec![7; 1 << 20]).unwrap();
        good(&frit(d, &["import", "vol", "data"]));
        fails(&frit(d, &["export", "vol", "small/old", "--force"]), "small/old");
        assert_eq!(fs::read_to_string(small.join("old")).unwrap(), "precious");
        assert_eq!(names(&small), ["old"]);
    };
    let result = std::panic::catch_unwind(full);
    let _ = Command::new("umount").arg(path).status();
    result.unwrap();
}
