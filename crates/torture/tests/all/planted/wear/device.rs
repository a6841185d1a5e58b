//! A small leveled PCM, and a client that writes to it.

use super::oracle::{History, PartSpec};
use frit_core::{Cause, CrashKind, Nanos, ReadTarget, Sink, Tok, WriteData};
use frit_media::{AnyStore, Hardware, LatencyCurve, Pcm, PcmConfig, PcmGeometry, PcmTiming};
use frit_torture::block::access_log::{AccessLog, AccessRecords};
use frit_torture::block::graph::Graph;
use frit_torture::block::medium::{SharedMedium, TortureMedium};
use frit_torture::block::recording_sink::{recorded, recording_sink, start_recording};
use frit_torture::block::target::MediumShape;
use frit_wear::{Leveled, LevelerKind, WearConfig};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// Size of the device in bytes: with stripes of 256 bytes, 2 × 2 banks of a few stripes.
const BYTES: u64 = 9 << 10;
const CHANNELS: u32 = 2;
/// Bytes of a refresh unit: half a stripe. It spans both channels when they interleave by 64 bytes.
const REFRESH: u32 = 128;
/// Number of requests of a recorded run.
const REQUESTS: u32 = 40;

/// A wear leveler and a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestDevice {
    kind: LevelerKind,
    interleave: u32,
}

/// A recorded run.
pub(crate) struct Run {
    pub(crate) graph: Graph,
    pub(crate) log: AccessRecords,
    pub(crate) history: History,
    /// Number of accesses at the end of each request.
    pub(crate) ends: Vec<usize>,
    /// For each flush: number of requests before it, and number of accesses at its end.
    pub(crate) flushes: Vec<(u32, usize)>,
}

impl TestDevice {
    pub(crate) fn new(kind: LevelerKind, interleave: u32) -> TestDevice {
        TestDevice { kind, interleave }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.kind == LevelerKind::NoLeveling
    }

    /// Returns the name without commas.
    pub(crate) fn name(&self) -> String {
        format!("{:?} {}", self.kind, self.interleave)
    }

    pub(crate) fn exchanges(&self) -> bool {
        self.kind == LevelerKind::SecurityRefresh
    }

    fn pcm(&self) -> PcmConfig {
        let curve = |t| LatencyCurve::new(vec![(64, Nanos(t))], 16).unwrap();
        PcmConfig {
            name: "pcm".into(),
            geometry: PcmGeometry {
                channels: CHANNELS,
                chips_per_channel: 1,
                groups: 1,
                chip_bytes: BYTES / u64::from(CHANNELS),
                write_unit: 8,
                line_bytes: 64,
                interleave_bytes: self.interleave,
            },
            timing: PcmTiming {
                read: curve(10),
                write: curve(20),
                write_clean: None,
                refresh: Nanos(99),
                bus_ps_per_byte: 0,
                fence: Nanos(1),
            },
            endurance: 1_000_000,
            refresh_bytes: Some(REFRESH),
            serial: 0,
        }
    }

    pub(crate) fn blank(&self, volatile: bool) -> SharedMedium {
        let mut medium = TortureMedium::new(0, None);
        medium.volatile = volatile;
        SharedMedium::new(medium)
    }

    fn shape(&self) -> MediumShape {
        MediumShape {
            of_top: true,
            name: "pcm".into(),
            kind: frit_core::MediumKind::Pcm,
            nand: None,
            line_bytes: 64,
            word_bytes: 8,
            data_bytes: BYTES,
            verified: true,
            units: 0..CHANNELS as u16,
        }
    }

    pub(crate) fn open(&self, store: &SharedMedium) -> Result<Leveled, String> {
        let config = self.pcm();
        let bytes = config.geometry.store_bytes();
        let volatile = store.lock().volatile;
        let store = AnyStore::Custom(store.open(bytes));
        let pcm = Pcm::new(config, store, &mut Hardware::new())?;
        let wear = WearConfig {
            leveler: self.kind,
            stripe_bytes: 256,
            ranks: 2,
            banks: 2,
            cubes: 2,
            region_stripes: if self.exchanges() { 4 } else { 0 },
            interval: 1,
            over_files: volatile,
            ..WearConfig::default()
        };
        Leveled::new(pcm, wear).map_err(|e| e.to_string())
    }

    /// Returns the contents after a recovery.
    pub(crate) fn recover(&self, store: &SharedMedium, stop: CrashKind) -> Result<Vec<u8>, String> {
        let mut d = self.open(store)?;
        d.recover(&mut Sink::untimed(), stop).map_err(|e| e.to_string())?;
        let mut all = vec![0; d.bytes() as usize];
        d.read(&mut Sink::untimed(), 0, ReadTarget::Bytes(&mut all), Cause::Host, Tok::DONE)
            .map_err(|e| e.to_string())?;
        for (at, word) in (0u64..).step_by(8).zip(all.chunks_exact(8)) {
            if d.is_clean(at, 8) != (word == [0; 8]) {
                return Err(format!("the word at {at} holds {word:?}, which contradicts its clean state"));
            }
        }
        Ok(all)
    }

