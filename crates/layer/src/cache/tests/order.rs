//! Order of commands for durability, where torture finds a violation in one of a million images.

use super::*;
use crate::numbers::CacheSlot;
use crate::testing::{CommandClock, clock, timed_sink};
use frit_core::{Cmd, split_mix};
use frit_media::NoStore;
use std::collections::HashMap;

/// Fences take random times, and other commands none.
#[derive(Default)]
struct RandomFences {
    random: u64,
    /// Start of each write, by address.
    writes: Vec<(u64, u64)>,
}

impl CommandClock for RandomFences {
    fn done(&mut self, cmd: Cmd, after: u64) -> u64 {
        match cmd.op {
            Op::PcmWrite => self.writes.push((cmd.addr, after)),
            Op::PcmFence => return after + split_mix::next(&mut self.random) % 1000,
            _ => {}
        }
        after
    }
}

/// A slot that a rewritten block left is written when the new version is durable. If that write has
/// not begun and its block is rewritten too, the slot still holds the first block, and the next write
/// waits for the same version.
#[test]
fn a_slot_is_written_no_sooner_than_its_last_write_was_allowed_to_begin() {
    let mut hw = Hardware::new();
    let pcm = Pcm::new(pcm_config(96), NoStore, &mut hw).unwrap();
    let disk = Disk::new(disk_config(), NoStore, &mut hw).unwrap();
    let mut l = Cache::<_>::new(named("halo"), pcm, Box::new(disk), None).unwrap();
    let mut sink = timed_sink(RandomFences::default());
    // Fewer blocks than slots, so that every free slot is one that a rewritten block left.
    for _ in 0..2000 {
        let at = Sector(split_mix::next(&mut clock::<RandomFences>(&mut sink).random) % 60 * 8);
        l.write(&mut sink, at, WriteData::Len(4096), Hints::NONE).unwrap();
    }
    let slots = l.space.layout.slots;
    let mut begun: HashMap<u64, u64> = HashMap::new();
    let mut reused = 0;
    let data = l.space.layout.data(CacheSlot(0))..l.space.layout.data(CacheSlot(slots));
    for (at, start) in std::mem::take(&mut clock::<RandomFences>(&mut sink).writes)
        .into_iter()
        .filter(|(at, _)| data.contains(at))
    {
        if let Some(before) = begun.insert(at, start) {
            assert!(start >= before, "the slot at {at} is written at {start}, and before that at {before}");
            reused += 1;
        }
    }
    assert!(reused > 1000, "{reused}");
}
