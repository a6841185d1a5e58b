//! Pacing of garbage collection and the dynamic write cache beside independent models in Python
//! (`scripts/models/mean_field.py`, `scripts/models/slc_cache.py`).

use crate::hfsl_models::{counts_of, report_of};
use crate::models::{has_python, output, root};
use serde_json::Value;
use std::process::Command;

fn python(script: &str, options: &str) -> String {
    output(Command::new("python3").current_dir(root()).args(["-B", script]).args(options.split_whitespace()))
}

/// Random overwrites of a full volume: 2 units of 200 blocks of 64 pages, of which the volume has 80 %.
#[test]
fn each_pacing_has_the_write_amplification_of_the_theory() {
    if !has_python() {
        return;
    }
    let (blocks, pages_per_block, units) = (400, 64, 2);
    // Five blocks are free, and one half of a block is being collected; two are open.
    let sealed = f64::from(blocks) - 5.5 - 2.0;
    let data = 320.0;
    let theory = |more: &str| -> f64 {
        let options =
            format!("--pages-per-block {pages_per_block} --blocks {sealed} --data-blocks {data} {more}");
        python("scripts/models/mean_field.py", &options).trim().parse().unwrap()
    };
    let (greedy, choices) = (theory(""), theory("--choices 10"));
    let bytes = data as u64 * pages_per_block * units * 16384;
    // The theories of both policies differ by 3 %.
    for (gc, pacing, theory, within) in [
        ("greedy", "share", greedy, 0.03),
        ("greedy", "token", greedy, 0.03),
        ("greedy", "all-at-once", greedy, 0.03),
        ("d-choices", "all-at-once", choices, 0.015),
    ] {
        let stack = format!(
            "ftl-slc,media.nand.channels={units},media.nand.blocks_per_plane={blocks},\
             media.nand.pages_per_block={pages_per_block},ftl.mapping_unit=0,ftl.merge_buffer=0,ftl.slc_cache=0,\
             ftl.capacity={bytes},ftl.gc_low_blocks=5,ftl.gc_high_blocks=6,ftl.gc_pacing={pacing},\
             ftl.gc={gc}"
        );
        let trace =
            format!("gen:uniform,ops=write,size=16K,align=16K,span={bytes},count=120k,seed=7,rate=400");
        let report = report_of(&stack, &trace, "--open --warm steady+25%");
        let measured = report["write_amplification"]["nand"].as_f64().unwrap();
        assert!((measured / theory - 1.0).abs() < within, "{gc} {pacing}: {measured}, theory {theory}");
        assert!(counts_of(&report)["gc_forced"] < 1.0, "{gc} {pacing}");
    }
}

#[test]
fn the_cliff_of_a_dynamic_cache_lies_where_the_fill_level_places_it() {
    if !has_python() {
        return;
    }
    // 40 blocks of a unit at most have one bit a cell.
    let stack = "ftl-slc,media.nand.pages_per_block=96,ftl.slc_mode=dynamic,ftl.slc_cache=0.1667,\
                 ftl.slc_idle_fold=false,ftl.merge_buffer=8";
    let sizes = ["32M", "64M", "120M"];
    for (warm, fill) in [("none", 0.0), ("fill:80%", 0.8), ("fill:85%", 0.85), ("fill:90%", 0.9)] {
        let options = format!(
            "--rates {} --units 4 --cache-blocks 40 --cache-pages 32 --pages-per-block 96 --volume-blocks 218.69 \
             --fill {fill}",
            sizes.join(",")
        );
        let expected: Value = serde_json::from_str(&python("scripts/models/slc_cache.py", &options)).unwrap();
        for size in sizes {
            let mebibytes: u64 = size.trim_end_matches('M').parse().unwrap();
            let trace = format!(
                "gen:sequential,ops=write,size=256K,align=256K,base=1240203264,span=128M,count={}",
                mebibytes * 4
            );
            let report = report_of(stack, &trace, &format!("--qd 32 --warm {warm}"));
            let duration = report["throughput"]["duration_ns"].as_f64().unwrap();
            let rate = (mebibytes << 20) as f64 / duration * 1e3;
            let sum = expected[size].as_f64().unwrap();
            assert!((rate / sum - 1.0).abs() < 0.03, "{warm} {size}: {rate} MB/s, model {sum}");
            let counts = counts_of(&report);
            assert_eq!((counts["slc_folds"], counts["gc_victims"]), (0.0, 0.0), "{warm} {size}");
        }
    }
}
