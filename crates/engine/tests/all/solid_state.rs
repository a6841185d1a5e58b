//! Times of drives without a mechanism that are computed by hand, for every engine that must
//! reproduce them.
//!
//! A read takes 100 us on its unit and 1 ns a byte on the link, a write 2 ns a byte on the link and
//! then 20 us on its unit, a flush 30 us on each unit. Units alternate every 16 KiB.

use crate::common::*;
use frit_core::{Cause, Cmd, CommandObserver, Nanos, ReadTarget, Sink, Tok, WriteData};
use frit_engine::sched::Fifo;
use frit_engine::{Event, InOrder};
use frit_media::disk::{DriveModel, SolidStateDrive};
use frit_media::{Disk, DiskConfig, Hardware, NoStore};

const US: u64 = 1_000;
const STRIPE: u64 = 16 << 10;

fn disk(units: u32) -> (Disk, Hardware) {
    let drive = SolidStateDrive {
        units,
        interleave_bytes: STRIPE as u32,
        t_read: Nanos(100 * US),
        t_write: Nanos(20 * US),
        t_flush: Nanos(30 * US),
        read_ps_per_byte: 1_000,
        write_ps_per_byte: 2_000,
    };
    let config =
        DiskConfig { name: "d".into(), drive: DriveModel::SolidState(drive), bytes: 1 << 30, serial: 0 };
    let mut hardware = Hardware::new();
    (Disk::new(config, NoStore, &mut hardware).unwrap(), hardware)
}

#[derive(Default, Debug)]
struct Commands(Vec<Cmd>);

impl CommandObserver for Commands {
    fn command(&mut self, cmd: &Cmd, _: Tok, _: Tok) {
        self.0.push(*cmd);
    }
}

/// An access to the disk.
#[derive(Clone, Copy)]
enum Access {
    Read(u64, u32),
    Write(u64, u32),
    Flush,
}
use Access::{Flush, Read, Write};

/// Returns the ends of accesses that arrive at time zero, which both engines agree on.
fn ends_of(units: u32, accesses: &[Access]) -> Vec<u64> {
    let (mut disk, hardware) = disk(units);
    let requests: Vec<Request> = accesses
        .iter()
        .map(|&access| {
            let mut sink = Sink::untimed().observed(Commands::default());
            match access {
                Read(at, len) => disk.read(&mut sink, at, ReadTarget::Len(len), Cause::Host, Tok::DONE),
                Write(at, len) => disk.write(&mut sink, at, WriteData::Len(len), Cause::Host, Tok::DONE),
                Flush => disk.flush(&mut sink, Cause::Host, Tok::DONE),
            }
            .unwrap();
            Request::at(0, &sink.observer::<Commands>().unwrap().0)
        })
        .collect();
    let found = ends(&mut Sink::new(InOrder::new(&hardware)), &requests);
    assert_eq!(found, ends(&mut Sink::new(Event::new(&hardware, Fifo)), &requests), "in-order and event");
    found
}

#[test]
fn an_access_takes_its_latency_and_its_transfer() {
    assert_eq!(ends_of(4, &[Read(0, 4096)]), [100 * US + 4096]);
    assert_eq!(ends_of(4, &[Write(0, 4096)]), [2 * 4096 + 20 * US]);
    assert_eq!(ends_of(4, &[Flush]), [30 * US]);
    // One unit executes one command after the other.
    assert_eq!(ends_of(1, &[Read(0, 512), Read(1 << 20, 512)]), [100 * US + 512, 200 * US + 1024]);
}

#[test]
fn units_work_in_parallel_and_take_turns_on_the_link() {
    let at = |n: u64| n * STRIPE;
    let reads: Vec<Access> = (0..4).map(|n| Read(at(n), 4096)).collect();
    assert_eq!(ends_of(4, &reads), [1, 2, 3, 4].map(|k| 100 * US + k * 4096));
    let writes: Vec<Access> = (0..4).map(|n| Write(at(n), 4096)).collect();
    assert_eq!(ends_of(4, &writes), [1, 2, 3, 4].map(|k| 20 * US + k * 2 * 4096));
    // The same unit every second time.
    assert_eq!(
        ends_of(2, &reads),
        [100 * US + 4096, 100 * US + 2 * 4096, 200 * US + 2 * 4096, 200 * US + 3 * 4096]
    );
}

#[test]
fn a_long_access_occupies_several_units() {
    // Four units read at once, and 64 KiB pass over the link.
    assert_eq!(ends_of(4, &[Read(0, 64 << 10)]), [100 * US + (64 << 10)]);
    // Two units read twice. The first one begins again after its transfer.
    let again = 100 * US + STRIPE + 100 * US;
    assert_eq!(ends_of(2, &[Read(0, 64 << 10)]), [again + 2 * STRIPE]);
    // The link takes longer than a unit.
    assert_eq!(ends_of(4, &[Write(0, 64 << 10)]), [2 * (64 << 10) + 20 * US]);
    // The first part ends at the end of its stripe: 4 KiB and 12 KiB on two units.
    assert_eq!(ends_of(4, &[Read(STRIPE - 4096, 16 << 10)]), [100 * US + (16 << 10)]);
}

#[test]
fn bandwidth_is_that_of_units_and_then_that_of_the_link() {
    let last = |units: u32, reads: u64| {
        let reads: Vec<Access> = (0..reads).map(|n| Read(n * STRIPE, 16 << 10)).collect();
        ends_of(units, &reads).into_iter().max()
    };
    // A unit takes 100 us and 16.384 us for a read. The second unit is one transfer behind.
    assert_eq!(last(2, 20), Some(10 * (100 * US + STRIPE) + STRIPE));
    // Sixteen units could read in 116 us, and their transfers take 262 us: the link never idles.
    assert_eq!(last(16, 160), Some(100 * US + 160 * STRIPE));
}

#[test]
fn a_flush_follows_the_writes_of_every_unit() {
    let write = 2 * 4096 + 20 * US;
    assert_eq!(ends_of(4, &[Write(STRIPE, 4096), Flush]), [write, write + 30 * US]);
    let both = [Write(0, 4096), Write(3 * STRIPE, 4096), Flush, Write(0, 4096)];
    let second = write + 2 * 4096;
    assert_eq!(ends_of(4, &both), [write, second, second + 30 * US, write + 30 * US + write]);
}
