//! Reports of a disk, on a stack without NAND: a layer that passes requests to a disk unchanged.

use crate::RunOptions;
use crate::html::page;
use crate::report::{Report, StackId, compare::compare, text};
use crate::runner::Runner;
use frit_core::hints::Hints;
use frit_core::visible::StackView;
use frit_core::{
    BlockLayer, Cause, CheckCounts, CheckScope, CrashKind, Durable, Extent, Finding, Info, ParamInfo, Params,
    Precondition, Preconditioning, Progress, Quiesce, ReadTarget, Recovery, Result, SECTOR_BYTES, Sector,
    Sink, WriteData,
};
use frit_engine::{AnyScheduler, Event, InOrder, LoopMode};
use frit_media::disk::{DiskProfile, DriveModel, DriveScheduler};
use frit_media::{Disk, DiskConfig, Hardware, NoStore};
use frit_stack::BuiltStack;
use frit_trace::{Options, Workload};

const SECTORS: u64 = 1 << 29;

/// A layer that exposes a disk as a volume.
struct Plain(Disk);

impl Params for Plain {
    fn list(&self) -> Vec<ParamInfo> {
        Vec::new()
    }
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        Err(frit_core::Error::param(key, value, "there are none"))
    }
}

impl BlockLayer for Plain {
    fn info(&self) -> Info {
        Info { name: "plain", sectors: SECTORS, page_bytes: 512, dram_bytes: 0, durable_map_bytes: 0 }
    }
    fn read(&mut self, sink: &mut Sink, at: Sector, into: ReadTarget<'_>, _: Hints) -> Result<()> {
        let done = self.0.read(sink, at.bytes(), into, Cause::Host, sink.start())?;
        sink.ack(done);
        Ok(())
    }
    fn write(&mut self, sink: &mut Sink, at: Sector, data: WriteData<'_>, _: Hints) -> Result<()> {
        let done = self.0.write(sink, at.bytes(), data, Cause::Host, sink.start())?;
        sink.ack(done);
        Ok(())
    }
    fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        let done = self.0.flush(sink, Cause::Host, sink.start())?;
        sink.ack(done);
        Ok(())
    }
    fn discard(&mut self, _: &mut Sink, _: Sector, _: u64) -> Result<()> {
        Ok(())
    }
    fn step(&mut self, _: &mut Sink, _: u32) -> Result<Progress> {
        Ok(Progress::Idle)
    }
    fn visible(&self, view: &mut StackView) {
        view.media.push(self.0.view());
    }
    fn params(&mut self) -> &mut dyn Params {
        self
    }
}

impl Quiesce for Plain {
    fn halt(&mut self, _: &mut Sink) -> Result<()> {
        Ok(())
    }
    fn boot(&mut self, _: &mut Sink) -> Result<()> {
        Ok(())
    }
}

impl Preconditioning for Plain {
    fn precondition(&mut self, _: Precondition) -> Result<()> {
        Ok(())
    }
}

impl Durable for Plain {
    fn format(&mut self, _: &mut Sink) -> Result<()> {
        Ok(())
    }
    fn recover(&mut self, _: &mut Sink, _: CrashKind) -> Result<Recovery> {
        Ok(Recovery::default())
    }
    fn check(&mut self, _: &mut Sink, _: CheckScope, _: &mut dyn FnMut(Finding)) -> Result<CheckCounts> {
        Ok(CheckCounts::default())
    }
    fn extents(&self, _: Sector, _: u64, _: &mut dyn FnMut(Extent)) -> Result<()> {
        Ok(())
    }
    fn refuses(&self) -> Option<String> {
        None
    }
    fn refuse(&mut self, _: String) {}
}

/// Runs a workload over a disk with the given order of service, on the engine that `engine` makes.
fn run(order: DriveScheduler, engine: impl Fn(&Hardware) -> Sink, mode: LoopMode, workload: &str) -> Report {
    let mut spec = DiskProfile::builtin("st3500320as-2008").unwrap().spec().unwrap();
    spec.scheduler = order;
    spec.cache.write_back = frit_media::disk::WriteBack::Off;
    let mut hardware = Hardware::new();
    let config = DiskConfig {
        name: "disk".into(),
        drive: DriveModel::Mechanical(Box::new(spec)),
        bytes: SECTORS * SECTOR_BYTES,
        serial: 0,
    };
    let layer = Plain(Disk::new(config, NoStore, &mut hardware).unwrap());
    let engine = engine(&hardware);
    let id = StackId { name: "plain".into(), sha256: String::new(), toml: String::new(), volume_bytes: 0 };
    let options = RunOptions { mode, ..RunOptions::default() };
    let built = BuiltStack { layer: Box::new(layer), hardware, records: Vec::new() };
    let runner = Runner::new(engine, ("x", None), built, id, &options).unwrap();
    let mut workload = Workload::open(workload, &Options::default()).unwrap();
    runner.measure(&mut workload, &mut |_| {}, None).unwrap()
}

