//! Attacks of another user on every path that frit writes as root: links, hard links, pipes and
//! exchanged directories where an output is expected. Skipped without root and setpriv.
//!
//! A new command that writes a path is one line in [`COMMANDS`].

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const FRIT: &str = env!("CARGO_BIN_EXE_frit");
/// User ID of the attacker, and of a third user.
const OTHER: u32 = 65534;
const THIRD: u32 = 65533;

/// What a command does at its path, which decides how it answers to a link at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// It replaces the name by a complete file.
    Replaces,
    /// It opens what has the name.
    Opens,
    /// It creates the name, and nothing may have it.
    Creates,
    /// It creates a directory, or uses one.
    Directory,
}

/// Commands that write a path, `@`. `V` is a volume, `I` an image, `M` a directory to mount on, and
/// `N` a new name, `S` a stack with a store of objects, all of root.
const COMMANDS: &[(Way, &str)] = &[
    (Way::Replaces, "run --stack hfsl-small --trace gen:uniform,count=50,span=1M --json @"),
    (Way::Replaces, "run --stack hfsl-small --trace gen:uniform,count=50,span=1M --html @"),
    (Way::Replaces, "run --stack hfsl-small --trace gen:uniform,count=50,span=1M --requests @"),
    (Way::Replaces, "trace generate uniform,count=50 @ --force"),
    (Way::Replaces, "trace convert gen:uniform,count=50 @ --force"),
    (Way::Replaces, "export V @ --force"),
    (Way::Opens, "mount I M --log @"),
    (Way::Opens, "mkfs @ --size 8M --force"),
    (Way::Opens, "fsck @"),
    (Way::Opens, "mount @ M"),
    (Way::Opens, "create N --stack hfsl-small --force --set media.pcm.path=\"@\""),
    (Way::Creates, "create N --stack hfsl-small --set media.pcm.path=\"@\""),
    (Way::Creates, "mkfs @ --size 8M"),
    (Way::Creates, "serve V --nbd tcp:127.0.0.1:0 --ctl @"),
    (Way::Creates, "serve V --nbd unix:@"),
    (Way::Creates, "serve V --nbd tcp:127.0.0.1:0 --record @"),
    (Way::Directory, "mkfs --pool @ --size 20M --force"),
    (Way::Directory, "create @/N --stack hfsl-small"),
    (Way::Directory, "create N --stack S --set media.remote.url=\"@/N\""),
    (Way::Directory, "serve V --fuse @"),
    (Way::Directory, "mount I @ --foreground"),
    (Way::Directory, "mkfs @/img --size 8M"),
    (Way::Directory, "reproduce hfsl.t7.pcm --quick --plots @/N"),
    (Way::Directory, "reproduce hfsl.t7.pcm --quick --json @/N"),
    (Way::Directory, "serve V --nbd tcp:127.0.0.1:0 --pidfile @/N"),
    (Way::Directory, "run --stack hfsl-small --trace gen:uniform,count=50,span=1M --json @/N"),
    (Way::Directory, "export V @/N"),
    (Way::Directory, "mount I M --log @/N"),
];

/// A stack whose medium `remote` can be a directory of objects.
const OBJECTS: &str = "[media.map]\nprofile = \"st3500320as-2008\"\nbytes = \"8M\"\n\
    [media.remote]\nprofile = \"s3-standard-2019\"\nobject_bytes = \"1M\"\nobjects = 384\nconnections = 4\n\
    [segments]\nmap = \"map\"\nstore = \"remote\"\nsize = \"256M\"\n";

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn give(path: &Path, user: u32) {
    lchown(path, Some(user), Some(user)).unwrap();
}

