//! Stacks of several layers: times that can be computed by hand, sums of the links, and contents.

use super::{mixed_trace, run};
use crate::{InitialState, Report, RunOptions, WarmUp, WarmUpRequests, sectors};
use frit_engine::LoopMode;
use frit_stack::Stack;

/// Read and program of a page of 2 KiB in Table 7 of the HFSL paper, in ns.
const READ: u64 = 75_500;
const PROGRAM: u64 = 213_200;

pub(super) fn stack(text: &str) -> Stack {
    let parsed = Stack::parse("t", text, &[]);
    parsed.unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()))
}

/// A flash device without PCM, of one unit.
pub(super) fn flash(name: &str) -> String {
    format!(
        "[media.{name}-nand]\nprofile = \"slc-k9-2016\"\nchannels = 1\nchips_per_channel = 1\nblocks_per_plane = 64\n\
         pages_per_block = 16\n[{name}]\nkind = \"hfsl\"\nnand = \"{name}-nand\"\npcm = \"none\"\nFUSION_METHOD = \"none\"\n"
    )
}

/// A PCM of 128 KiB in two channels.
pub(super) const FRONT: &str =
    "[media.front]\nprofile = \"pcm-halo-2012\"\nchannels = 2\nchip_bytes = \"512K\"\n";

fn at_depth(depth: u32) -> RunOptions {
    RunOptions { mode: LoopMode::Closed { depth }, ..RunOptions::default() }
}

fn latencies(r: &Report, class: &str) -> (u64, u64) {
    let figures = &r.class(class).unwrap().response.figures;
    (figures.count, figures.max_ns.0)
}

#[test]
fn a_delay_adds_its_delay() {
    for engine in ["in-order", "event"] {
        let text = format!(
            "{}[top]\nkind = \"delay\"\ndevice = \"ssd\"\nread_us = 100\nwrite_us = 50\nflush_us = 7\n[engine]\nkind = \"{engine}\"\n",
            flash("ssd")
        );
        let spec = "gen:sequential,count=100,size=2K,align=2K,span=200K";
        let w = run(&stack(&text), spec, &RunOptions::default());
        assert_eq!(latencies(&w, "write"), (100, PROGRAM + 50_000));
        let filled = RunOptions {
            warm: WarmUp { start: InitialState::Fill, warm_up_requests: WarmUpRequests::None },
            ..RunOptions::default()
        };
        let r = run(&stack(&text), &format!("{spec},read=1"), &filled);
        assert_eq!(latencies(&r, "read"), (100, READ + 100_000));
        // Delays of different requests do not add up: at depth 4 the unit is the only queue.
        let deep = run(&stack(&text), spec, &at_depth(4));
        assert_eq!(deep.throughput.duration_ns, 100 * PROGRAM + 50_000);
    }
}

#[test]
fn a_stripe_of_n_devices_has_n_times_the_throughput() {
    let mut last = None;
    for n in [2, 4] {
        let names: Vec<String> = (0..n).map(|i| format!("d{i}")).collect();
        let devices: String = names.iter().map(|name| flash(name)).collect();
        let list = format!("[\"{}\"]", names.join("\", \""));
        let top = |kind: &str| format!("{devices}[top]\nkind = \"{kind}\"\ndevices = {list}\n");
        let spec = format!("gen:sequential,count={},size=2K,align=2K,span={}K", 100 * n, 200 * n);
        let striped = run(&stack(&format!("{}chunk = \"2K\"\n", top("stripe"))), &spec, &at_depth(n));
        assert_eq!(striped.throughput.duration_ns, 100 * PROGRAM, "{n} devices at a time");
        // The same devices one after the other: 200 KiB are on one device.
        let joined = run(&stack(&top("concat")), &spec, &at_depth(n));
        assert_eq!(joined.throughput.duration_ns, 100 * u64::from(n) * PROGRAM);
        last = Some(striped.throughput.requests_per_s);
    }
    assert!((last.unwrap() - 4e9 / PROGRAM as f64).abs() < 1.0);
}

#[test]
fn a_miss_of_a_cache_takes_the_time_of_the_device_below() {
    let spec = "gen:sequential,count=50,size=2K,align=2K,span=100K,read=1";
    let filled = RunOptions {
        warm: WarmUp { start: InitialState::Fill, warm_up_requests: WarmUpRequests::None },
        ..RunOptions::default()
    };
    let cache = |below: &str| {
        let text =
            format!("{FRONT}{}[top]\nkind = \"cache\"\npcm = \"front\"\ndisk = \"{below}\"\n", flash("ssd"));
        if below == "far" {
            format!("{text}[far]\nkind = \"delay\"\ndevice = \"ssd\"\nread_us = 333\n")
        } else {
            text
        }
    };
    let near = run(&stack(&cache("ssd")), spec, &filled);
    assert_eq!(latencies(&near, "read"), (50, READ));
    let far = run(&stack(&cache("far")), spec, &filled);
    assert_eq!(latencies(&far, "read"), (50, READ + 333_000));
}

