//! `frit exec`. Skipped without root or FUSE, and for the image without /dev/shm. Everything that could
//! hang runs under `timeout`, and a guard unmounts at the end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Time limit of a program, in seconds.
const BOUND: &str = "120";

/// Returns the first value, or the second one if `LONG` is set, as in `make explore`.
pub(crate) fn short_or_long<V>(short: V, long: V) -> V {
    if std::env::var_os("LONG").is_some() { long } else { short }
}

pub(crate) fn run(program: &str, args: &[&str]) -> Output {
    Command::new("timeout").args(["-k", "5", BOUND, program]).args(args).output().unwrap()
}

pub(crate) fn frit(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_frit"), args)
}

pub(crate) fn said(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
        .replace("\n  │ ", " ")
}

#[track_caller]
pub(crate) fn good(o: &Output) -> String {
    assert!(o.status.success(), "{:?}: {}", o.status, said(o));
    said(o)
}

/// A mounted image in memory; unmounted when this is dropped.
pub(crate) struct Place {
    root: tempfile::TempDir,
    at: String,
}

impl Place {
    pub(crate) fn new(mkfs: &[&str]) -> Option<Place> {
        let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        if !root || !Path::new("/dev/fuse").exists() || !Path::new("/dev/shm").is_dir() {
            eprintln!("skipped: direct access needs root, /dev/fuse and /dev/shm");
            return None;
        }
        if cfg!(not(target_arch = "x86_64")) {
            eprintln!("skipped: direct access needs x86-64");
            return None;
        }
        let root = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = root.path().join("mnt");
        fs::create_dir(&at).unwrap();
        let place = Place { at: at.to_str().unwrap().into(), root };
        good(&frit(&[&["mkfs", &place.image(), "--size", "128M"], mkfs].concat()));
        place.mount();
        Some(place)
    }

    /// Returns the mount point.
    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn image(&self) -> String {
        self.root.path().join("img").to_str().unwrap().into()
    }

    pub(crate) fn mount(&self) {
        good(&frit(&["mount", &self.image(), &self.at]));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.at).join(name)
    }

    fn exec(&self, args: &[&str]) -> Output {
        frit(&[&["exec", "--report", "--mount", &self.at, "--"], args].concat())
    }

    /// Kills the server, and waits until it is gone.
    fn kill_server(&self) {
        let server = self.server();
        good(&run("kill", &["-9", &server]));
        while Path::new(&format!("/proc/{server}/maps")).exists()
            && fs::read_to_string(format!("/proc/{server}/status"))
                .is_ok_and(|status| !status.contains("zombie"))
        {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Returns the process that serves the mount.
    pub(crate) fn server(&self) -> String {
        let busy = said(&frit(&["fsck", &self.image()]));
        let pid = busy.split("process ").nth(1).unwrap_or_else(|| panic!("{busy}"));
        pid.chars().take_while(char::is_ascii_digit).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        run("umount", &["-l", &self.at]);
    }
}

/// A script in Python under `frit exec`, which talks by lines. It gets one argument.
struct Script {
    program: Child,
    from: BufReader<ChildStdout>,
}

impl Script {
    fn start(place: &Place, script: &str, argument: &Path) -> Script {
        let mut program = Command::new("timeout")
            .args(["-k", "5", BOUND, env!("CARGO_BIN_EXE_frit"), "exec", "--report", "--mount", &place.at])
            .args(["--", "python3", "-c", script])
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let from = BufReader::new(program.stdout.take().unwrap());
        Script { program, from }
    }

    /// Returns the next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line
    }

    /// Ends its wait for a line.
    fn go_on(&mut self) {
        self.program.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Ends its input, and waits for its end.
    fn end(mut self) -> Output {
        drop(self.program.stdin.take());
        self.program.wait_with_output().unwrap()
    }
}

/// Returns the numbers of a report: reads and writes in memory, and accesses through the mount.
fn report(said: &str) -> (u64, u64, u64) {
    let line = said
        .lines()
        .rfind(|line| line.starts_with("[frit exec] process"))
        .unwrap_or_else(|| panic!("{said}"));
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [reads, writes, through] = numbers[..] else { panic!("{line}") };
    (reads, writes, through)
}

/// A file of tests, from the root of the sources.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name).canonicalize().unwrap()
}

/// Compiles a program in C.
pub(crate) fn compiled(place: &Place, name: &str) -> String {
    let source = source(&format!("crates/cli/tests/programs/{name}.c"));
    let program = place.root.path().join(name).to_str().unwrap().to_owned();
    good(&run("cc", &["-O1", "-w", "-pthread", "-o", &program, source.to_str().unwrap()]));
    program
}

