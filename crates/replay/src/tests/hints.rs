//! Hints of ranges send writes to PCM, are counted, and change no byte.

use super::{mixed_trace, small};
use crate::{Job, Report, RunOptions, sectors};
use frit_core::HintRange;
use frit_trace::{Fit, Options};

fn run(spec: &str, ranges: &[&str], options: &RunOptions) -> Report {
    let stack = small(&["placement=hint"]);
    let ranges: Vec<HintRange> = ranges.iter().map(|r| r.parse().unwrap()).collect();
    let job = Job::open(spec, &Options::default(), Fit::Strict, &mut |_| {}).unwrap().with_hints(&ranges);
    job.run(&stack, options, &mut |_| {}).unwrap()
}

#[test]
fn ranges_choose_the_pages_that_go_to_pcm() {
    let spec = "gen:sequential,count=32,size=16K,align=16K,span=512K";
    let none = run(spec, &[], &RunOptions::default());
    assert!(none.hints.is_none());
    let placed = |r: &Report| (r.layers[0].residence_total.pcm_level, r.layers[0].residence_total.nand);
    assert_eq!(placed(&none), (0, 256), "pages of 2 KiB");
    // A page of 4 KiB in one write, and two writes in full.
    let some = run(spec, &["20K+1=metadata", "64K+32K=metadata", "0+512K=cold"], &RunOptions::default());
    assert_eq!(placed(&some), (2 + 16, 256 - 18));
    let hints = some.hints.unwrap();
    let marked: Vec<_> = hints.marked.iter().map(|m| (m.hint, m.writes, m.bytes)).collect();
    assert_eq!(marked, [("metadata", 3, 36 << 10), ("cold", 32, 512 << 10)]);
    assert_eq!(some.asked, none.asked, "a write in parts is one request");
    assert!(crate::report::text::report(&Report { hints: Some(hints), ..none }).contains("3 ranges marked"));
}

#[test]
fn parts_of_writes_give_every_byte_back() {
    let dir = tempfile::tempdir().unwrap();
    let trace = mixed_trace(&dir, sectors(&small(&[])).unwrap(), 3000);
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let r = run(trace.to_str().unwrap(), &["4K+4K=metadata", "40K+9K=metadata", "90K+100K=hot"], &options);
    let v = r.verification.unwrap();
    assert_eq!(v.mismatches, 0, "{:#?}", v.first);
    assert!(r.hints.unwrap().marked.iter().all(|m| m.writes > 20));
}

#[test]
fn the_measured_part_is_counted_alone() {
    let spec = "gen:sequential,count=32,size=16K,align=16K,span=512K";
    let options = RunOptions { warm: "trace".parse().unwrap(), ..RunOptions::default() };
    let r = run(spec, &["0+512K=metadata"], &options);
    assert_eq!(r.hints.unwrap().marked[0].writes, 32);
}

#[test]
fn writes_of_bytes_get_the_hints_of_their_pages() {
    let spec = "gen:sequential,count=64,size=256,align=256,span=16K";
    let pcm = |r: &Report| r.layers[0].residence_total.pcm_level;
    let none = run(spec, &[], &RunOptions::default());
    let some = run(spec, &["0+4K=metadata"], &RunOptions::default());
    assert_eq!((pcm(&none), pcm(&some)), (0, 2), "pages of 2 KiB");
    let marked = some.hints.unwrap().marked;
    // Bytes are counted in whole sectors.
    assert_eq!((marked.len(), marked[0].hint, marked[0].writes, marked[0].bytes), (1, "metadata", 16, 8192));
}

/// Returns the pages that hinted writes put into PCM below layers: of all HFSL of the stack.
fn pcm_pages(layers: &str, devices: &[&str]) -> u64 {
    let hfsl = |name: &&str| {
        format!(
            "[media.{name}-nand]\nprofile = \"slc-k9-2016\"\nchannels = 2\nchips_per_channel = 1\nblocks_per_plane = 24\n\
             pages_per_block = 16\n[media.{name}-pcm]\nprofile = \"pcm-p8p-2016\"\nchip_bytes = \"32K\"\n\
             [{name}]\nkind = \"hfsl\"\nnand = \"{name}-nand\"\npcm = \"{name}-pcm\"\nplacement = \"hint\"\n"
        )
    };
    let text = devices.iter().map(hfsl).collect::<String>() + layers;
    let stack =
        frit_stack::Stack::parse("t", &text, &[]).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()));
    let spec = "gen:sequential,count=32,size=16K,align=16K,span=512K";
    let job = Job::open(spec, &Options::default(), Fit::Strict, &mut |_| {}).unwrap();
    let ranges = ["20K+1=metadata", "64K+32K=metadata"].map(|r| r.parse::<HintRange>().unwrap());
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let r = job.with_hints(&ranges).run(&stack, &options, &mut |_| {}).unwrap();
    assert_eq!(r.verification.unwrap().mismatches, 0);
    r.layers.iter().map(|l| l.residence_total.pcm_level).sum()
}

#[test]
fn composers_pass_hints_to_the_layers_below_them() {
    let flaky =
        "[far]\nkind = \"delay\"\ndevice = \"bad\"\nwrite_us = 9\n[bad]\nkind = \"flaky\"\ndevice = \"a\"\n";
    for (layers, devices, pages) in [
        ("", &["a"][..], 18),
        // A page of each chunk that is marked, on either device.
        ("[top]\nkind = \"stripe\"\ndevices = [\"a\", \"b\"]\nchunk = \"4K\"\n", &["a", "b"], 18),
        ("[top]\nkind = \"concat\"\ndevices = [\"a\", \"b\"]\n", &["a", "b"], 18),
        // The data is on both sides.
        ("[top]\nkind = \"mirror\"\ndevices = [\"a\", \"b\"]\n", &["a", "b"], 36),
        // Through several layers.
        (flaky, &["a"], 18),
        // A cache writes later, for itself; chunks have no hints of their own.
        (
            "[media.front]\nprofile = \"pcm-halo-2012\"\nchip_bytes = \"512K\"\n[top]\nkind = \"cache\"\npcm = \"front\"\n\
             disk = \"a\"\n",
            &["a"],
            0,
        ),
        ("[top]\nkind = \"thin\"\ndevice = \"a\"\nsize = \"1M\"\nchunk = \"64K\"\n", &["a"], 0),
    ] {
        assert_eq!(pcm_pages(layers, devices), pages, "{layers}");
    }
}
