//! Command files of a mount.

use super::{Mounted, error, sh_as};
use frit_direct::begin_instructions;
use frit_fs::{FileSystem, RegisterStatus, read_registers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn command(directory: &Path) -> File {
    let file = OpenOptions::new().read(true).write(true).open(directory.join(".isp")).unwrap();
    begin_instructions(&file, false).unwrap();
    file
}

/// Returns a script whose `BEGIN` begins instructions of the command file on descriptor 3, as `frit isp begin`.
fn with_begin(script: &str) -> String {
    script.replace("BEGIN", r#"python3 -c "import fcntl; fcntl.ioctl(0, 0x40044675, bytes(4))" <&3"#)
}

/// Gives one instruction, and returns the line of its result.
fn ask(file: &File, instruction: &str) -> String {
    let mut file = file;
    file.write_all(instruction.as_bytes()).unwrap();
    let mut all = Vec::new();
    let mut part = [0; 8192];
    while !all.contains(&b'\n') {
        let len = file.read(&mut part).unwrap();
        assert!(len > 0, "{instruction}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&part[..len]);
    }
    String::from_utf8(all).unwrap()
}

/// Returns the niceness of a thread, the 19th field of its line in proc(5), if it has a name that begins so.
fn niceness(thread: &Path, name: &str) -> Option<i32> {
    // The name is in parentheses, and the thread may end at any time.
    let line = fs::read_to_string(thread.join("stat")).ok()?;
    let (begin, fields) = line.rsplit_once(") ")?;
    begin.split_once('(')?.1.starts_with(name).then(|| fields.split(' ').nth(16)?.parse().ok())?
}

#[test]
fn threads_of_requests_go_before_those_of_the_engine() {
    let Some(m) = Mounted::new("") else { return };
    // Longer than what the thread that takes the instruction scans itself.
    fs::write(m.path("f"), vec![b'a'; 1 << 20]).unwrap();
    let said = ask(&command(&m.at), r#"{"words": ["a"], "file": "f"}"#);
    assert!(said.contains(r#""count":1048576"#), "{said}");
    let threads = fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let seen: Vec<_> = threads.filter_map(|thread| niceness(&thread, "frit-isp-")).collect();
    assert!(seen.contains(&10), "{seen:?}");
    m.stop();
}

#[test]
fn instructions_reach_the_engine_and_results_come_back() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir(m.path("logs")).unwrap();
    let text = "an error\nno problem\nerror error\n".repeat(1000);
    fs::write(m.path("logs/a.txt"), &text).unwrap();
    let file = command(&m.path("logs"));
    let said = ask(&file, r#"{"words": ["error", "problem"], "positions": 2, "file": "a.txt"}"#);
    assert!(said.contains(r#"{"word":"error","count":3000,"positions":[3,20]}"#), "{said}");
    assert!(said.contains(r#"{"word":"problem","count":1000,"positions":[12,44]}"#), "{said}");
    assert!(said.contains(&format!(r#""bytes_scanned":{}"#, text.len())), "{said}");
    // From the directory above, and by the inode number.
    let above = command(&m.at);
    let said = ask(&above, r#"{"words": ["error"], "file": "logs/a.txt", "offset": 3, "length": 5}"#);
    assert!(said.contains(r#""count":1"#), "{said}");
    let ino = std::os::unix::fs::MetadataExt::ino(&fs::metadata(m.path("logs/a.txt")).unwrap());
    let by_number = format!(r#"{{"words": ["error"], "inode": {ino}}}"#);
    assert!(ask(&file, &by_number).contains(r#""count":3000"#));
    assert!(
        ask(&above, &by_number).contains(r#""status":"not-found""#),
        "a number is searched in its directory"
    );
    // A shell, with a payload after the line of the result.
    let script = r#"exec 3<>.isp; BEGIN; echo '{"filter": {"regex": "^no"}, "limit": 2, "file": "a.txt"}' >&3; cat <&3"#;
    let said = sh_as(0, &m.path("logs"), &with_begin(script));
    assert!(said.ends_with("no problem\nno problem"), "{said}");
    // A copy writes another file.
    fs::write(m.path("logs/out.txt"), "").unwrap();
    let said = ask(&file, r#"{"copy": {"words": ["problem"]}, "to": "out.txt", "file": "a.txt"}"#);
    assert!(said.contains(r#""records":1000"#), "{said}");
    assert_eq!(fs::read_to_string(m.path("logs/out.txt")).unwrap(), "no problem\n".repeat(1000));
    // The file that is read, by other names.
    fs::hard_link(m.path("logs/a.txt"), m.path("logs/hard")).unwrap();
    std::os::unix::fs::symlink("a.txt", m.path("logs/symbolic")).unwrap();
    for name in ["hard", "symbolic"] {
        let copy = format!(r#"{{"copy": {{"words": ["problem"]}}, "to": "{name}", "file": "a.txt"}}"#);
        let said = ask(&file, &copy);
        assert!(said.contains("the one that the instruction reads"), "{said}");
    }
    drop((file, above));
    m.stop();
}

/// Assembles an example of `examples/isp`.
fn module(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/isp");
    wat::parse_file(directory.join(name)).unwrap()
}

#[test]
fn programs_run_and_those_that_fail_are_stopped() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir(m.path("bin")).unwrap();
    fs::create_dir(m.path("logs")).unwrap();
    fs::write(m.path("bin/count.wasm"), module("line_count.wat")).unwrap();
    fs::write(m.path("logs/a.txt"), "a line\n".repeat(100_000)).unwrap();
    // A hole over several blocks and parts.
    let sparse = File::create(m.path("logs/sparse")).unwrap();
    sparse.write_all_at(b"\n\n", 9 << 20).unwrap();
    let file = command(&m.at);
    let program = |name: &str, target: &str, more: &str| {
        format!(r#"{{"program": "bin/{name}.wasm", "file": "logs/{target}"{more}}}"#)
    };
    let counted = |target: &str, expected: &str| {
        let said = ask(&file, &program("count", target, ""));
        let payload = said.split_once('\n').unwrap().1.to_owned();
        let rest = if payload.is_empty() {
            let mut rest = [0; 64];
            let len = (&file).read(&mut rest).unwrap();
            String::from_utf8(rest[..len].to_vec()).unwrap()
        } else {
            payload
        };
        assert!(said.starts_with(r#"{"status":"ok""#) && rest == expected, "{said}{rest}");
    };
    counted("a.txt", "100000\n");
    counted("sparse", "2\n");
    for (name, more, status) in [
        ("loops", r#", "time_ms": 30"#, "out-of-time"),
        ("loops", r#", "fuel": 1000000"#, "out-of-fuel"),
        ("grows", r#", "memory": 1048576"#, "out-of-memory"),
        ("reads_out_of_range", "", "trap"),
        ("reads_behind_the_file", "", "trap"),
    ] {
        fs::write(m.path(&format!("bin/{name}.wasm")), module(&format!("failing/{name}.wat"))).unwrap();
        let said = ask(&file, &program(name, "a.txt", more));
        assert!(
            said.starts_with(&format!(r#"{{"status":"{status}","error":"the program"#)),
            "{name}: {said}"
        );
        counted("a.txt", "100000\n");
    }
    // A closed command file ends a program, and the file can be read and written meanwhile.
    let closed = command(&m.at);
    (&closed).write_all(program("loops", "a.txt", r#", "time_ms": 600000"#).as_bytes()).unwrap();
    let target = OpenOptions::new().read(true).write(true).open(m.path("logs/a.txt")).unwrap();
    target.write_all_at(b"\n", 3).unwrap();
    let mut byte = [0];
    target.read_exact_at(&mut byte, 3).unwrap();
    drop(closed);
    counted("a.txt", "100001\n");
    drop((file, sparse, target));
    m.stop();
}

#[test]
fn a_module_needs_the_right_to_read_it() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("count.wasm"), module("line_count.wat")).unwrap();
    fs::write(m.path("f"), "1\n").unwrap();
    let script = with_begin(
        r#"exec 3<>.isp; BEGIN; echo '{"program": "count.wasm", "file": "f"}' >&3; head -n 1 <&3"#,
    );
    for (mode, uid, status) in
        [(0o600, 0, "ok"), (0o600, 1000, "denied"), (0o644, 1000, "ok"), (0o311, 1000, "denied")]
    {
        fs::set_permissions(m.path("count.wasm"), fs::Permissions::from_mode(mode)).unwrap();
        let said = sh_as(uid, &m.at, &script);
        assert!(said.starts_with(&format!(r#"{{"status":"{status}""#)), "{mode:o} {uid}: {said}");
    }
    m.stop();
}

#[test]
fn a_number_finds_no_file_whose_name_may_not_be_listed() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir(m.path("drop")).unwrap();
    fs::write(m.path("drop/secret-name"), "text").unwrap();
    let ino = std::os::unix::fs::MetadataExt::ino(&fs::metadata(m.path("drop/secret-name")).unwrap());
    let by_number = format!(r#"{{"checksum": "xxh3", "inode": {ino}}}"#);
    let by_name = r#"{"checksum": "xxh3", "file": "secret-name"}"#;
    for (mode, number) in [(0o711, "denied"), (0o755, "ok")] {
        for (instruction, status) in [(&*by_number, number), (by_name, "ok")] {
            // The command file is opened while the directory may be listed.
            let script = format!(
                "import fcntl, os\nos.chmod('.', 0o755)\nos.setgroups([])\nos.setegid(1000)\nos.seteuid(1000)\n\
                 f = os.open('.isp', os.O_RDWR)\nfcntl.ioctl(f, 0x40044675, bytes(4))\nos.seteuid(0)\n\
                 os.chmod('.', {mode})\nos.seteuid(1000)\nos.write(f, b'{instruction}')\n\
                 print(os.read(f, 4096).decode())"
            );
            let said = Command::new("python3").args(["-c", &script]).current_dir(m.path("drop")).output();
            let said = String::from_utf8(said.unwrap().stdout).unwrap();
            assert!(said.starts_with(&format!(r#"{{"status":"{status}""#)), "{mode:o} {instruction}: {said}");
        }
    }
    m.stop();
}

#[test]
fn a_command_file_is_neither_listed_nor_in_the_way() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir_all(m.path("a/b")).unwrap();
    assert_eq!(sh_as(0, &m.path("a"), "ls -A"), "b");
    let said = sh_as(
        0,
        &m.path("a"),
        "stat -c '%F %s %a' .isp; touch .isp; rm .isp; mv .isp x; ln .isp y; mkdir .isp",
    );
    assert!(said.starts_with("regular empty file 0 666\n"), "{said}");
    assert_eq!(said.matches("not permitted").count(), 3, "{said}");
    assert!(said.contains("File exists"), "{said}");
    assert_eq!(sh_as(0, &m.at, "rm -r a && ls -A"), "");
    m.stop();
}

#[test]
fn a_command_file_is_a_pipe_without_an_end() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), vec![b'x'; 1 << 20]).unwrap();
    let mut file = command(&m.at);
    // Without an instruction, a read returns no bytes.
    assert_eq!(file.read(&mut [0; 10]).unwrap(), 0);
    assert_eq!(error(file.seek(SeekFrom::Start(0))), Errno::SPIPE.raw_os_error());
    assert_eq!(error(file.read_at(&mut [0; 10], 0)), Errno::SPIPE.raw_os_error());
    assert_eq!(error(file.set_len(0)), Errno::PERM.raw_os_error());
    // Two open files have instructions and results of their own.
    let other = command(&m.at);
    (&other).write_all(br#"{"checksum": "crc32c", "file": "f"}"#).unwrap();
    assert!(ask(&file, r#"{"words": ["xx"], "file": "f"}"#).contains(r#""count":1048575"#));
    let mut said = String::new();
    (&other).read_to_string(&mut said).unwrap();
    let sum = format!("{:08x}", frit_media::checksum::crc32c(&vec![b'x'; 1 << 20]));
    assert!(said.contains(&sum), "{said}");
    let wrong = ask(&file, "{\"words\": [\"xx\"], \"fil\": \"f\"}\n");
    assert!(wrong.contains(r#""status":"invalid""#) && wrong.contains("fil"), "{wrong}");
    drop((file, other));
    m.stop();
}

#[test]
fn a_poll_waits_for_a_result() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), vec![b'x'; 32 << 20]).unwrap();
    let nonblocking = Errno::AGAIN.raw_os_error();
    let mut file = self::nonblocking(&m.at);
    let mut waited = 0;
    for round in 0..20 {
        file.write_all(br#"{"checksum": "sha256", "file": "f"}"#).unwrap();
        let first = file.read(&mut [0; 4096]);
        if first.is_err() {
            assert_eq!(error(first), nonblocking);
            waited += 1;
            let mut polled = [PollFd::new(&file, PollFlags::IN)];
            let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert_eq!(poll(&mut polled, Some(&limit)).unwrap(), 1, "round {round}");
            assert!(polled[0].revents().contains(PollFlags::IN));
            let mut line = [0; 4096];
            let len = file.read(&mut line).unwrap();
            assert!(line[..len].starts_with(br#"{"status":"ok""#));
        }
    }
    assert!(waited > 0, "no result was waited for");
    // Regular files are always ready.
    let regular = File::open(m.path("f")).unwrap();
    let mut polled = [PollFd::new(&regular, PollFlags::IN)];
    assert_eq!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap(), 1);
    drop((file, regular));
    m.stop();
}

/// Opens a command file with O_NONBLOCK.
fn nonblocking(directory: &Path) -> File {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(flags).open(directory.join(".isp")).unwrap();
    begin_instructions(&file, false).unwrap();
    file
}

/// Reads results until there is none, and returns the number of reads.
fn drain(mut file: &File) -> usize {
    let mut reads = 0;
    while file.read(&mut [0; 4096]).is_ok_and(|len| len > 0) {
        reads += 1;
    }
    reads
}

/// Returns the processor time of this process, which answers the requests.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[test]
fn polls_of_idle_command_files_end_after_their_time() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), "word").unwrap();
    let (fresh, read, begun) = (command(&m.at), command(&m.at), command(&m.at));
    ask(&read, r#"{"words": ["word"], "file": "f"}"#);
    (&begun).write_all(br#"{"words": "#).unwrap();
    let wait = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    for (what, file, events) in [
        ("no instruction", &fresh, PollFlags::IN),
        ("all results were read", &read, PollFlags::IN),
        ("an incomplete instruction", &begun, PollFlags::IN),
        ("no priority data", &fresh, PollFlags::PRI),
    ] {
        let (began, used) = (std::time::Instant::now(), processor_time());
        let mut polled = [PollFd::new(file, events)];
        assert_eq!(poll(&mut polled, Some(&wait)).unwrap(), 0, "{what}");
        let (waited, used) = (began.elapsed(), processor_time().saturating_sub(used));
        assert!(waited >= Duration::from_millis(199), "{what}: {waited:?}");
        // Other tests of this process run meanwhile; a poll without end took minutes.
        assert!(waited < Duration::from_secs(20), "{what}: {waited:?}, {used:?} of processors");
        let mut polled = [PollFd::new(file, events | PollFlags::OUT)];
        assert_eq!(poll(&mut polled, None).unwrap(), 1, "{what}");
        assert_eq!(polled[0].revents(), PollFlags::OUT, "{what}");
    }
    // In another process, as most programs. A wait of one idle and one busy file ends with the latter.
    let script = r#"import fcntl, os, select
idle, busy = (os.open(".isp", os.O_RDWR) for _ in range(2))
fcntl.ioctl(busy, 0x40044675, bytes(4))
print(select.select([idle], [], [], 0.2), end=" ")
os.write(busy, b'{"checksum": "sha256", "file": "f"}')
print(select.select([idle, busy], [], [], 60)[0] == [busy], end=" ")
e = select.epoll()
e.register(idle, select.EPOLLIN)
print(e.poll(0.2))"#;
    let mut python = Command::new("timeout");
    let said = python.args(["-k", "5", "60", "python3", "-c", script]).current_dir(&m.at).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert_eq!(said, "([], [], []) True []\n");
    drop((fresh, read, begun));
    m.stop();
}

#[test]
fn edge_triggered_waits_get_an_event_for_each_result() {
    use rustix::event::epoll;
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("short"), "word").unwrap();
    fs::write(m.path("long"), vec![b'x'; 8 << 20]).unwrap();
    let file = nonblocking(&m.at);
    let waits = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&waits, &file, epoll::EventData::new_u64(7), flags).unwrap();
    let event = |seconds: i64| {
        let mut events = Vec::with_capacity(4);
        let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
        epoll::wait(&waits, rustix::buffer::spare_capacity(&mut events), Some(&limit)).unwrap();
        events.len()
    };
    for name in ["short", "long", "short", "short", "long"] {
        let instruction = format!("{{\"checksum\": \"sha256\", \"file\": \"{name}\"}}\n");
        (&file).write_all(instruction.as_bytes()).unwrap();
        let mut reads = 0;
        while reads == 0 {
            assert_eq!(event(60), 1, "{name}");
            reads = drain(&file);
        }
    }
    // Two at a time: each event is followed by a read to the end.
    for name in ["short", "long"] {
        let instruction = format!("{{\"checksum\": \"sha256\", \"file\": \"{name}\"}}\n");
        (&file).write_all(instruction.as_bytes()).unwrap();
    }
    let mut results = 0;
    while results < 2 {
        assert_eq!(event(60), 1);
        results += drain(&file);
    }
    drop(file);
    m.stop();
}

#[test]
fn a_poll_for_room_ends_when_another_thread_reads() {
    let Some(m) = Mounted::new("") else { return };
    let file = nonblocking(&m.at);
    (&file).write_all(&b"{\"wrong\": 1}\n".repeat(16)).unwrap();
    assert_eq!(error((&file).write(b"{\"wrong\": 1}\n")), Errno::AGAIN.raw_os_error());
    std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            assert!((&file).read(&mut [0; 4096]).unwrap() > 0);
        });
        let mut polled = [PollFd::new(&file, PollFlags::OUT)];
        let (began, limit) = (std::time::Instant::now(), Timespec { tv_sec: 60, tv_nsec: 0 });
        assert_eq!(poll(&mut polled, Some(&limit)).unwrap(), 1);
        // At the end of its time, a poll looks once more.
        assert!(began.elapsed() < Duration::from_secs(30), "the read ends it");
    });
    (&file).write_all(b"{\"wrong\": 1}\n").unwrap();
    drop(file);
    m.stop();
}

/// Starts a program in a shell that gives an instruction, and waits in a read of its result.
fn reader(directory: &Path, instruction: &str) -> std::process::Child {
    let script = with_begin(&format!("exec 3<>.isp; BEGIN; echo '{instruction}' >&3; exec cat <&3"));
    let mut reader = Command::new("sh");
    let reader = reader.args(["-c", &script]).current_dir(directory).stdout(Stdio::null()).spawn().unwrap();
    let comm = format!("/proc/{}/comm", reader.id());
    super::wait_until(|| fs::read_to_string(&comm).is_ok_and(|name| name == "cat\n"));
    // It reads soon; what follows holds before as well.
    std::thread::sleep(Duration::from_millis(50));
    reader
}

/// Instruction that takes ten minutes of a processor.
const LOOPS: &str = r#"{"program": "loops.wasm", "file": "f", "time_ms": 600000}"#;

#[test]
fn instructions_of_a_program_that_is_killed_are_cancelled() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("loops.wasm"), module("failing/loops.wat")).unwrap();
    fs::write(m.path("f"), "a line\n").unwrap();
    for signal in [rustix::process::Signal::KILL, rustix::process::Signal::TERM] {
        let mut reader = reader(&m.at, LOOPS);
        let sets = || read_registers(m.files.medium()).unwrap();
        let is_running = || sets().iter().any(|set| set.status == RegisterStatus::Running);
        super::soon("the instruction runs", is_running);
        rustix::process::kill_process(rustix::process::Pid::from_child(&reader), signal).unwrap();
        reader.wait().unwrap();
        super::soon("the instruction is cancelled", || !is_running());
        assert!(sets().iter().any(|set| set.error == 5), "{:?}", sets());
    }
    m.stop();
}

#[test]
fn an_unmount_cancels_instructions_before_the_file_system_is_closed() {
    for _ in 0..5 {
        let Some(m) = Mounted::new("") else { return };
        fs::write(m.path("loops.wasm"), module("failing/loops.wat")).unwrap();
        fs::write(m.path("f"), "a line\n").unwrap();
        let mut reader = reader(&m.at, LOOPS);
        reader.kill().unwrap();
        reader.wait().unwrap();
        let files = m.stop();
        assert_eq!(std::sync::Arc::strong_count(&files), 1, "the file system is not in use");
    }
}

#[test]
fn a_program_that_is_killed_while_it_reads_a_result_ends() {
    let Some(m) = Mounted::new("") else { return };
    // A checksum of holes that takes minutes.
    File::create(m.path("f")).unwrap().set_len(1 << 40).unwrap();
    let mut reader = reader(&m.at, r#"{"checksum": "sha256", "file": "f"}"#);
    // A stop interrupts the read without ending it.
    let reads = rustix::process::Pid::from_child(&reader);
    for signal in [rustix::process::Signal::STOP, rustix::process::Signal::CONT] {
        rustix::process::kill_process(reads, signal).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(reader.try_wait().unwrap().is_none(), "it still waits");
    reader.kill().unwrap();
    super::wait_until(|| reader.try_wait().unwrap().is_some());
    m.stop();
}

#[test]
fn a_query_has_the_rights_of_its_author() {
    let Some(m) = Mounted::new("") else { return };
    let set = |path: &str, mode| fs::set_permissions(m.path(path), fs::Permissions::from_mode(mode)).unwrap();
    for directory in ["open", "closed"] {
        fs::create_dir(m.path(directory)).unwrap();
        for (name, mode) in [("all", 0o644), ("own", 0o600), ("group", 0o640)] {
            let path = format!("{directory}/{name}");
            fs::write(m.path(&path), "secret").unwrap();
            set(&path, mode);
            std::os::unix::fs::chown(m.path(&path), Some(0), Some(77)).unwrap();
        }
    }
    set("closed", 0o700);
    let ask = |uid: u32, groups: &str, path: &str| {
        let script = format!(
            "import fcntl, os\nos.setgroups([{groups}])\nos.setgid(4000)\nos.setuid({uid})\nf = os.open('.isp', os.O_RDWR)\n\
             fcntl.ioctl(f, 0x40044675, bytes(4))\nos.write(f, b'{{\"words\": [\"secret\"], \"file\": \"{path}\"}}')\nprint(os.read(f, 4096).decode())"
        );
        let output = Command::new("python3").args(["-c", &script]).current_dir(&m.at).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let found = r#""count":1"#;
    let denied = r#""status":"denied""#;
    for (uid, groups, path, expected) in [
        (0, "", "closed/own", found),
        (1000, "", "open/all", found),
        (1000, "", "open/own", denied),
        (1000, "", "open/group", denied),
        (1000, "5, 77", "open/group", found),
        (1000, "77", "closed/group", denied),
        (1000, "", "closed/all", denied),
        (1000, "", "closed/missing", denied),
        (1000, "", "open/missing", r#""status":"not-found""#),
    ] {
        let said = ask(uid, groups, path);
        assert!(said.contains(expected), "user {uid} of {groups:?}, {path}: {said}");
    }
    // Someone who may not search a directory cannot name a file by its number either, and a symbolic link
    // does not lead out of the file system.
    std::os::unix::fs::symlink("/etc/passwd", m.path("open/link")).unwrap();
    std::os::unix::fs::symlink("all", m.path("open/near")).unwrap();
    assert!(ask(1000, "", "open/link").contains("absolute path"));
    assert!(ask(1000, "", "open/near").contains(found));
    m.stop();
}

/// Gives an instruction from a program, and returns the line of the result. `prefix` starts the program, such as
/// setpriv with its options.
fn ask_as(prefix: &str, directory: &Path, instruction: &str) -> String {
    let script =
        with_begin(r#"exec 3<>.isp; BEGIN; printf "%s\n" "$1" >&3; IFS= read -r line <&3; echo "$line""#);
    sh_as(0, directory, &format!("exec {prefix} sh -c '{script}' sh '{instruction}'"))
}

#[test]
fn user_0_without_capabilities_has_the_rights_of_a_user() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir(m.path("closed")).unwrap();
    for name in ["own", "foreign", "closed/all", "root"] {
        fs::write(m.path(name), "secret").unwrap();
        fs::set_permissions(m.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    for name in ["foreign", "closed"] {
        std::os::unix::fs::chown(m.path(name), Some(1000), Some(1000)).unwrap();
    }
    fs::set_permissions(m.path("closed/all"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(m.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    let words = |file: &str| format!(r#"{{"words": ["secret"], "file": "{file}"}}"#);
    let copy = r#"{"copy": {"words": ["secret"]}, "to": "foreign", "file": "root"}"#.to_owned();
    let (found, denied) = (r#""count":1"#, r#""status":"denied""#);
    let none = "setpriv --bounding-set -all --inh-caps -all";
    let no_override = "setpriv --bounding-set -dac_override --inh-caps -dac_override";
    for (prefix, instruction, expected) in [
        ("", words("foreign"), found),
        ("", words("closed/all"), found),
        ("", copy.clone(), r#""status":"ok""#),
        (none, words("foreign"), denied),
        (none, words("closed/all"), denied),
        (none, words("root"), found),
        (none, copy.clone(), denied),
        // CAP_DAC_READ_SEARCH reads and searches, and does not write.
        (no_override, words("foreign"), found),
        (no_override, words("closed/all"), found),
        (no_override, copy, denied),
        // Capabilities of a namespace of its own.
        ("unshare --user --map-root-user", words("foreign"), denied),
    ] {
        let said = ask_as(prefix, &m.at, &instruction);
        if said.contains("unshare failed") {
            continue;
        }
        assert!(said.contains(expected), "{prefix} {instruction}: {said}");
    }
    m.stop();
}

#[test]
fn a_copy_removes_privileges_as_a_write_does() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), "a line\n").unwrap();
    let copy = |words: &str| format!(r#"{{"copy": {{"words": ["{words}"]}}, "to": "program", "file": "f"}}"#);
    // CAP_DAC_OVERRIDE of version 2, little-endian.
    let capability: Vec<u8> = [0x0200_0001_u32, 2, 0, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let mode = || fs::metadata(m.path("program")).unwrap().permissions().mode() & 0o7777;
    let has_capability =
        || getxattr(m.path("program"), "security.capability", &mut [0_u8; 64][..]).is_ok_and(|len| len > 0);
    let user = "setpriv --reuid 1000 --regid 1000 --clear-groups";
    for (prefix, words, expected) in [
        (user, "line", (0o777, false)),
        ("setpriv --bounding-set -fsetid --inh-caps -fsetid", "line", (0o777, false)),
        ("", "line", (0o6777, false)),
        (user, "nothing is written", (0o6777, true)),
    ] {
        fs::write(m.path("program"), "old").unwrap();
        fs::set_permissions(m.path("program"), fs::Permissions::from_mode(0o6777)).unwrap();
        setxattr(m.path("program"), "security.capability", &capability, XattrFlags::empty()).unwrap();
        assert_eq!((mode(), has_capability()), (0o6777, true));
        let said = ask_as(prefix, &m.at, &copy(words));
        assert!(said.contains(r#""status":"ok""#), "{prefix}: {said}");
        assert_eq!((mode(), has_capability()), expected, "{prefix}, {words}");
    }
    m.stop();
}

#[test]
fn a_copy_has_the_limit_of_file_sizes_of_its_author() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), "a line\n".repeat(10_000)).unwrap();
    fs::write(m.path("to"), "").unwrap();
    let copy = |at: u64| {
        format!(r#"{{"copy": {{"words": ["line"]}}, "to": "to", "at": {at}, "limit": 1000, "file": "f"}}"#)
    };
    let len = || fs::metadata(m.path("to")).unwrap().len();
    let said = ask_as("prlimit --fsize=1000", &m.at, &copy(0));
    assert!(said.contains(r#""status":"io""#) && said.contains("at most 1000 bytes (ulimit -f)"), "{said}");
    assert_eq!(len(), 1000);
    let said = ask_as("prlimit --fsize=1000", &m.at, &copy(5000));
    assert!(said.contains("at most 1000 bytes"), "{said}");
    assert_eq!(len(), 1000);
    assert!(ask_as("prlimit --fsize=7000", &m.at, &copy(0)).contains(r#""status":"ok""#));
    assert_eq!(len(), 7000);
    assert!(ask_as("", &m.at, &copy(1000)).contains(r#""status":"ok""#));
    assert_eq!(len(), 8000);
    m.stop();
}

#[test]
fn a_mount_that_gathers_writes_allows_no_copy() {
    let Some(m) = Mounted::new("writeback") else { return };
    fs::write(m.path("to"), "old").unwrap();
    let target = OpenOptions::new().append(true).create(true).open(m.path("f")).unwrap();
    (&target).write_all(b"a line\n").unwrap();
    target.sync_all().unwrap();
    let file = command(&m.at);
    let said = ask(&file, r#"{"copy": {"words": ["line"]}, "to": "to", "file": "f"}"#);
    assert!(said.contains("--writeback allows no copy"), "{said}");
    assert!(said.contains("mount without --writeback"), "{said}");
    assert_eq!(fs::read(m.path("to")).unwrap(), b"old");
    // Queries read what was synced.
    let words = r#"{"words": ["line"], "file": "f"}"#;
    assert!(ask(&file, words).contains(r#""count":1"#));
    (&target).write_all(b"another line\n").unwrap();
    target.sync_all().unwrap();
    assert!(ask(&file, words).contains(r#""count":2"#));
    drop((target, file));
    m.stop();
}

#[test]
fn an_open_command_file_outlives_its_directory() {
    let Some(m) = Mounted::new("") else { return };
    fs::create_dir(m.path("d")).unwrap();
    fs::write(m.path("d/f"), "word").unwrap();
    let mut file = command(&m.path("d"));
    assert!(ask(&file, r#"{"words": ["word"], "file": "f"}"#).contains(r#""count":1"#));
    // A result that was not read is still there.
    file.write_all(br#"{"words": ["or"], "file": "f"}"#).unwrap();
    fs::remove_file(m.path("d/f")).unwrap();
    fs::remove_dir(m.path("d")).unwrap();
    let mut said = String::new();
    file.read_to_string(&mut said).unwrap();
    assert!(said.contains(r#""count":1"#), "{said}");
    assert_eq!(error(file.write(b"{}")), Errno::NOENT.raw_os_error());
    drop(file);
    super::soon("the directory and its command file are freed", || super::inodes(&m.files) == 2);
    m.stop();
}

#[test]
fn the_registers_show_instructions() {
    let Some(m) = Mounted::new("") else { return };
    fs::write(m.path("f"), "word after word").unwrap();
    let file = command(&m.at);
    ask(&file, r#"{"words": ["word", "none"], "positions": 1, "file": "f"}"#);
    drop(file);
    let files = m.stop();
    let sets = read_registers(files.medium()).unwrap();
    let ino = files.lookup(&frit_fs::Caller::ROOT, frit_fs::Ino::ROOT, b"f").unwrap().ino;
    let set = &sets[0];
    assert_eq!((set.status, set.number, set.command, set.ino), (RegisterStatus::Complete, 1, 1, ino.0));
    assert_eq!((&set.counts[..2], &set.firsts[..2]), (&[2, 0][..], &[0, u64::MAX][..]));
    assert_eq!((set.queries[0].as_slice(), set.scanned), (&b"word"[..], 15));
}

/// Returns the number after a key of a result.
fn number(result: &str, key: &str) -> u64 {
    let (_, rest) = result.split_once(&format!("\"{key}\":")).unwrap();
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn the_engine_waits_for_reads_of_the_mount() {
    let Some(m) = Mounted::new("") else { return };
    if super::image_only("the kernel reads a pool without requests") {
        return;
    }
    fs::write(m.path("f"), vec![b'x'; 16 << 20]).unwrap();
    let file = command(&m.at);
    let query = r#"{"words": ["none"], "file": "f"}"#;
    assert_eq!(number(&ask(&file, query), "yields"), 0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let end = std::time::Instant::now() + Duration::from_secs(60);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
                let file = OpenOptions::new().read(true).custom_flags(direct).open(m.path("f")).unwrap();
                let mut buffer = vec![0; 1 << 20];
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    file.read_exact_at(&mut buffer, 0).unwrap();
                }
            });
        }
        let mut yields = 0;
        while yields == 0 && std::time::Instant::now() < end {
            yields = number(&ask(&file, query), "yields");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(yields > 0, "the engine never waited");
    });
    drop(file);
    m.stop();
}

#[test]
fn copies_in_both_directions_end() {
    let Some(m) = Mounted::new("") else { return };
    let text = "a line with a word\n".repeat(200_000);
    for name in ["a", "b"] {
        fs::write(m.path(name), &text).unwrap();
    }
    let (done, ends) = std::sync::mpsc::channel();
    for (from, to) in [("a", "b"), ("b", "a")] {
        let (file, done) = (command(&m.at), done.clone());
        std::thread::spawn(move || {
            let copy = format!(r#"{{"copy": {{"words": ["word"]}}, "file": "{from}", "to": "{to}"}}"#);
            let is_done = (0..30).all(|_| ask(&file, &copy).contains(r#""records":200000"#));
            done.send(is_done)
        });
    }
    for _ in 0..2 {
        let is_done = ends.recv_timeout(Duration::from_secs(60));
        if is_done.is_err() {
            // A mount that hangs cannot be stopped, but its requests can.
            let _ = Command::new("umount").arg("-f").arg(&m.at).status();
            std::mem::forget(m);
            panic!("the copies wait for one another");
        }
        assert_eq!(is_done, Ok(true));
    }
    for name in ["a", "b"] {
        assert!(fs::read_to_string(m.path(name)).unwrap() == text);
    }
    m.stop();
}