    /// Records a run over used media. The media keep their contents from before the run.
    pub(crate) fn record(&self, store: &SharedMedium, seed: u64) -> Result<Run, String> {
        let volatile = store.lock().volatile;
        let access_log = Arc::new(AccessLog::default());
        let mut sink = recording_sink(access_log.clone(), None, 0..0);
        let mut d = self.open(store)?;
        let text = |e: frit_core::Error| e.to_string();
        d.format(&mut sink).map_err(text)?;
        let mut client = Client::new(d.bytes(), seed);
        for _ in 0..client.rng.random_range(5..60) {
            client.request(&mut d, &mut sink)?;
        }
        d.flush(&mut sink).map_err(text)?;
        {
            let mut m = store.lock();
            m.commit();
            m.access_log = Some(access_log.clone());
        }
        client.history.settle();
        start_recording(&mut sink);
        let (mut ends, mut flushes) = (Vec::new(), Vec::new());
        for n in 0..REQUESTS {
            sink.begin();
            client.request(&mut d, &mut sink)?;
            sink.end();
            ends.push(access_log.len());
            if volatile && client.rng.random_ratio(1, 8) {
                sink.begin();
                d.flush(&mut sink).map_err(text)?;
                sink.end();
                flushes.push((n + 1, access_log.len()));
            }
        }
        drop(d);
        store.lock().access_log = None;
        let log = access_log.take();
        let graph = Graph::new(&recorded(sink), log.clone(), &[self.shape()]);
        store.lock().undo();
        Ok(Run { graph, log, history: client.history, ends, flushes })
    }

    /// Writes to a recovered device. The data must be readable, also after another recovery.
    pub(crate) fn alive(&self, store: &SharedMedium, before: &[u8], seed: u64) -> Result<(), String> {
        let text = |e: frit_core::Error| e.to_string();
        let mut d = self.open(store)?;
        d.recover(&mut Sink::untimed(), CrashKind::Process).map_err(text)?;
        let mut plain = before.to_vec();
        let mut rng = SmallRng::seed_from_u64(seed);
        for round in 0..80 {
            let len = rng.random_range(64..1200);
            let at = rng.random_range(0..plain.len() - len);
            let data: Vec<u8> = (0..len).map(|i| (i as u8) ^ round).collect();
            d.write_fresh(&mut Sink::untimed(), at as u64, WriteData::Bytes(&data), Cause::Host, Tok::DONE)
                .map_err(text)?;
            plain[at..at + len].copy_from_slice(&data);
            if round % 4 == 0 {
                let unit = at / REFRESH as usize * REFRESH as usize;
                d.refresh(&mut Sink::untimed(), unit as u64, Cause::Gc, Tok::DONE).map_err(text)?;
                plain[unit..unit + REFRESH as usize].fill(0);
            }
        }
        drop(d);
        let found = self.recover(store, CrashKind::Process)?;
        let differs = found.iter().zip(&plain).position(|(a, b)| a != b);
        differs.map_or(Ok(()), |at| Err(format!("data written after a recovery is lost at byte {at}")))
    }
}

/// A client that writes in place and refreshes, like a log and the data that it protects. A fence
/// separates the second part of a request from the first.
struct Client {
    rng: SmallRng,
    words: u64,
    history: History,
}

impl Client {
    fn new(bytes: u64, seed: u64) -> Client {
        Client { rng: SmallRng::seed_from_u64(seed), words: bytes / 8, history: History::new(bytes / 8) }
    }

    fn request(&mut self, d: &mut Leveled, sink: &mut Sink) -> Result<(), String> {
        let mut after = sink.start();
        let parts = [0, 1].map(|_| {
            // Two thirds of the writes go to a small range. One part in four is a refresh.
            let near = if self.rng.random_ratio(2, 3) { self.words / 6 } else { self.words };
            let empties = self.rng.random_ratio(1, 4);
            if empties {
                let len = u64::from(REFRESH / 8);
                return PartSpec { first: self.rng.random_range(0..near / len) * len, len, empties };
            }
            let len = self.rng.random_range(1..160u64).min(near - 1);
            PartSpec { first: self.rng.random_range(0..near - len), len, empties }
        });
        let bytes = self.history.request(parts);
        for (ask, data) in parts.into_iter().zip(bytes) {
            let (at, data) = (ask.first * 8, WriteData::Bytes(&data));
            let done = match (ask.empties, self.rng.random_ratio(1, 2)) {
                (true, _) => d.refresh(sink, at, Cause::Gc, after),
                (false, true) => d.write_fresh(sink, at, data, Cause::Host, after),
                (false, false) => d.write(sink, at, data, Cause::Host, after),
            };
            let done = done.map_err(|e| e.to_string())?;
            after = d.fence(sink, done);
        }
        sink.ack(after);
        Ok(())
    }
}
