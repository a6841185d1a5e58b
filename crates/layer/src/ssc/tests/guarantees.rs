//! The guarantees of FlashTier after a crash.

use super::*;

/// Configurations, and whether a flush must precede the crash.
pub(super) fn all() -> [(SscConfig, bool); 3] {
    let log = SscConfig { flush: SscFlush::Log, ..config(0, SscDurability::Deferred) };
    [
        (config(0, SscDurability::Deferred), true),
        (log, true),
        (config(512, SscDurability::Synchronous), false),
    ]
}

fn crash(mut device: Device, flush: bool) -> Device {
    if flush {
        device.flush(&mut Sink::untimed(), Tok::DONE).unwrap();
    }
    let (device, recovery) = reopen(device, NandFaults::default(), CrashKind::Process);
    assert_eq!((recovery.clean, recovery.losses()), (false, 0));
    device
}

fn state(device: &Device, block: u32) -> Option<BlockState> {
    CacheDevice::state(device, block)
}

#[test]
fn a_dirty_block_is_read_as_it_was_written() {
    for (config, flush) in all() {
        let mut device = device(config, NandFaults::default());
        put(&mut device, 7, &[1], false).unwrap();
        put(&mut device, 7, &[2], true).unwrap();
        let mut device = crash(device, flush);
        assert_eq!((get(&mut device, 7), state(&device, 7)), (Some(2), Some(BlockState::Dirty)));
    }
}

#[test]
fn a_clean_block_is_read_as_it_was_written_or_is_missing() {
    for (config, flush) in all() {
        let mut device = device(config, NandFaults::default());
        put(&mut device, 7, &[1], true).unwrap();
        put(&mut device, 7, &[2], false).unwrap();
        let mut device = crash(device, flush);
        assert_eq!((get(&mut device, 7), state(&device, 7)), (Some(2), Some(BlockState::Clean)));
        // Others push it out, and no older version comes back.
        for block in 100..400 {
            put(&mut device, block, &[3], false).unwrap();
        }
        assert_eq!(get(&mut device, 7), None);
        assert_eq!(get(&mut crash(device, flush), 7), None);
    }
}

#[test]
fn an_evicted_block_is_missing() {
    for (config, flush) in all() {
        let mut device = device(config, NandFaults::default());
        put(&mut device, 7, &[1, 2, 3], true).unwrap();
        device.evict(&mut Sink::untimed(), 8..9, Tok::DONE).unwrap();
        let mut device = crash(device, flush);
        assert_eq!([7, 8, 9].map(|b| get(&mut device, b)), [Some(1), None, Some(3)]);
    }
}

#[test]
fn an_eviction_of_a_block_that_was_dropped_silently_is_durable() {
    let mut device = device(config(0, SscDurability::Synchronous), NandFaults::default());
    let mut block = 0;
    // The state at which a victim was emptied, and the log does not yet say so.
    while !device
        .log
        .pending
        .iter()
        .any(|r| matches!(r.change, super::super::records::Change::Emptied { .. }))
    {
        block += 1;
        put(&mut device, block, &[1], false).unwrap();
    }
    let gone: Vec<u32> = (1..block).filter(|&b| state(&device, b).is_none()).collect();
    for &b in &gone {
        device.evict(&mut Sink::untimed(), b..b + 1, Tok::DONE).unwrap();
    }
    let mut device = crash(device, false);
    assert!(!gone.is_empty() && gone.iter().all(|&b| get(&mut device, b).is_none()));
}

#[test]
fn a_cleaned_block_survives_and_may_then_be_dropped() {
    for (config, flush) in all() {
        let mut device = device(config, NandFaults::default());
        put(&mut device, 7, &[1], true).unwrap();
        device.clean(&mut Sink::untimed(), 0..100, Tok::DONE).unwrap();
        assert_eq!((device.dirty, state(&device, 7)), (0, Some(BlockState::Clean)));
        assert_eq!(get(&mut crash(device, flush), 7), Some(1));
    }
}

#[test]
fn recovery_can_be_repeated_and_interrupted() {
    let mut device = device(config(0, SscDurability::Deferred), NandFaults::default());
    for round in 0..60 {
        for block in 0..20 {
            put(&mut device, block, &[round], block % 2 == 0).unwrap();
        }
        device.flush(&mut Sink::untimed(), Tok::DONE).unwrap();
        // What was written after the flush may be lost, and takes space until the next eviction.
        put(&mut device, 3, &[round + 1000], true).unwrap();
        device = crash(device, false);
        assert!((0..20).step_by(2).all(|b| get(&mut device, b) == Some(round)));
        device.audit();
    }
}