#[test]
fn programs_find_what_they_find_on_any_file_system() {
    let Some(p) = Place::new(&[]) else { return };
    let program = compiled(&p, "direct");
    // The program itself is right: without frit exec, on the mount and elsewhere.
    good(&run(&program, &[p.root.path().join("elsewhere").to_str().unwrap()]));
    good(&run(&program, &[p.path("plain").to_str().unwrap()]));
    let said = good(&p.exec(&[&program, p.path("direct").to_str().unwrap()]));
    let (reads, writes, _) = report(&said);
    assert!(reads > 20_000 && writes > 10_000, "{said}");
    assert_eq!(fs::read(p.path("direct")).unwrap(), fs::read(p.path("plain")).unwrap());
    good(&frit(&["unmount", &p.at]));
    assert!(!Path::new(&format!("{}.direct", p.image())).exists());
    good(&frit(&["fsck", &p.image()]));
}

#[test]
fn calls_that_fail_threads_and_handlers_are_as_on_any_file_system() {
    let Some(p) = Place::new(&[]) else { return };
    let program = compiled(&p, "doubt");
    good(&run(&program, &[p.root.path().join("elsewhere").to_str().unwrap()]));
    good(&run(&program, &[p.path("plain").to_str().unwrap()]));
    for _ in 0..short_or_long(1, 3) {
        let said = good(&p.exec(&[&program, p.path("direct").to_str().unwrap()]));
        let (reads, writes, _) = report(&said);
        assert!(reads > 20_000 && writes > 20_000, "{said}");
    }
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
}

/// Runs one subject of `handlers.c`; returns its output under `frit exec`.
fn handlers(p: &Place, subject: &str) -> String {
    let program = compiled(p, "handlers");
    good(&run(&program, &[p.root.path().join("elsewhere").to_str().unwrap(), subject]));
    good(&run(&program, &[p.path("plain").to_str().unwrap(), subject]));
    let said = good(&p.exec(&[&program, p.path("direct").to_str().unwrap(), subject]));
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
    said
}

#[test]
fn a_thread_that_ends_while_it_writes_leaves_nothing_behind() {
    let Some(p) = Place::new(&[]) else { return };
    let said = handlers(&p, "threads");
    let (_, writes, _) = report(&said);
    // 100 writes of each of 40 open files, less those before its lease.
    assert!(writes > 3500, "{said}");
}

#[test]
fn handlers_of_signals_find_whole_writes() {
    let Some(p) = Place::new(&[]) else { return };
    let said = handlers(&p, "signals");
    let (reads, writes, _) = report(&said);
    assert!(reads > 1000 && writes > 100, "{said}");
}

#[test]
fn jumps_out_of_opens_leave_direct_access() {
    let Some(p) = Place::new(&[]) else { return };
    let said = handlers(&p, "opens");
    let (reads, _, _) = report(&said);
    assert!(reads >= 1_000_000 - 16, "{said}");
}

#[test]
fn masks_stacks_and_limits_of_a_program_are_kept() {
    let Some(p) = Place::new(&[]) else { return };
    let program = compiled(&p, "limits");
    let library = p.root.path().join("limits.so").to_str().unwrap().to_owned();
    let source = source("crates/cli/tests/programs/limits.c");
    let flags = ["-shared", "-fPIC", "-w", "-pthread", "-DCONSTRUCTOR", "-o", &library];
    good(&run("cc", &[&flags[..], &[source.to_str().unwrap()]].concat()));
    for subject in [
        "jump",
        "context",
        "coroutine",
        "old",
        "handler",
        "exchange",
        "stack",
        "alternate",
        "sent",
        "large",
        "size",
        "size-call",
        "size-process",
        "ulimit",
        "seccomp",
        "seccomp-prctl",
        "seccomp-call",
        "library",
    ] {
        good(&run(&program, &[p.root.path().join("elsewhere").to_str().unwrap(), subject, &library]));
        good(&run(&program, &[p.path("plain").to_str().unwrap(), subject, &library]));
        let said = good(&p.exec(&[&program, p.path("direct").to_str().unwrap(), subject, &library]));
        // A process under seccomp ends without a report.
        let reads = if subject.starts_with("seccomp") { 10 } else { report(&said).0 };
        assert!(reads >= 10, "{subject}: {said}");
    }
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
}

#[test]
fn a_write_through_the_mount_is_read_while_others_ask_for_leases() {
    let Some(p) = Place::new(&[]) else { return };
    let program = compiled(&p, "stale");
    let seconds = short_or_long("1.2", "6");
    good(&run(&program, &[p.root.path().join("elsewhere").to_str().unwrap(), "0.1"]));
    good(&run(&program, &[p.path("plain").to_str().unwrap(), seconds]));
    let said = good(&p.exec(&[&program, p.path("direct").to_str().unwrap(), seconds]));
    assert!(said.contains(" reads and "), "{said}");
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
}