fn said(o: &Output) -> String {
    let said = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    // The terminal width breaks long lines.
    said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// The files of root, and a directory of the attacker.
struct Scene {
    root: tempfile::TempDir,
    hostile: PathBuf,
    number: u32,
}

impl Scene {
    /// `None` without root or setpriv. `mode`: the mode of the directory that belongs to `owner`.
    fn new(owner: u32, mode: u32) -> Option<Scene> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
            eprintln!("skipped: acting as another user needs root and setpriv");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        chmod(root.path(), 0o755);
        let hostile = root.path().join("hostile");
        fs::create_dir(&hostile).unwrap();
        give(&hostile, owner);
        chmod(&hostile, mode);
        let mut scene = Scene { root, hostile, number: 0 };
        fs::create_dir(scene.own("")).unwrap();
        fs::create_dir(scene.own("M")).unwrap();
        fs::write(scene.own("S"), OBJECTS).unwrap();
        scene.good("create V --stack hfsl-small");
        scene.good("mkfs I --size 8M");
        fs::write(scene.own("victim"), "precious").unwrap();
        fs::create_dir(scene.own("dir")).unwrap();
        Some(scene)
    }

    fn own(&self, name: &str) -> PathBuf {
        self.root.path().join("own").join(name)
    }

    /// Runs frit with the words of a command.
    fn frit(&mut self, words: &str, path: &Path) -> Output {
        self.number += 1;
        let new = format!("new{}", self.number);
        let word = |word: &str| match word {
            "V" | "I" | "M" | "S" => self.own(word).display().to_string(),
            "N" => self.own(&new).display().to_string(),
            _ => word.replace('@', path.to_str().unwrap()).replace("/N", &format!("/{new}")),
        };
        let words = words.split(' ').map(word);
        Command::new("timeout").args(["20", FRIT]).args(words).stdin(Stdio::null()).output().unwrap()
    }

    #[track_caller]
    fn good(&mut self, words: &str) {
        let done = self.frit(words, Path::new(""));
        assert!(done.status.success(), "{words}: {}", said(&done));
    }

    /// Plants something of the attacker.
    fn plant(&self, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
        let path = self.hostile.join(name);
        let _ = fs::remove_file(&path);
        make(&path);
        path
    }

    /// Asserts that nothing of root changed, and that nothing was added in its directory.
    #[track_caller]
    fn assert_unharmed(&self, after: &str) {
        assert_eq!(fs::read(self.own("victim")).unwrap(), b"precious", "{after}");
        assert_eq!(self.own("victim").metadata().unwrap().mode() & 0o7777, 0o644, "{after}");
        assert_eq!(fs::read_dir(self.own("dir")).unwrap().count(), 0, "{after}");
    }
}

/// Runs a command as the attacker.
fn attacker(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(words);
    command
}

#[track_caller]
fn assert_refused(done: &Output, words: &str, case: &str) {
    let code = done.status.code();
    assert!(code.is_some_and(|code| code != 0 && code != 124), "{case}: {code:?} {}", said(done));
    assert!(said(done).contains(words), "{case}: {}", said(done));
}

/// Tries a command at a symbolic link, at a link to nothing, at a hard link, at a pipe, and below a
/// linked directory.
fn attack(scene: &mut Scene, way: Way, words: &str) {
    let (victim, dir) = (scene.own("victim"), scene.own("dir"));
    let link = |to: &Path, at: &Path| {
        symlink(to, at).unwrap();
        give(at, OTHER);
    };
    let is_dir = way == Way::Directory;
    for (name, to) in [("link", if is_dir { &dir } else { &victim }), ("dangling", &dir.join("new"))] {
        let path = scene.plant(name, |at| link(to, at));
        let case = format!("{words} at a {name}");
        let done = scene.frit(words, &path);
        scene.assert_unharmed(&case);
        match way {
            Way::Replaces => {
                assert!(done.status.success(), "{case}: {}", said(&done));
                assert!(path.symlink_metadata().unwrap().is_file(), "{case}");
            }
            Way::Creates => assert_refused(&done, "", &case),
            // Without the directory there is nothing to mount on.
            Way::Directory if name == "dangling" => assert_refused(&done, "", &case),
            Way::Opens | Way::Directory => assert_refused(&done, "symbolic link", &case),
        }
    }
    if is_dir {
        return;
    }
    let path = scene.plant("hard", |at| fs::hard_link(&victim, at).unwrap());
    let case = format!("{words} at a hard link");
    let done = scene.frit(words, &path);
    scene.assert_unharmed(&case);
    match way {
        Way::Replaces => assert!(done.status.success(), "{case}: {}", said(&done)),
        Way::Opens => assert_refused(&done, "hard link", &case),
        _ => assert_refused(&done, "", &case),
    }
    let _ = fs::remove_file(&path);
    let path = scene
        .plant("pipe", |at| assert!(attacker(&["mkfifo", "-m", "666"]).arg(at).status().unwrap().success()));
    assert_refused(&scene.frit(words, &path), "", &format!("{words} at a pipe"));
    let path = scene.plant("mid", |at| link(&dir, at)).join("file");
    let case = format!("{words} below a link");
    assert_refused(&scene.frit(words, &path), "symbolic link", &case);
    scene.assert_unharmed(&case);
}

