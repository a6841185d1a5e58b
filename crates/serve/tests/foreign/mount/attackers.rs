//! Attacks on command files, by a second user, through programs with more rights, and by copies of trees.
//!
//! `../programs/channel.c` opens a channel as one user and writes to it as another one. Each attack has a
//! twin that is allowed and succeeds, so a refusal is not one of something else.

use super::{Mounted, sh_as};
use frit_serve::fuse::file_system::IspAccess;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

const USER: u32 = 1000;
const SECRET: &str = r#"{"words": ["secret"], "file": "secret"}"#;
const PUBLIC: &str = r#"{"words": ["secret"], "file": "public"}"#;
const OVERWRITE: &str = r#"{"copy": {"regex": "."}, "file": "public", "to": "secret"}"#;
const FOUND: &str = r#""count":1"#;
const DENIED: &str = r#""status":"denied""#;
const EPERM: &str = "Operation not permitted";

/// A mount with a file of root, one of all, and the program of the attacks.
struct Attacked {
    m: Mounted,
    program: PathBuf,
}

impl Attacked {
    fn new() -> Option<Attacked> {
        let m = Mounted::new("suid")?;
        fs::set_permissions(&m.at, fs::Permissions::from_mode(0o777)).unwrap();
        for (name, mode) in [("secret", 0o600), ("public", 0o644)] {
            fs::write(m.path(name), "a secret word\n").unwrap();
            fs::set_permissions(m.path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let program = m._dir.path().join("channel");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/programs/channel.c");
        let mut cc = Command::new("cc");
        let compiled = cc.args(["-O1", "-o"]).arg(&program).arg(source).arg("-lpthread").output();
        let Ok(said) = compiled else {
            eprintln!("skipped: no C compiler");
            return None;
        };
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        Some(Attacked { m, program })
    }

    /// Runs a case of the program, and returns what it prints.
    fn run(&self, case: &str, way: &str, share: bool, instruction: &str) -> String {
        let mut timeout = Command::new("timeout");
        timeout.args(["-k", "5", "60"]).arg(&self.program).arg(&self.m.at).current_dir(&self.m.at);
        let said = timeout.args([case, way, if share { "1" } else { "0" }, instruction]).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
    }

    #[track_caller]
    fn expect(&self, (case, way, share): (&str, &str, bool), instruction: &str, expected: &str) {
        let said = self.run(case, way, share, instruction);
        assert!(said.contains(expected), "{case} {way} {share} {instruction}: {said}, not {expected}");
        assert_eq!(fs::read_to_string(self.m.path("secret")).unwrap(), "a secret word\n", "{case} {way}");
    }
}

#[test]
fn an_instruction_has_the_rights_that_opener_and_writer_have_in_common() {
    let Some(a) = Attacked::new() else { return };
    let ways = ["write", "writev", "pwritev2", "splice", "sendfile", "ring"];
    for way in ways {
        if way == "ring" && a.run("own", way, false, PUBLIC).contains("write: ") {
            eprintln!("skipped: no io_uring");
            continue;
        }
        if way == "ring" {
            a.expect(("personality", way, true), PUBLIC, EPERM);
        }
        // What is allowed.
        a.expect(("own", way, false), SECRET, FOUND);
        a.expect(("user", way, false), PUBLIC, FOUND);
        a.expect(("user", way, false), SECRET, DENIED);
        for (case, other) in [("deputy", PUBLIC), ("heir", PUBLIC)] {
            // Another process: refused at once, or with the rights of both.
            a.expect((case, way, false), other, EPERM);
            a.expect((case, way, true), other, FOUND);
            for instruction in [SECRET, OVERWRITE] {
                a.expect((case, way, false), instruction, EPERM);
                a.expect((case, way, true), instruction, DENIED);
            }
        }
        a.expect(("unbegun", way, true), PUBLIC, EPERM);
        a.expect(("dropped", way, false), PUBLIC, FOUND);
        a.expect(("dropped", way, false), SECRET, DENIED);
        a.expect(("thread", way, false), SECRET, DENIED);
        for case in ["first", "second"] {
            a.expect((case, way, true), SECRET, DENIED);
            a.expect((case, way, true), PUBLIC, FOUND);
        }
    }
    a.m.stop();
}

#[test]
fn a_write_of_one_user_does_not_hold_up_another() {
    let Some(a) = Attacked::new() else { return };
    let said = a.run("stalled", "write", false, PUBLIC);
    if said.contains("userfaultfd: ") {
        eprintln!("skipped: no userfaultfd");
    } else {
        assert!(said.contains(FOUND), "{said}");
    }
    // The kernel knows the command file anew when users alternate, and it stays the same file for them.
    let number = || sh_as(USER, &a.m.at, "stat -c %i .isp; : 3<>.isp");
    let before = number();
    fs::OpenOptions::new().read(true).write(true).open(a.m.path(".isp")).unwrap();
    assert_eq!(number(), before);
    a.m.stop();
}

#[test]
fn a_descriptor_gives_no_rights_to_those_that_only_have_it() {
    let Some(a) = Attacked::new() else { return };
    a.expect(("begins", "write", false), PUBLIC, "begin: Operation not permitted");
    if Path::new("/proc/sys/kernel/ns_last_pid").exists() {
        a.expect(("reused", "write", false), PUBLIC, EPERM);
        a.expect(("reused", "write", true), PUBLIC, FOUND);
    }
    // Pages of a map are written back by the kernel, with rights of its own. A command file has none: its size
    // stays 0, so that an access through a map is SIGBUS.
    for instruction in [SECRET, PUBLIC] {
        let said = a.run("user", "map", true, instruction);
        assert!(!said.contains(r#""status":"ok","words":[{"word":"secret""#), "{said}");
    }
    a.m.stop();
}

#[test]
fn programs_with_more_rights_are_no_deputies() {
    let Some(a) = Attacked::new() else { return };
    // A set-user-ID program that prints its argument, as passwd, chsh, su, mount and others do in messages.
    let printf = a.m._dir.path().join("printf");
    let found = sh_as(0, &a.m.at, "command -v env");
    fs::copy(Path::new(&found).with_file_name("printf"), &printf).unwrap();
    fs::set_permissions(&printf, fs::Permissions::from_mode(0o4755)).unwrap();
    let script = |program: &str, instruction: &str| {
        format!("{program} '{instruction}' ; exec 2>/dev/null; IFS= read -r line <&1; echo \"$line\" >got")
    };
    let took = |share: bool, script: &str| {
        let _ = fs::remove_file(a.m.path("got"));
        let said = a.run("exec", "write", share, script);
        format!("{said}{}", fs::read_to_string(a.m.path("got")).unwrap_or_default())
    };
    let deputy = printf.to_str().unwrap().to_owned();
    for (share, instruction) in [(false, SECRET), (true, SECRET), (false, OVERWRITE), (true, OVERWRITE)] {
        let said = took(share, &script(&deputy, instruction));
        assert!(!said.contains(r#""status":"ok""#), "{share} {instruction}: {said}");
        assert_eq!(fs::read_to_string(a.m.path("secret")).unwrap(), "a secret word\n");
    }
    // The shell itself may, with the rights of the user, and so may the program if the shell shares the file.
    assert!(took(false, &script("printf", PUBLIC)).contains(FOUND));
    assert!(took(true, &script(&deputy, PUBLIC)).contains(FOUND));
    // In place of the opener, with its process.
    let said = took(false, &format!("exec {deputy} '{SECRET}'"));
    assert!(!said.contains(FOUND), "{said}");
    // Capabilities of a file instead of the bit.
    let capable = a.m._dir.path().join("capable");
    fs::copy(&printf, &capable).unwrap();
    fs::set_permissions(&capable, fs::Permissions::from_mode(0o755)).unwrap();
    // CAP_DAC_OVERRIDE, permitted and effective: vfs_cap_data of linux/capability.h, revision 2.
    let overrides: Vec<u8> = [0x0200_0001_u32, 2, 0, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let none = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&capable, "security.capability", &overrides, none).is_ok() {
        for share in [false, true] {
            let said = took(share, &script(capable.to_str().unwrap(), SECRET));
            assert!(!said.contains(r#""status":"ok""#), "{share}: {said}");
        }
    }
    a.m.stop();
}

/// Programs that copy, move, link or unpack a file over a command file. `tree` has a file of its name.
const COPIES: &[&str] = &[
    "cp -a ../tree/. dir/",
    "cp -r ../tree/. dir/",
    "cp ../tree/.isp dir/",
    "cp -r ../tree/.isp dir/",
    "cp -f ../tree/.isp dir/",
    "cp --remove-destination ../tree/.isp dir/",
    "cp -l dir/evil dir/.isp",
    "cp --reflink=auto ../tree/.isp dir/.isp",
    "install ../tree/.isp dir/.isp",
    "mv ../tree/copy dir/.isp",
    "mv dir/evil dir/.isp",
    "mv dir/.isp dir/other",
    "ln -f dir/evil dir/.isp",
    "ln -sf evil dir/.isp",
    "ln dir/.isp dir/other",
    "tar -C ../tree -cf - . | tar -C dir -xf -",
    "tar -C ../tree -cf - . | tar -C dir --overwrite -xf -",
    "tar -C ../tree -cf - . | tar -C dir --unlink-first -xf -",
    "dd if=../tree/.isp of=dir/.isp status=none",
    "dd if=../tree/.isp of=dir/.isp conv=notrunc status=none",
    "cat ../tree/.isp > dir/.isp",
    "cat ../tree/.isp >> dir/.isp",
    "cat ../tree/.isp 1<> dir/.isp",
    "tee dir/.isp < ../tree/.isp > /dev/null",
    "tee -a dir/.isp < ../tree/.isp > /dev/null",
    "find ../tree -name .isp -exec cp {} dir/ \\; -exec false {} +",
    "python3 -c 'import shutil; shutil.copytree(\"../tree\", \"dir\", dirs_exist_ok=True)'",
    "python3 -c 'open(\"dir/.isp\", \"r+b\", buffering=0).write(open(\"../tree/.isp\", \"rb\").read())'",
    "truncate -s 10 dir/.isp",
    "fallocate -l 10 dir/.isp",
    "rm -f dir/.isp",
    "cat dir/.isp",
];

#[test]
fn copies_of_a_tree_are_no_instructions_and_report_what_they_could_not_copy() {
    let Some(a) = Attacked::new() else { return };
    let (tree, dir) = (a.m._dir.path().join("tree"), a.m.path("dir"));
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(USER), Some(USER)).unwrap();
    for script in COPIES {
        let _ = fs::remove_dir_all(&tree);
        fs::create_dir(&tree).unwrap();
        let evil = r#"{"copy": {"regex": "."}, "file": "evil", "to": "victim"}"#;
        for (at, text) in [(".isp", evil), ("copy", evil), ("evil", "overwritten\n")] {
            fs::write(tree.join(at), text).unwrap();
        }
        for (at, text) in [("victim", "of root\n"), ("evil", "overwritten\n")] {
            fs::write(dir.join(at), text).unwrap();
        }
        // Twice: what the first run has copied is there for the second one.
        for _ in 0..2 {
            let said = sh_as(0, &a.m.at, &format!("set -o pipefail 2>/dev/null; {script}; echo \"exit $?\""));
            assert!(!said.ends_with("exit 0"), "{script} reports success: {said}");
            assert_eq!(fs::read_to_string(dir.join("victim")).unwrap(), "of root\n", "{script}: {said}");
        }
    }
    a.m.stop();
}

#[test]
fn a_command_file_has_no_permission_that_its_directory_does_not_have() {
    let Some(m) = Mounted::new("") else { return };
    let shown = |m: &Mounted| {
        [0o700, 0o750, 0o755, 0o777, 0o711, 0o1777, 0o070, 0o000].map(|mode| {
            let dir = m.path(&format!("{mode:o}"));
            if !dir.exists() {
                fs::create_dir(&dir).unwrap();
            }
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            fs::metadata(dir.join(".isp")).unwrap().mode() & 0o7777
        })
    };
    assert_eq!(shown(&m), [0o600, 0o660, 0o666, 0o666, 0o600, 0o666, 0o060, 0]);
    // It follows its directory, and can be narrowed.
    fs::set_permissions(m.path("777"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(fs::metadata(m.path("777/.isp")).unwrap().mode() & 0o7777, 0o600);
    fs::set_permissions(m.path("755/.isp"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(sh_as(USER, &m.at, "exec 3<>755/.isp").matches("ermission denied").count(), 1);
    m.stop();
    let Some(m) = Mounted::new("isp-owner") else { return };
    assert_eq!(shown(&m), [0o600, 0o600, 0o600, 0o600, 0o600, 0o600, 0, 0]);
    m.stop();
}

#[test]
fn the_owner_of_a_mount_chooses_who_gives_instructions() {
    for (words, user, root) in [
        ("isp-off", "ermission denied", "not supported"),
        ("isp-owner", "ermission denied", ""),
        ("", "", ""),
    ] {
        let Some(m) = Mounted::new(words) else { return };
        fs::set_permissions(&m.at, fs::Permissions::from_mode(0o777)).unwrap();
        for (uid, expected) in [(USER, user), (0, root)] {
            let said = sh_as(uid, &m.at, "exec 3<>.isp");
            assert!(
                said.contains(expected) && said.is_empty() == expected.is_empty(),
                "{words} {uid}: {said}"
            );
        }
        // The owner of a directory is not the owner of the mount.
        fs::create_dir(m.path("own")).unwrap();
        chown(m.path("own"), Some(USER), Some(USER)).unwrap();
        fs::set_permissions(m.path("own"), fs::Permissions::from_mode(0o700)).unwrap();
        let said = sh_as(USER, &m.path("own"), "exec 3<>.isp");
        assert!(said.is_empty() == words.is_empty(), "{words}: {said}");
        assert_eq!(fs::metadata(m.path("own/.isp")).unwrap().uid(), USER, "the owner of the directory");
        m.stop();
    }
    assert_eq!(IspAccess::default(), IspAccess::Owner);
}

#[test]
fn a_command_file_opens_for_reading_and_writing_only() {
    let Some(m) = Mounted::new("") else { return };
    let script = r#"import os
for name in ["O_RDONLY", "O_WRONLY", "O_RDWR|O_TRUNC", "O_RDWR|O_APPEND", "O_WRONLY|O_CREAT|O_TRUNC", "O_RDWR|O_CREAT|O_EXCL"]:
    flags = 0
    for word in name.split("|"): flags |= getattr(os, word)
    try: os.open(".isp", flags); print(name, "opened")
    except OSError as e: print(name, e.errno, end="; ")
fd = os.open(".isp", os.O_RDWR)
other = os.open("f", os.O_RDWR | os.O_CREAT)
os.write(other, b"text")
for name, call in [("ftruncate", lambda: os.ftruncate(fd, 5)), ("copy", lambda: os.copy_file_range(other, fd, 4, 0, 0))]:
    try: print(name, call())
    except OSError as e: print(name, "refused", end="; ")"#;
    let said = Command::new("python3").args(["-c", script]).current_dir(&m.at).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let expected = "O_RDONLY 1; O_WRONLY 1; O_RDWR|O_TRUNC 1; O_RDWR|O_APPEND 1; O_WRONLY|O_CREAT|O_TRUNC 1; \
                    O_RDWR|O_CREAT|O_EXCL 17; ftruncate refused; copy refused; ";
    assert_eq!(said, expected);
    m.stop();
}

#[test]
fn a_copy_writes_nothing_that_others_have_placed_at_its_name() {
    let Some(a) = Attacked::new() else { return };
    let dir = a.m.path("dir");
    for (owner, mode) in [(USER, 0o755), (0, 0o777), (0, 0o1777)] {
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        chown(&dir, Some(owner), Some(owner)).unwrap();
        let placed = "ln -s ../secret symbolic; ln -s .. up; : > own; mkdir below; : > below/own";
        assert_eq!(sh_as(USER, &dir, placed), "");
        fs::hard_link(a.m.path("secret"), dir.join("hard")).unwrap();
        fs::write(dir.join("of-root"), "").unwrap();
        let copy = |to: &str| {
            let text = format!(r#"{{"copy": {{"regex": "."}}, "file": "public", "to": "dir/{to}"}}"#);
            let said = a.run("own", "write", false, &text);
            assert_eq!(fs::read_to_string(a.m.path("secret")).unwrap(), "a secret word\n", "{to}: {said}");
            said
        };
        let whose = if owner == USER { "another user owns" } else { "every user may write to" };
        for (to, what) in [
            ("symbolic", "a symbolic link"),
            ("up/secret", "a symbolic link"),
            ("hard", "a file with several names"),
        ] {
            let said = copy(to);
            let expected = format!(
                "{what}{} is in a directory that {whose}",
                if to == "hard" { " (hard links)" } else { "" }
            );
            assert!(said.contains(DENIED) && said.contains(&expected), "{owner} {mode:o} {to}: {said}");
        }
        // What belongs to the owner of the directory harms nobody else.
        let is_harmless = owner == USER;
        for to in ["own", "below/own"] {
            let said = copy(to);
            let expected = if is_harmless || to == "below/own" { r#""status":"ok""# } else { DENIED };
            assert!(said.contains(expected), "{owner} {mode:o} {to}: {said}");
        }
        assert!(copy("of-root").contains(r#""status":"ok""#), "{owner} {mode:o}");
    }
    // Where only root places names, links are followed as ever.
    let kept = a.m.path("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "").unwrap();
    std::os::unix::fs::symlink("file", kept.join("link")).unwrap();
    fs::hard_link(kept.join("file"), kept.join("other")).unwrap();
    for to in ["link", "other"] {
        let text = format!(r#"{{"copy": {{"regex": "."}}, "file": "public", "to": "kept/{to}"}}"#);
        assert!(a.run("own", "write", false, &text).contains(r#""status":"ok""#), "{to}");
    }
    a.m.stop();
}

/// What is above the directory may be hidden from the author: by a changed root, a bind mount, or Landlock.
#[test]
fn nothing_leads_out_of_the_directory_of_a_command_file() {
    let Some(a) = Attacked::new() else { return };
    fs::create_dir_all(a.m.path("jail/deep")).unwrap();
    fs::write(a.m.path("jail/own"), "a secret word\n").unwrap();
    for (target, name) in [("..", "up"), ("deep/../..", "around"), ("up/jail", "again"), (".", "here")] {
        std::os::unix::fs::symlink(target, a.m.path("jail").join(name)).unwrap();
    }
    std::os::unix::fs::symlink("../own", a.m.path("jail/deep/inside")).unwrap();
    let ask = |directory: &str, file: &str| {
        let mut channel = Command::new(&a.program);
        channel.arg(a.m.path(directory)).args(["own", "write", "0"]);
        channel.arg(format!(r#"{{"words": ["secret"], "file": "{file}"}}"#));
        String::from_utf8(channel.output().unwrap().stdout).unwrap()
    };
    for file in ["up/secret", "around/secret", "again/own", "here/up/public", "up/up/public"] {
        let said = ask("jail", file);
        assert!(said.contains(r#""status":"invalid""#) && said.contains("leads out of"), "{file}: {said}");
    }
    for (directory, file) in [
        ("jail", "deep/inside"),
        ("jail", "here/own"),
        ("", "jail/up/secret"),
        ("", "jail/around/public"),
        ("", "jail/again/deep/inside"),
    ] {
        assert!(ask(directory, file).contains(FOUND), "{directory} {file}");
    }
    for to in ["up/public", "around/public"] {
        let mut channel = Command::new(&a.program);
        channel.arg(a.m.path("jail")).args(["own", "write", "0"]);
        channel.arg(format!(r#"{{"copy": {{"regex": "."}}, "file": "own", "to": "{to}"}}"#));
        let said = String::from_utf8(channel.output().unwrap().stdout).unwrap();
        assert!(!said.contains(r#""status":"ok""#), "{to}: {said}");
    }
    a.m.stop();
}

/// Runs a script as root in a mount namespace of its own, in the root directory of the mount.
fn in_own_namespace(a: &Attacked, script: &str) -> String {
    let mut shell = Command::new("timeout");
    shell.args(["-k", "5", "60", "unshare", "-m", "sh", "-c", script]).current_dir(&a.m.at);
    let said = shell.env("PROGRAM", &a.program).env("M", &a.m.at).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
}

/// Returns a command that gives an instruction in a directory.
fn given(directory: &str, instruction: &str) -> String {
    format!("\"$PROGRAM\" {directory} own write 0 '{instruction}'")
}

fn words_of(file: &str) -> String {
    format!(r#"{{"words": ["secret"], "file": "{file}"}}"#)
}

#[test]
fn nothing_leads_below_what_another_mount_covers() {
    let Some(a) = Attacked::new() else { return };
    fs::create_dir_all(a.m.path("jail/hidden/deep")).unwrap();
    fs::create_dir_all(a.m.path("jail/fixed")).unwrap();
    for name in
        ["jail/hidden/file", "jail/hidden/deep/file", "jail/file", "jail/fixed/file", "jail/fixed/empty"]
    {
        fs::write(a.m.path(name), "a secret word\n").unwrap();
    }
    std::os::unix::fs::symlink("hidden/file", a.m.path("jail/link")).unwrap();
    std::os::unix::fs::symlink("hidden/../file", a.m.path("jail/around")).unwrap();
    fs::hard_link(a.m.path("jail/file"), a.m.path("jail/second")).unwrap();
    let inode = fs::metadata(a.m.path("jail/file")).unwrap().ino();
    let by_number = format!(r#"{{"words": ["secret"], "inode": {inode}}}"#);
    let covers = "mount -t tmpfs none jail/hidden && mount --bind public jail/file && \
                  mount --bind jail/fixed jail/fixed && mount -o remount,ro,bind jail/fixed || exit 9; ";
    let copy = |to: &str| format!(r#"{{"copy": {{"regex": "."}}, "file": "public", "to": "{to}"}}"#);
    let reads = ["jail/hidden/file", "jail/hidden/deep/file", "jail/link", "jail/file", "jail/second"];
    let mut tries: Vec<(&str, String)> = reads.iter().map(|file| ("$M", words_of(file))).collect();
    tries.extend([("jail", words_of("hidden/file")), ("$M", words_of("jail/around"))]);
    tries.extend([("$M", words_of("jail/fixed/file")), ("jail", by_number)]);
    tries.extend(["jail/fixed/empty", "jail/hidden/file", "jail/file"].map(|to| ("$M", copy(to))));
    for (directory, instruction) in tries {
        let command = given(directory, &instruction);
        let said = in_own_namespace(&a, &format!("{covers}{command}"));
        assert!(said.contains("something else is mounted"), "{command}: {said}");
        let said = in_own_namespace(&a, &command);
        assert!(said.contains(r#""status":"ok""#), "without the mounts, {command}: {said}");
        for name in ["jail/fixed/empty", "jail/hidden/file", "jail/file"] {
            fs::write(a.m.path(name), "a secret word\n").unwrap();
        }
    }
    // What is not covered can be used beside it, and so can a bind mount itself unless it is read-only.
    let said = in_own_namespace(&a, &format!("{covers}{}", given("$M", &words_of("public"))));
    assert!(said.contains(FOUND), "{said}");
    let said = in_own_namespace(&a, &format!("{covers}{}", given("jail/fixed", &words_of("file"))));
    assert!(said.contains("open: Read-only file system"), "{said}");
    let bound = format!("mount --bind jail/fixed jail/hidden; {}", given("jail/hidden", &words_of("file")));
    assert!(in_own_namespace(&a, &bound).contains(FOUND));
    // Also in the namespace of the server, where mounts come and go while it serves.
    for _ in 0..2 {
        assert_eq!(sh_as(0, &a.m.at, "mount -t tmpfs none jail/hidden"), "");
        let said = a.run("own", "write", false, &words_of("jail/hidden/file"));
        assert!(said.contains("something else is mounted"), "{said}");
        assert_eq!(sh_as(0, &a.m.at, "umount jail/hidden"), "");
        a.expect(("own", "write", false), &words_of("jail/hidden/file"), FOUND);
    }
    a.m.stop();
}

#[test]
fn only_what_is_mounted_in_the_namespace_of_the_sender_takes_instructions() {
    let Some(a) = Attacked::new() else { return };
    fs::create_dir_all(a.m.path("jail/deep")).unwrap();
    fs::write(a.m.path("jail/deep/file"), "a secret word\n").unwrap();
    let part = a.m._dir.path().join("part");
    fs::create_dir(&part).unwrap();
    // The mount is gone from the namespace, but the shell still is in its root directory.
    let jailed = format!("P='{}'; mount --bind jail \"$P\" && umount -l \"$M\" || exit 9; ", part.display());
    let public = words_of("public");
    let deep = words_of("deep/file");
    let said = in_own_namespace(&a, &format!("{jailed}{}", given(".", &public)));
    assert!(said.contains("begin: Operation not permitted"), "{said}");
    for (directory, expected) in [("\"$P\"", FOUND), ("jail", EPERM)] {
        let said = in_own_namespace(&a, &format!("{jailed}{}", given(directory, &deep)));
        assert!(said.contains(expected), "{directory}: {said}");
    }
    // A command file that is bound shows its directory to nobody.
    let file = a.m._dir.path().join("bound");
    fs::write(&file, "").unwrap();
    let bound = format!("mount --bind .isp '{}'", file.display());
    let begin = r#"import fcntl, os, struct, sys; print(fcntl.ioctl(os.open(sys.argv[1], os.O_RDWR), 0x40044675, bytes(4)))"#;
    let begun = format!("python3 -c '{begin}' '{}'", file.display());
    let said = in_own_namespace(&a, &format!("{bound}; umount -l \"$M\"; {begun}"));
    assert!(said.contains(EPERM), "{said}");
    assert!(in_own_namespace(&a, &format!("{bound}; {begun}")).starts_with("b'"));
    let said = in_own_namespace(&a, &format!("umount -l \"$M\"; {}", given("jail", &deep)));
    assert!(said.contains("begin: Operation not permitted"), "{said}");
    // What is covered for the opener stays so for another writer.
    let script = r#"
import fcntl, os, struct, subprocess, sys
fd = os.open(".isp", os.O_RDWR)
fcntl.ioctl(fd, 0x40044675, struct.pack("I", 1))
put = 'import os; os.write(%d, b\'{"words": ["secret"], "file": "jail/deep/file"}\')' % fd
subprocess.run(["nsenter", "-t", sys.argv[1], "-m", "python3", "-c", put], pass_fds=[fd], check=True)
print(os.read(fd, 1 << 16).decode())
"#;
    let outside = std::process::id();
    for (cover, expected) in [("mount -t tmpfs none jail/deep;", "something else is mounted"), ("", FOUND)] {
        let said = in_own_namespace(
            &a,
            &format!("{cover} python3 -c '{}' {outside}", script.replace('\'', "'\\''")),
        );
        assert!(said.contains(expected), "{cover}: {said}");
    }
    // A list of mounts that is too long to be read for each instruction.
    let many = r#"
import ctypes, os
libc, name = ctypes.CDLL(None), "/long/" + "n" * 240
os.makedirs(name + "%4d" % 0)
for i in range(3000):
    at = name + "%4d" % i
    os.makedirs(at, exist_ok=True)
    assert not libc.mount((name + "%4d" % 0).encode(), at.encode(), None, 0x1000, None)
"#;
    let many = many.replace("/long", "/proc/self/cwd/jail");
    let said = in_own_namespace(
        &a,
        &format!("mount -t tmpfs none jail; python3 -c '{many}'; {}", given("$M", &public)),
    );
    assert!(said.contains("begin: Operation not permitted"), "{said}");
    a.m.stop();
}

/// Gives a text by two processes, of which only the first one is in a namespace with a mount on `jail/deep`.
const HALVES: &str = r#"
import ctypes, fcntl, os, subprocess, sys
fd, text = os.open(".isp", os.O_RDWR), b'{"words": ["secret"], "file": "jail/deep/file"}'
fcntl.ioctl(fd, 0x40044675, (1).to_bytes(4, sys.byteorder))
if not os.fork():
    libc = ctypes.CDLL(None)
    assert not libc.unshare(0x20000) and not libc.mount(None, b"/", None, 0x44000, None)
    assert sys.argv[1] == "bare" or not subprocess.call(["mount", "-t", "tmpfs", "none", "jail/deep"])
    os.write(fd, text[:9])
    os._exit(0)
os.wait()
os.write(fd, text[9:])
print(os.read(fd, 1 << 16).decode())
"#;

#[test]
fn a_mount_counts_for_each_author_and_also_if_it_is_hidden() {
    let Some(a) = Attacked::new() else { return };
    fs::create_dir_all(a.m.path("jail/deep")).unwrap();
    fs::write(a.m.path("jail/deep/file"), "a secret word\n").unwrap();
    let quoted = |script: &str| script.replace('\'', "'\\''");
    for (how, expected) in [("covered", "something else is mounted"), ("bare", FOUND)] {
        let said = in_own_namespace(&a, &format!("python3 -c '{}' {how}", quoted(HALVES)));
        assert!(said.contains(expected), "{how}: {said}");
    }
    // Of two mounts one covers something. It counts for a descriptor of it when it is hidden itself, and when it is
    // outside of the root directory of the process or gone, and the other one shows all.
    let place = a.m._dir.path();
    for name in ["first", "second", "elsewhere"] {
        fs::create_dir(place.join(name)).unwrap();
    }
    let script = r#"
import fcntl, os, subprocess, sys
at, how = sys.argv[1:]
first = os.open(at + "/first", os.O_RDONLY)
if how == "hidden": subprocess.check_call(["mount", "-t", "tmpfs", "none", at + "/first"])
if how == "gone": subprocess.check_call(["umount", "-l", at + "/first"])
if how == "root": os.chroot(at + "/second")
fd = os.open(".isp", os.O_RDWR, dir_fd=first)
if how == "gone": other = os.open(at + "/second/.isp", os.O_RDWR)
try:
    fcntl.ioctl(fd, 0x40044675, bytes(4))
    os.write(fd, b'{"words": ["secret"], "file": "deep/file"}')
    print(os.read(fd, 1 << 16).decode())
except OSError as e: print(e)
"#;
    let mounts = "mount --bind jail \"$P/first\" && mount --bind jail \"$P/second\" || exit 9; ";
    for (cover, how, expected) in [
        ("", "as it is", FOUND),
        ("mount -t tmpfs none \"$P/first/deep\"; ", "as it is", "something else is mounted"),
        ("mount -t tmpfs none \"$P/first/deep\"; ", "hidden", "something else is mounted"),
        ("mount -t tmpfs none \"$P/first/deep\"; ", "gone", EPERM),
        ("mount -t tmpfs none \"$P/first/deep\"; ", "root", EPERM),
        // The other one counts for nothing but what is written: the thread sees the directory in both.
        ("mount -t tmpfs none \"$P/second/deep\"; ", "as it is", "something else is mounted"),
    ] {
        let python = format!("python3 -c '{}' \"$P\" '{how}'", quoted(script));
        let said = in_own_namespace(&a, &format!("P='{}'; {mounts}{cover}{python}", place.display()));
        assert!(said.contains(expected), "{cover}{how}: {said}");
    }
    // Paths that are not ASCII, or no text at all, in the list of mounts of the sender and in that of the server.
    for name in [&b"\xff"[..], "ä".as_bytes()] {
        let at = a.m.path("").join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&at).unwrap();
        fs::write(at.join("file"), "a secret word\n").unwrap();
    }
    let odd = "for name in $(printf '\\377') ä; do mount -t tmpfs none $name || exit 9; done; ";
    let (covered, public) = (words_of("ä/file"), words_of("public"));
    for (instruction, expected) in [(&covered, "something else is mounted"), (&public, FOUND)] {
        let said = in_own_namespace(&a, &format!("{odd}{}", given("$M", instruction)));
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(sh_as(0, &a.m.at, odd), "");
    a.expect(("own", "write", false), &covered, "something else is mounted");
    a.expect(("own", "write", false), &public, FOUND);
    assert_eq!(sh_as(0, &a.m.at, "umount $(printf '\\377') ä"), "");
    a.expect(("own", "write", false), &covered, FOUND);
    a.m.stop();
}

/// The path of what is covered is resolved while others exchange a name in it.
#[test]
fn an_exchange_of_names_shows_nothing_that_is_covered() {
    let Some(a) = Attacked::new() else { return };
    for (directory, text) in [("a/x", "a secret word\n"), ("b/x", "nothing\n")] {
        fs::create_dir_all(a.m.path(directory)).unwrap();
        fs::write(a.m.path(&format!("{directory}/file")), text).unwrap();
    }
    fs::hard_link(a.m.path("a/x/file"), a.m.path("link")).unwrap();
    // The kernel renames nothing on which something is mounted in the namespace of the one who renames it. In the end,
    // all names are as before.
    let script = r#"
import fcntl, os, subprocess, sys, time
outside, seconds, one, other, *asked = sys.argv[1:]
exchange = "import ctypes, time\nlibc, end = ctypes.CDLL(None), time.time() + " + seconds + "\n" \
    "while time.time() < end:\n for i in 0, 1: assert not libc.renameat2(-100, b'%s', -100, b'%s', 2); time.sleep(0.00002)"
enter = ["nsenter", "-t", outside, "-m", "--wd=" + os.environ["M"]]
exchanging = subprocess.Popen([*enter, "python3", "-c", exchange % (one, other)])
end, found, refused = time.time() + float(seconds), 0, 0
while time.time() < end:
    for name in asked:
        # What is covered when it is opened stays so.
        fd = os.open(".isp", os.O_RDWR)
        try:
            fcntl.ioctl(fd, 0x40044675, bytes(4))
            os.write(fd, b'{"words": ["secret"], "file": "%s"}' % name.encode())
            if b'"count":1' in os.read(fd, 1 << 16): found += 1
            else: refused += 1
        except BlockingIOError: refused += 1
        finally: os.close(fd)
assert not exchanging.wait()
print("found", found, "refused", refused > 0)
"#;
    let seconds = if std::env::var_os("LONG").is_some() { "5" } else { "0.7" };
    let script = format!("python3 -c '{}' {} {seconds}", script.replace('\'', "'\\''"), std::process::id());
    for (cover, names) in [
        ("mount -t tmpfs none a/x", "a b a/x/file b/x/file"),
        ("mount --bind /dev/null a/x/file", "a/x/file b/x/file a/x/file b/x/file"),
        ("mount --bind /dev/null a/x/file", "a b link"),
    ] {
        let said = in_own_namespace(&a, &format!("export M=\"$M\"; {cover}; {script} {names}"));
        assert_eq!(said.trim(), "found 0 refused True", "{cover}, {names}");
        let said = in_own_namespace(&a, &format!("export M=\"$M\"; {script} {names}"));
        assert!(said.contains("found ") && !said.contains("found 0"), "without the mount: {said}");
    }
    a.m.stop();
}

#[test]
fn a_copy_writes_for_nobody_who_sees_a_read_only_mount() {
    let Some(a) = Attacked::new() else { return };
    fs::write(a.m.path("to"), "before\n").unwrap();
    let script = r#"
import ctypes, fcntl, os, subprocess, sys
how, fd = sys.argv[1], os.open(".isp", os.O_RDWR)
fcntl.ioctl(fd, 0x40044675, bytes(4))
def read_only():
    libc = ctypes.CDLL(None)
    assert not libc.unshare(0x20000) and not libc.mount(None, b"/", None, 0x44000, None)
    assert not libc.mount(None, os.getcwd().encode(), None, 0x1021, None)
if how == "read-only": read_only()
for text in b'{"words": ["secret"], "file": "public"}', b'{"copy": {"regex": "."}, "file": "public", "to": "to"}':
    os.write(fd, text)
    print(os.read(fd, 1 << 16).decode())
"#;
    let quoted = script.replace('\'', "'\\''");
    for (how, expected) in
        [("read-only", "the mount is read-only for an author"), ("as it is", r#""records":"#)]
    {
        let said = in_own_namespace(&a, &format!("python3 -c '{quoted}' '{how}'"));
        assert!(said.contains(FOUND) && said.contains(expected), "{how}: {said}");
        assert_eq!(fs::read(a.m.path("to")).unwrap() == b"before\n", how == "read-only");
    }
    a.m.stop();
}