#[test]
fn children_of_vfork_of_two_threads_find_their_own_files() {
    let Some(p) = Place::new(&[]) else { return };
    let said = handlers(&p, "vforks");
    // Accesses are direct again after the last child, also if the threads have ended.
    let (reads, _, _) = report(&said);
    assert!(reads >= 100_000 - 16, "{said}");
}

#[test]
fn sparse_files_stay_sparse() {
    let Some(p) = Place::new(&[]) else { return };
    let script = "import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 1 << 30)
for i in range(300): assert os.pwrite(fd, b'x' * 4096, i * 3 << 20) == 4096
for i in range(1 << 12): assert os.pwrite(fd, b'y' * 1000, (950 << 20) + i * 1000) == 1000
assert os.pread(fd, 4097, 3 << 20) == b'x' * 4096 + bytes(1)
os.ftruncate(fd, 1 << 30)
for i in range(20): assert os.pwrite(fd, b'z' * 4096, (1 << 30) + i * 4096) == 4096
for i in range(30): assert os.pwrite(fd, b'z' * 4096, (1 << 30) + (1 + i << 20)) == 4096
assert os.pread(fd, 4097, (1 << 30) + 80000) == b'z' * 1920 + bytes(2177)
print('kib', os.fstat(fd).st_blocks // 2)";
    let said = good(&p.exec(&["python3", "-c", script, p.path("a").to_str().unwrap()]));
    let kib: u64 = said.lines().find_map(|line| line.strip_prefix("kib ")).unwrap().parse().unwrap();
    // 300 blocks of 4 KiB, and up to twice what was written in order.
    assert!((5400..1400 + 2 * 4096).contains(&kib), "{said}");
    let (_, writes, through) = report(&said);
    assert!(writes > 4096 && through < 100, "{said}");
}

#[test]
fn programs_with_direct_access_the_mount_and_the_engine_see_the_same_bytes() {
    let Some(p) = Place::new(&[]) else { return };
    let stress = source("scripts/fs/direct_stress.py");
    let operations = short_or_long("400", "1600");
    for (seed, kill) in [("11", ""), ("13", "--kill")] {
        let args = [
            stress.to_str().unwrap(),
            "--frit",
            env!("CARGO_BIN_EXE_frit"),
            "--mount",
            &p.at,
            "--seed",
            seed,
        ];
        let args: Vec<&str> = args
            .into_iter()
            .chain(["--operations", operations, kill])
            .filter(|arg| !arg.is_empty())
            .collect();
        good(&run("python3", &args));
    }
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
}

#[test]
fn a_program_outlives_the_server_and_the_next_mount_is_safe() {
    let Some(p) = Place::new(&[]) else { return };
    fs::write(p.path("a"), vec![1; 1 << 20]).unwrap();
    let script = "import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
for i in range(100): os.pread(fd, 4096, i * 4096)
os.pwrite(fd, b'x' * 4096, 8192)
print('ready', flush=True)
sys.stdin.readline()
errors = 0
for i in range(50):
    try: os.pwrite(fd, b'y' * 4096, 16384)
    except OSError: errors += 1
print('errors', errors, flush=True)
sys.stdin.readline()";
    let mut program = Script::start(&p, script, &p.path("a"));
    assert_eq!(program.line(), "ready\n");
    p.kill_server();
    // The mount removes the old one, and ends the accesses of the program.
    p.mount();
    assert!(fs::read(p.path("a")).unwrap()[8192..12288].iter().all(|byte| *byte == b'x'));
    fs::write(p.path("a"), vec![2; 1 << 20]).unwrap();
    program.go_on();
    assert_eq!(program.line(), "errors 50\n", "the old mount is gone");
    assert!(fs::read(p.path("a")).unwrap().iter().all(|byte| *byte == 2), "no write reached the new one");
    program.end();
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
}

/// A server that grants a lease waits for the kernel, which may wait for a read that only the server can answer. Killed
/// then, it does not end by itself (about one of ten kills here).
#[test]
fn a_server_that_is_killed_while_the_kernel_drops_pages_leaves_its_image() {
    let Some(p) = Place::new(&[]) else { return };
    fs::write(p.path("a"), vec![1; 8 << 20]).unwrap();
    let script = "import os, sys
try:
    while True:
        fd = os.open(sys.argv[1], os.O_RDWR)
        if 'LD_PRELOAD' not in os.environ: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        for i in range(4): os.pread(fd, 1 << 20, i << 20)
        os.close(fd)
except OSError: pass";
    let start = |exec: &[&str]| {
        let words = [&["-k", "5", BOUND], exec, &["python3", "-c", script]].concat();
        Command::new("timeout").args(words).arg(p.path("a")).spawn().unwrap()
    };
    // Its first thread is left until somebody takes its status.
    let is_ending =
        |server: &str| fs::read_dir(format!("/proc/{server}/task")).is_ok_and(|all| all.count() > 1);
    let mut held = 0;
    let rounds = short_or_long(3, 20);
    for round in 0..rounds {
        let exec = [env!("CARGO_BIN_EXE_frit"), "exec", "--mount", &p.at, "--"];
        let mut programs = [start(&[]), start(&exec), start(&exec)];
        std::thread::sleep(std::time::Duration::from_millis(300 + round * 17));
        let server = p.server();
        p.kill_server();
        std::thread::sleep(std::time::Duration::from_millis(100));
        held += usize::from(is_ending(&server));
        if round % 2 == 0 {
            good(&frit(&["unmount", &p.at]));
            assert!((0..500).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                !is_ending(&server)
            }));
        }
        p.mount();
        for program in &mut programs {
            // timeout(1) is the first one of a group.
            run("kill", &["-9", "--", &format!("-{}", program.id())]);
            program.wait().unwrap();
        }
        assert!(fs::read(p.path("a")).unwrap().iter().all(|byte| *byte == 1));
    }
    eprintln!("{held} of {rounds} servers could not end by themselves");
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
}