fn attack_all(owner: u32, mode: u32) {
    let Some(mut scene) = Scene::new(owner, mode) else { return };
    let fuse = Path::new("/dev/fuse").exists();
    for (way, words) in COMMANDS {
        if !fuse && (words.starts_with("mount") || words.contains("--fuse")) {
            eprintln!("skipped: {words}: there is no /dev/fuse");
            continue;
        }
        attack(&mut scene, *way, words);
    }
}

#[test]
fn no_command_follows_what_is_planted_in_a_sticky_directory() {
    attack_all(0, 0o1777);
}

#[test]
fn no_command_follows_what_is_planted_in_a_directory_of_another_user() {
    attack_all(OTHER, 0o755);
}

/// A volume of another user is opened by root; a file of it is a link to one of root's files with
/// the same contents, which would be accepted.
#[test]
fn files_of_a_volume_of_another_user_redirect_nothing() {
    let Some(mut scene) = Scene::new(OTHER, 0o755) else { return };
    let vol = scene.hostile.join("vol");
    scene.good(&format!("create {} --stack hfsl-small", vol.display()));
    fs::write(vol.join("hints"), "# none\n").unwrap();
    for entry in fs::read_dir(&vol).unwrap() {
        give(&entry.unwrap().path(), OTHER);
    }
    give(&vol, OTHER);
    let used = ["recover @", "check @ --repair", "ctl @ set SSW=1024"];
    for words in used {
        let done = scene.frit(words, &vol);
        assert!(done.status.success(), "{words}: {}", said(&done));
    }
    give(&vol.join("changes.log"), OTHER);
    for name in ["frit.volume", "frit.lock", "pcm.medium", "changes.log"] {
        let (file, aside, victim) = (vol.join(name), vol.join("aside"), scene.own("of-root"));
        fs::rename(&file, &aside).unwrap();
        for is_hard in [false, true] {
            fs::copy(&aside, &victim).unwrap();
            let before = fs::read(&victim).unwrap();
            if is_hard {
                fs::hard_link(&victim, &file).unwrap();
            } else {
                symlink(&victim, &file).unwrap();
            }
            for words in used.iter().filter(|words| name != "changes.log" || words.starts_with("ctl")) {
                let words = words.replace("1024", if is_hard { "256" } else { "512" });
                let done = scene.frit(&words, &vol);
                let case = format!("{words}: {name} is a link, hard: {is_hard}");
                assert_refused(&done, "", &case);
                assert!(fs::read(&victim).unwrap() == before, "{case}");
                assert_eq!(victim.metadata().unwrap().uid(), 0, "{case}");
            }
            fs::remove_file(&file).unwrap();
            fs::remove_file(&victim).unwrap();
        }
        fs::rename(&aside, &file).unwrap();
    }
}

/// A log beside an image is a hard link to a file of root, who owns the image too.
#[test]
fn a_log_of_an_image_is_no_hard_link() {
    let Some(mut scene) = Scene::new(0, 0o1777) else { return };
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: there is no /dev/fuse to mount with");
        return;
    }
    let image = scene.hostile.join("img");
    scene.good(&format!("mkfs {} --size 8M", image.display()));
    fs::hard_link(scene.own("victim"), scene.hostile.join("img.sync")).unwrap();
    scene.good(&format!("mount {} M", image.display()));
    fs::write(scene.own("M/file"), [7; 100_000]).unwrap();
    fs::File::open(scene.own("M/file")).unwrap().sync_all().unwrap();
    scene.good("unmount M");
    scene.assert_unharmed("a sync of the image");
}

