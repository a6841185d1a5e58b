//! Tests of a served zoned device: commands of several clients beside a model, each refusal, and clients
//! of the block interface.

use crate::common::{self, reopen};
use frit_client::{
    ClientError, Connection, ReportedZone, SECTOR_BYTES, ZoneFault, ZoneState, ZonedClient, ZonedOperation,
};
use frit_serve::ctl::wire::{Answer, ControlRequest, ControlResult, VERSION};
use frit_serve::ctl::{
    ControlOperation, ControlOptions, ControlServer, DeviceTarget, RefusalKind, Refused, Rights, VolumeInfo,
};
use frit_serve::{Device, DeviceOptions, Logger};
use frit_stack::Stack;
use frit_volume::{CreateOptions, Volume};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Size of a logical block.
const BLOCK: usize = 4096;
/// Number of blocks of a zone of the small volume.
const ZONE_BLOCKS: usize = 64;
/// Limits of the small volume.
const MAX_OPEN: usize = 2;
const MAX_ACTIVE: usize = 4;

/// A small zoned device with a control socket.
struct Zoned {
    device: Arc<Device>,
    server: ControlServer,
    path: PathBuf,
}

fn create(path: &Path, stack: &str, sets: &[&str]) {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let stack = Stack::builtin(stack, &sets).unwrap();
    Volume::create(path, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
}

/// Ten zones of 256 KiB, of which two can be open and four active.
fn small(path: &Path) {
    let media = ["media.nand.blocks_per_plane=16", "media.nand.pages_per_block=8"];
    create(path, "zns-small", &[&media[..], &["zns.max_open=2", "zns.max_active=4"]].concat());
}

impl Zoned {
    fn start(path: &Path, read_only: bool) -> Zoned {
        Zoned::over(path, reopen(path), read_only)
    }

    fn over(path: &Path, volume: Volume, read_only: bool) -> Zoned {
        let about = VolumeInfo { volume: path.into(), ..VolumeInfo::default() };
        let device = Device::new(Box::new(volume), DeviceOptions { read_only, ..DeviceOptions::default() });
        let options = ControlOptions {
            socket: path.join("ctl.sock"),
            volume: path.into(),
            rights: Rights::of_this_process(false),
        };
        let target = Arc::new(DeviceTarget::new(device.clone(), about));
        let server = ControlServer::start(&options, target, Logger::none()).unwrap();
        Zoned { device, server, path: path.into() }
    }

    fn client(&self) -> ZonedClient {
        ZonedClient::open(self.server.path()).unwrap()
    }

    /// Ends without closing the volume, which has the effect of a killed process, and starts again.
    fn crash(self) -> Zoned {
        let Zoned { device, server, path } = self;
        drop(server);
        // Connections of clients keep the device for a moment.
        let mut device = Some(device);
        while let Some(held) = device.take() {
            match Arc::try_unwrap(held) {
                Ok(device) => drop(device),
                Err(held) => {
                    std::thread::sleep(Duration::from_millis(5));
                    device = Some(held);
                }
            }
        }
        Zoned::start(&path, false)
    }
}

/// SplitMix64 (Steele et al., OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// State of a zone in the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Model {
    Empty,
    /// Open or closed; `true` if a command has opened it.
    Active(bool),
    Full,
}

#[derive(Clone, Debug)]
struct ModelZone {
    state: Model,
    /// Stamps of its blocks.
    blocks: Vec<u64>,
    /// Number of blocks that are durable.
    durable: usize,
}

struct Shadow {
    zones: Vec<ModelZone>,
    stamp: u64,
}

impl Shadow {
    fn new(zones: usize) -> Shadow {
        let zone = ModelZone { state: Model::Empty, blocks: Vec::new(), durable: 0 };
        Shadow { zones: vec![zone; zones], stamp: 0 }
    }

    fn explicit(&self) -> usize {
        self.zones.iter().filter(|z| z.state == Model::Active(true)).count()
    }

