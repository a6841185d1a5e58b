//! Uninformative set-ups, each with the rule whose finding comes first.

use super::{builtin, head, open, options, rules};
use crate::RunOptions;
use crate::tests::run;

/// A load: closed loop with a queue depth, or open loop with a speed.
enum Load {
    Depth(u32),
    Speed(f64),
}

/// A set-up, the rule that has to come first, and parts of its text.
struct SetUp {
    stack: &'static str,
    sets: &'static [&'static str],
    workload: &'static str,
    load: Load,
    warm: &'static str,
    rule: &'static str,
    parts: &'static [&'static str],
}

const SET_UPS: [SetUp; 12] = [
    SetUp {
        stack: "hfsl-small",
        sets: &[],
        workload: "gen:uniform,count=20k,size=4K,span=100M,read=0.3",
        load: Load::Depth(32),
        warm: "steady",
        rule: "pcm-unused",
        parts: &["smallest write has 4 KiB", "SSW is 2 KiB", "SSW=4K", "100.0 % of the writes"],
    },
    SetUp {
        stack: "hfsl-small",
        sets: &["SSW=4096"],
        workload: "gen:uniform,count=20k,size=4K,span=100M,read=0.3",
        load: Load::Depth(32),
        warm: "steady",
        rule: "pcm-too-small",
        parts: &["left for NAND", "It holds 4 MiB"],
    },
    SetUp {
        stack: "hfsl-small",
        sets: &["SSW=4096"],
        workload: "gen:uniform,count=20k,size=2K,align=2K,span=64K,read=0.5",
        load: Load::Depth(32),
        warm: "none",
        rule: "medium-unused",
        parts: &["NAND 'nand' unused: PCM took all writes", "largest 2 KiB, SSW 4 KiB"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &["channels=16"],
        workload: "gen:uniform,count=20k,size=2K,align=2K,span=200M,read=0.5",
        load: Load::Depth(1),
        warm: "steady+20%",
        rule: "depth-limits",
        parts: &["depth 1 on 16 units", "--qd 16", "% busy"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &[],
        workload: "gen:uniform,count=20k,size=2K,align=2K,span=200M",
        load: Load::Depth(32),
        warm: "steady",
        rule: "nothing-read",
        parts: &["Nothing was read in 20,000 writes"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &[],
        workload: "gen:uniform,count=20k,size=4K,span=100M,read=0.5",
        load: Load::Depth(32),
        warm: "none",
        rule: "unwritten-reads",
        parts: &["of the bytes read", "reads took 0 ns", "--warm fill"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &[],
        workload: "gen:sequential,count=20k,size=2K,align=2K,span=200M,read=0.5",
        load: Load::Depth(32),
        warm: "steady",
        rule: "never-reread",
        parts: &["hardly reads what it writes", "0 B of the"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &[],
        workload: "gen:zipf,count=3k,size=2K,align=2K,span=20M,read=0.5",
        load: Load::Depth(32),
        warm: "steady",
        rule: "too-short",
        parts: &["3,000 requests, at least 5,120 are needed"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &[],
        workload: "gen:uniform,count=10k,size=2K,align=2K,span=2M,read=0.5",
        load: Load::Depth(32),
        warm: "trace",
        rule: "no-cleaning",
        parts: &["no block was erased", "of NAND was programmed"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &[],
        workload: "gen:uniform,count=20k,size=2K,align=2K,span=200M,read=0.5",
        load: Load::Depth(32),
        warm: "fill",
        rule: "not-steady",
        parts: &["write amplification varies by", "limits 20.0 % and 10.0 %"],
    },
    SetUp {
        stack: "no-pcm-small",
        sets: &[],
        workload: "gen:uniform,count=20k,size=2K,align=2K,span=200M,read=0.5",
        load: Load::Speed(100.0),
        warm: "steady",
        rule: "overloaded",
        parts: &["requests arrived for 2", "--speed"],
    },
    SetUp {
        stack: "halo-small",
        sets: &[],
        workload: "gen:uniform,count=10k,size=4K,span=400M,read=0.5",
        load: Load::Depth(32),
        warm: "none",
        rule: "pcm-too-small",
        parts: &["cache is too small", "block accesses"],
    },
];

fn run_options(s: &SetUp) -> RunOptions {
    match s.load {
        Load::Depth(depth) => options(depth, s.warm),
        Load::Speed(speed) => open(speed, s.warm),
    }
}

#[test]
fn uninformative_set_ups_begin_with_their_cause() {
    for s in &SET_UPS {
        let r = run(&builtin(s.stack, s.sets), s.workload, &run_options(s));
        let shown = head(&r);
        assert_eq!(rules(&r).first(), Some(&s.rule), "{}: {shown}", s.workload);
        assert!(shown.starts_with("doubt "), "{shown}");
        for part in s.parts {
            assert!(shown.contains(part), "no '{part}' in: {shown}");
        }
        let first = &r.findings[0];
        assert!(!first.figures.is_empty() && first.figures.iter().all(|f| f.value.is_finite()), "{first:?}");
    }
}
