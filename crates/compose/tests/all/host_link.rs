//! Times of requests through a host link, in closed form.

use crate::device::TestDevice;
use frit_compose::host_link::{HostLink, HostLinkConfig};
use frit_compose::{Composed, Devices};
use frit_core::{BlockDevice, BlockLayer, Hints, Nanos, ReadTarget, Sector, Sink, WriteData};
use frit_engine::in_order::InOrder;
use frit_engine::{AnyScheduler, Event};
use frit_media::Hardware;
use std::sync::Arc;

/// Time of an access to the device.
const DEVICE: u64 = 100_000;
/// Transfer of 4 KiB at 10 MB/s.
const TRANSFER: u64 = 409_600;

#[derive(Clone, Copy)]
enum Request {
    Read,
    Write,
    Flush,
    Discard,
}

use Request::{Discard, Flush, Read, Write};

/// Makes all requests at once. Returns the time at which each is acknowledged.
fn ends(mut engine: Sink, device: TestDevice, config: HostLinkConfig, all: &[Request]) -> Vec<u64> {
    let boxed: Box<dyn BlockDevice> = Box::new(device);
    let mut link = Composed::new(HostLink::new(config, Devices::new(vec![boxed])));
    let mut ends = vec![None; all.len()];
    for (i, request) in all.iter().enumerate() {
        engine.begin();
        let at = Sector(i as u64 * 256);
        match request {
            Read => link.read(&mut engine, at, ReadTarget::Len(4096), Hints::NONE),
            Write => link.write(&mut engine, at, WriteData::Len(4096), Hints::NONE),
            Flush => link.flush(&mut engine),
            Discard => link.discard(&mut engine, at, 8),
        }
        .unwrap();
        let done = engine.end();
        ends[i] = engine.time_or_watch(done, i as u32).map(|at| at.0);
    }
    while let Some(done) = engine.next_done(Nanos::MAX) {
        ends[done.tag as usize] = Some(done.at.0);
    }
    ends.into_iter().map(Option::unwrap).collect()
}

/// Checks the times, in both engines, over a device whose unit executes one access at a time.
fn take(config: &HostLinkConfig, all: &[Request], expected: &[u64]) {
    take_each(config, all, expected, expected);
}

/// Checks the times in each engine. In the engine in order, a unit executes its commands in the order of emission.
fn take_each(config: &HostLinkConfig, all: &[Request], in_order: &[u64], event: &[u64]) {
    let device = || {
        let mut hardware = Hardware::new();
        let device = TestDevice::new(1 << 20, Nanos(DEVICE), &mut hardware, &Arc::default());
        (hardware, device)
    };
    let (hardware, below) = device();
    assert_eq!(ends(Sink::new(InOrder::new(&hardware)), below, config.clone(), all), in_order);
    let (hardware, below) = device();
    let engine = Sink::new(Event::new(&hardware, AnyScheduler::named("read-first").unwrap()));
    assert_eq!(ends(engine, below, config.clone(), all), event);
}

fn slow() -> HostLinkConfig {
    HostLinkConfig { read_mb_per_s: 10, write_mb_per_s: 10, ..HostLinkConfig::default() }
}

#[test]
fn transfers_follow_each_other_in_each_direction() {
    // A write is transferred first, a read last.
    take(&slow(), &[Write, Write], &[TRANSFER + DEVICE, 2 * TRANSFER + DEVICE]);
    take(&slow(), &[Read, Read], &[DEVICE + TRANSFER, DEVICE + 2 * TRANSFER]);
    // Both directions are independent. The device executes the read first, if it may.
    let both = TRANSFER + DEVICE;
    take_each(&slow(), &[Write, Read], &[both, 2 * both], &[both, both]);
    let in_order = [DEVICE, 2 * DEVICE, 3 * DEVICE];
    let read_first = [2 * DEVICE, 3 * DEVICE, DEVICE];
    take_each(&HostLinkConfig::default(), &[Write, Write, Read], &in_order, &read_first);
}

