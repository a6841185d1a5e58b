//! Tests of the control socket of a volume: changes are atomic, persistent, and safe while clients
//! write.

use crate::common::{reopen, stamped, version, volume};
use frit_core::{CheckScope, Hints};
use frit_serve::ctl::{
    ChangeLog, Client, ClientError, ControlOperation, ControlOptions, ControlServer, ControlTarget,
    DeviceTarget, HintList, ParamChange, RawMedium, RefusalKind, Refused, Rights, Setting, Success,
    VolumeInfo, raw_names,
    wire::{REQUEST_BYTES_MAX, from_hex, to_hex},
};
use frit_serve::hints::{HintFile, HintOptions};
use frit_serve::metrics::Stat;
use frit_serve::{Device, DeviceOptions, Logger};
use frit_stack::layers::LayerKind;
use frit_volume::{CreateOptions, Volume};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

struct Controlled {
    _dir: tempfile::TempDir,
    volume: PathBuf,
    device: Arc<Device>,
    server: ControlServer,
}

impl Controlled {
    fn new() -> Controlled {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("volume");
        volume(&path).close().unwrap();
        Controlled::over(dir, path)
    }

    fn over(dir: tempfile::TempDir, path: PathBuf) -> Controlled {
        let mut volume = reopen(&path);
        let about = VolumeInfo { volume: path.clone(), defaults: volume.params(), ..VolumeInfo::default() };
        let saved = HintFile::of(&path).load().unwrap();
        let hints = HintOptions {
            ranges: saved.ranges,
            detect_metadata: saved.detect_metadata,
            ..HintOptions::default()
        };
        let device = Device::new(Box::new(volume), DeviceOptions { hints, ..DeviceOptions::default() });
        let control_target: Arc<dyn ControlTarget> = Arc::new(DeviceTarget::new(device.clone(), about));
        let options = ControlOptions {
            socket: path.join("ctl.sock"),
            volume: path.clone(),
            rights: Rights::of_this_process(false),
        };
        let server = ControlServer::start(&options, control_target, Logger::none()).unwrap();
        Controlled { _dir: dir, volume: path, device, server }
    }

    fn client(&self) -> Client {
        Client::connect(self.server.path()).unwrap()
    }

    fn set(&self, settings: &[(&str, &str)]) -> Result<Vec<ParamChange>, RefusalKind> {
        let setting = |&(key, value): &(&str, &str)| Setting { key: key.into(), value: value.into() };
        match self.client().request(ControlOperation::Set { changes: settings.iter().map(setting).collect() })
        {
            Ok(Success::Changed(changed)) => Ok(changed),
            Err(ClientError::Refused(refused)) => Err(refused.kind),
            other => panic!("{other:?}"),
        }
    }

