//! Tests of paths that another user tries to redirect. As root, the other users are real owners;
//! otherwise the rules are tested on facts alone.

use super::trust::{DirFacts, Judge, Trust};
use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// User ID of another user.
const OTHER: u32 = 65534;

/// A directory of a test, removed when this is dropped.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        let dir = std::env::temp_dir().join(format!("frit-paths-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        TestDir(dir.canonicalize().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates a directory.
    fn dir(&self, name: &str, owner: u32, mode: u32) -> PathBuf {
        let path = self.at(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        give(&path, owner);
        path
    }

    /// Creates a file with its name as contents.
    fn file(&self, name: &str, owner: u32) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, "precious").unwrap();
        give(&path, owner);
        path
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn give(path: &Path, owner: u32) {
    if owner != own() {
        std::os::unix::fs::lchown(path, Some(owner), Some(owner)).unwrap();
    }
}

fn is_root() -> bool {
    if own() != 0 {
        eprintln!("skipped: files of another user need root");
    }
    own() == 0
}

fn append() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options
}

fn is_precious(path: &Path) -> bool {
    fs::read(path).unwrap() == b"precious"
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: io::Result<T>, words: &str) {
    let e = result.unwrap_err();
    assert!(e.kind() == ErrorKind::PermissionDenied && e.to_string().contains(words), "{e}");
}

