//! Reports with and without verification: all metrics are equal.

use super::*;
use crate::sectors;
use frit_engine::LoopMode;

/// Returns a report as JSON, without the parts that describe the machine and the verification.
fn metrics(stack: &Stack, trace: &str, verify: bool) -> serde_json::Value {
    let mode = LoopMode::Closed { depth: 4 };
    let report = run(stack, trace, &RunOptions { mode, verify, ..RunOptions::default() });
    assert_eq!(report.verification.is_some(), verify);
    let mut json = serde_json::to_value(&report).unwrap();
    for key in ["software", "verification"] {
        assert!(json.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    json
}

#[test]
fn verification_changes_no_metric() {
    let dir = tempfile::tempdir().unwrap();
    for (name, sets) in [
        ("hfsl-small", &[][..]),
        ("hfsl-small", &["engine.kind=event"]),
        ("hfsl-both", &["media.nand.blocks_per_plane=64", "media.pcm.chip_bytes=1M"]),
        ("no-pcm-small", &[]),
        ("halo-small", &[]),
        ("halo-small", &["cache.policy=lru"]),
        ("ntl-small", &[]),
        ("ntl-small", &["ntl.mapping=dynamic", "ntl.protect=redo"]),
    ] {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        let stack = Stack::builtin(name, &sets).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()));
        let trace = mixed_trace(&dir, sectors(&stack).unwrap().min(1 << 18), 2000);
        let [plain, verified] = [false, true].map(|v| metrics(&stack, trace.to_str().unwrap(), v));
        for (key, value) in plain.as_object().unwrap() {
            assert_eq!(value, &verified[key], "{name} {sets:?}: {key}");
        }
    }
}
