//! Streams of placement handles: bytes against the shadow model, and places by hand.

use super::super::StreamGc;
use super::*;
use frit_core::BlockId;

/// Two units of 24 blocks of 8 NAND pages.
const WIDE: NandGeometry = NandGeometry { blocks_per_plane: 24, ..TWO_UNITS };

fn open(config: FtlConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Ftl {
    on_geometry(WIDE, config, store, faults)
}

fn run_streams(config: FtlConfig, actions: &[Action], faults: NandFaults) {
    run_on(WIDE, 4 << 20, config, actions, faults);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn streams_keep_every_byte(actions in actions(1500, 60, 200), streams in 2u32..=4) {
        run_streams(FtlConfig { streams, ..config(0, 0) }, &actions, NandFaults::default());
        run_streams(FtlConfig { streams, ..config(1024, 3) }, &actions, NandFaults::default());
        let held = FtlConfig { streams, erase_after_flush: true, ..config(2048, 1) };
        run_streams(held, &actions, NandFaults::default());
    }

    #[test]
    fn isolated_streams_keep_every_byte(actions in actions(1500, 60, 200), streams in 2u32..=4) {
        let isolated = |config| FtlConfig { streams, stream_gc: StreamGc::Isolated, ..config };
        run_streams(isolated(config(0, 0)), &actions, NandFaults::default());
        run_streams(isolated(config(1024, 3)), &actions, NandFaults::default());
        let copied = FtlConfig { copyback: true, ..config(1024, 2) };
        run_streams(isolated(copied), &actions, NandFaults::default());
    }

    #[test]
    fn failing_programs_and_erases_of_streams_lose_nothing(
        actions in actions(1500, 60, 200), seed in any::<u64>()
    ) {
        let faults = NandFaults { program_fail: 0.003, erase_fail: 0.003, seed, ..NandFaults::default() };
        for stream_gc in [StreamGc::Mixed, StreamGc::Isolated] {
            let config = FtlConfig { streams: 4, stream_gc, over_provisioning: 1.0, ..config(1024, 2) };
            run_streams(config, &actions, faults);
        }
    }
}

/// Blocks that hold pages of each of four hints.
fn blocks_by_hint(streams: u32) -> [Vec<BlockId>; 4] {
    let config = FtlConfig { streams, recovery: FtlRecovery::None, ..config(1024, 2) };
    let mut layer = open(config, NoStore, NandFaults::default());
    let hints = [Hints::NONE, Hints::HOT, Hints::COLD, Hints::METADATA];
    for lpn in 0..64u64 {
        let hints = hints[(lpn % 4) as usize];
        layer.write(&mut Sink::untimed(), Sector(lpn * 2), WriteData::Len(1024), hints).unwrap();
    }
    layer.flush(&mut Sink::untimed()).unwrap();
    [0, 1, 2, 3].map(|hint| {
        let pages = (0..64).filter(|lpn| lpn % 4 == hint);
        let block = |lpn| layer.flash.nand().geometry().block_of(layer.map.get(Lpn(lpn)).ppn().unwrap());
        let mut blocks: Vec<BlockId> = pages.map(block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    })
}

#[test]
fn each_handle_has_blocks_of_its_own() {
    // NAND has two units, so each stream has two blocks.
    let [none, hot, cold, metadata] = blocks_by_hint(4);
    let mut all = [&none[..], &hot, &cold, &metadata].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8);
    let [none, hot, cold, metadata] = blocks_by_hint(3);
    assert!(hot == metadata && none != hot && cold != none && cold != hot);
    let [none, hot, cold, metadata] = blocks_by_hint(2);
    assert!(hot == metadata && none == cold && none != hot);
    let [none, hot, cold, metadata] = blocks_by_hint(1);
    assert!(none == hot && none == cold && none == metadata);
}

/// Overwrites a full volume at random with all hints for long.
#[test]
fn garbage_collection_keeps_isolated_streams_apart() {
    for (mapping_unit, merge_buffer) in [(0, 0), (1024, 2)] {
        let isolated = FtlConfig {
            streams: 4,
            stream_gc: StreamGc::Isolated,
            recovery: FtlRecovery::None,
            ..config(mapping_unit, merge_buffer)
        };
        let mut layer = open(isolated, NoStore, NandFaults::default());
        let (pages, page) = (u64::from(layer.pages), layer.page_bytes);
        let hints = [Hints::NONE, Hints::HOT, Hints::COLD, Hints::METADATA];
        let mut state = 1u64;
        for n in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lpn = if n < pages { n } else { (state >> 33) % pages };
            let at = Sector(lpn * u64::from(page) / 512);
            let hints = hints[(lpn % 4) as usize];
            layer.write(&mut Sink::untimed(), at, WriteData::Len(page), hints).unwrap();
        }
        layer.flush(&mut Sink::untimed()).unwrap();
        layer.audit();
        assert!(layer.flash().stats().victims > 100);
        let g = *layer.flash.nand().geometry();
        let mut hint_of = vec![None; g.blocks() as usize];
        for lpn in 0..layer.pages {
            let block = g.block_of(layer.map.get(Lpn(lpn)).ppn().unwrap()).idx();
            assert_eq!(*hint_of[block].get_or_insert(lpn % 4), lpn % 4, "block {block}");
        }
    }
}

#[test]
fn a_page_in_the_buffer_of_another_stream_is_changed_there() {
    let sink = &mut Sink::untimed();
    let mut layer =
        open(FtlConfig { streams: 4, ..config(1024, 2) }, MemoryStore::new(4 << 20), NandFaults::default());
    for (byte, hints) in [(1u8, Hints::HOT), (2, Hints::COLD), (3, Hints::NONE)] {
        layer.write(sink, Sector(0), WriteData::Bytes(&[byte; 1024]), hints).unwrap();
        assert_eq!((layer.buffered_pages(), read(&mut layer, 0, 2).unwrap()[0]), (1, byte));
        layer.audit();
    }
    layer.flush(sink).unwrap();
    assert_eq!((layer.buffered_pages(), read(&mut layer, 0, 2).unwrap()), (0, vec![3; 1024]));
}
