//! Order of commands for durability, where torture alone would miss it because its volumes are
//! small.

use super::*;
use crate::testing::{CommandClock, clock, timed_sink};
use frit_core::{Cmd, Op};

/// A map entry takes 1000, any other command takes 1.
struct SlowMap {
    map: std::ops::Range<u64>,
    /// Time at which all entries written so far are durable.
    named: u64,
    /// For each program of a block's first page: its cause, and its start time relative to `named`.
    begun: Vec<(Cause, i64)>,
}

impl CommandClock for SlowMap {
    fn done(&mut self, cmd: Cmd, after: u64) -> u64 {
        if cmd.op == Op::NandProgram && cmd.addr.is_multiple_of(u64::from(GEOMETRY.pages_per_block)) {
            self.begun.push((cmd.cause, after as i64 - self.named as i64));
        }
        if cmd.op == Op::PcmWrite && self.map.contains(&cmd.addr) {
            self.named = self.named.max(after + 1000);
            return after + 1000;
        }
        after + 1
    }
}

/// Otherwise a crash could leave a page without an entry in every free block, and garbage
/// collection without a block.
#[test]
fn a_block_is_begun_once_entries_name_the_pages_of_the_last() {
    let mut hw = Hardware::new();
    let nand = Nand::new(nand_config(GEOMETRY, NandFaults::default()), NoStore, &mut hw).unwrap();
    let pcm = Pcm::new(pcm_config(4096), NoStore, &mut hw).unwrap();
    let config = HfslConfig {
        fusion_method: crate::FusionMethod::None,
        map_persist: MapPersist::Each,
        ..HfslConfig::default()
    };
    let mut l = Hfsl::new(config, nand, Some(pcm)).unwrap();
    let at = l.map.pcm.as_ref().unwrap().layout.map_at;
    let map = at..at + 8 * u64::from(l.pages);
    let mut sink = timed_sink(SlowMap { map, named: 0, begun: Vec::new() });
    let mut state = 1u64;
    for i in 0..u64::from(l.pages) * 8 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lpn = if i < u64::from(l.pages) { i } else { (state >> 33) % u64::from(l.pages) };
        l.write(&mut sink, Sector(lpn * 4), WriteData::Len(2048), Hints::NONE).unwrap();
    }
    for cause in [Cause::Host, Cause::Gc] {
        let waits: Vec<i64> =
            clock::<SlowMap>(&mut sink).begun.iter().filter(|b| b.0 == cause).map(|b| b.1).collect();
        assert!(waits.len() > 10, "{cause:?} began {} blocks", waits.len());
        assert!(waits.iter().all(|&w| w >= 0), "{cause:?}: begun before the entries were durable: {waits:?}");
    }
}
