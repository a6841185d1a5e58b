//! A log-structured store of keys, written against a served zoned device.
//!
//! Each record, a key with its value, is appended to the zone that is being filled. The index is in memory
//! only: a start reads the zones up to their write pointers. When few zones are empty, the live records of
//! the zone with the fewest of them are appended again, and the zone is reset. After a crash of the
//! program, of the server or of both, all records of before the last flush are found, and no part of a
//! record is taken for one.
//!
//! ```text
//! frit create vol --stack zns-small && frit serve vol --nbd tcp:127.0.0.1:0 &
//! cargo run -p frit-cli --example zone_store -- vol/ctl.sock put notes "a line of text"
//! cargo run -p frit-cli --example zone_store -- vol/ctl.sock get notes
//! cargo run -p frit-cli --example zone_store -- vol/ctl.sock load < lines
//! ```

use frit_client::{ClientError, ReportedZone, SECTOR_BYTES, ZoneState, ZonedClient};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// Header of each block: number of the record, number of the block in the record, and the length of the
/// key, of the value, and the checksum of the block.
const HEADER: usize = 28;
/// Number of empty zones from which zones are cleaned.
const EMPTY_MIN: usize = 2;
/// Number of lines of `load` after which a flush makes them durable.
const LINES: usize = 8;

/// FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923).
fn checksum(parts: [&[u8]; 2]) -> u64 {
    let bytes = parts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// A record: its number, by which the newest one of a key is found, and its contents.
struct Record {
    number: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Record {
    /// Encodes the record. Each block has a header, so no contents can be taken for a record.
    fn encode(&self, block: usize) -> Vec<u8> {
        let contents = [&self.key[..], &self.value].concat();
        let mut out = Vec::new();
        for (i, part) in contents.chunks(block - HEADER).enumerate() {
            let mut bytes = self.number.to_le_bytes().to_vec();
            for n in [i, self.key.len(), self.value.len()] {
                bytes.extend((n as u32).to_le_bytes());
            }
            let sum = checksum([&bytes, part]);
            bytes.extend(sum.to_le_bytes());
            bytes.extend(part);
            bytes.resize(block, 0);
            out.extend(bytes);
        }
        out
    }

    /// Decodes the record at the start of `blocks`; `None` if there is no complete one.
    fn decode(blocks: &[u8], block: usize) -> Option<(Record, usize)> {
        let word =
            |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (key, value) = (word(blocks, 12)? as usize, word(blocks, 16)? as usize);
        let (number, length) = (&blocks[..8], key + value);
        let mut contents = Vec::new();
        for (i, bytes) in blocks.chunks(block).enumerate().take(length.div_ceil(block - HEADER)) {
            let part = bytes.get(HEADER..HEADER + (length - contents.len()).min(block - HEADER))?;
            let sum = checksum([&bytes[..20], part]).to_le_bytes();
            let fits = bytes[..8] == *number && word(bytes, 8)? as usize == i && bytes[20..HEADER] == sum;
            contents.extend(fits.then_some(part)?);
        }
        let value = (key > 0 && contents.len() == length).then(|| contents.split_off(key))?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        Some((Record { number, key: contents, value }, length.div_ceil(block - HEADER)))
    }
}

/// Place of the newest record of a key.
#[derive(Clone, Copy)]
struct Place {
    number: u64,
    zone: u32,
    at: u64,
    blocks: usize,
}

struct Store {
    device: ZonedClient,
    index: BTreeMap<Vec<u8>, Place>,
    next: u64,
    /// Zone that is being filled.
    zone: Option<u32>,
}

impl Store {
    fn open(socket: &Path) -> Result<Store, ClientError> {
        let device = ZonedClient::open(socket)?;
        let mut store = Store { device, index: BTreeMap::new(), next: 1, zone: None };
        for zone in store.device.report()? {
            for (record, at, blocks) in store.records(&zone)? {
                store.next = store.next.max(record.number + 1);
                store.note(record.key, Place { number: record.number, zone: zone.zone, at, blocks });
            }
            if matches!(zone.state, ZoneState::Closed | ZoneState::ImplicitlyOpen) {
                store.zone = Some(zone.zone);
            }
        }
        Ok(store)
    }

    fn note(&mut self, key: Vec<u8>, place: Place) {
        if self.index.get(&key).is_none_or(|known| known.number < place.number) {
            self.index.insert(key, place);
        }
    }

    /// Reads the records of a zone, with their places and blocks. A torn record is passed over.
    fn records(&mut self, zone: &ReportedZone) -> Result<Vec<(Record, u64, usize)>, ClientError> {
        let block = self.device.block_bytes();
        let mut found = Vec::new();
        if zone.write_pointer == zone.start || zone.state == ZoneState::Offline {
            return Ok(found);
        }
        let data = self.device.read(zone.start, zone.write_pointer - zone.start)?;
        let mut at = 0;
        while at < data.len() {
            let record = Record::decode(&data[at..], block);
            let blocks = record.as_ref().map_or(1, |(_, blocks)| *blocks);
            let sector = zone.start + (at / SECTOR_BYTES) as u64;
            found.extend(record.map(|(record, blocks)| (record, sector, blocks)));
            at += blocks * block;
        }
        Ok(found)
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>, ClientError> {
        let absent = || io::Error::new(io::ErrorKind::NotFound, format!("there is no key {key}"));
        let place = *self.index.get(key.as_bytes()).ok_or_else(absent)?;
        let sectors = place.blocks * self.device.block_bytes() / SECTOR_BYTES;
        let data = self.device.read(place.at, sectors as u64)?;
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, format!("the record of {key} is damaged"));
        let (record, _) = Record::decode(&data, self.device.block_bytes()).ok_or_else(damaged)?;
        Ok(record.value)
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), ClientError> {
        self.clean()?;
        self.append(key.as_bytes().to_vec(), value.to_vec())
    }

    /// Appends a record to the zone that is being filled, or to an empty one.
    fn append(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), ClientError> {
        let record = Record { number: self.next, key, value };
        let data = record.encode(self.device.block_bytes());
        let zone = self.zone_for(data.len())?;
        let at = self.device.append(zone, &data)?;
        self.next += 1;
        let blocks = data.len() / self.device.block_bytes();
        self.note(record.key, Place { number: record.number, zone, at, blocks });
        Ok(())
    }

    /// Returns a zone with space for an append. A zone with too little of it is finished.
    fn zone_for(&mut self, bytes: usize) -> Result<u32, ClientError> {
        if let Some(number) = self.zone {
            let zone = self.device.zone(number)?;
            let end = zone.start + self.device.zone_sectors();
            let usable = !matches!(zone.state, ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline);
            if usable && (end - zone.write_pointer) as usize * SECTOR_BYTES >= bytes {
                return Ok(number);
            }
            if usable {
                self.device.finish(number)?;
            }
        }
        let full = || io::Error::new(io::ErrorKind::StorageFull, "there is no empty zone");
        let zones = self.device.report()?;
        let empty = zones.iter().find(|zone| zone.state == ZoneState::Empty).ok_or_else(full)?;
        self.zone = Some(empty.zone);
        Ok(empty.zone)
    }

    /// Resets zones until enough of them are empty. Their live records are appended again before, and made
    /// durable. Zones with more than three quarters of live blocks stay.
    fn clean(&mut self) -> Result<(), ClientError> {
        let zone_blocks = self.device.zone_sectors() as usize * SECTOR_BYTES / self.device.block_bytes();
        loop {
            let zones = self.device.report()?;
            if zones.iter().filter(|zone| zone.state == ZoneState::Empty).count() >= EMPTY_MIN {
                return Ok(());
            }
            let live = |number: u32| -> usize {
                self.index.values().filter(|p| p.zone == number).map(|p| p.blocks).sum()
            };
            let used = |zone: &&ReportedZone| {
                matches!(zone.state, ZoneState::Full | ZoneState::Closed) && Some(zone.zone) != self.zone
            };
            let victim = zones.iter().filter(used).min_by_key(|zone| live(zone.zone));
            let Some(victim) = victim.filter(|zone| live(zone.zone) <= zone_blocks * 3 / 4).copied() else {
                return Ok(());
            };
            for (record, at, _) in self.records(&victim)? {
                if self.index.get(&record.key).is_some_and(|place| place.at == at) {
                    self.append(record.key, record.value)?;
                }
            }
            self.device.flush()?;
            self.device.reset(victim.zone)?;
        }
    }

    /// Puts the lines of the standard input, each a key and a value, and reports the lines that are durable.
    fn load(&mut self) -> Result<(), ClientError> {
        for (n, line) in io::stdin().lines().enumerate() {
            let line = line?;
            let (key, value) = line.split_once(' ').unwrap_or((&line, ""));
            self.put(key, value.as_bytes())?;
            if (n + 1) % LINES == 0 {
                self.device.flush()?;
                writeln!(io::stdout(), "{} lines are durable", n + 1)?;
            }
        }
        self.device.flush()
    }
}

fn run(arguments: &[String]) -> Result<(), ClientError> {
    let usage = "zone_store SOCKET put KEY VALUE | get KEY | list | load < LINES";
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, usage);
    let [socket, command @ ..] = arguments else { return Err(usage().into()) };
    let mut store = Store::open(Path::new(socket))?;
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    match command[..] {
        ["put", key, value] if !key.is_empty() => {
            store.put(key, value.as_bytes())?;
            store.device.flush()?;
        }
        ["get", key] => io::stdout().write_all(&store.get(key)?)?,
        ["list"] => {
            let keys: Vec<_> =
                store.index.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
            for key in keys {
                let value = store.get(&key)?;
                writeln!(io::stdout(), "{key} {}", String::from_utf8_lossy(&value))?;
            }
        }
        ["load"] => store.load()?,
        _ => return Err(usage().into()),
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