#[test]
fn links_are_followed_where_nobody_else_can_put_them() {
    let test = TestDir::new("own-links");
    let (target, link) = (test.file("target", own()), test.at("link"));
    symlink(&target, &link).unwrap();
    append().open(&link).unwrap();
    assert_eq!(canonical(&link).unwrap(), target);
    symlink("link", test.at("second")).unwrap();
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).open(&test.at("second")).unwrap();
    assert_eq!(fs::metadata(&target).unwrap().len(), 0);
    // A link to nothing creates what it names, as ever.
    symlink("missing", test.at("dangling")).unwrap();
    append().open(&test.at("dangling")).unwrap();
    assert!(test.at("missing").is_file());
    symlink(&test.0, test.at("here")).unwrap();
    create_dir_all(&test.at("here/a/../b/c"), 0o755).unwrap();
    assert!(test.at("b/c").is_dir());
    symlink("loop", test.at("loop")).unwrap();
    assert!(append().open(&test.at("loop")).is_err());
    assert_eq!(canonical(&test.at("here/b/../link")).unwrap(), target);
    assert_eq!(canonical(Path::new("/")).unwrap(), Path::new("/"));
    assert_eq!(canonical(Path::new(".")).unwrap(), fs::canonicalize(".").unwrap());
    assert_eq!(canonical(&test.at("none")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn devices_and_descriptors_are_outputs() {
    for path in ["/dev/null", "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"] {
        append().open(Path::new(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
    let test = TestDir::new("descriptors");
    let file = append().open(&test.at("f")).unwrap();
    let by_descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    append().open(Path::new(&by_descriptor)).unwrap();
    assert_eq!(canonical(Path::new(&by_descriptor)).unwrap(), test.at("f"));
    let dir = open_dir(&test.0).unwrap();
    let below = format!("/proc/self/fd/{}/g", std::os::fd::AsRawFd::as_raw_fd(&dir));
    append().open(Path::new(&below)).unwrap();
    assert!(test.at("g").is_file());
}

/// Sets up a victim's file, and a directory in which others can change names.
fn hostile(test: &TestDir, owner: u32, mode: u32) -> (PathBuf, PathBuf) {
    (test.file("victim", own()), test.dir("hostile", owner, mode))
}

#[test]
fn links_of_others_are_refused_wherever_they_are() {
    if !is_root() {
        return;
    }
    for (name, owner, mode) in [("sticky", 0, 0o1777), ("of-other", OTHER, 0o755), ("open", 0, 0o777)] {
        let test = TestDir::new(name);
        let (victim, dir) = hostile(&test, owner, mode);
        let link = dir.join("link");
        symlink(&victim, &link).unwrap();
        give(&link, OTHER);
        refused(append().open(&link), "is a symbolic link in");
        let mut options = OpenOptions::new();
        refused(options.write(true).truncate(true).open(&link), "name its target itself");
        refused(canonical(&link), "symbolic link");
        assert_eq!(options.create_new(true).open(&link).unwrap_err().kind(), ErrorKind::AlreadyExists);
        // In the middle of a path.
        symlink(&test.0, dir.join("up")).unwrap();
        for below in ["up/victim", "up/new", "up/hostile/x"] {
            refused(append().open(&dir.join(below)), "symbolic link");
            refused(create_dir_all(&dir.join(below), 0o755), "symbolic link");
            refused(remove_file(&dir.join(below)), "symbolic link");
            refused(rename(&victim, &dir.join(below)), "symbolic link");
            refused(exchange(&victim, &dir.join(below)), "symbolic link");
            refused(crate::files::write(&dir.join(below), b"x"), "symbolic link");
        }
        // The parent of a directory that others can move is where they moved it.
        symlink(&victim, test.at("own-link")).unwrap();
        let by_parent = append().open(&dir.join("../own-link"));
        if mode & 0o1000 == 0 {
            refused(by_parent, "symbolic link");
        } else {
            drop(by_parent.unwrap());
        }
        // A link that leads to nothing creates nothing.
        symlink(test.at("new"), dir.join("dangling")).unwrap();
        refused(append().open(&dir.join("dangling")), "symbolic link");
        refused(create_dir_all(&dir.join("dangling"), 0o755), "symbolic link");
        assert!(!test.at("new").exists());
        // The name of a link is replaced and removed, and never what it leads to.
        crate::files::write(&link, b"report").unwrap();
        assert!(link.symlink_metadata().unwrap().is_file());
        remove_file(&dir.join("up")).unwrap();
        assert!(is_precious(&victim), "{name}");
    }
}

#[test]
fn existing_files_are_examined_before_they_are_changed() {
    if !is_root() {
        return;
    }
    let dirs = [("sticky", 0, 0o1777), ("of-other", OTHER, 0o755), ("sticky-of-other", OTHER, 0o1777)];
    for (name, owner, mode) in dirs {
        let test = TestDir::new(&format!("existing-{name}"));
        let (victim, dir) = hostile(&test, owner, mode);
        let mut emptied = OpenOptions::new();
        emptied.write(true).create(true).truncate(true);
        fs::hard_link(&victim, dir.join("hard")).unwrap();
        for options in [&append(), &emptied, emptied.clone().any_user(true)] {
            refused(options.open(&dir.join("hard")), "a hard link");
        }
        assert!(is_precious(&victim));
        let theirs = test.file("hostile/theirs", OTHER);
        let opened = emptied.open(&theirs);
        if mode & 0o1000 != 0 {
            refused(opened, "belongs to user 65534");
            assert!(is_precious(&theirs));
            emptied.clone().any_user(true).open(&theirs).unwrap();
        } else {
            // Nobody is harmed but the owner of the directory.
            opened.unwrap();
        }
        let third = test.file("hostile/third", OTHER - 1);
        refused(emptied.open(&third), "belongs to user 65533");
        let fifo = dir.join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        give(&fifo, OTHER);
        refused(append().open(&fifo), "is not a regular file");
        refused(crate::files::write(&fifo, b"secret"), "is not a regular file");
        // Files of this user are written, and files that replace others' are private.
        let own_file = test.file("hostile/own", 0);
        append().open(&own_file).unwrap();
        assert!(is_precious(&own_file), "only what is to be emptied is");
        emptied.open(&own_file).unwrap();
        assert_eq!(own_file.metadata().unwrap().len(), 0);
        fs::set_permissions(&third, Permissions::from_mode(0o666)).unwrap();
        crate::files::OutputFile::create_private(&third).unwrap().commit().unwrap();
        let found = third.metadata().unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (0, 0o600));
    }
}

/// While a directory is exchanged for a link in a loop, nothing is written to where the link leads.
#[test]
fn a_directory_that_is_exchanged_redirects_nothing() {
    if !is_root() {
        return;
    }
    let test = TestDir::new("race");
    let (victim, dir) = hostile(&test, OTHER, 0o755);
    let target = test.dir("target", 0, 0o755);
    fs::write(target.join("file"), "precious").unwrap();
    fs::create_dir(dir.join("a")).unwrap();
    give(&dir.join("a"), OTHER);
    symlink(&target, dir.join("b")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut written, mut errors) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // The attacker's rename(2), which does not follow rules of this module.
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    dir.join("a"),
                    rustix::fs::CWD,
                    dir.join("b"),
                    RenameFlags::EXCHANGE,
                );
            }
        });
        for _ in 0..2000 {
            let path = dir.join("a/file");
            let mut options = OpenOptions::new();
            let opened = options.write(true).create(true).truncate(true).open(&path);
            let replaced = crate::files::write(&path, b"x");
            for result in [opened.map(drop), replaced, create_dir_all(&dir.join("a/d"), 0o755)] {
                if result.is_ok() { written += 1 } else { errors += 1 }
            }
            let _ = remove_file(&path);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(is_precious(&victim) && is_precious(&target.join("file")));
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1, "nothing was created there");
    assert!(written > 0 && errors > 0, "{written} written, {errors} refused: there was no race");
}

