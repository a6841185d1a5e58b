//! Runs of a comparison: a file system with the queried file, then each query on it, idle at its start.

use super::engine::IspEngine;
use super::foreground::Foreground;
use super::report::{ForegroundReport, IspQuery, MachineReport, QueryRow, SoftwareQuery, mb_s};
use super::session::QuerySession;
use super::text::TextSource;
use super::words::WordCounter;
use super::{IspMachine, IspMedium, IspOptions};
use crate::bench::format;
use crate::build::{Devices, EngineUnits};
use crate::error::{Error, Result};
use crate::host::HostModel;
use crate::isp::IspParams;
use crate::sim_medium::SimMedium;
use frit_core::{Nanos, Sink, UnitId, size};
use frit_engine::sched::HostFirst;
use frit_engine::{DeviceUsage, Event, SinkUsage};
use frit_fs::{Caller, Clock, FileSystem, Fs, FsOptions, Ino, OpenFile, Paths};

/// Path of the queried file.
pub(super) const PATH: &str = "text";
/// Path and size of the file of the foreground load.
const FOREGROUND_PATH: &str = "foreground";
const FOREGROUND_BYTES: u64 = 16 << 20;
/// Bytes of a write that fills a file.
const FILL: u64 = 1 << 20;

type IspFs<'m> = Fs<&'m IspMedium>;

/// Units of the hardware whose use is reported.
struct UsedUnits {
    memory: Vec<UnitId>,
    engine: Vec<UnitId>,
    link: Option<UnitId>,
}

impl UsedUnits {
    fn of(parts: &Devices) -> UsedUnits {
        let names = parts.units();
        let memory = parts.pcm.geometry().units() as usize;
        UsedUnits {
            memory: names.iter().take(memory).map(|u| u.unit).collect(),
            engine: parts.engine.iter().flat_map(EngineUnits::units).collect(),
            link: names.iter().find(|u| u.name == "link").map(|u| u.unit),
        }
    }
}

/// One machine and one file size.
struct Bench<'o> {
    options: &'o IspOptions,
    params: IspParams,
    units: UsedUnits,
    file_bytes: u64,
}

/// Runs one file on one machine.
pub(super) fn run_one(
    options: &IspOptions,
    machine: &IspMachine,
    file_bytes: u64,
) -> Result<(MachineReport, QueryRow)> {
    let parts = Devices::new(&machine.profile, HostModel::find(&machine.host)?, options.size)?;
    let params = *parts.host.isp()?;
    check_request(&params, &parts)?;
    let (host, bytes) = (parts.host.clone(), parts.bytes);
    let bench = Bench { options, params, units: UsedUnits::of(&parts), file_bytes };
    let event = Event::new(&parts.hardware, HostFirst::default());
    let medium = bench.fill(parts)?.change_sink(Sink::new(event));
    let fs = Fs::open(&medium, FsOptions { clock: Clock::counted(1), ..FsOptions::default() })
        .map_err(Error::fs("open"))?;
    let ino = fs.metadata(&Caller::ROOT, PATH).map_err(Error::fs("lookup"))?.ino;
    let row = bench.measure(machine, &medium, &fs, ino)?;
    Ok((MachineReport { profile: machine.profile.clone(), host, bytes }, row))
}

/// Refuses requests of the engine that would not be of one unit.
fn check_request(params: &IspParams, parts: &Devices) -> Result<()> {
    let (request, interleave) =
        (params.engine_request_bytes.0, u64::from(parts.pcm.geometry().interleave_bytes));
    if request <= interleave {
        return Ok(());
    }
    let why = format!("has to be at most the {} that alternate over channels", size::format(interleave));
    Err(frit_core::Error::param("engine_request_bytes", size::format(request), why).into())
}

/// Returns the busy times of the units so far.
fn usage_of(sink: &Sink) -> &[Nanos] {
    sink.usage().map_or(&[], DeviceUsage::units)
}