    fn active(&self) -> usize {
        self.zones.iter().filter(|z| matches!(z.state, Model::Active(_))).count()
    }

    /// Reason for which a zone cannot be opened, if there is one.
    fn cannot_open(&self, zone: usize) -> Option<ZoneFault> {
        match self.zones[zone].state {
            Model::Full => Some(ZoneFault::IsFull),
            Model::Empty if self.active() >= MAX_ACTIVE => Some(ZoneFault::TooManyActive),
            Model::Empty | Model::Active(false) if self.explicit() >= MAX_OPEN => {
                Some(ZoneFault::TooManyOpen)
            }
            _ => None,
        }
    }

    /// Appends blocks, and returns their contents and the expected result: a sector, or a reason.
    fn append(&mut self, zone: usize, blocks: usize) -> (Vec<u8>, Result<u64, ZoneFault>) {
        let stamps: Vec<u64> = (1..=blocks as u64).map(|i| self.stamp + i).collect();
        let data = stamps.iter().flat_map(|&stamp| block(stamp)).collect();
        let written = self.zones[zone].blocks.len();
        if self.zones[zone].state == Model::Full {
            return (data, Err(ZoneFault::IsFull));
        }
        if written + blocks > ZONE_BLOCKS {
            return (data, Err(ZoneFault::BoundaryError));
        }
        if let Some(fault) = self.cannot_open(zone) {
            return (data, Err(fault));
        }
        self.stamp += blocks as u64;
        let z = &mut self.zones[zone];
        z.blocks.extend(stamps);
        if z.blocks.len() == ZONE_BLOCKS {
            z.state = Model::Full;
        } else if z.state == Model::Empty {
            z.state = Model::Active(false);
        }
        (data, Ok(((zone * ZONE_BLOCKS + written) * BLOCK / SECTOR_BYTES) as u64))
    }

    fn manage(&mut self, zone: usize, what: u64) -> Result<(), ZoneFault> {
        match what {
            0 => match self.cannot_open(zone) {
                Some(fault) => return Err(fault),
                None => self.zones[zone].state = Model::Active(true),
            },
            1 => match self.zones[zone].state {
                Model::Active(_) => {
                    // A zone that is closed stays closed.
                    self.zones[zone].state = Model::Active(false);
                }
                _ => return Err(ZoneFault::InvalidTransition),
            },
            2 => {
                let z = &mut self.zones[zone];
                z.state = Model::Full;
                z.durable = z.blocks.len();
            }
            _ => self.zones[zone] = ModelZone { state: Model::Empty, blocks: Vec::new(), durable: 0 },
        }
        Ok(())
    }

    /// Takes the state of a recovered device over, which has to be one that a crash permits.
    fn crash(&mut self, report: &[ReportedZone]) {
        for (z, reported) in self.zones.iter_mut().zip(report) {
            let written = blocks_of(reported);
            assert!(z.durable <= written && written <= z.blocks.len(), "{reported:?} {z:?}");
            let finished = z.state == Model::Full && z.blocks.len() < ZONE_BLOCKS;
            z.blocks.truncate(written);
            z.state = match written {
                _ if finished => Model::Full,
                0 => Model::Empty,
                ZONE_BLOCKS => Model::Full,
                _ => Model::Active(false),
            };
            z.durable = written;
        }
    }