/// The state of an attached volume, which says what root unmounts, is root's own.
#[test]
fn a_state_that_another_user_wrote_is_not_used() {
    let Some(mut scene) = Scene::new(OTHER, 0o755) else { return };
    if ["/dev/fuse", "/dev/loop-control"].iter().any(|device| !Path::new(device).exists()) {
        eprintln!("skipped: attaching needs /dev/fuse and loop devices");
        return;
    }
    let vol = scene.hostile.join("vol");
    scene.good(&format!("create {} --stack hfsl-small", vol.display()));
    let state = vol.join("attached.json");
    let text = r#"{"mountpoint":"/mnt","server":1,"started":true,"device":null}"#;
    for (owner, words) in [(OTHER, "is not attached"), (0, "is detached")] {
        fs::write(&state, text).unwrap();
        give(&state, owner);
        let done = scene.frit("detach @", &vol);
        assert!(said(&done).contains(words), "{owner}: {}", said(&done));
    }
}

/// A volume of another user names one of root's files as its medium.
#[test]
fn a_volume_of_another_user_names_no_file_of_root() {
    let Some(mut scene) = Scene::new(OTHER, 0o755) else { return };
    let (vol, medium) = (scene.hostile.join("vol"), scene.own("medium"));
    let path = format!("media.pcm.path=\"{}\"", medium.display());
    scene.good(&format!("create {} --stack hfsl-small --set {path}", vol.display()));
    scene.good(&format!("recover {}", vol.display()));
    for entry in fs::read_dir(&vol).unwrap() {
        give(&entry.unwrap().path(), OTHER);
    }
    give(&vol, OTHER);
    let words = "belongs to user 0, and the volume, which names it, belongs to user 65534";
    assert_refused(&scene.frit("recover @", &vol), words, "recover");
    give(&medium, OTHER);
    scene.good(&format!("recover {}", vol.display()));
}

/// A socket that another user left is not removed, and one of this user is.
#[test]
fn only_sockets_of_this_user_are_stale() {
    let Some(mut scene) = Scene::new(0, 0o1777) else { return };
    let path = scene.hostile.join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    give(&path, THIRD);
    for words in ["serve V --nbd tcp:127.0.0.1:0 --ctl @", "serve V --nbd unix:@"] {
        assert_refused(&scene.frit(words, &path), "a socket of user 65533", words);
        assert_eq!(path.symlink_metadata().unwrap().uid(), THIRD);
    }
}

/// The attacker's loop, ended when this is dropped.
struct Attack(Child);

