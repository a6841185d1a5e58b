//! Streams of placement handles beside an independent model in Python (`scripts/models/greedy_ftl.py`):
//! garbage collection and write amplification equal to the digit. Orders of units, by hand.

use crate::hfsl_models::{Counts, compare, counted, report_of, scratch, trace_of};
use crate::models::has_python;
use std::path::Path;

/// Compares one unit of 64 blocks with the model, and returns the counts. The first `hot` pages have the
/// hint of hot data.
fn collected(
    dir: &Path,
    generator: &str,
    pages_per_block: u32,
    policy: &str,
    (streams, gc, hot): (u32, &str, u32),
) -> Counts {
    let trace = trace_of(dir, "trace.csv", &["generate", "--force", &format!("{generator},read=0,align=4K")]);
    let stack = format!(
        "ftl-classic,media.nand.page_bytes=4K,media.nand.blocks_per_plane=64,media.nand.planes_per_die=1,\
         media.nand.pages_per_block={pages_per_block},ftl.gc={policy},ftl.wear_leveling=none,\
         ftl.capacity={},ftl.streams={streams}{}",
        u64::from(pages_per_block) * 50 * 4096,
        if streams > 1 { format!(",ftl.stream_gc={gc}") } else { String::new() },
    );
    let run = format!("--open --warm fill --hint 0+{}=hot", u64::from(hot) * 4096);
    let pages = counted(&stack, &trace, &format!("{run} --limit 1"))["pages"];
    let model_hot = if streams > 1 { hot } else { 0 };
    let isolated = if gc == "isolated" { "--isolated" } else { "" };
    let options = format!(
        "--blocks 64 --fill --pages {pages} --pages-per-block {pages_per_block} --page-bytes 4096 \
         --high 4 --policy {policy} --hot {model_hot} {isolated}"
    );
    compare("greedy_ftl", &stack, &trace, &run, &options)
}

fn write_amplification(counts: &Counts) -> f64 {
    1.0 + counts["nand-program gc commands"] / counts["nand-program host commands"]
}

#[test]
fn write_amplification_with_and_without_streams_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    // An eighth of the pages gets nine tenths of the writes.
    for (policy, pages_per_block) in [("greedy", 4), ("fifo", 4), ("fifo", 32)] {
        let (pages, requests) = (50 * pages_per_block, 300 * pages_per_block);
        let hot = pages / 8;
        let generator = format!(
            "hotcold,traffic=0.9,space=0.125,scatter=no,size=4K,rate=10,arrival=fixed,count={requests},span={}",
            u64::from(pages) * 4096
        );
        let [one, mixed, isolated] = [(1, "mixed"), (2, "mixed"), (2, "isolated")].map(|(streams, gc)| {
            let counts = collected(dir.path(), &generator, pages_per_block, policy, (streams, gc, hot));
            write_amplification(&counts)
        });
        println!(
            "{policy}, {pages_per_block} pages: {one:.3}, two streams {mixed:.3}, isolated {isolated:.3}"
        );
        assert!(one > 1.1 && isolated < one, "{policy}: {one}, {mixed}, {isolated}");
    }
}

/// A request of two pages on a new drive of two channels with four ways each: the transfers of 13.648 µs
/// overlap on two channels and follow each other on one, and a program takes 937.5 µs.
#[test]
fn a_request_takes_the_time_of_the_order_of_units() {
    for (order, nanoseconds) in [("CWDP", 951_148), ("DPCW", 951_148), ("WCDP", 964_796), ("PWDC", 964_796)] {
        let stack = format!(
            "ftl-slc,media.nand.channels=2,media.nand.chips_per_channel=4,ftl.mapping_unit=0,\
             ftl.merge_buffer=0,ftl.slc_cache=0,ftl.unit_order={order}"
        );
        let report = report_of(&stack, "gen:sequential,ops=write,count=1,size=32K,align=32K", "--qd 1");
        assert_eq!(report["throughput"]["duration_ns"], nanoseconds, "{order}");
    }
}