/// A mount that begins after another one was killed can get its device number. A program that has mapped the first
/// image must not take it for the second one.
#[test]
fn a_program_never_takes_one_image_for_another() {
    let Some(p) = Place::new(&[]) else { return };
    let script = "import os, sys
def use(name, byte):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    for i in range(100): assert os.pwrite(fd, byte * 4096, i * 4096) == 4096
    for i in range(100): assert os.pread(fd, 4096, i * 4096) == byte * 4096, name
    return fd
old = [use(f'{sys.argv[1]}/old{i}', b'a') for i in range(12)]
print(os.stat(sys.argv[1]).st_dev, flush=True)
sys.stdin.readline()
for fd in old: os.close(fd)
print(0, flush=True)
sys.stdin.readline()
for i in range(12): use(f'{sys.argv[1]}/new{i}', b'b')
print(os.stat(sys.argv[1]).st_dev, flush=True)
sys.stdin.readline()";
    let mut program = Script::start(&p, script, Path::new(&p.at));
    let is_number = |line: &str| line.trim().parse::<u64>().is_ok();
    let first = program.line();
    assert!(is_number(&first), "{first}");
    p.kill_server();
    run("umount", &["-l", &p.at]);
    let other = p.root.path().join("other").to_str().unwrap().to_owned();
    good(&frit(&["mkfs", &other, "--size", "128M"]));
    program.go_on();
    assert_eq!(program.line(), "0\n");
    good(&frit(&["mount", &other, &p.at]));
    program.go_on();
    let second = program.line();
    assert!(is_number(&second), "{second}");
    if second != first {
        eprintln!("skipped: the second mount has another device number");
    }
    for i in 0..12 {
        let bytes = fs::read(p.path(&format!("new{i}"))).unwrap();
        assert!(bytes.len() == 100 * 4096 && bytes.iter().all(|byte| *byte == b'b'), "file {i}");
    }
    program.end();
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &other]));
    p.mount();
    for i in 0..12 {
        assert!(fs::read(p.path(&format!("old{i}"))).unwrap() == vec![b'a'; 100 * 4096], "file {i}");
    }
}

#[test]
fn a_stopped_program_holds_blocks_and_nothing_else() {
    let Some(p) = Place::new(&[]) else { return };
    fs::write(p.path("a"), vec![1; 8 << 20]).unwrap();
    // A program that copies nearly all of the time is stopped in a copy after some attempts.
    let script = "import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
while True: os.pwrite(fd, b'x' * (8 << 20), 0)";
    let mut program = Command::new(env!("CARGO_BIN_EXE_frit"))
        .args(["exec", "--mount", &p.at, "--", "python3", "-c", script])
        .arg(p.path("a"))
        .spawn()
        .unwrap();
    let pid = program.id().to_string();
    let mut held = false;
    for _ in 0..40 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        good(&run("kill", &["-STOP", &pid]));
        // Other files are not concerned, and reads of this one work.
        fs::write(p.path("b"), "b").unwrap();
        let file = fs::File::options().read(true).write(true).open(p.path("a")).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 5).unwrap();
        assert!(byte[0] == b'x' || byte[0] == 1);
        held = file.set_len(4096).is_err_and(|e| e.kind() == std::io::ErrorKind::ResourceBusy);
        if held {
            break;
        }
        file.set_len(8 << 20).unwrap();
        good(&run("kill", &["-CONT", &pid]));
    }
    assert!(held, "the program was never stopped in a copy");
    program.kill().unwrap();
    program.wait().unwrap();
    let file = fs::File::options().write(true).open(p.path("a")).unwrap();
    file.set_len(4096).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 4096);
}