    fn get(&self, key: &str) -> String {
        match self.client().request(ControlOperation::Get { key: Some(key.into()) }) {
            Ok(Success::Params(params)) => params[0].value.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn stat(&self) -> Stat {
        match self.client().request(ControlOperation::Stat {}) {
            Ok(Success::Stat(stat)) => *stat,
            other => panic!("{other:?}"),
        }
    }

    fn hint(&self, add: &[&str], remove: &[&str], detect: Option<bool>) -> Result<HintList, RefusalKind> {
        let texts = |all: &[&str]| all.iter().map(|t| (*t).to_owned()).collect();
        match self.client().request(ControlOperation::Hint { add: texts(add), remove: texts(remove), detect })
        {
            Ok(Success::Hints(list)) => Ok(list),
            Err(ClientError::Refused(refused)) => Err(refused.kind),
            other => panic!("{other:?}"),
        }
    }

    fn restart(self) -> Controlled {
        let Controlled { _dir, volume, device, server } = self;
        drop(server);
        device.close().unwrap();
        Controlled::over(_dir, volume)
    }
}

#[test]
fn changes_are_made_kept_and_written_down() {
    let c = Controlled::new();
    let changed = c.set(&[("SSW", "4K"), ("gc", "fifo"), ("placement", "ssw")]).unwrap();
    let keys: Vec<&str> = changed.iter().map(|c| &c.key[..]).collect();
    assert_eq!(keys, ["SSW", "gc"], "unchanged values are not included");
    assert_eq!((c.get("SSW"), c.get("gc")), ("4096".into(), "fifo".into()));
    let log = std::fs::read_to_string(c.volume.join(ChangeLog::NAME)).unwrap();
    assert_eq!(log.lines().count(), 2);
    let me =
        format!(" uid {} pid {} SSW: 2048 -> 4096", rustix::process::geteuid().as_raw(), std::process::id());
    assert!(log.lines().next().unwrap().ends_with(&me), "{log}");
    let c = c.restart();
    assert_eq!((c.get("SSW"), c.get("gc")), ("4096".into(), "fifo".into()));
    c.device.close().unwrap();
}

#[test]
fn several_are_changed_or_none() {
    let c = Controlled::new();
    let before = (c.get("gc"), c.get("SSW"), c.get("gc_low_blocks"));
    for (settings, why) in [
        (&[("gc", "fifo"), ("SSW", "many")][..], "an invalid value"),
        (&[("SSW", "4K"), ("gc_low_blocks", "99")], "watermarks in the wrong order"),
        (&[("gc", "fifo"), ("no_such", "1")], "an unknown key"),
        (&[("gc", "fifo"), ("capacity", "1G")], "a parameter that is not live"),
        (&[("gc", "fifo"), ("gc", "greedy")], "a key given twice"),
        (&[("gc", "fi\nfo")], "a control character"),
    ] {
        assert_eq!(c.set(settings), Err(RefusalKind::Invalid), "{why}");
        assert_eq!((c.get("gc"), c.get("SSW"), c.get("gc_low_blocks")), before, "{why}");
    }
    assert!(!c.volume.join(ChangeLog::NAME).exists(), "nothing was changed");
    let c = c.restart();
    assert_eq!((c.get("gc"), c.get("SSW"), c.get("gc_low_blocks")), before, "nothing is stored");
    c.device.close().unwrap();
}

/// The low and high watermarks of cleaning constrain each other: `low = 8` alone is refused while
/// `high` is 4. An earlier version stored only the last value of each, in the order of the last
/// changes. If that order was invalid, the volume could not be opened any more.
#[test]
fn values_that_depend_on_one_another_are_set_in_any_order_and_come_back() {
    let mut c = Controlled::new();
    for settings in [
        &[("gc_low_blocks", "8"), ("gc_high_blocks", "10")][..],
        &[("gc_high_blocks", "9")],
        &[("gc_high_blocks", "4"), ("gc_low_blocks", "3")],
        &[("pcm_low", "0.3"), ("pcm_high", "0.4")],
        &[("pcm_high", "0.35")],
    ] {
        c.set(settings).unwrap();
        c = c.restart();
        for (key, value) in settings {
            assert_eq!(c.get(key), *value);
        }
    }
    c.device.close().unwrap();
}

#[test]
fn what_is_no_request_ends_no_more_than_its_connection() {
    let c = Controlled::new();
    let ask = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(c.server.path()).unwrap();
        // The server may close the connection during the write.
        let _ = stream.write_all(bytes);
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    assert!(ask(b"{}\n").contains("malformed"));
    assert!(ask(b"\xff\xfe\n").contains("malformed"));
    assert!(ask(b"{\"v\":9,\"do\":\"get\"}\n").contains("version"));
    assert!(ask(&vec![b'x'; REQUEST_BYTES_MAX + 4097]).contains("too-long"));
    assert!(ask(b"{\"v\":1,\"do\":\"get\",\"key\":\"SSW\"}\n").contains("2048"));
    c.device.close().unwrap();
}

const BLOCKS: u64 = 4000;
const WRITERS: u64 = 3;
const SWITCHES: usize = 400;

/// Policies that are changed while clients write: each with all names that the layer registers.
const LIVE_POLICIES: [&str; 5] = ["FUSION_METHOD", "gc", "wear_leveling", "heat", "placement"];

/// Other parameters that are changed while clients write: sizes and watermarks.
const LIVE_VALUES: &[(&str, &[&str])] = &[
    ("SSW", &["512", "2048", "8K", "64K"]),
    ("ssw_compare", &["le", "lt"]),
    ("ADDR_GRAN_PCM", &["2", "64", "512"]),
    ("cache_ratio", &["0", "0.25", "0.5", "1"]),
    ("gc_low_blocks", &["3", "4"]),
    ("gc_high_blocks", &["4", "5", "6"]),
    ("copyback", &["true", "false"]),
    ("wear_threshold", &["2", "64"]),
    ("heat_window", &["64", "65536"]),
    ("destage_run", &["1", "8", "64"]),
    ("pcm_low", &["0.01", "0.02"]),
    ("pcm_high", &["0.05", "0.2"]),
];

/// Returns all parameters that are changed while clients write, with their values.
fn live() -> Vec<(&'static str, &'static [&'static str])> {
    let parameters = LayerKind::Hfsl.parameters();
    let names = |key| parameters.iter().find(|def| def.key == key).unwrap().names;
    LIVE_POLICIES.into_iter().map(|key| (key, names(key))).chain(LIVE_VALUES.iter().copied()).collect()
}

/// Deterministic pseudorandom numbers.
struct Prng(u64);

impl Prng {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Writes whole stamped blocks, reads them and discards some. Each block belongs to one writer.
fn write(device: &Device, writer: u64, stop: &AtomicBool, versions: &[AtomicU64]) {
    let mut dice = Prng(0x9e37_79b9 + writer);
    let mut last = 1;
    let mut buffer = vec![0; 4096];
    while !stop.load(Ordering::Relaxed) {
        let block = dice.roll(BLOCKS / WRITERS) * WRITERS + writer;
        let seen = &versions[block as usize];
        match dice.roll(20) {
            0 => {
                let _ = device.lock().discard(block * 4096, 4096).unwrap();
                seen.store(0, Ordering::Relaxed);
            }
            1..=6 => {
                let _ = device.lock().read(block * 4096, &mut buffer).unwrap();
                assert_eq!(version(block, &buffer), seen.load(Ordering::Relaxed));
            }
            7 => {
                let _ = device.flush().unwrap();
            }
            part => {
                last += 1;
                let bytes = stamped(block, last);
                // Small writes are placed differently from large ones.
                let pieces = if part < 14 { 4096 } else { 1024 };
                for (i, piece) in bytes.chunks(pieces).enumerate() {
                    let at = block * 4096 + (i * pieces) as u64;
                    let _ = device.lock().write(at, piece, Hints::NONE).unwrap();
                }
                seen.store(last, Ordering::Relaxed);
            }
        }
    }
}

fn verify(read: &mut dyn FnMut(u64, &mut [u8]), versions: &[AtomicU64]) {
    let mut buffer = vec![0; 4096];
    for (block, seen) in versions.iter().enumerate() {
        read(block as u64 * 4096, &mut buffer);
        assert_eq!(version(block as u64, &buffer), seen.load(Ordering::Relaxed), "block {block}");
    }
}

#[test]
fn parameters_change_at_any_moment_under_writers() {
    let c = Controlled::new();
    let stop = AtomicBool::new(false);
    let versions: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
    let live = live();
    let mut dice = Prng(77);
    let mut switched = 0;
    let maintenance = c.device.maintain().unwrap();
    std::thread::scope(|s| {
        for writer in 0..WRITERS {
            let (device, stop, versions) = (&c.device, &stop, &versions);
            s.spawn(move || {
                // A writer that fails must end the whole test.
                let _end = OnDrop(stop);
                write(device, writer, stop, versions);
            });
        }
        while switched < SWITCHES && !stop.load(Ordering::Relaxed) {
            let (key, values) = live[dice.roll(live.len() as u64) as usize];
            let value = values[dice.roll(values.len() as u64) as usize];
            let other = live[dice.roll(live.len() as u64) as usize];
            match c.set(&[(key, value), (other.0, other.1[0])]) {
                Ok(_) => switched += 1,
                // The watermarks are in the wrong order, or a key is given twice.
                Err(e) => assert_eq!(e, RefusalKind::Invalid),
            }
            let stat = c.stat();
            assert_eq!(stat.volume.refuses, None);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(switched >= SWITCHES, "a writer failed");
    drop(maintenance);
    let mut read = |at, into: &mut [u8]| {
        let _ = c.device.lock().read(at, into).unwrap();
    };
    verify(&mut read, &versions);
    let stat = c.stat();
    let writes = stat.op("write").unwrap();
    assert!(writes.requests > 0 && writes.errors == 0);
    let Controlled { _dir, volume: path, device, server } = c;
    drop(server);
    device.close().unwrap();
    drop(device);
    check(&path, &versions);
}

/// Stops the other threads when a thread ends.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reopens the volume and checks its contents and integrity.
fn check(path: &Path, versions: &[AtomicU64]) {
    let mut volume = reopen(path);
    assert!(volume.recovery().recovery.clean);
    verify(&mut |at, into| volume.read(at, into).unwrap(), versions);
    let mut found = Vec::new();
    volume.check(CheckScope { data: true, ..CheckScope::default() }, &mut |f| found.push(f)).unwrap();
    assert!(found.is_empty(), "{found:?}");
    volume.close().unwrap();
}

#[test]
fn silent_clients_keep_nobody_out() {
    let c = Controlled::new();
    let mut silent: Vec<UnixStream> =
        (0..100).map(|_| UnixStream::connect(c.server.path()).unwrap()).collect();
    for half in &mut silent[60..] {
        // Writes to connections that the server has closed fail.
        let _ = half.write_all(b"{\"v\":1,\"do\":");
    }
    assert_eq!(c.get("SSW"), "2048");
    assert_eq!(c.set(&[("SSW", "4K")]).unwrap().len(), 1);
    drop(silent);
}

#[test]
fn hints_are_changed_kept_and_written_down() {
    let c = Controlled::new();
    assert_eq!(c.hint(&[], &[], None).unwrap(), HintList::default());
    let list = c.hint(&["0+1M=metadata", "1M+4K=hot"], &[], Some(true)).unwrap();
    let rules: Vec<(&str, bool)> = list.ranges.iter().map(|r| (&r.rule[..], r.saved)).collect();
    assert_eq!(rules, [("0+1M=metadata", true), ("1M+4K=hot", true)]);
    assert!(list.detect && list.detect_saved);
    // All or nothing.
    for (add, remove) in [("0+1=warm", "1M+4K=hot"), ("99T+1=hot", "1M+4K=hot"), ("0+1=hot", "2M+4K=hot")] {
        assert_eq!(c.hint(&[add], &[remove], None).unwrap_err(), RefusalKind::Invalid, "{add} {remove}");
    }
    assert_eq!(c.hint(&[], &[], None).unwrap(), list);
    let _ = c.device.lock().write(0, &[1; 4096], Hints::NONE).unwrap();
    let stat = c.stat();
    let marked: Vec<_> = stat.hints.iter().map(|h| (&h.by[..], &h.hint[..], h.requests, h.bytes)).collect();
    assert_eq!(marked, [("range", "metadata", 1, 4096)]);
    // A rule of the command line ends with the server.
    assert_eq!(c.device.add_hint("8K+4K=cold".parse().unwrap()), Ok(true));
    assert!(c.hint(&[], &[], None).unwrap().ranges.iter().any(|r| !r.saved));
    let c = c.restart();
    let kept = c.hint(&[], &["1M+4K=hot"], Some(false)).unwrap();
    assert_eq!(kept.ranges.len(), 1, "{kept:?}");
    assert!(!kept.detect && !kept.detect_saved);
    let log = std::fs::read_to_string(c.volume.join(ChangeLog::NAME)).unwrap();
    for line in ["hint 0+1M=metadata: off -> on", "hint 1M+4K=hot: on -> off", "hint detect: on -> off"] {
        assert!(log.contains(line), "{line} is not in\n{log}");
    }
}

impl Controlled {
    fn peek(&self, at: u64, len: u32, raw: Option<RawMedium>) -> Result<Vec<u8>, Refused> {
        match self.client().request(ControlOperation::Peek { at, len, raw }) {
            Ok(Success::Bytes(hex)) => Ok(from_hex(&hex).unwrap()),
            Err(ClientError::Refused(refused)) => Err(refused),
            other => panic!("{other:?}"),
        }
    }

    fn poke(&self, at: u64, data: &[u8], raw: Option<RawMedium>) -> Result<u64, Refused> {
        match self.client().request(ControlOperation::Poke { at, data: to_hex(data), raw }) {
            Ok(Success::Written(n)) => Ok(n),
            Err(ClientError::Refused(refused)) => Err(refused),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn bytes_of_control_and_blocks_of_clients_are_the_same_data() {
    let at = Controlled::new();
    let _ = at.device.lock().write(4096, &[1; 8192], Hints::NONE).unwrap();
    assert_eq!(at.poke(5000, b"some bytes", None), Ok(10));
    let mut block = [0; 8192];
    let _ = at.device.lock().read(4096, &mut block).unwrap();
    assert_eq!((&block[904..914], block[903], block[914]), (&b"some bytes"[..], 1, 1));
    assert_eq!(at.peek(4999, 12, None).unwrap(), b"\x01some bytes\x01");
    // A write of bytes by another client.
    let _ = at.device.lock().write(5003, b"E", Hints::NONE).unwrap();
    assert_eq!(at.peek(5000, 10, None).unwrap(), b"somE bytes");
    // 10 bytes were small enough for PCM.
    let counts = at.stat();
    assert!(counts.layer_metric("pcm_level_pages") >= Some(1.0), "{counts:?}");
    for (refused, kind) in [
        (at.peek(u64::MAX, 2, None).err(), RefusalKind::Invalid),
        (at.peek(0, 0, None).err(), RefusalKind::Invalid),
        (at.peek(0, 2 << 20, None).err(), RefusalKind::Invalid),
        (at.poke(0, &[0; 20 << 10], None).err(), RefusalKind::Invalid),
        (at.poke(at.device.bytes() - 1, &[0; 2], None).err(), RefusalKind::Invalid),
    ] {
        assert_eq!(refused.map(|r| r.kind), Some(kind));
    }
    // What was poked survives a restart.
    let at = at.restart();
    assert_eq!(at.peek(5000, 10, None).unwrap(), b"somE bytes");
}

#[test]
fn clients_and_pokes_of_one_sector_never_lose_each_others_bytes() {
    let at = Controlled::new();
    let rounds = 200u32;
    std::thread::scope(|s| {
        for lane in 0..4u64 {
            let device = &at.device;
            s.spawn(move || {
                for i in 0..rounds {
                    let _ = device.lock().write(8192 + 100 * lane, &i.to_le_bytes(), Hints::NONE).unwrap();
                }
            });
        }
        for i in 0..rounds / 4 {
            at.poke(8192 + 450, &i.to_le_bytes(), None).unwrap();
        }
    });
    let sector = at.peek(8192, 512, None).unwrap();
    for lane in 0..4 {
        assert_eq!(sector[100 * lane..][..4], (rounds - 1).to_le_bytes());
    }
    assert_eq!(sector[450..454], (rounds / 4 - 1).to_le_bytes());
}

#[test]
fn physical_addresses_are_for_users_that_the_layer_names() {
    let me = rustix::process::geteuid().as_raw();
    for named in ["uid:4000000000".to_owned(), format!("uid:{me}"), raw_names(me)[0].clone()] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("volume");
        let sets = [format!("raw_access=[\"{named}\"]"), "raw_bytes=8K".into()];
        let stack = frit_stack::Stack::builtin("hfsl-small", &sets).unwrap();
        Volume::create(&path, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
        let at = Controlled::over(dir, path);
        let end = 4 << 20;
        let pcm = Some(RawMedium::Pcm);
        if named == "uid:4000000000" {
            // Not even the owner has the right without a name.
            for refused in [at.peek(0, 64, pcm).err(), at.poke(end - 4096, &[1], pcm).err()] {
                let refused = refused.unwrap();
                assert!(refused.kind == RefusalKind::Denied && refused.what.contains("raw_access"));
            }
            assert!(at.peek(0, 64, None).is_ok(), "bytes of the volume are another right");
            continue;
        }
        assert_eq!(at.poke(end - 4096, b"mine", pcm), Ok(4));
        assert_eq!(at.peek(end - 4096, 4, pcm).unwrap(), b"mine");
        let _ = at.device.lock().write(0, &[9; 64 << 10], Hints::NONE).unwrap();
        // The blocks of the first unit; one of them has been written.
        let blocks: Vec<_> = (0..256).map(|b| at.peek(b * (128 << 10), 512, Some(RawMedium::Nand))).collect();
        assert!(blocks.iter().any(|b| b.as_ref().is_ok_and(|bytes| *bytes == [9; 512])));
        let erased = blocks.into_iter().find_map(Result::err).unwrap();
        assert!(erased.kind == RefusalKind::Invalid && erased.what.contains("erased"), "{erased}");
        for (refused, why) in [
            (at.poke(0, &[0], pcm).err(), "belongs to the layer"),
            (at.poke(end - 1, &[0; 2], pcm).err(), "bytes"),
            (at.poke(0, &[0], Some(RawMedium::Nand)).err(), "erased"),
            (at.peek(2047, 2, Some(RawMedium::Nand)).err(), "one page"),
        ] {
            let refused = refused.unwrap();
            assert!(refused.kind == RefusalKind::Invalid && refused.what.contains(why), "{refused}");
        }
        let at = at.restart();
        assert_eq!(at.peek(end - 4096, 4, pcm).unwrap(), b"mine", "it survives a restart");
    }
}

/// Another user opens as many connections as the server takes, which send half a request, or a request and nothing
/// more, or a request whose answer they do not read.
#[test]
fn another_user_keeps_the_owner_out_by_no_number_of_connections() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: acting as another user needs root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    volume(&path).close().unwrap();
    let open =
        |path: &Path| std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755));
    for dir in [dir.path(), &path] {
        open(dir).unwrap();
    }
    let volume = reopen(&path);
    let about = VolumeInfo { volume: path.clone(), defaults: Vec::new(), ..VolumeInfo::default() };
    let device = Device::new(Box::new(volume), DeviceOptions::default());
    let target: Arc<dyn ControlTarget> = Arc::new(DeviceTarget::new(device, about));
    let rights = Rights::of_this_process(true);
    let options = ControlOptions { socket: path.join("ctl.sock"), volume: path.clone(), rights };
    let server = ControlServer::start(&options, target, Logger::none()).unwrap();
    let whole = b"{\"v\":1,\"do\":\"stat\"}\n";
    let attack = || {
        let user = rustix::thread::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        let sent = [&whole[..10], &whole[..], &whole.repeat(200)];
        let open = |i: usize| {
            let mut stream = UnixStream::connect(server.path()).unwrap();
            stream.set_write_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
            let _ = stream.write_all(sent[i % 3]);
            stream
        };
        (0..100).map(open).collect::<Vec<_>>()
    };
    let held = std::thread::scope(|scope| scope.spawn(attack).join().unwrap());
    let begun = std::time::Instant::now();
    // More than the slots that are reserved, one after the other and at once.
    let clients: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = Client::connect(server.path()).unwrap();
            assert!(matches!(client.request(ControlOperation::Stat {}), Ok(Success::Stat(_))));
            client
        })
        .collect();
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "without a wait for timeouts");
    // A line that is longer than any request of another user.
    let long = || {
        let user = rustix::thread::Uid::from_raw(65533);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        let mut stream = UnixStream::connect(server.path()).unwrap();
        let _ = stream.write_all(&vec![b' '; 100_000]);
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).map(|_| answer)
    };
    let answer = std::thread::scope(|scope| scope.spawn(long).join().unwrap());
    assert!(answer.as_ref().map_or(true, |a| a.contains("at most 65536 bytes")), "{answer:?}");
    drop((held, clients));
}