    /// Compares all zones: states, write pointers and contents.
    fn verify(&self, client: &mut ZonedClient) {
        let report = client.report().unwrap();
        let info = client.info().unwrap();
        assert_eq!((info.zones as usize, info.active as usize), (self.zones.len(), self.active()));
        let open =
            |z: &&ReportedZone| matches!(z.state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen);
        assert_eq!(report.iter().filter(open).count(), info.open as usize);
        for (z, reported) in self.zones.iter().zip(&report) {
            let fits = match reported.state {
                ZoneState::Empty => z.state == Model::Empty,
                ZoneState::ExplicitlyOpen => z.state == Model::Active(true),
                ZoneState::ImplicitlyOpen | ZoneState::Closed => z.state == Model::Active(false),
                ZoneState::Full => z.state == Model::Full,
                _ => false,
            };
            assert!(fits && blocks_of(reported) == z.blocks.len(), "{reported:?} {z:?}");
            if z.blocks.is_empty() {
                continue;
            }
            let sectors = reported.write_pointer - reported.start;
            let data = client.read(reported.start, sectors).unwrap();
            let expected: Vec<u8> = z.blocks.iter().flat_map(|&stamp| block(stamp)).collect();
            assert!(data == expected, "contents of {reported:?}");
        }
    }
}

fn block(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().into_iter().cycle().take(BLOCK).collect()
}

fn blocks_of(zone: &ReportedZone) -> usize {
    (zone.write_pointer - zone.start) as usize * SECTOR_BYTES / BLOCK
}