#[test]
fn rights_are_those_of_the_mount_and_of_the_image() {
    let Some(p) = Place::new(&[]) else { return };
    fs::write(p.path("secret"), vec![7; 100_000]).unwrap();
    fs::set_permissions(p.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(p.path("open"), vec![7; 100_000]).unwrap();
    fs::set_permissions(p.path("open"), fs::Permissions::from_mode(0o644)).unwrap();
    let read = "import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for i in range(100): assert os.pread(fd, 1000, i * 1000) == bytes([7]) * 1000
try: os.pwrite(fd, b'x', 0)
except OSError: print('no write')";
    // The program may be in a directory that only root may search.
    let program = p.root.path().join("frit");
    fs::copy(env!("CARGO_BIN_EXE_frit"), &program).unwrap();
    let as_nobody = |name: &str| {
        let shell = format!(
            "TMPDIR=/tmp {} exec --report --mount {} -- python3 -c \"$0\" {}",
            program.display(),
            p.at,
            p.path(name).display()
        );
        let who = ["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", &shell, read];
        run("setpriv", &who)
    };
    for mode in [0o600, 0o666] {
        fs::set_permissions(p.image(), fs::Permissions::from_mode(mode)).unwrap();
        let out = as_nobody("secret");
        assert!(!out.status.success() && said(&out).contains("PermissionError"), "{}", said(&out));
        let said = good(&as_nobody("open"));
        assert!(said.contains("no write"), "{said}");
        // Holes are not filled by a request of somebody who may not write.
        let ask = "import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
size = 7 * 8 + 400 * 24
request = 3 << 30 | size << 16 | ord('F') << 8 | 0x73
try: fcntl.ioctl(fd, request, bytearray(struct.pack('QQ', 0, 8192).ljust(size, b'\\0')))
except PermissionError: print('refused')";
        let holes =
            ["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", "python3 -c \"$0\" \"$1\"", ask];
        let out = good(&run("setpriv", &[&holes[..], &[p.path("open").to_str().unwrap()]].concat()));
        assert!(out.contains("refused"), "{out}");
        if mode == 0o600 {
            assert!(said.contains("direct access needs permission to write the image"), "{said}");
        }
    }
}

#[test]
fn what_has_no_direct_access_says_why() {
    let Some(p) = Place::new(&["--data-checksums"]) else { return };
    let out = frit(&["exec", "--check", "--mount", &p.at]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        said(&out).contains("no direct access: ") && said(&out).contains("an image with checksums"),
        "{}",
        said(&out)
    );
    // Programs run all the same.
    fs::write(p.path("a"), "text").unwrap();
    let said_by_cat = good(&p.exec(&["cat", p.path("a").to_str().unwrap()]));
    assert!(said_by_cat.contains("text") && said_by_cat.contains("an image with checksums"), "{said_by_cat}");
    let out = p.exec(&["/no/such/program"]);
    assert!(!out.status.success() && said(&out).contains("cannot run /no/such/program"), "{}", said(&out));
    let out = frit(&["exec", "--mount", "/proc", "--", "true"]);
    assert!(said(&out).contains("/proc: not a mount of this version of frit"), "{}", said(&out));
    let out = frit(&["exec"]);
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
}

#[test]
fn a_killed_server_loses_no_acknowledged_append() {
    let Some(p) = Place::new(&[]) else { return };
    let script = "import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for i in range(20000): os.write(fd, b'line %d\\n' % i)
print('ready', flush=True)
sys.stdin.readline()";
    let mut program = Script::start(&p, script, &p.path("log"));
    assert_eq!(program.line(), "ready\n");
    p.kill_server();
    p.mount();
    let want: String = (0..20_000).map(|i| format!("line {i}\n")).collect();
    assert!(fs::read_to_string(p.path("log")).unwrap() == want);
    let text = said(&program.end());
    let (_, writes, _) = report(&text);
    assert!(writes > 19_900, "{text}");
    good(&frit(&["unmount", &p.at]));
    good(&frit(&["fsck", &p.image()]));
}
