//! Tests of users, set-ID bits, capabilities and extended attributes.

use super::{Mounted, code, conforms, error, sh_as};
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

const NOBODY: u32 = 65_534;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn s77_the_kernel_checks_permissions() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir(m.path("open")).unwrap();
    fs::set_permissions(m.path("open"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(m.path("secret"), "x").unwrap();
    fs::set_permissions(m.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let said = sh_as(NOBODY, &m.at, "cat secret; touch mine; echo hello > open/mine; cat open/mine");
    assert_eq!((said.matches("ermission denied").count(), said.contains("hello")), (2, true), "{said}");
    assert_eq!(fs::metadata(m.path("open/mine")).unwrap().uid(), NOBODY);
    m.stop();
}

/// The behavior of Linux on every file system: set-ID bits are removed unless root writes,
/// capabilities always.
#[test]
fn s78_writing_takes_rights_away() {
    let Some(m) = Mounted::new("") else { return };
    let path = m.path("program");
    let make = || {
        let _ = fs::remove_file(&path);
        fs::write(&path, "program").unwrap();
        chown(&path, Some(NOBODY), None).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
        // vfs_cap_data of linux/capability.h, revision 2, without any capability.
        let none = [&[0, 0, 0, 2][..], &[0; 16]].concat();
        setxattr(&path, "security.capability", &none, XattrFlags::empty()).unwrap();
    };
    let capable = || getxattr(&path, "security.capability", &mut [0u8; 64]).is_ok();
    let ways = [
        ("printf more >> program", 0o777, 0o6777),
        (": > program", 0o777, 0o6777),
        ("truncate -s 1 program", 0o777, 0o6777),
        ("chgrp $(id -g) program", 0o777, 0o777),
        ("fallocate -l 100000 program", 0o777, 0o6777),
    ];
    for (script, by_user, by_root) in ways {
        for (uid, left) in [(NOBODY, by_user), (0, by_root)] {
            make();
            assert!(capable() && mode(&path) == 0o6777);
            assert_eq!(sh_as(uid, &m.at, script), "", "{script} by {uid}");
            assert_eq!((mode(&path), capable()), (left, false), "{script} by {uid}");
        }
    }
    // A file that has been written gains privileges, and loses them with the next write.
    make();
    for _ in 0..2 {
        assert_eq!(sh_as(NOBODY, &m.at, "echo more >> program; echo again >> program"), "");
        assert_eq!(mode(&path), 0o777);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4777)).unwrap();
    }
    m.stop();
}

#[test]
fn somebody_who_may_not_write_a_file_takes_nothing_away() {
    let Some(m) = Mounted::new("") else { return };
    let path = m.path("program");
    let none = [&[0, 0, 0, 2][..], &[0; 16]].concat();
    let change = "import os; os.chown('program', -1, -1)";
    for (owner, permissions, uid, left) in [
        (0, 0o6755, NOBODY, (0o6755, true)),
        (0, 0o6700, NOBODY, (0o6700, true)),
        // The owner, and a writer.
        (NOBODY, 0o6755, NOBODY, (0o755, false)),
    ] {
        let _ = fs::remove_file(&path);
        fs::write(&path, "program").unwrap();
        chown(&path, Some(owner), None).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
        setxattr(&path, "security.capability", &none, XattrFlags::empty()).unwrap();
        sh_as(uid, &m.at, &format!("python3 -c \"{change}\""));
        let capable = getxattr(&path, "security.capability", &mut [0u8; 64]).is_ok();
        assert_eq!((mode(&path), capable), left, "{owner} {permissions:o} {uid}");
    }
    m.stop();
}