#[test]
fn reads_that_leave_in_any_order_overlap() {
    let config = HostLinkConfig { read_in_order: false, ..slow() };
    take(&config, &[Read, Read], &[DEVICE + TRANSFER, 2 * DEVICE + TRANSFER]);
    // The device executes the second read before the write, and its data leave.
    let (write, read) = (TRANSFER + DEVICE, DEVICE + TRANSFER);
    take_each(&config, &[Write, Read], &[write, write + read], &[write, read]);
}

#[test]
fn commands_are_decoded_one_after_the_other() {
    let config = HostLinkConfig { command_ns: 250_000, ..HostLinkConfig::default() };
    take(&config, &[Read, Write, Read], &[250_000 + DEVICE, 500_000 + DEVICE, 750_000 + DEVICE]);
}

#[test]
fn a_full_queue_takes_the_next_command_when_its_oldest_is_done() {
    let config = HostLinkConfig { write_queue: 1, ..slow() };
    let one = TRANSFER + DEVICE;
    take(&config, &[Write, Write, Write], &[one, 2 * one, 3 * one]);
    let config = HostLinkConfig { read_queue: 2, write_queue: 1, ..slow() };
    let reads = [DEVICE + TRANSFER, DEVICE + 2 * TRANSFER, DEVICE + 3 * TRANSFER];
    take(&config, &[Read, Read, Read], &reads);
    let config = HostLinkConfig { read_queue: 1, ..slow() };
    take(&config, &[Read, Read, Read], &[one, 2 * one, 3 * one]);
}

#[test]
fn the_slow_path_waits_for_the_queues_and_later_commands_for_it() {
    let queued = DEVICE + TRANSFER;
    // The device takes its time for the flush too.
    let behind = |queued| [queued + DEVICE, queued + 2 * DEVICE + TRANSFER];
    take(&slow(), &[Write, Flush, Read], &[&[queued][..], &behind(queued)].concat());
    take(&slow(), &[Read, Discard, Read], &[&[queued][..], &behind(queued)].concat());
    let all = [Write, Read, Flush, Read];
    let (in_order, event) = ([queued, 2 * queued], [queued, queued]);
    take_each(&slow(), &all, &[in_order, behind(2 * queued)].concat(), &[event, behind(queued)].concat());
    // Without it, the device has the read while the one before it is still transferred.
    let config = HostLinkConfig { slow_path: false, ..slow() };
    let ends = |flush| [queued, flush, DEVICE + 2 * TRANSFER];
    take_each(&config, &[Read, Flush, Read], &ends(2 * DEVICE), &ends(3 * DEVICE));
}

#[test]
fn messages_of_nvme_share_the_directions_of_a_link() {
    // 4 lanes of 1 ns a byte, packets of 128 bytes with 28 of headers: doorbell and read request 8 ns,
    // queue entry 23, completion 11, 4 KiB (4096 + 32 × 28) / 4 = 1248.
    let config = HostLinkConfig { nvme_lanes: 4, ..HostLinkConfig::default() };
    let (begin, data, completion) = (8 + 8 + 23, 1248, 11);
    take(&config, &[Read], &[begin + DEVICE + data + completion]);
    take(&config, &[Write], &[begin + 8 + data + DEVICE + completion]);
    take(&config, &[Flush], &[begin + DEVICE + completion]);
    // Of two writes, the second queue entry (39 to 62) delays the data of the first one. The engine in order
    // does not know when messages are ready, and lets none wait for another one.
    let there = 62 + data;
    let alone = begin + 8 + data;
    take_each(
        &config,
        &[Write, Write],
        &[alone + DEVICE + completion, alone + 2 * DEVICE + completion],
        &[there + DEVICE + completion, there + 2 * DEVICE + completion],
    );
    let slower = HostLinkConfig { lane_mb_per_s: 500, ..config };
    take(&slower, &[Read], &[16 + 16 + 46 + DEVICE + 2 * data + 22]);
}