#[track_caller]
fn fault<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Result<T, ZoneFault> {
    match result {
        Ok(done) => Ok(done),
        Err(ClientError::Refused(Refused { fault: Some(fault), .. })) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn commands_of_two_clients_do_what_a_model_does_over_crashes() {
    for seed in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("volume");
        small(&path);
        let mut served = Zoned::start(&path, false);
        let mut clients = [served.client(), served.client()];
        let zones = clients[0].info().unwrap().zones as usize;
        assert!(zones > MAX_ACTIVE + 2);
        let mut shadow = Shadow::new(zones);
        let (mut state, mut refused) = (seed, 0);
        for step in 0..500 {
            let r = next(&mut state);
            let client = &mut clients[(r & 1) as usize];
            // Few zones, so that limits and ends are reached.
            let zone = ((r >> 1) % 7) as usize;
            let outcome = match (r >> 8) % 100 {
                0..55 => {
                    let (data, expected) = shadow.append(zone, 1 + (r >> 32) as usize % 16);
                    let done = fault(client.append(zone as u32, &data));
                    assert_eq!(done, expected, "step {step}, zone {zone}");
                    expected.map(drop)
                }
                55..90 => {
                    let what = [0, 0, 1, 2, 3][(r >> 32) as usize % 5];
                    let expected = shadow.manage(zone, what);
                    let zone = zone as u32;
                    let done = fault(match what {
                        0 => client.open_zone(zone),
                        1 => client.close_zone(zone),
                        2 => client.finish(zone),
                        _ => client.reset(zone),
                    });
                    assert_eq!(done, expected, "step {step}, zone {zone}, {what}");
                    expected
                }
                90..96 => {
                    client.flush().unwrap();
                    shadow.zones.iter_mut().for_each(|z| z.durable = z.blocks.len());
                    Ok(())
                }
                96..98 => {
                    shadow.verify(client);
                    Ok(())
                }
                _ => {
                    drop(clients);
                    served = served.crash();
                    clients = [served.client(), served.client()];
                    shadow.crash(&clients[0].report().unwrap());
                    shadow.verify(&mut clients[1]);
                    Ok(())
                }
            };
            refused += u32::from(outcome.is_err());
        }
        assert!(refused > 20, "{refused}");
        shadow.verify(&mut clients[0]);
        drop(clients);
        drop(served.server);
        served.device.close().unwrap();
        let volume = reopen(&path);
        assert!(volume.recovery().recovery.clean);
        let served = Zoned::over(&path, volume, false);
        // A clean halt keeps all appends.
        shadow.zones.iter_mut().for_each(|z| z.durable = z.blocks.len());
        let mut client = served.client();
        shadow.crash(&client.report().unwrap());
        shadow.verify(&mut client);
    }
}

#[test]
fn clients_that_append_to_one_zone_at_once_get_ranges_of_their_own() {
    const CLIENTS: u64 = 4;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    small(&path);
    let served = Zoned::start(&path, false);
    // None goes on before each has appended once: on a busy machine one client could else fill
    // the zone before the next one runs.
    let first = &std::sync::Barrier::new(CLIENTS as usize);
    let appended: Vec<(u64, u64, usize)> = std::thread::scope(|scope| {
        let run = |me: u64| {
            let mut client = served.client();
            let (mut places, mut state) = (Vec::new(), me);
            loop {
                if places.len() == 1 {
                    first.wait();
                }
                let blocks = 1 + next(&mut state) as usize % 4;
                let stamp = (me << 32) | places.len() as u64;
                let data = block(stamp).repeat(blocks);
                match fault(client.append(3, &data)) {
                    Ok(at) => places.push((at, stamp, blocks)),
                    // Too little space for this append, or none.
                    Err(ZoneFault::BoundaryError | ZoneFault::IsFull) => return places,
                    Err(other) => panic!("{other:?}"),
                }
            }
        };
        let threads: Vec<_> = (0..CLIENTS).map(|me| scope.spawn(move || run(me))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let mut client = served.client();
    let zone = client.zone(3).unwrap();
    let mut sorted = appended.clone();
    sorted.sort_unstable();
    let mut end = zone.start;
    for (at, stamp, blocks) in sorted {
        assert_eq!(at, end, "appends are neither apart nor on top of each other");
        let sectors = (blocks * BLOCK / SECTOR_BYTES) as u64;
        assert!(client.read(at, sectors).unwrap() == block(stamp).repeat(blocks));
        end += sectors;
    }
    assert_eq!(end, zone.write_pointer);
    for me in 0..CLIENTS {
        let mine: Vec<u64> = appended.iter().filter(|a| a.1 >> 32 == me).map(|a| a.0).collect();
        assert!(mine.is_sorted() && !mine.is_empty(), "client {me}: {mine:?}");
    }
}

/// Sends a command that the client library would not send, and returns the refusal.
fn refusal(served: &Zoned, command: ZonedOperation) -> Refused {
    let mut connection = Connection::open(served.server.path()).unwrap();
    let request = ControlRequest { v: VERSION, what: ControlOperation::Zoned { command } };
    match connection.exchange::<Answer>(&request).unwrap().result {
        ControlResult::Error(refused) => refused,
        ControlResult::Ok(done) => panic!("{done:?}"),
    }
}

#[track_caller]
fn expect(refused: &Refused, kind: RefusalKind, fault: Option<ZoneFault>, words: &[&str]) {
    assert_eq!((refused.kind, refused.fault), (kind, fault), "{refused}");
    for word in words {
        assert!(refused.what.contains(word), "{word} in: {refused}");
    }
}

#[test]
fn each_refusal_names_its_reason_and_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    small(&path);
    let served = Zoned::start(&path, false);
    let mut client = served.client();
    let zones = client.info().unwrap().zones;
    let one = frit_client::to_hex(&[7; BLOCK]);
    let append = |zone, data: &str| ZonedOperation::Append { zone, data: data.to_owned() };
    use RefusalKind::{Failed, Invalid};

    // Numbers and sizes.
    let limit = format!("less than {zones}");
    for command in [
        append(zones, &one),
        ZonedOperation::Open { zone: zones },
        ZonedOperation::Reset { zone: u32::MAX },
        ZonedOperation::Report { first: zones, most: 1 },
    ] {
        expect(&refusal(&served, command), Invalid, None, &["zone", &limit]);
    }
    let half = frit_client::to_hex(&[7; BLOCK / 2]);
    let whole_blocks = &["does not consist of whole blocks of 4096"];
    expect(&refusal(&served, append(0, &half)), Failed, Some(ZoneFault::InvalidWrite), whole_blocks);
    expect(&refusal(&served, append(0, "")), Invalid, None, &["no bytes"]);
    expect(&refusal(&served, append(0, "0x")), Invalid, None, &["hexadecimal"]);
    let long = frit_client::to_hex(&vec![7; 17 * BLOCK]);
    let refused = refusal(&served, append(0, &long));
    assert!(matches!(refused.kind, Invalid | RefusalKind::TooLong), "{refused}");
    expect(
        &refusal(&served, ZonedOperation::Report { first: 0, most: 0 }),
        Invalid,
        None,
        &["1 to 4096 zones"],
    );
    let e = client.append(0, &vec![7; 17 * BLOCK]).unwrap_err().to_string();
    assert!(e.contains("at most 65536 bytes"), "{e}");
}

#[test]
fn reads_behind_the_write_pointer_are_refused() {
    use RefusalKind::{Failed, Invalid};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    small(&path);
    let served = Zoned::start(&path, false);
    let mut client = served.client();
    let (zones, zone_sectors) = (client.info().unwrap().zones, client.zone_sectors());
    client.append(1, &[7; 2 * BLOCK]).unwrap();
    let end = zone_sectors + 16;
    assert_eq!(client.read(end - 1, 1).unwrap(), [7; SECTOR_BYTES]);
    let read = |at, sectors| refusal(&served, ZonedOperation::Read { at, sectors });
    let pointer = format!("write pointer {end}");
    let behind = &["behind the write pointer", pointer.as_str()];
    expect(&read(end - 1, 2), Failed, Some(ZoneFault::Unwritten), behind);
    expect(&read(0, 1), Failed, Some(ZoneFault::Unwritten), &["zone 0", "state empty"]);
    expect(&read(2 * zone_sectors - 1, 2), Failed, Some(ZoneFault::BoundaryError), &["end of the zone"]);
    let outside = u64::from(zones) * zone_sectors;
    expect(&read(outside, 1), Invalid, None, &[&format!("less than {outside}")]);
    expect(&read(u64::MAX, 1), Invalid, None, &["sector"]);
    expect(&read(zone_sectors, 0), Invalid, None, &["at least one sector"]);
    expect(&read(zone_sectors, 129), Invalid, None, &["at most 65536 bytes"]);

    // A device that is served read-only shows its zones, and changes nothing.
    drop(client);
    drop(served.server);
    served.device.close().unwrap();
    let served = Zoned::start(&path, true);
    let append = ZonedOperation::Append { zone: 1, data: frit_client::to_hex(&[7; BLOCK]) };
    for command in [append, ZonedOperation::Reset { zone: 1 }] {
        expect(&refusal(&served, command), Failed, None, &["read-only"]);
    }
    assert_eq!(served.client().read(zone_sectors, 1).unwrap(), [7; SECTOR_BYTES]);
}

#[test]
fn states_and_limits_refuse_commands() {
    use RefusalKind::Failed;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    small(&path);
    let served = Zoned::start(&path, false);
    let mut client = served.client();
    let one = frit_client::to_hex(&[7; BLOCK]);
    let append = |zone, data: &str| ZonedOperation::Append { zone, data: data.to_owned() };
    client.append(1, &[7; 2 * BLOCK]).unwrap();
    client.finish(2).unwrap();
    let full = &["zone 2", "is full", "reset it"];
    expect(&refusal(&served, append(2, &one)), Failed, Some(ZoneFault::IsFull), full);
    expect(&refusal(&served, ZonedOperation::Open { zone: 2 }), Failed, Some(ZoneFault::IsFull), full);
    let close = refusal(&served, ZonedOperation::Close { zone: 2 });
    expect(&close, Failed, Some(ZoneFault::InvalidTransition), &["is not open"]);
    client.open_zone(3).unwrap();
    client.open_zone(4).unwrap();
    let open = refusal(&served, append(5, &one));
    expect(&open, Failed, Some(ZoneFault::TooManyOpen), &["zone 5", "close or finish another zone"]);
    client.close_zone(3).unwrap();
    client.append(5, &[7; BLOCK]).unwrap();
    let active = refusal(&served, append(6, &one));
    // Zone 3 was closed without data, and is active all the same.
    expect(&active, Failed, Some(ZoneFault::TooManyActive), &["zone 6", "finish or reset another zone"]);
    for _ in 0..3 {
        client.append(1, &[7; 16 * BLOCK]).unwrap();
    }
    let space = refusal(&served, append(1, &frit_client::to_hex(&[7; 16 * BLOCK])));
    expect(&space, Failed, Some(ZoneFault::BoundaryError), &["57344 bytes left", "divide them"]);
}

#[test]
fn another_layer_has_no_zones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    common::volume(&path).close().unwrap();
    let served = Zoned::start(&path, false);
    for command in [
        ZonedOperation::Info {},
        ZonedOperation::Report { first: 0, most: 1 },
        ZonedOperation::Reset { zone: 0 },
        ZonedOperation::Read { at: 0, sectors: 1 },
        ZonedOperation::Append { zone: 0, data: "00".repeat(BLOCK) },
        ZonedOperation::Flush {},
    ] {
        let refused = refusal(&served, command);
        expect(&refused, RefusalKind::Invalid, None, &["has no zones", "kind `zns`"]);
    }
    let e = ZonedClient::open(served.server.path()).unwrap_err().to_string();
    assert!(e.contains("kind `zns`"), "{e}");
    // And a zoned device is no cache.
    let path = dir.path().join("zoned");
    small(&path);
    let served = Zoned::start(&path, false);
    let e = frit_client::CacheClient::open(served.server.path()).unwrap_err().to_string();
    assert!(e.contains("no solid-state cache"), "{e}");
}

/// Lines of requests, with changed, removed and repeated bytes, leave a device that works.
#[test]
fn damaged_requests_are_refused_and_harm_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    small(&path);
    let served = Zoned::start(&path, false);
    let whole = "\"".to_owned() + &"5a".repeat(BLOCK) + "\"";
    let append = format!(r#"{{"append":{{"zone":1,"data":{whole}}}}}"#);
    let commands = [
        r#"{"info":{}}"#,
        r#"{"report":{"first":0,"most":9}}"#,
        r#"{"open":{"zone":3}}"#,
        r#"{"close":{"zone":3}}"#,
        r#"{"finish":{"zone":2}}"#,
        r#"{"reset":{"zone":2}}"#,
        r#"{"read":{"at":512,"sectors":8}}"#,
        r#"{"flush":{}}"#,
        &append,
    ];
    let (mut state, mut done, mut refused) = (7, 0, 0);
    let mut stream = UnixStream::connect(served.server.path()).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3000 {
        let command = commands[next(&mut state) as usize % commands.len()];
        let mut line = format!(r#"{{"v":1,"do":"zoned","command":{command}}}"#).into_bytes();
        for _ in 0..next(&mut state) % 3 {
            // Most changes are in the head of an append, and not in its digits.
            let at = next(&mut state) as usize % line.len().min(80);
            match next(&mut state) % 4 {
                0 => line[at] = next(&mut state) as u8,
                1 => line[at] = b"0123456789{}\":,"[next(&mut state) as usize % 15],
                2 => drop(line.remove(at)),
                _ => line.insert(at, line[at]),
            }
        }
        line.retain(|&b| b != b'\n');
        line.push(b'\n');
        stream.write_all(&line).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        match serde_json::from_str::<Answer>(&answer).unwrap().result {
            ControlResult::Ok(_) => done += 1,
            ControlResult::Error(_) => refused += 1,
        }
    }
    assert!(done > 500 && refused > 500, "{done} {refused}");
    assert!(served.device.read_only().is_none());
    let mut client = served.client();
    let report = client.report().unwrap();
    for zone in report.iter().filter(|zone| zone.write_pointer > zone.start) {
        let data = client.read(zone.start, zone.write_pointer - zone.start).unwrap();
        // The first digits can have been changed, and be valid all the same.
        assert!(data.chunks(BLOCK).all(|block| block[64..].iter().all(|&b| b == 0x5a)), "{zone:?}");
    }
}

/// Error numbers of NBD.
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;

#[track_caller]
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}

#[test]
fn clients_of_nbd_write_at_write_pointers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    small(&path);
    let served = Zoned::start(&path, false);
    let socket = dir.path().join("nbd.sock");
    let _nbd = common::start(&served.device, &socket);
    let mut nbd = common::Client::connect(&socket).unwrap();
    let zone = ZONE_BLOCKS as u64 * BLOCK as u64;
    nbd.write(zone, &block(1), 0).unwrap();
    nbd.write(zone + 4096, &block(2).repeat(3), 1).unwrap();
    assert_eq!(nbd.read(zone + 4096, BLOCK).unwrap(), block(2));
    assert_eq!(nbd.read(zone + 4 * 4096, BLOCK).unwrap(), [0; BLOCK], "behind the write pointer");

    // Neither before nor behind the write pointer, not a part of a block, and not into the next zone.
    for (at, len) in [(zone, 4096), (zone + 8 * 4096, 4096), (zone + 4 * 4096, 512), (zone + 4 * 4096, 100)] {
        assert_eq!(errno(nbd.write(at, &vec![9; len], 0)), EINVAL, "{len} bytes at {at}");
    }
    let to_end = zone - 4 * 4096;
    assert_eq!(errno(nbd.write(zone + 4 * 4096, &vec![9; to_end as usize + BLOCK], 0)), EINVAL);
    // A program that appends moves the write pointer for NBD as well.
    let mut client = served.client();
    assert_eq!(client.append(1, &block(3)).unwrap() * 512, zone + 4 * 4096);
    assert_eq!(errno(nbd.write(zone + 4 * 4096, &block(4), 0)), EINVAL);
    nbd.write(zone + 5 * 4096, &block(4), 0).unwrap();
    client.finish(1).unwrap();
    assert_eq!(errno(nbd.write(zone + 6 * 4096, &block(5), 0)), ENOSPC, "the zone is full");
    for n in [2, 3, 4, 5] {
        nbd.write(n * zone, &block(6), 0).unwrap();
    }
    assert_eq!(errno(nbd.write(6 * zone, &block(6), 0)), ENOSPC, "too many active zones");

    // A trim of all data of a zone resets it, and a trim of a part of them is refused.
    assert_eq!(errno(nbd.trim(zone, 4096)), EINVAL);
    assert_eq!(nbd.read(zone, BLOCK).unwrap(), block(1));
    nbd.trim(zone, 6 * 4096).unwrap();
    assert_eq!(client.zone(1).unwrap().state, ZoneState::Empty);
    assert_eq!(nbd.read(zone, BLOCK).unwrap(), [0; BLOCK]);
    nbd.flush().unwrap();
}

#[test]
fn a_trim_resets_zones_that_are_longer_than_a_slice_of_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    // Zones of 24 MiB. A slice has 16 MiB.
    let sets = ["media.nand.blocks_per_plane=8", "media.nand.pages_per_block=768"];
    create(&path, "zns-small", &sets);
    let served = Zoned::start(&path, false);
    let socket = dir.path().join("nbd.sock");
    let _nbd = common::start(&served.device, &socket);
    let mut nbd = common::Client::connect(&socket).unwrap();
    let mut client = served.client();
    let zone = client.zone_sectors() * 512;
    assert!(zone > 20 << 20, "{zone}");
    for number in [0, 1] {
        nbd.write(number * zone, &vec![number as u8 + 1; 20 << 20], 0).unwrap();
    }
    assert_eq!(errno(nbd.trim(0, 18 << 20)), EINVAL, "a part of the data");
    nbd.trim(0, 2 * zone as u32).unwrap();
    for number in [0, 1] {
        assert_eq!(client.zone(number).unwrap().state, ZoneState::Empty);
    }
    assert_eq!(nbd.read(17 << 20, BLOCK).unwrap(), [0; BLOCK]);
    nbd.write(0, &block(9), 0).unwrap();
}
