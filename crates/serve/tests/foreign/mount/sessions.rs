//! Tests of mounting, unmounting, and errors of both.

use super::{Mounted, code, error, inodes, memory, soon};
use frit_serve::fuse::file_system::{Mount, MountOptions, clear_stale, mounted};
use frit_serve::fuse::mounts_at;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_mountpoint_is_an_empty_directory_that_is_there() {
    let Some(m) = Mounted::new("fsname=some image") else { return };
    let options = MountOptions::new("x");
    let refused = |at: &Path| Mount::start(&m.files, at, &options).unwrap_err().to_string();
    assert!(refused(&m.at).contains("mounted there already"));
    assert!(refused(&m.path("no/such")).contains("existing directory"));
    let root = m._dir.path().canonicalize().unwrap();
    fs::write(root.join("file"), "").unwrap();
    assert!(refused(&root.join("file")).contains("not a directory"));
    assert!(refused(&root).contains("not empty"));
    let found = mounted(&m.at).unwrap().unwrap();
    assert_eq!((found.source.as_str(), found.mountpoint.as_path()), ("some image", m.at.as_path()));
    assert_eq!(mounted(&root).unwrap(), None);
    m.stop();
}

#[test]
fn who_still_uses_it_at_the_end_is_served_until_it_leaves() {
    let Some(m) = Mounted::new("") else { return };
    let mut file =
        File::options().create(true).read(true).write(true).truncate(false).open(m.path("f")).unwrap();
    let mount = m.mount.as_ref().unwrap();
    assert!(mount.unmount(Duration::from_millis(100)).unwrap(), "the file system is in use");
    assert_eq!(mounts_at(&m.at).unwrap(), 0, "no new users have access");
    file.write_all(b"still").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 5);
    assert!(!mount.has_ended());
    drop(file);
    soon("the mount ends with its last user", || mount.has_ended());
}

#[test]
fn it_ends_when_somebody_else_unmounts_it() {
    let Some(m) = Mounted::new("") else { return };
    assert!(Command::new("umount").arg(&m.at).status().unwrap().success());
    soon("the mount ends", || m.mount.as_ref().unwrap().has_ended());
    m.stop();
}

/// Environment variable that lets this test run as a child process, which mounts at its value and
/// can be killed.
pub(crate) const CHILD: &str = "FRIT_TEST_MOUNT_AT";

#[test]
fn what_a_killed_server_left_is_cleared() {
    if let Some(at) = std::env::var_os(CHILD) {
        let mount = Mount::start(&Arc::new(memory()), Path::new(&at), &MountOptions::new("child")).unwrap();
        println!("mounted");
        while !mount.has_ended() {
            std::thread::sleep(Duration::from_millis(10));
        }
        return;
    }
    let Some(m) = Mounted::new("") else { return };
    let at = m._dir.path().canonicalize().unwrap().join("other");
    fs::create_dir(&at).unwrap();
    assert!(!clear_stale(&at).unwrap(), "nothing is mounted there");
    // The name of this test begins with the module that includes this file.
    let name = concat!(module_path!(), "::what_a_killed_server_left_is_cleared");
    let (_program, name) = name.split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, &at)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 1];
    let out = child.stdout.as_mut().unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"mounted\n") && out.read_exact(&mut said).is_ok() {
        line.push(said[0]);
    }
    assert!(!clear_stale(&at).unwrap(), "the mount of a running server is kept");
    let mut file = File::create(at.join("f")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    use rustix::io::Errno;
    let ended = [Errno::NOTCONN, Errno::CONNABORTED, Errno::CANCELED].map(code);
    let found = error(fs::metadata(&at));
    assert!(ended.contains(&found), "{found}");
    let said = Mount::start(&m.files, &at, &MountOptions::new("x")).unwrap_err().to_string();
    assert!(said.contains("was killed"), "{said}");
    assert!(clear_stale(&at).unwrap());
    assert_eq!((mounts_at(&at).unwrap(), fs::metadata(&at).unwrap().is_dir()), (0, true));
    assert!(file.write_all(b"lost").is_err(), "writes to an open file fail");
    m.stop();
}

#[test]
fn threads_of_many_programs_at_once() {
    let Some(m) = Mounted::new("") else { return };
    std::thread::scope(|s| {
        for worker in 0..4u32 {
            let m = &m;
            s.spawn(move || {
                for i in 0..200 {
                    let dir = m.path(&format!("d{}", i % 3));
                    let _ = fs::create_dir(&dir);
                    let path = dir.join(format!("{worker} {i}"));
                    fs::write(&path, vec![worker as u8; i * 37]).unwrap();
                    let to = m.path(&format!("{worker} moved"));
                    fs::rename(&path, &to).unwrap();
                    assert!(fs::read(&to).unwrap() == vec![worker as u8; i * 37]);
                    assert_eq!(fs::metadata(&to).unwrap().size(), i as u64 * 37);
                }
            });
        }
    });
    let files = m.stop();
    assert_eq!(inodes(&files), 2 * (1 + 3) + 4, "root, directories, and one file per thread");
}