/// The rule in the words of its promise: every directory of a path is of this user or an
/// administrator, and no other user may write to it; a sticky one may be shared, but not the last.
fn model(user: u32, path: &[DirFacts]) -> bool {
    let ok = |dir: &DirFacts| [0, user].contains(&dir.owner);
    let by_group = |dir: &DirFacts| {
        let private = if user == 0 { dir.group == 0 } else { dir.owner == user || dir.group == 0 };
        dir.mode & 0o020 != 0 && (!private || dir.has_acl)
    };
    let shared = |dir: &DirFacts| dir.mode & 0o002 != 0 || by_group(dir);
    let Some((last, above)) = path.split_last() else { return true };
    let held = above.iter().all(|dir| ok(dir) && (!shared(dir) || dir.mode & 0o1000 != 0));
    let unmounted = path.windows(2).enumerate().all(|(n, pair)| {
        let firm = model(user, &path[..=n]);
        firm || pair[0].device == pair[1].device || !pair[1].is_fuse
    });
    held && unmounted && ok(last) && !shared(last)
}

#[test]
fn directories_are_judged_as_the_model_says() {
    let mut seed = 7;
    let mut pick = |from: &[u32]| {
        let number = crate::split_mix::next(&mut seed);
        from[(number % from.len() as u64) as usize]
    };
    let (mut trusted, mut others) = (0, 0);
    for _ in 0..50_000 {
        let user = pick(&[0, 1000]);
        let judge = Judge { user, admin: 0 };
        let depth = pick(&[1, 2, 3, 4]);
        let path: Vec<DirFacts> = (0..depth)
            .map(|_| DirFacts {
                owner: pick(&[0, 0, user, user, 1001]),
                group: pick(&[0, 1000, 50]),
                mode: pick(&[0o755, 0o755, 0o700, 0o775, 0o777, 0o1777, 0o1775, 0o2775]),
                device: u64::from(pick(&[1, 1, 1, 2])),
                has_acl: pick(&[0, 0, 1]) == 1,
                is_fuse: pick(&[0, 1]) == 1,
            })
            .collect();
        let judged = path.iter().fold(None, |above, dir| Some((judge.judge(above, dir), dir.device)));
        let is_trusted = judged.is_some_and(|(trust, _)| trust == Trust::Full);
        assert_eq!(is_trusted, model(user, &path), "user {user}: {path:?}");
        if is_trusted { trusted += 1 } else { others += 1 }
    }
    assert!(trusted > 1000 && others > 1000, "{trusted} trusted, {others} not");
}