fn in_order(hardware: &Hardware) -> Sink {
    Sink::new(InOrder::new(hardware))
}

const RANDOM: &str = "gen:uniform,count=6000,size=4K,read=0.5,span=256G";

#[test]
fn a_disk_is_reported_by_what_its_arm_did() {
    let depth = |depth| LoopMode::Closed { depth };
    // Each request of 64 KiB continues the one before, and the disk transfers exactly the data of
    // the host.
    let r = run(DriveScheduler::Fifo, in_order, depth(1), "gen:sequential,count=100,size=64K,span=256G");
    let d = r.media[0].disk.as_ref().unwrap();
    assert_eq!((d.sequential(), d.distance_mean_sectors, d.traffic_rate), (Some(1.0), Some(0.0), Some(1.0)));
    assert_eq!((r.media[0].writes.commands, r.media[0].reads.commands, d.flushes), (100, 0, 0));
    // With one request at a time the disk is busy throughout, and its requests are those of the
    // host.
    let one = run(DriveScheduler::Fifo, in_order, depth(1), RANDOM);
    let d = one.media[0].disk.as_ref().unwrap();
    assert_eq!(d.busy_ns, one.throughput.duration_ns);
    assert!((d.requests_per_s / one.throughput.requests_per_s - 1.0).abs() < 1e-9);
    assert!((d.served_mean_ns.unwrap() - one.class("all").unwrap().service.figures.mean_ns).abs() < 1.0);
    assert!((d.mb_per_s / one.throughput.mb_per_s - 1.0).abs() < 1e-9);
    // The mean distance of two random positions in an interval is a third of its length.
    let third = SECTORS as f64 / 3.0;
    assert!((d.distance_mean_sectors.unwrap() / third - 1.0).abs() < 0.03, "{:?}", d.distance_mean_sectors);
    assert_eq!(d.distances.iter().map(|b| b.count).sum::<u64>(), 5999);
    // If the drive may reorder requests, distances are shorter and throughput is higher.
    let event = |h: &Hardware| Sink::new(Event::new(h, AnyScheduler::named("fifo").unwrap()));
    let many = run(DriveScheduler::Sstf, event, depth(32), RANDOM);
    let e = many.media[0].disk.as_ref().unwrap();
    assert!(e.distance_mean_sectors < d.distance_mean_sectors.map(|m| m / 4.0));
    assert!(e.requests_per_s > d.requests_per_s * 1.2);
}

#[test]
fn without_nand_nothing_is_said_of_it() {
    let r = run(DriveScheduler::Fifo, in_order, LoopMode::Closed { depth: 1 }, RANDOM);
    let said = text::report(&r);
    for line in ["disk          ", "disk distance", "traffic rate 1.000", "3,"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let page = page(std::slice::from_ref(&r));
    let table = compare(std::slice::from_ref(&r), 1);
    assert!(table.contains("disk, mean distance") && table.contains("disk, busy time"), "{table}");
    assert!(page.contains("id=\"disks\"") && page.contains("disk: distances between requests"));
    for what in ["NAND", "wear ", "PCM", "NaN"] {
        assert!(!said.contains(what) && !table.contains(what), "{what}: {said}{table}");
    }
    // The page does not mention NAND either.
    assert!(!page.contains("NAND") && !page.contains("NaN"), "{page}");
    // A disk has no write amplification, so it cannot be unsteady.
    assert!(r.steady_state.rounds.iter().all(|r| r.write_amplification.is_none()));
    assert_eq!(r.steady_state.rounds.len(), 5);
    let json = serde_json::to_value(&r).unwrap();
    assert_eq!(json["media"][0]["disk"]["traffic_rate"], 1.0);
}