impl Bench<'_> {
    /// Creates the file system and its files, without times.
    fn fill(&self, parts: Devices) -> Result<SimMedium> {
        let medium = SimMedium::new(parts, Sink::untimed())?;
        let fs = Fs::format(&medium, format(self.options.seed, false)).map_err(Error::fs("format"))?;
        self.write(&fs, PATH, self.file_bytes, self.options.seed)?;
        if self.options.foreground.is_some() {
            self.write(&fs, FOREGROUND_PATH, FOREGROUND_BYTES, !self.options.seed)?;
        }
        fs.close().map_err(Error::fs("close"))?;
        Ok(medium)
    }

    fn write(&self, fs: &Fs<&SimMedium>, path: &str, bytes: u64, seed: u64) -> Result<()> {
        let file = fs.open_file(&Caller::ROOT, path, OpenFile::CREATE).map_err(Error::fs("create"))?;
        let mut text = TextSource::new(&self.options.words, seed);
        let mut buffer = vec![0; FILL as usize];
        let mut at = 0;
        while at < bytes {
            let part = &mut buffer[..FILL.min(bytes - at) as usize];
            text.fill(part);
            let written = file.write_at(at, part).map_err(Error::fs("write"))?;
            at += written as u64;
        }
        file.sync(false).map_err(Error::fs("fsync"))
    }

    fn measure<'m>(
        &self,
        machine: &IspMachine,
        medium: &'m IspMedium,
        fs: &IspFs<'m>,
        ino: Ino,
    ) -> Result<QueryRow> {
        let mut extents = 0;
        let mut count = |_: &_| {
            extents += 1;
            true
        };
        fs.pieces(ino, 0, &mut count).map_err(Error::fs("extents"))?;
        let isp = self.query(medium, fs, ino)?;
        let software = self.software(medium, fs)?;
        let foreground = self.options.foreground.is_some().then(|| self.foreground(medium, fs, ino));
        Ok(QueryRow {
            profile: machine.profile.clone(),
            host: machine.host.clone(),
            file_bytes: self.file_bytes,
            extents,
            ratio: isp.mb_s / software.mb_s,
            total_ratio: isp.total_mb_s / software.mb_s,
            isp,
            software,
            foreground: foreground.transpose()?,
        })
    }

    /// Waits until the medium is idle, and begins to measure the use of units.
    fn begin(medium: &IspMedium) {
        medium.wait_idle();
        let now = medium.now();
        medium.with_sink(|sink| sink.reset_usage(now));
    }

    fn engine<'m>(&self, medium: &'m IspMedium, fs: &IspFs<'_>, ino: Ino) -> IspEngine<'m> {
        let counter = WordCounter::new(&self.options.words);
        IspEngine::new(medium, self.params, counter, fs.geometry().inode_at(ino.0))
    }

    fn query<'m>(&self, medium: &'m IspMedium, fs: &IspFs<'m>, ino: Ino) -> Result<IspQuery> {
        Self::begin(medium);
        let (processed, link) = (medium.processed(), medium.link_bytes());
        let engine = self.engine(medium, fs, ino);
        let mut session = QuerySession::new(medium, fs, PATH, self.params, engine, None);
        let total_ns = session.run()?;
        let (program, engine, _) = session.finish();
        let engine_ns = engine.took().unwrap_or_default();
        let done = medium.processed().since(processed);
        let busy = |units: &[UnitId]| medium.with_sink(|sink| mean_busy(usage_of(sink), units, engine_ns));
        Ok(IspQuery {
            engine_ns,
            mb_s: mb_s(self.file_bytes, engine_ns),
            total_ns,
            total_mb_s: mb_s(self.file_bytes, total_ns),
            requests: program.calls,
            polls: program.polls,
            cpu_ns: program.busy,
            cpu_share: program.busy.0 as f64 / total_ns.0.max(1) as f64,
            memory_bytes: u64::from(self.params.instruction_bytes + self.params.result_bytes),
            link_bytes: self.units.link.map(|_| medium.link_bytes() - link),
            link_busy_ns: self.units.link.map(|u| medium.with_sink(|s| usage_of(s)[u.idx()])),
            contents_bytes: engine.contents_bytes,
            metadata_bytes: engine.metadata_bytes,
            commands: done.commands,
            command_bytes: done.bytes,
            engine_busy: busy(&self.units.engine),
            memory_busy: busy(&self.units.memory),
            counts: engine.counts(),
        })
    }

    fn software(&self, medium: &IspMedium, fs: &IspFs<'_>) -> Result<SoftwareQuery> {
        Self::begin(medium);
        let (begun, link) = (medium.now(), medium.link_bytes());
        let mut counter = WordCounter::new(&self.options.words);
        let (file, _) = medium.operation(|| fs.open_file(&Caller::ROOT, PATH, OpenFile::READ));
        let file = file.map_err(Error::fs("open"))?;
        let mut block = vec![0; self.params.read_block.0 as usize];
        let (mut at, mut requests, mut compare) = (0, 2, 0);
        loop {
            let (read, _) = medium.operation(|| {
                let n = file.read_at(at, &mut block)?;
                let time = Nanos(n as u64 * self.params.compare_per_byte.0 / 1000);
                medium.work(time);
                compare += time.0;
                Ok(n)
            });
            let n = read.map_err(Error::fs("read"))?;
            requests += 1;
            at += n as u64;
            counter.add(&block[..n]);
            if n == 0 {
                break;
            }
        }
        medium.operation(|| ());
        counter.end();
        let total_ns = medium.now().since(begun);
        Ok(SoftwareQuery {
            total_ns,
            mb_s: mb_s(self.file_bytes, total_ns),
            compare_ns: Nanos(compare),
            requests,
            cpu_share: 1.0,
            memory_bytes: self.params.read_block.0.min(self.file_bytes),
            link_bytes: self.units.link.map(|_| medium.link_bytes() - link),
            counts: counter.counts(),
        })
    }

    /// Measures the foreground load while the engine runs, and then as many reads without it.
    fn foreground<'m>(&self, medium: &'m IspMedium, fs: &IspFs<'m>, ino: Ino) -> Result<ForegroundReport> {
        let Some(load) = self.options.foreground else {
            return Err(frit_core::Error::param("foreground", "", "is missing").into());
        };
        let reader = |reads| {
            let file = fs.open_file(&Caller::ROOT, FOREGROUND_PATH, OpenFile::READ);
            Foreground::new(medium, file.map_err(Error::fs("open"))?, load, self.options.seed, reads)
        };
        Self::begin(medium);
        let engine = self.engine(medium, fs, ino);
        let mut session = QuerySession::new(medium, fs, PATH, self.params, engine, Some(reader(None)?));
        session.run()?;
        let running = session.finish().2.and_then(Foreground::finish);
        Self::begin(medium);
        let idle = reader(Some(running.map_or(0, |l| l.reads)))?.run_alone()?;
        Ok(ForegroundReport { load, idle, running })
    }
}

/// Returns the mean share of a time in which those of the units were busy that were used at all.
fn mean_busy(busy: &[Nanos], units: &[UnitId], time: Nanos) -> f64 {
    let used: Vec<u64> = units.iter().map(|u| busy[u.idx()].0).filter(|ns| *ns > 0).collect();
    let all = used.iter().sum::<u64>() as f64;
    if used.is_empty() || time == Nanos::ZERO { 0.0 } else { all / used.len() as f64 / time.0 as f64 }
}
