//! Tests of several clients of one device.

use super::*;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_flush_of_one_client_covers_what_was_answered_to_others() {
    let (device, knobs) = device(DeviceOptions::default());
    let (mut a, mut b) = (Client::ready(&device, true), Client::ready(&device, false));
    for i in 0..50u64 {
        assert_eq!(a.write(i * 512, &[1; 512]), 0);
        assert_eq!(b.flush(), 0);
        assert_eq!(knobs.writes_flushed.load(Ordering::Relaxed), i + 1);
    }
}

#[test]
fn flushes_that_wait_for_one_another_are_done_once() {
    let (device, knobs) = device(DeviceOptions::default());
    knobs.flush_us.store(50_000, Ordering::Relaxed);
    let written = std::sync::Barrier::new(8);
    thread::scope(|s| {
        for i in 0..8u64 {
            let (device, written) = (&device, &written);
            s.spawn(move || {
                let mut c = Client::ready(device, true);
                assert_eq!(c.write(i * 4096, &[1; 4096]), 0);
                written.wait();
                assert_eq!(c.flush(), 0);
            });
        }
    });
    let done = knobs.flushes.load(Ordering::Relaxed);
    assert!(done < 8, "{done} flushes were executed for 8 concurrent ones");
    assert_eq!(device.counters().flush.requests, 8);
    assert_eq!(device.counters().flushes_coalesced, 8 - done);
    assert_eq!(knobs.writes_flushed.load(Ordering::Relaxed), 8);
}

/// Lets flushes race with writes of another client. The oracle: a completed flush covers all writes
/// that were answered before it was requested.
#[test]
fn flush_racing_write_keeps_the_promise() {
    let (device, knobs) = device(DeviceOptions::default());
    knobs.flush_us.store(50, Ordering::Relaxed);
    let answered = std::sync::atomic::AtomicU64::new(0);
    let until = Instant::now() + Duration::from_millis(400);
    thread::scope(|s| {
        s.spawn(|| {
            let mut c = Client::ready(&device, true);
            while Instant::now() < until {
                assert_eq!(c.write(0, &[1; 4096]), 0);
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
        for _ in 0..2 {
            s.spawn(|| {
                let mut c = Client::ready(&device, false);
                while Instant::now() < until {
                    let before = answered.load(Ordering::SeqCst);
                    assert_eq!(c.flush(), 0);
                    assert!(knobs.writes_flushed.load(Ordering::SeqCst) >= before);
                }
            });
        }
    });
}

#[test]
fn unaligned_writes_of_several_clients_to_one_sector_are_all_kept() {
    let (device, _) = device(DeviceOptions::default());
    thread::scope(|s| {
        for i in 0..4u64 {
            let device = &device;
            s.spawn(move || {
                let mut c = Client::ready(device, true);
                // Each client writes every fourth byte of the first 4 KiB.
                for round in 1..=3u8 {
                    for at in (i..4096).step_by(4) {
                        assert_eq!(c.write(at, &[round * 16 + i as u8]), 0);
                    }
                }
            });
        }
    });
    let bytes = Client::ready(&device, true).read(0, 4096);
    let expected: Vec<u8> = (0..4096).map(|at| 48 + (at % 4) as u8).collect();
    assert_eq!(bytes, expected);
}

/// Blocks contain their writer, address and version. A block must never be a mixture, and never
/// older than the last acknowledged write of its only writer.
#[test]
fn stamped_blocks_of_several_clients_are_never_mixed_nor_lost() {
    const CLIENTS: u64 = 4;
    const BLOCKS: u64 = 16;
    let (device, _) = device(DeviceOptions::default());
    let stamp = |client: u64, block: u64, version: u64| {
        let words = [client, block, version, client ^ block ^ version ^ 0x5eed];
        words.iter().flat_map(|w| w.to_be_bytes()).cycle().take(4096).collect::<Vec<u8>>()
    };
    thread::scope(|s| {
        for client in 0..CLIENTS {
            let device = &device;
            s.spawn(move || {
                let mut c = Client::ready(device, client % 2 == 0);
                let mut versions = [0u64; BLOCKS as usize];
                for i in 0..2000u64 {
                    let block = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
                    // Each client writes every fourth block, and reads those of another client.
                    let at = (block * CLIENTS + client) * 4096;
                    let other = (block * CLIENTS + (client + 1) % CLIENTS) * 4096;
                    versions[block as usize] += 1;
                    assert_eq!(c.write(at, &stamp(client, block, versions[block as usize])), 0);
                    assert_eq!(c.read(at, 4096), stamp(client, block, versions[block as usize]));
                    let seen = c.read(other, 4096);
                    let version = u64::from_be_bytes(seen[16..24].try_into().unwrap());
                    if version > 0 {
                        assert_eq!(seen, stamp((client + 1) % CLIENTS, block, version));
                    }
                }
            });
        }
    });
}
