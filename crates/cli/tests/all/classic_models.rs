//! Merges, copies and translation pages of the classic mapping schemes beside an independent model in
//! Python (`scripts/models/classic_ftls.py`): equal to the digit.

use crate::hfsl_models::{compare, counted, scratch, trace_of};
use crate::models::{has_python, one_in};

const WORKLOADS: [(&str, &str); 4] = [
    ("random", "uniform,count=6000,size=4K,align=4K,span=3M,read=0"),
    ("skewed", "zipf,count=6000,size=4K,align=4K,span=3M,read=0"),
    ("sequential", "sequential,ops=write,count=3000,size=8K,align=4K,span=3M"),
    ("mixed", "uniform,count=2000,size=4K:3/32K:1/128K:1,align=4K,span=3M,read=0"),
];

fn stack(mapping: &str, set: &str) -> String {
    format!(
        "ftl-openssd-base,media.nand.page_bytes=4K,media.nand.channels=1,media.nand.chips_per_channel=1,\
         media.nand.planes_per_die=1,media.nand.blocks_per_plane=96,media.nand.pages_per_block=16,\
         ftl.capacity=3M,ftl.copyback=false,ftl.wear_leveling=none,ftl.mapping={mapping}{set}"
    )
}

#[test]
fn merges_of_block_maps_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    for (name, generator) in WORKLOADS {
        let trace = trace_of(dir.path(), &format!("{name}.csv"), &["generate", generator]);
        for (warm, fill) in one_in(2, [("--warm fill", "--fill"), ("", "")]) {
            for (mapping, set) in
                [("fast", ",ftl.log_blocks=6"), ("bast", ",ftl.log_blocks=5"), ("block", "")]
            {
                let log = set.split_once('=').map_or("1", |(_, n)| n);
                let options =
                    format!("--scheme {mapping} --pages 768 --pages-per-block 16 --log-blocks {log} {fill}");
                let counts = compare("classic_ftls", &stack(mapping, set), &trace, warm, &options);
                let merges = counts["merges_full"] + counts["merges_partial"] + counts["merges_switch"];
                assert!(merges > 10.0, "{name} {mapping} {warm}: {merges} merges");
            }
        }
    }
}

#[test]
fn translation_pages_of_dftl_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    for (name, generator) in WORKLOADS {
        // A map of 8 translation pages, and so few writes that no garbage is collected.
        let generator = generator.replace("read=0", "read=0.4").replace("span=3M", "span=32M");
        let trace = trace_of(dir.path(), &format!("{name}.csv"), &["generate", &generator]);
        for (warm, fill) in [("", ""), ("--warm fill", "--fill")] {
            for entries in [16, 100] {
                let set =
                    format!(",ftl.cmt_entries={entries},ftl.capacity=32M,media.nand.blocks_per_plane=4096");
                let options = format!("--scheme dftl --pages 8192 --cmt {entries} {fill}");
                let counts = compare("classic_ftls", &stack("dftl", &set), &trace, warm, &options);
                assert!(counts["translation_writes"] > 10.0, "{name} {entries}: {counts:?}");
                assert_eq!(counted(&stack("dftl", &set), &trace, warm)["gc_victims"], 0.0);
            }
        }
    }
}
