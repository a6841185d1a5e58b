//! A hostile user beside `frit exec`: one who may write the image, and scribbles in the memory that the mount shares
//! with programs. Skipped without root, FUSE or /dev/shm. `SCRIBBLE_SECONDS` is the time in seconds, `SEED` a number
//! of other words; a round of `make explore` takes a minute.

use crate::direct::{Place, compiled, frit, good, run, said};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The hostile user, who may write the image, and two users who may not.
const HOSTILE: u32 = 64_001;
const HONEST: [u32; 2] = [64_002, 64_003];

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Starts a role of `scribble.c`, under `frit exec` if `direct`.
fn start(p: &Place, program: &str, direct: bool, role: &str, at: &Path, user: u32, rest: [u64; 2]) -> Child {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &(rest[1] + 60).to_string()]);
    if direct {
        command.args([env!("CARGO_BIN_EXE_frit"), "exec", "--mount", p.at(), "--"]);
    }
    command.args([program, role, at.to_str().unwrap(), &user.to_string()]);
    command.args(rest.map(|number| number.to_string()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Mounts an image that the hostile user may write, with a directory for each user.
fn place() -> Option<(Place, String)> {
    let p = Place::new(&[])?;
    good(&frit(&["unmount", p.at()]));
    chown(p.image(), Some(HOSTILE), Some(HOSTILE)).unwrap();
    fs::set_permissions(p.image(), fs::Permissions::from_mode(0o600)).unwrap();
    p.mount();
    for user in [HOSTILE, HONEST[0], HONEST[1]] {
        let dir = p.path(&user.to_string());
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(user), Some(user)).unwrap();
    }
    let program = compiled(&p, "scribble");
    Some((p, program))
}

/// Waits for the shared memory, which the first lease creates.
fn segment(p: &Place) -> std::path::PathBuf {
    let segment = std::path::PathBuf::from(format!("{}.direct", p.image()));
    for _ in 0..200 {
        if segment.exists() {
            return segment;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("no program has direct access");
}

#[test]
fn random_words_of_a_user_who_may_write_the_image_change_no_file_of_others() {
    let Some((p, program)) = place() else { return };
    let (seed, seconds) = (variable("SEED", 1), variable("SCRIBBLE_SECONDS", 2));
    let server = p.server();
    let dir = |user: u32| p.path(&user.to_string());
    let mut honest = Vec::new();
    let mut others = Vec::new();
    for (i, user) in (1..).zip(HONEST) {
        let rest = [seed * 10 + i, seconds];
        honest.push(start(&p, &program, false, "honest", &dir(user), user, rest));
        others.push(start(&p, &program, true, "reads", &dir(user), HOSTILE, rest));
    }
    let own = dir(HOSTILE).join("log");
    others.push(start(&p, &program, true, "extends", &own, HOSTILE, [seed * 10 + 3, seconds]));
    let segment = segment(&p);
    let hostile: Vec<Child> = (4..6)
        .map(|i| start(&p, &program, false, "scribble", &segment, HOSTILE, [seed * 10 + i, seconds]))
        .collect();
    let end = |child: Child| -> Output { child.wait_with_output().unwrap() };
    for child in honest.into_iter().chain(hostile) {
        let said = good(&end(child));
        let count: u64 = said.split(' ').next().and_then(|n| n.parse().ok()).unwrap();
        assert!(count > 20, "seed {seed}: {said}");
    }
    // What happens to the programs of the hostile user is their own affair, but they end.
    others.into_iter().for_each(|child| drop(end(child)));
    assert_eq!(p.server(), server, "the server has survived");
    good(&frit(&["unmount", p.at(), "--timeout", "20"]));
    let checked = frit(&["fsck", &p.image()]);
    assert!(checked.status.success(), "seed {seed}: {}", said(&checked));
}

#[test]
fn a_truncated_segment_takes_the_mount_from_nobody() {
    let Some((p, program)) = place() else { return };
    let own = p.path(&HOSTILE.to_string()).join("log");
    let extends = start(&p, &program, true, "extends", &own, HOSTILE, [1, 3]);
    let segment = segment(&p);
    let dir = p.path(&HONEST[0].to_string());
    let honest = start(&p, &program, false, "honest", &dir, HONEST[0], [2, 3]);
    let truncate =
        format!("for n in 0 3000 300000 2363392; do truncate -s $n {}; sleep 0.3; done", segment.display());
    good(&run("setpriv", &["--reuid=64001", "--regid=64001", "--clear-groups", "sh", "-c", &truncate]));
    good(&honest.wait_with_output().unwrap());
    drop(extends.wait_with_output().unwrap());
    good(&frit(&["unmount", p.at(), "--timeout", "20"]));
    good(&frit(&["fsck", &p.image()]));
}

/// `TMPDIR` of root, in which others place the names of `frit exec`, or exchange what it places there.
#[test]
fn a_library_is_loaded_from_no_directory_of_others() {
    let Some(p) = Place::new(&[]) else { return };
    let root = tempfile::tempdir().unwrap();
    let dir = |name: &str, owner: u32, mode: u32| {
        let dir = root.path().join(name);
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        dir
    };
    let exec = |tmp: &Path| {
        let mut command = Command::new("timeout");
        command.args([
            "60",
            env!("CARGO_BIN_EXE_frit"),
            "exec",
            "--mount",
            p.at(),
            "--",
            "cat",
            "/proc/self/maps",
        ]);
        command.env("TMPDIR", tmp).output().unwrap()
    };
    let names = |tmp: &Path| fs::read_dir(tmp).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    // Names that somebody has taken in a directory such as /tmp.
    for squatter in ["directory", "file", "link", "nobody"] {
        let tmp = dir(squatter, 0, 0o1777);
        let name = tmp.join("frit-exec-0");
        let own = dir(&format!("own-{squatter}"), 0, 0o755);
        match squatter {
            "directory" => fs::create_dir(&name).unwrap(),
            "file" => fs::write(&name, "").unwrap(),
            "link" => symlink(&own, &name).unwrap(),
            _ => {}
        }
        if squatter != "nobody" {
            lchown(&name, Some(HOSTILE), Some(HOSTILE)).unwrap();
        }
        let taken = usize::from(squatter != "nobody");
        for _ in 0..2 {
            let maps = good(&exec(&tmp));
            assert!(maps.contains(&format!("{}/frit-exec-0", tmp.display())), "{squatter}: {maps}");
            assert_eq!(names(&tmp).len(), taken + 1, "{squatter}: it is found again");
        }
        assert_eq!(names(&own).len(), 0, "{squatter}");
    }
    // Directories in which others can exchange what is placed.
    let (open, foreign, kept) =
        (dir("open", 0, 0o777), dir("foreign", HOSTILE, 0o755), dir("kept", 0, 0o755));
    symlink(&kept, foreign.join("link")).unwrap();
    symlink(&kept, root.path().join("linked")).unwrap();
    for tmp in [open, foreign.clone(), foreign.join("link")] {
        let before = names(&tmp);
        let done = exec(&tmp);
        assert!(!done.status.success() && said(&done).contains("library of frit exec"), "{}", said(&done));
        assert_eq!(names(&tmp), before, "{}", tmp.display());
    }
    good(&exec(&root.path().join("linked")));
    assert_eq!(names(&kept).len(), 1);
}
