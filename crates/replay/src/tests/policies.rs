//! Every fusion method with every cleaning policy, on both engines, returns every byte.

use super::{mixed_trace, run, small, small_without_pcm};
use crate::{InitialState, Report, RunOptions, WarmUp, WarmUpRequests, sectors};
use frit_engine::LoopMode;
use frit_stack::Stack;
use frit_stack::layers::LayerKind;

const ENGINES: [&str; 3] = ["fifo", "read-first", "hfsl"];

/// Returns all garbage-collection policies that collect.
fn gc_policies() -> Vec<&'static str> {
    let parameters = LayerKind::Hfsl.parameters();
    let names = parameters.iter().find(|def| def.key == "gc").unwrap().names;
    names.iter().copied().filter(|name| *name != "off").collect()
}

fn verified(stack: &Stack, what: &str, options: RunOptions) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let trace = mixed_trace(&dir, sectors(stack).unwrap(), 3000);
    let r = run(stack, trace.to_str().unwrap(), &RunOptions { verify: true, ..options });
    let v = r.verification.as_ref().unwrap();
    assert_eq!(v.mismatches, 0, "{what}: {:#?}", v.first);
    assert!(v.reads_checked > 500 && v.sectors_checked > 5000, "{what}: {v:?}");
    assert!(v.sectors_read_back > 2000 && v.sectors_after_boot == v.sectors_read_back, "{what}: {v:?}");
    let asked = r.asked;
    assert!(asked.discards > 50 && asked.flushes > 50, "{what}: {asked:?}");
    assert!(r.of(frit_core::Op::NandErase).commands > 0, "{what}: nothing was cleaned");
    r
}

#[test]
fn every_fusion_method_with_every_cleaning_gives_every_byte_back() {
    for (i, fusion) in ["none", "cache", "same-level", "both"].into_iter().enumerate() {
        for (j, gc) in gc_policies().into_iter().enumerate() {
            // Each pair uses one scheduler; over all pairs, each scheduler is used several times.
            let scheduler = ENGINES[(i + j) % 3];
            let sets = [
                &format!("FUSION_METHOD={fusion}"),
                &format!("gc={gc}"),
                &format!("engine.scheduler={scheduler}"),
                "engine.kind=event",
            ];
            let what = format!("{fusion} {gc} {scheduler}");
            let open = LoopMode::Open { speed: 10.0, depth: Some(16) };
            verified(&small(&sets.map(|s| s)), &what, RunOptions { mode: open, ..RunOptions::default() });
            let in_order = [sets[0], sets[1]];
            let closed = LoopMode::Closed { depth: 4 };
            verified(&small(&in_order), &what, RunOptions { mode: closed, ..RunOptions::default() });
        }
    }
}

#[test]
fn a_map_that_is_written_with_each_change_comes_back() {
    for fusion in ["cache", "same-level", "both"] {
        let set = format!("FUSION_METHOD={fusion}");
        verified(&small(&[&set, "map_persist=each"]), fusion, RunOptions::default());
    }
}

#[test]
fn hfsl_over_each_leveler_of_pcm_gives_every_byte_back() {
    let parameters = LayerKind::Hfsl.parameters();
    let levelers = parameters.iter().find(|def| def.key == "pcm_wear_leveling").unwrap().names;
    for (i, leveler) in levelers.iter().enumerate() {
        for persist in ["halt", "each"] {
            let sets = [
                &format!("pcm_wear_leveling={leveler}"),
                &format!("map_persist={persist}"),
                "pcm_wear_stripe=1K",
                "pcm_wear_ranks=1",
                "pcm_wear_banks=2",
                "pcm_wear_cubes=2",
                "pcm_wear_interval=2",
                ["engine.kind=in-order", "engine.kind=event"][i % 2],
            ];
            let r = verified(&small(&sets), leveler, RunOptions::default());
            let moved = r.counts.iter().any(|c| c.medium == "pcm" && c.cause == "wear-level");
            assert_eq!(moved, *leveler != "none", "{leveler}");
        }
    }
}

#[test]
fn without_pcm_a_boot_forgets_discards_and_nothing_else() {
    for gc in gc_policies() {
        verified(&small_without_pcm(&[&format!("gc={gc}")]), gc, RunOptions::default());
    }
}

#[test]
fn preconditioned_volumes_hold_zeros_and_give_every_byte_back() {
    for (i, gc) in gc_policies().into_iter().enumerate() {
        for (j, start) in [InitialState::Fill, InitialState::Steady].into_iter().enumerate() {
            // Each pair of a policy and a state has one warm-up; over all pairs, both are used.
            let warm_up_requests = [WarmUpRequests::None, WarmUpRequests::Share(0.25)][(i + j) % 2];
            let warm = WarmUp { start, warm_up_requests };
            let set = format!("gc={gc}");
            for (stack, what) in [(small(&[&set]), "with PCM"), (small_without_pcm(&[&set]), "without PCM")] {
                verified(
                    &stack,
                    &format!("{gc} {warm} {what}"),
                    RunOptions { warm, ..RunOptions::default() },
                );
            }
        }
    }
}
