//! Tests of a served disk with a cache: concurrent clients during destaging, and recovery after
//! shutdown and crash.

use crate::common::{device, reopen};
use frit_core::Hints;
use frit_serve::Device;
use frit_stack::Stack;
use frit_volume::{CreateOptions, Volume};
use std::path::Path;
use std::sync::Arc;

const CLIENTS: u64 = 4;
const STEPS: u64 = 1500;
/// Number of sectors per client.
const SHARE: u64 = 24_000;

/// Creates a volume with a cache of about 2 MiB and a disk of 64 MiB, so that blocks are evicted
/// all the time.
fn small(dir: &Path, sets: &[&str]) -> Volume {
    let mut all = vec!["media.pcm.chip_bytes=256K", "media.disk.bytes=64M"];
    all.extend(sets);
    let sets: Vec<String> = all.iter().map(|s| (*s).to_owned()).collect();
    let stack = Stack::builtin("halo-small", &sets).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false }).unwrap().close().unwrap();
    reopen(dir)
}

/// SplitMix64 (Steele et al., OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Runs a client that writes its own sectors, and checks that each read returns its last write. The
/// sectors of the clients alternate in runs of three, so that they share blocks and buckets.
fn client(device: &Device, me: u64, steps: u64) -> Vec<u8> {
    let mut model = vec![0_u8; SHARE as usize];
    let mut state = me + 1;
    let place = |i: u64| (i / 3 * 3 * CLIENTS + me * 3 + i % 3) * 512;
    for step in 0..steps {
        let r = next(&mut state);
        // Some sectors are hot.
        let i = if r.is_multiple_of(3) { (r >> 8) % 90 } else { (r >> 8) % SHARE } / 3 * 3;
        let n = 1 + (r >> 40) % 3;
        let range = i as usize..(i + n) as usize;
        match r >> 56 {
            0..=127 => {
                let stamp = (step % 250 + 1) as u8;
                model[range].fill(stamp);
                let _ = device.lock().write(place(i), &vec![stamp; (n * 512) as usize], Hints::NONE).unwrap();
            }
            128..=135 => {
                model[range].fill(0);
                let _ = device.lock().write_zeroes(place(i), n * 512, r & 1 == 1).unwrap();
            }
            136 => drop(device.flush().unwrap()),
            137..=140 => {
                // A part of a sector, which is read, modified and written under one hold of the
                // lock.
                let byte = (step % 250 + 1) as u8;
                let _ = device.lock().write(place(i) + 100, &[byte; 100], Hints::NONE).unwrap();
                let _ = device.lock().write(place(i), &vec![byte; 512], Hints::NONE).unwrap();
                model[i as usize] = byte;
            }
            _ => {
                let mut back = vec![0xEE; (n * 512) as usize];
                let _ = device.lock().read(place(i), &mut back).unwrap();
                for (sector, want) in back.chunks(512).zip(&model[range]) {
                    assert!(
                        sector.iter().all(|b| b == want),
                        "client {me}, step {step}: {} for {want}",
                        sector[0]
                    );
                }
            }
        }
    }
    model
}

/// Runs all clients at once. Returns the contents that each wrote.
fn storm(device: &Arc<Device>) -> Vec<Vec<u8>> {
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..CLIENTS).map(|me| s.spawn(move || client(device, me, STEPS))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn compare(mut volume: Volume, models: &[Vec<u8>]) -> Volume {
    let mut all = vec![0; 64 << 20];
    for (i, part) in all.chunks_mut(1 << 20).enumerate() {
        volume.read((i as u64) << 20, part).unwrap();
    }
    for (me, model) in models.iter().enumerate() {
        for (i, want) in model.iter().enumerate() {
            let at = (i / 3 * 3 * CLIENTS as usize + me * 3 + i % 3) * 512;
            assert!(all[at..at + 512].iter().all(|b| b == want), "client {me}, sector {i}");
        }
    }
    volume
}

#[test]
fn clients_share_a_cache_while_blocks_leave_it() {
    for sets in [
        &["cache.policy=halo"][..],
        &["cache.policy=lru", "cache.read_caching=true", "cache.dirty_low=0"],
        &["cache.mode=write-through"],
        &["cache.mode=write-around", "cache.read_caching=true"],
        &["cache.bypass_bytes=4K", "cache.wear_leveling=start-gap", "cache.wear_stripe=4K"],
        &["media.disk.access=direct"],
        &["media.disk.access=io-uring", "cache.read_caching=true"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("volume");
        let device = device(small(&at, sets));
        let keeper = device.maintain().unwrap();
        let models = storm(&device);
        drop(keeper);
        device.close().unwrap();
        let volume = reopen(&at);
        assert!(volume.recovery().recovery.clean, "{sets:?}");
        compare(volume, &models).close().unwrap();
    }
}

#[test]
fn a_volume_that_is_simply_gone_comes_up_with_all_that_was_acknowledged() {
    gone_and_recovered(&[]);
}

#[test]
fn a_volume_on_a_direct_disk_that_is_simply_gone_comes_up_with_all_that_was_acknowledged() {
    gone_and_recovered(&["media.disk.access=io-uring"]);
}

fn gone_and_recovered(sets: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("volume");
    let device = device(small(&at, sets));
    let keeper = device.maintain().unwrap();
    let models = storm(&device);
    drop(keeper);
    // Dropped without being closed, which has the effect of a killed process.
    drop(device);
    let volume = reopen(&at);
    assert!(!volume.recovery().recovery.clean);
    assert!(volume.recovery().durable_bytes > 0, "the cache is warm");
    compare(volume, &models).close().unwrap();
}