#[test]
fn a_full_buffer_of_compress_is_as_fast_as_the_device() {
    for engine in ["in-order", "event"] {
        let text = format!(
            "{}[top]\nkind = \"compress\"\ndevice = \"ssd\"\nchunk = \"4K\"\nbuffer_chunks = 4\n[engine]\nkind = \"{engine}\"\n",
            flash("ssd")
        );
        let w =
            run(&stack(&text), "gen:sequential,count=100,size=4K,align=4K,span=400K", &RunOptions::default());
        // The chunks that the buffer holds at the end are not on the device. A chunk has two pages.
        assert_eq!(w.throughput.duration_ns, (100 - 4) * 2 * PROGRAM);
    }
}

/// Trees whose contents are verified: each with the links that it has.
fn trees() -> Vec<(String, usize)> {
    let two = format!("{}{}", flash("a"), flash("b"));
    let halo = |below: &str| format!("{FRONT}[top]\nkind = \"cache\"\npcm = \"front\"\ndisk = \"{below}\"\n");
    let hybrid = "[media.nand]\nprofile = \"slc-k9-2016\"\nchannels = 2\nchips_per_channel = 1\nblocks_per_plane = 64\n\
                  pages_per_block = 16\n[media.pcm]\nprofile = \"pcm-p8p-2016\"\nchip_bytes = \"8K\"\n\
                  [ssd]\nkind = \"hfsl\"\npcm = \"pcm\"\nFUSION_METHOD = \"both\"\n";
    vec![
        (format!("{}{hybrid}", halo("ssd")), 4),
        (format!("{two}[top]\nkind = \"concat\"\ndevices = [\"b\", \"a\"]\n"), 4),
        (format!("{two}[top]\nkind = \"stripe\"\ndevices = [\"a\", \"b\"]\nchunk = \"4K\"\n"), 4),
        (
            format!(
                "{two}{}[raid]\nkind = \"stripe\"\ndevices = [\"a\", \"far\"]\n[far]\nkind = \"delay\"\ndevice = \"b\"\n\
                 write_us = 10\n",
                halo("raid")
            ),
            7,
        ),
        (
            format!(
                "{FRONT}{hybrid}[outer]\nkind = \"flaky\"\ndevice = \"top\"\n[top]\nkind = \"cache\"\npcm = \"front\"\ndisk = \"ssd\"\n"
            ),
            5,
        ),
    ]
}

#[test]
fn contents_are_right_and_links_add_up() {
    let dir = tempfile::tempdir().unwrap();
    for (text, links) in trees() {
        for engine in ["in-order", "event"] {
            let stack = stack(&format!("{text}[engine]\nkind = \"{engine}\"\n"));
            let trace = mixed_trace(&dir, sectors(&stack).unwrap(), 3000);
            let options = RunOptions { verify: true, ..at_depth(4) };
            let r = run(&stack, trace.to_str().unwrap(), &options);
            let verified = r.verification.as_ref().unwrap();
            assert_eq!(verified.mismatches, 0, "{text}");
            assert_eq!(r.links.len(), links, "{text}");
            check_links(&r);
        }
    }
}

/// The links to media have all commands of the media, and each layer received what the layer above
/// it gave.
fn check_links(r: &Report) {
    for m in &r.media {
        let rows = r.counts.iter().filter(|c| c.medium == m.name);
        let mut to = r.links.iter().filter(|l| l.to == m.name);
        let link = to.next().unwrap();
        assert!(to.next().is_none(), "{} has one layer", m.name);
        let sum = |causes: &mut dyn Iterator<Item = u64>| causes.sum::<u64>();
        let writes = ["nand-program", "nand-copyback", "pcm-write", "pcm-write-clean", "disk-write"];
        let counted = sum(&mut rows.filter(|c| writes.contains(&c.op)).map(|c| c.count.bytes));
        assert_eq!(link.writes.bytes, counted, "{}", m.name);
        assert_eq!(sum(&mut link.causes.iter().map(|c| c.count.bytes)), counted);
    }
    // Write amplification is the sum over paths of the products of their ratios.
    let host = r.asked.written_bytes as f64;
    let mut reached: Vec<(&str, f64)> = vec![(&r.layers[0].name, 1.0)];
    while let Some((layer, factor)) = reached.pop() {
        for l in r.links.iter().filter(|l| l.from == layer) {
            let here = factor * l.written_per_byte.unwrap_or(0.0);
            assert!((here * host - l.writes.bytes as f64).abs() < 1.0, "{} to {}", l.from, l.to);
            reached.push((&l.to, here));
        }
    }
}