/// A change of owner that changes nothing removes what every change of owner removes, also if root makes it. The
/// same cases on a tmpfs show what other file systems do.
#[test]
fn a_change_of_owner_to_the_same_owner_takes_rights_away() {
    const GROUP: u32 = 4242;
    let Some(m) = Mounted::new("") else { return };
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::set_permissions(memory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // Somebody else who may write the file can take the bits away by a write, so nobody asks there.
    for (permissions, uid) in
        [0o6755, 0o6777, 0o4644, 0o2644].into_iter().flat_map(|mode| [0, NOBODY, 1000].map(|uid| (mode, uid)))
    {
        if (permissions, uid) != (0o6777, 1000) {
            let left = |dir: &Path| {
                let path = dir.join("program");
                let _ = fs::remove_file(&path);
                fs::write(&path, "program").unwrap();
                chown(&path, Some(NOBODY), Some(GROUP)).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
                let said = sh_as(uid, dir, "python3 -c \"import os; os.chown('program', -1, -1)\"");
                (mode(&path), said.contains("not permitted"))
            };
            assert_eq!(left(&m.at), left(memory.path()), "{permissions:o} by {uid}");
        }
    }
    m.stop();
}

/// Linux removes a set-group-ID bit without execution by the group as well, if the writer is not in the group
/// (`setattr_should_drop_sgid`; xfstests generic/683 to 685).
#[test]
fn a_writer_outside_the_group_takes_its_bit_away() {
    const GROUP: u32 = 4242;
    let Some(m) = Mounted::new("") else { return };
    let path = m.path("locked");
    let ways = [
        "printf more >> locked",
        ": > locked",
        "truncate -s 1 locked",
        "truncate -s 100000 locked",
        "fallocate -l 200000 locked",
        "fallocate -p -o 0 -l 4096 locked",
        "fallocate -z -o 0 -l 4096 locked",
        "fallocate -n -l 300000 locked",
        "cp --reflink=never other locked",
        "dd if=other of=locked oflag=direct bs=4096 conv=notrunc status=none",
        "python3 -c 'import os; a, b = os.open(\"other\", 0), os.open(\"locked\", 1); os.copy_file_range(a, b, 4096)'",
    ];
    let as_user = "setpriv --reuid 1000 --regid 1000";
    let users = [
        (format!("{as_user} --clear-groups"), 0),
        (format!("{as_user} --groups 5,{GROUP}"), 0o2000),
        (format!("setpriv --reuid 1000 --regid {GROUP} --clear-groups"), 0o2000),
        ("setpriv".into(), 0o6000),
        ("setpriv --bounding-set -fsetid --inh-caps -fsetid".into(), 0),
    ];
    fs::write(m.path("other"), vec![b'x'; 8192]).unwrap();
    for way in ways {
        for (user, left) in &users {
            let _ = fs::remove_file(&path);
            fs::write(&path, vec![b'y'; 8192]).unwrap();
            chown(&path, Some(NOBODY), Some(GROUP)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o6666)).unwrap();
            assert_eq!(mode(&path), 0o6666);
            fs::write(m.path("script"), way).unwrap();
            let said = sh_as(0, &m.at, &format!("exec {user} sh script"));
            assert_eq!((said.as_str(), mode(&path)), ("", 0o666 | left), "{way} by {user}");
        }
    }
    m.stop();
}

/// The kernel runs a program with its cached mode, not with that of the server.
#[test]
fn a_program_that_was_written_runs_without_its_rights() {
    let Some(m) = Mounted::new("suid") else { return };
    conforms(&m, "writes-take-set-id-bits");
    conforms(&m, "direct-handle-from-before-set-id-bits");
    conforms(&m, "superuser-keeps-set-id-bits");
    m.stop();
}

#[test]
fn s79_extended_attributes() {
    let Some(m) = Mounted::new("") else { return };
    let path = m.path("f");
    fs::write(&path, "").unwrap();
    let none = XattrFlags::empty();
    let mut room = [0u8; 100];
    assert_eq!(getxattr(&path, "user.a", &mut room), Err(Errno::NODATA));
    assert_eq!(setxattr(&path, "user.a", b"value", XattrFlags::REPLACE), Err(Errno::NODATA));
    setxattr(&path, "user.a", b"value", none).unwrap();
    assert_eq!(setxattr(&path, "user.a", b"other", XattrFlags::CREATE), Err(Errno::EXIST));
    assert_eq!(rustix::fs::getxattr_query(&path, "user.a"), Ok(5), "the length of the value");
    assert_eq!(getxattr(&path, "user.a", &mut [0u8; 4]), Err(Errno::RANGE));
    assert_eq!(getxattr(&path, "user.a", &mut room), Ok(5));
    assert_eq!(&room[..5], b"value");
    setxattr(&path, "trusted.b", b"", none).unwrap();
    assert_eq!(listxattr(&path, &mut room), Ok(17));
    let mut names: Vec<&[u8]> = room[..17].split(|&b| b == 0).collect();
    names.sort_unstable();
    assert_eq!(names, [&b""[..], b"trusted.b", b"user.a"]);
    assert_eq!(listxattr(&path, &mut [0u8; 5]), Err(Errno::RANGE));
    removexattr(&path, "user.a").unwrap();
    assert_eq!(removexattr(&path, "user.a"), Err(Errno::NODATA));
    let script = "python3 -c 'import os; print(os.listxattr(\"f\"))'";
    let said = sh_as(NOBODY, &m.at, script);
    assert!(said == "[]" || said.contains("not found"), "only root sees trusted attributes: {said}");
    m.stop();
}

#[test]
fn s83_what_is_read_only_stays() {
    let Some(m) = Mounted::new("ro") else { return };
    assert_eq!(error(fs::write(m.path("f"), "")), code(Errno::ROFS));
    assert_eq!(error(fs::create_dir(m.path("d"))), code(Errno::ROFS));
    assert_eq!(fs::read_dir(&m.at).unwrap().count(), 0);
    m.stop();
}

#[test]
fn a_file_that_was_found_is_never_another_one() {
    const O_PATH: i32 = 0o10_000_000;
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("a"), "old").unwrap();
    let found = OpenOptions::new().read(true).custom_flags(O_PATH).open(m.path("a")).unwrap();
    fs::remove_file(m.path("a")).unwrap();
    // More than the numbers that are not reused because they were freed lately.
    for round in 0..300 {
        fs::write(m.path("b"), format!("new {round}")).unwrap();
        fs::remove_file(m.path("b")).unwrap();
    }
    let kept: Vec<_> = (0..50).map(|file| m.path(&format!("c{file}"))).collect();
    kept.iter().for_each(|path| fs::write(path, "new").unwrap());
    let opened = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&found));
    assert_eq!(fs::read(opened).unwrap(), b"old");
    drop(found);
    m.stop();
}
