//! Whole stacks on both engines: they share no code for queues, buses and dependencies, and their
//! reports have equal times and counts.

use super::*;
use crate::sectors;
use frit_engine::LoopMode;

fn report(name: &str, sets: &[&str], kind: &str, depth: u32) -> serde_json::Value {
    let kind = format!("engine.kind={kind}");
    let sets: Vec<String> = sets.iter().chain([&kind.as_str()]).map(|s| (*s).to_owned()).collect();
    let stack = Stack::builtin(name, &sets).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()));
    let dir = tempfile::tempdir().unwrap();
    let trace = mixed_trace(&dir, sectors(&stack).unwrap().min(1 << 17), 1500);
    let mode = LoopMode::Closed { depth };
    let warm = "fill".parse().unwrap();
    let options = RunOptions { mode, warm, ..RunOptions::default() };
    serde_json::to_value(run(&stack, trace.to_str().unwrap(), &options)).unwrap()
}

#[test]
fn both_engines_give_the_same_report() {
    const ONE_CHANNEL: [&str; 3] =
        ["media.nand.channels=1", "media.nand.chips_per_channel=4", "media.nand.blocks_per_plane=64"];
    for (name, sets) in [
        ("hfsl-small", &[][..]),
        ("hfsl-small", &ONE_CHANNEL),
        ("hfsl-both", &["media.nand.blocks_per_plane=32", "media.pcm.chip_bytes=1M"]),
        ("no-pcm-small", &ONE_CHANNEL),
        ("no-pcm-small", &["media.nand.t_command=300ns", "hfsl.copyback=true"]),
        ("halo-small", &[]),
        ("ntl-small", &["ntl.mapping=dynamic"]),
        ("ftl-openssd", &["media.nand.blocks_per_plane=16", "media.nand.pages_per_block=16"]),
        ("ftl-openssd-base", &["media.nand.blocks_per_plane=16", "media.nand.pages_per_block=16"]),
        ("disk-alone", &["media.disk.bytes=1G"]),
    ] {
        for depth in [1, 16] {
            let [in_order, event] = ["in-order", "event"].map(|kind| report(name, sets, kind, depth));
            let what = format!("{name} {sets:?} at depth {depth}");
            for key in ["latency", "throughput", "counts", "write_amplification"] {
                assert_eq!(in_order[key], event[key], "{what}: {key}");
            }
            // Commands that have not ended with the last request are not all counted: those of
            // background work, and programs of a merge buffer.
            let counted = |c: &serde_json::Value| name != "ftl-openssd" || c["op"] == "nand-read";
            let host = |report: &serde_json::Value| {
                let all = report["command_times"].as_array().unwrap().iter();
                all.filter(|c| c["cause"] == "host" && counted(c)).cloned().collect::<Vec<_>>()
            };
            assert_eq!(host(&in_order), host(&event), "{what}");
        }
    }
}
