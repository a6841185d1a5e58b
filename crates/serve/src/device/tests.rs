//! Tests of the device without a protocol.

use super::*;
use crate::testing::MemoryBackend;
use frit_core::Hints;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

fn device(bytes: usize) -> (Arc<Device>, Arc<crate::testing::Knobs>) {
    let memory = MemoryBackend::new(bytes);
    let knobs = memory.knobs();
    (Device::new(Box::new(memory), DeviceOptions::default()), knobs)
}

fn read(device: &Device, at: u64, len: usize) -> Vec<u8> {
    let mut data = vec![0xEE; len];
    device.lock().read(at, &mut data).map(drop).unwrap();
    data
}

#[test]
fn a_backend_that_panicked_is_written_no_more() {
    let (device, knobs) = device(1 << 16);
    knobs.panics.store(true, Ordering::Relaxed);
    let write = || device.lock().write(0, &[1; 512], Hints::NONE).map(drop);
    assert!(catch_unwind(AssertUnwindSafe(write)).is_err());
    assert!(matches!(write(), Err(Failure::ReadOnly(_))));
    assert!(device.read_only().is_some_and(|why| why.contains("panic")));
    assert_eq!(read(&device, 512, 512), [0; 512], "reads continue");
}

#[test]
fn background_work_that_fails_unexpectedly_ends_writing() {
    let (device, knobs) = device(1 << 16);
    knobs.broken.store(true, Ordering::Relaxed);
    assert!(device.lock().step(10).is_err());
    knobs.broken.store(false, Ordering::Relaxed);
    let kind = device.lock().write(0, &[1; 512], Hints::NONE).map(drop).unwrap_err().kind();
    assert_eq!(kind, FailureKind::ReadOnly);
}

#[test]
fn what_is_longer_than_a_slice_is_whole_all_the_same() {
    let (device, knobs) = device(40 << 20);
    let data: Vec<u8> = (0..(3 << 20) + 777).map(|i: u32| (i >> 8) as u8 ^ i as u8).collect();
    for at in [512, 1001, (1 << 20) - 512] {
        device.lock().write(at, &data, Hints::NONE).map(drop).unwrap();
        assert_eq!(read(&device, at, data.len()), data);
    }
    let before = knobs.writes.load(Ordering::Relaxed);
    device.lock().write_zeroes(100, (39 << 20) + 3, false).map(drop).unwrap();
    let slices = knobs.writes.load(Ordering::Relaxed) - before;
    assert_eq!(slices, 3 + 2, "three slices of 16 MiB, and the two unaligned ends");
    assert_eq!(read(&device, 0, 40 << 20), vec![0; 40 << 20]);
}

#[test]
fn a_closed_device_answers_that_it_stops() {
    let (device, knobs) = device(1 << 16);
    device.close().unwrap();
    device.close().unwrap();
    assert!(knobs.closed.load(Ordering::Relaxed));
    let mut byte = [0; 512];
    // Each call in its own statement: a lock guard that lives on would block the next call.
    let read = device.lock().read(0, &mut byte).map(drop);
    let write = device.lock().write(0, &byte, Hints::NONE).map(drop);
    let flush = device.flush().map(drop);
    let with = device.with(|b| {
        b.bytes();
    });
    let kinds = [read, write, flush, with].map(|r| r.unwrap_err().kind());
    assert_eq!(kinds, [FailureKind::Stopping; 4]);
}

#[test]
fn counters_say_what_was_asked() {
    let (device, _) = device(1 << 16);
    device.lock().write(0, &[1; 1024], Hints::NONE).map(drop).unwrap();
    read(&device, 0, 512);
    assert!(device.lock().read(1 << 16, &mut [0; 512]).is_err());
    device.lock().discard(0, 4096).map(drop).unwrap();
    device.flush().map(drop).unwrap();
    let c = device.counters();
    let seen: Vec<_> = c.by_kind().iter().map(|(name, t)| (*name, t.requests, t.bytes, t.errors)).collect();
    let expected = [
        ("read", 2, 1024, 1),
        ("write", 1, 1024, 0),
        ("write_zeroes", 0, 0, 0),
        ("discard", 1, 4096, 0),
        ("flush", 1, 0, 0),
        ("extents", 0, 0, 0),
        ("isp", 0, 0, 0),
    ];
    assert_eq!(seen, expected);
    assert_eq!(c.read.service_ns.len(), 2);
}
