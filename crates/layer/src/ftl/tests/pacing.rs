//! Pacing of garbage collection: bytes against the shadow model, and counts of copies.

use super::*;
use frit_core::{Cause, Op, Params, Sink};

const POLICIES: [&str; 3] = ["share", "token", "all-at-once"];

fn paced(policy: &str, config: FtlConfig) -> FtlConfig {
    FtlConfig { gc_pacing: policy.into(), ..config }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_pacing_loses_a_byte(actions in actions(500, 40, 160), burst in 0u32..4) {
        let gc_burst = f64::from(burst);
        for policy in ["token", "all-at-once"] {
            run(paced(policy, FtlConfig { gc_burst, ..config(0, 0) }), &actions, NandFaults::default());
            run(paced(policy, FtlConfig { gc_burst, ..config(1024, 2) }), &actions, NandFaults::default());
            let held = FtlConfig { erase_after_flush: true, gc_burst, ..config(2048, 1) };
            run(paced(policy, held), &actions, NandFaults::default());
        }
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing_at_any_pace(
        actions in actions(500, 40, 160), seed in any::<u64>()
    ) {
        let faults = NandFaults { program_fail: 0.002, erase_fail: 0.002, seed, ..NandFaults::default() };
        for policy in ["token", "all-at-once"] {
            run(paced(policy, FtlConfig { over_provisioning: 1.0, ..config(1024, 2) }), &actions, faults);
        }
    }
}

/// Overwrites a full volume of 4096 pages at random. Returns the layer, and for each write the copies
/// that it made.
fn overwrite(config: FtlConfig, writes: usize, step: bool) -> (Ftl, Vec<u64>) {
    let g = NandGeometry { blocks_per_plane: 176, pages_per_block: 16, ..TWO_UNITS };
    let config = FtlConfig { capacity: 4096 << 12, recovery: FtlRecovery::None, ..config };
    let mut layer = on_geometry(g, config, NoStore, NandFaults::default());
    let sink = &mut Sink::untimed();
    let mut state = 1u64;
    let mut copies = Vec::new();
    let copied = |layer: &Ftl| {
        let nand = layer.flash().nand();
        nand.devices().map(|d| d.counts().get(Op::NandProgram, Cause::Gc).commands).sum::<u64>()
    };
    for n in 0..4096 + writes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lpn = if n < 4096 { n as u64 } else { (state >> 33) % 4096 };
        let before = copied(&layer);
        layer.write(sink, Sector(lpn * 8), WriteData::Len(4096), Hints::NONE).unwrap();
        copies.push(copied(&layer) - before);
        if step {
            layer.step(sink, 4).unwrap();
        }
    }
    layer.audit();
    (layer, copies.split_off(4096 + writes / 2))
}

#[test]
fn all_policies_copy_the_same_number_of_pages() {
    let low = FtlConfig { gc_low_blocks: 4, gc_high_blocks: 5, ..config(0, 0) };
    let totals: Vec<u64> = POLICIES
        .map(|policy| {
            let (layer, _) = overwrite(paced(policy, low.clone()), 60_000, false);
            assert!(layer.flash().stats().forced < 4, "{policy}: {:?}", layer.flash().stats());
            layer.flash().stats().victim_valid
        })
        .into();
    for total in &totals {
        // A policy that copies earlier has a free block more, of 176.
        assert!((*total as f64 / totals[0] as f64 - 1.0).abs() < 0.03, "{totals:?}");
    }
}

#[test]
fn a_victim_is_copied_by_many_writes_or_by_one() {
    let low = FtlConfig { gc_low_blocks: 4, gc_high_blocks: 5, ..config(0, 0) };
    let most = |policy: &str| {
        let (_, copies) = overwrite(paced(policy, low.clone()), 60_000, false);
        copies.into_iter().max().unwrap()
    };
    // A victim has up to 9 valid pages of 16, so a page owes two copies at most.
    let (share, token, at_once) = (most("share"), most("token"), most("all-at-once"));
    assert!(share <= 2 && token <= 4 && at_once >= 8, "{share} {token} {at_once}");
}

#[test]
fn writes_copy_nothing_while_the_background_earns_tokens() {
    let token = FtlConfig { gc_low_blocks: 4, gc_high_blocks: 5, ..paced("token", config(0, 0)) };
    let (_, copies) = overwrite(token.clone(), 40_000, true);
    assert_eq!(copies.iter().sum::<u64>(), 0);
    let (_, copies) = overwrite(token, 40_000, false);
    assert!(copies.iter().sum::<u64>() > 10_000);
}

#[test]
fn the_pacing_changes_while_the_layer_runs() {
    let (mut layer, _) = overwrite(config(0, 0), 8_000, false);
    for (key, value) in [("gc_pacing", "token"), ("gc_burst", "3"), ("gc_pacing", "all-at-once")] {
        layer.set(key, value).unwrap();
        let low = layer.flash().config().low_blocks;
        assert_eq!(low, if (key, value) == ("gc_burst", "3") { 5 } else { 3 }, "{key} = {value}");
        for lpn in (0..4096u64).map(|n| n * 7 % 4096) {
            let sink = &mut Sink::untimed();
            layer.write(sink, Sector(lpn * 8), WriteData::Len(4096), Hints::NONE).unwrap();
        }
        layer.audit();
    }
    assert!(layer.set("gc_pacing", "tokens").unwrap_err().to_string().contains("all-at-once"));
}