impl Drop for Attack {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The attacker exchanges a directory for a link while frit runs.
#[test]
fn directories_exchanged_while_frit_runs_redirect_nothing() {
    let Some(mut scene) = Scene::new(OTHER, 0o755) else { return };
    let at = scene.hostile.display().to_string();
    fs::create_dir(scene.hostile.join("a")).unwrap();
    give(&scene.hostile.join("a"), OTHER);
    symlink(scene.own("dir"), scene.hostile.join("b")).unwrap();
    let turn = "cd \"$0\"; while :; do mv -T a x; mv -T b a; mv -T a b; mv -T x a; done";
    let looped = attacker(&["sh", "-c", turn, &at]).stderr(Stdio::null()).spawn().unwrap();
    let _attack = Attack(looped);
    let (mut refused, mut done) = (0, 0);
    for words in COMMANDS.iter().filter(|(way, _)| *way != Way::Directory).map(|(_, words)| words) {
        if words.starts_with("serve") || words.starts_with("mount") {
            continue;
        }
        for n in 0..5 {
            let path = scene.hostile.join(format!("a/{n}"));
            let ran = scene.frit(words, &path);
            if ran.status.success() {
                done += 1;
            } else {
                refused += 1;
            }
            scene.assert_unharmed(words);
        }
    }
    assert!(refused > 0, "{done} done, none refused: there was no race");
}

/// The attacker exchanges the directory of a volume for a link to the directory of another one while it grows.
#[test]
fn a_volume_whose_path_is_exchanged_grows_nowhere_else() {
    let Some(mut scene) = Scene::new(OTHER, 0o755) else { return };
    let (mine, victims) = (scene.hostile.join("a"), scene.own("volumes"));
    for dir in [&mine, &victims] {
        fs::create_dir(dir).unwrap();
        scene.good(&format!("create {}/vol --stack hfsl-small --size 40M", dir.display()));
    }
    give(&mine, OTHER);
    let names = |dir: &Path| {
        let of = |e: std::io::Result<fs::DirEntry>| {
            let found = e.unwrap();
            (found.file_name(), found.metadata().unwrap().len())
        };
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(of).collect();
        names.sort();
        names
    };
    let before =
        (names(&victims), names(&victims.join("vol")), fs::read(victims.join("vol/frit.volume")).unwrap());
    symlink(&victims, scene.hostile.join("b")).unwrap();
    let turn = "cd \"$0\"; until [ -e stop ]; do mv -T a x; mv -T b a; mv -T a b; mv -T x a; done";
    let at = scene.hostile.display().to_string();
    let mut attack = Attack(attacker(&["sh", "-c", turn, &at]).stderr(Stdio::null()).spawn().unwrap());
    let mut refused = 0;
    for megabytes in 41..53 {
        let done = scene.frit(&format!("grow @ --size {megabytes}M"), &mine.join("vol"));
        refused += u32::from(!done.status.success());
        let now = (
            names(&victims),
            names(&victims.join("vol")),
            fs::read(victims.join("vol/frit.volume")).unwrap(),
        );
        assert!(now == before, "{megabytes}: {}", said(&done));
        // Nothing is made in place of the directory that is away for a moment.
        let made = fs::read_dir(&scene.hostile).unwrap().filter_map(|e| e.unwrap().metadata().ok());
        assert!(made.filter(fs::Metadata::is_dir).all(|m| m.uid() == OTHER), "{megabytes}: {}", said(&done));
    }
    assert!(refused > 0, "there was no race");
    fs::write(scene.hostile.join("stop"), "").unwrap();
    attack.0.wait().unwrap();
    scene.good(&format!("grow {}/vol --size 64M", mine.display()));
}

/// The directory of objects of a volume is replaced by a link to a directory of root.
#[test]
fn a_store_of_objects_is_not_led_elsewhere() {
    let Some(mut scene) = Scene::new(OTHER, 0o755) else { return };
    let (vol, store) = (scene.own("vol"), scene.hostile.join("store"));
    let create = format!("create {} --stack S --set media.remote.url=\"{}\"", vol.display(), store.display());
    scene.good(&create);
    scene.good(&format!("recover {}", vol.display()));
    let aside = scene.hostile.join("aside");
    fs::rename(&store, &aside).unwrap();
    symlink(scene.own("dir"), &store).unwrap();
    give(&store, OTHER);
    assert_refused(&scene.frit("recover @", &vol), "symbolic link", "recover");
    scene.assert_unharmed("recover with a store that is a link");
    fs::remove_file(&store).unwrap();
    fs::rename(&aside, &store).unwrap();
    scene.good(&format!("recover {}", vol.display()));
}

/// What users do in their own directories, and with devices and descriptors, works as ever.
#[test]
fn own_links_and_special_files_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let run = |output: &str| {
        let words =
            ["run", "--stack", "hfsl-small", "--trace", "gen:uniform,count=50,span=1M", "--json", output];
        Command::new("timeout").arg("20").arg(FRIT).args(words).stdin(Stdio::null()).output().unwrap()
    };
    fs::create_dir(at("real")).unwrap();
    symlink("real", at("linked")).unwrap();
    for output in [&at("linked/out"), "/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let done = run(output);
        assert!(done.status.success(), "{output}: {}", said(&done));
    }
    assert!(fs::read(at("real/out")).unwrap().starts_with(b"["));
    assert!(run("/dev/stdout").stdout.windows(8).any(|part| part == b"\"stack\":" || part == b"hfsl-sma"));
    // A pipe of this user in a directory that everybody can write to.
    chmod(dir.path(), 0o1777);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let reader = Command::new("cat").arg(at("pipe")).stdout(Stdio::piped()).spawn().unwrap();
    let done = run(&at("pipe"));
    assert!(done.status.success(), "{}", said(&done));
    assert!(!reader.wait_with_output().unwrap().stdout.is_empty());
    let image = |words: &[&str]| {
        let done = Command::new("timeout").arg("20").arg(FRIT).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", said(&done));
    };
    chmod(dir.path(), 0o755);
    symlink("image", at("link-to-image")).unwrap();
    image(&["mkfs", &at("image"), "--size", "8M"]);
    image(&["mkfs", &at("link-to-image"), "--force"]);
    image(&["fsck", &at("link-to-image")]);
}
