//! Stacks of several layers: times that can be computed by hand, sums of the links, and contents.

use super::{mixed_trace, run};
use crate::{InitialState, Report, RunOptions, WarmUp, WarmUpRequests, sectors};
use frit_engine::{LatencySummary, LoopMode};
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

/// Largest number of background requests in progress at the end of a run of these tests.
const IN_PROGRESS_MAX: u64 = 16;

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
        // Below the delay, the times are those of the device.
        for (run, kind, device) in [(&w, "write", PROGRAM), (&r, "read", READ)] {
            for (from, to) in [("top", "ssd"), ("ssd", "ssd-nand")] {
                let times = link_times(run, from, to, kind);
                assert_eq!((times.count, times.max_ns.0, times.mean_ns), (100, device, device as f64));
            }
        }
        // Delays of different requests do not add up: at depth 4 the unit is the only queue.
        let deep = run(&stack(&text), spec, &at_depth(4));
        assert_eq!(deep.throughput.duration_ns, 100 * PROGRAM + 50_000);
    }
}

/// The memory for mapping in a report is that of all layers.
#[test]
fn a_report_has_the_memory_of_the_layers_below() {
    let spec = "gen:sequential,count=100,size=2K,align=2K,span=200K";
    let alone = run(&stack(&flash("ssd")), spec, &RunOptions::default()).memory;
    assert!(alone.dram_bytes > 0);
    let below = format!("{}[top]\nkind = \"flaky\"\ndevice = \"ssd\"\n", flash("ssd"));
    assert_eq!(run(&stack(&below), spec, &RunOptions::default()).memory.dram_bytes, alone.dram_bytes);
    let two = format!("{}{}[top]\nkind = \"concat\"\ndevices = [\"a\", \"b\"]\n", flash("a"), flash("b"));
    assert_eq!(run(&stack(&two), spec, &RunOptions::default()).memory.dram_bytes, 2 * alone.dram_bytes);
}

/// Requests aligned to the page of its sides need no read-modify-write.
#[test]
fn a_mirror_has_the_page_of_its_sides() {
    let text = format!("{}{}[top]\nkind = \"mirror\"\ndevices = [\"a\", \"b\"]\n", flash("a"), flash("b"));
    let built = stack(&text).build(&frit_stack::Bytes::None).unwrap();
    assert_eq!(built.layer.info().page_bytes, 2048);
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
        for name in &names {
            let times = link_times(&striped, "top", name, "write");
            assert_eq!((times.count, times.max_ns.0, times.mean_ns), (100, PROGRAM, PROGRAM as f64));
        }
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
    // Each link has the time of what is below it.
    let max = |from, to| link_times(&far, from, to, "read").max_ns.0;
    assert_eq!(max("top", "far"), READ + 333_000);
    assert_eq!((max("far", "ssd"), max("ssd", "ssd-nand")), (READ, READ));
}

/// The tunnel transfers the pattern of a miss before the disk is read.
#[test]
fn a_miss_through_a_tunnel_takes_a_transfer_more() {
    for engine in ["in-order", "event"] {
        let figures = |tunnel: &str| {
            let text = format!(
                "[media.nand]\nprofile = \"slc-k9-2016\"\nchannels = 1\nchips_per_channel = 1\nblocks_per_plane = 64\n\
                 pages_per_block = 16\n[media.disk]\nprofile = \"nvme-p4500-2017\"\nbytes = \"64M\"\n\
                 [flashtier]\nread_caching = false\n{tunnel}[engine]\nkind = \"{engine}\"\n"
            );
            let spec = "gen:uniform,count=50,size=4K,align=4K,span=32M,read=1";
            run(&stack(&text), spec, &RunOptions::default()).class("read").unwrap().response.figures
        };
        let (answer, pattern) = (figures(""), figures("tunnel = true\ntunnel_mb_per_s = 100\n"));
        // 4 KiB at 100 MB/s.
        assert!((pattern.mean_ns - answer.mean_ns - 40_960.0).abs() < 1e-3, "{answer:?} {pattern:?}");
        assert_eq!(pattern.max_ns.0 - answer.max_ns.0, 40_960);
    }
}

/// Returns the times of one kind of request on a link.
fn link_times(r: &Report, from: &str, to: &str, kind: &str) -> LatencySummary {
    let link = r.links.iter().find(|l| l.from == from && l.to == to).unwrap();
    link.latency.iter().find(|l| l.kind == kind).unwrap().figures
}

/// A disk below a cache has no layer in between: its link has the times of its commands, and a miss
/// takes the same.
#[test]
fn a_disk_below_a_cache_has_the_times_of_its_commands() {
    for engine in ["in-order", "event"] {
        let text = format!(
            "{FRONT}[media.hdd]\nprofile = \"st3500320as-2008\"\nbytes = \"16M\"\n[cache]\n[extra]\nkind = \"delay\"\n\
             device = \"cache\"\nread_us = 9\n[engine]\nkind = \"{engine}\"\n"
        );
        let spec = "gen:uniform,count=80,size=4K,align=4K,span=8M,read=1";
        let r = run(&stack(&text), spec, &RunOptions::default());
        let (client, cache) =
            (r.class("read").unwrap().response.figures, link_times(&r, "extra", "cache", "read"));
        let disk = link_times(&r, "cache", "hdd", "read");
        assert_eq!((disk.count, cache.count, client.count), (80, 80, 80));
        assert!(disk.mean_ns > 1e6, "{disk:?}");
        assert_eq!((disk.mean_ns, disk.max_ns), (cache.mean_ns, cache.max_ns));
        assert!((client.mean_ns - cache.mean_ns - 9_000.0).abs() < 1e-3);
        assert_eq!(client.max_ns.0, cache.max_ns.0 + 9_000);
    }
}

/// The flush of a cache waits for what it destaged, so the time of a request is counted from the end of
/// what it waits for, and not from the call.
#[test]
fn a_request_is_timed_from_the_end_of_what_it_waits_for() {
    for engine in ["in-order", "event"] {
        let text = format!(
            "{}[low]\nkind = \"delay\"\ndevice = \"ssd\"\nwrite_us = 50\n\
             [top]\nkind = \"cache\"\npcm = \"front\"\ndisk = \"low\"\ndirty_low = 0\n{FRONT}[engine]\nkind = \"{engine}\"\n",
            flash("ssd")
        );
        // One unit: a request that waits for the unit takes longer, and one alone takes the least.
        let spec = "gen:uniform,count=300,size=4K,align=4K,span=600K";
        let r = run(&stack(&text), spec, &RunOptions::default());
        let (low, ssd) = (link_times(&r, "top", "low", "write"), link_times(&r, "low", "ssd", "write"));
        assert_eq!(low.count, ssd.count);
        assert!((low.mean_ns - ssd.mean_ns - 50_000.0).abs() < 1e-3, "{low:?} {ssd:?}");
        assert_eq!(low.max_ns.0, ssd.max_ns.0 + 50_000);
    }
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

/// Segments of 16 KiB in a store of two connections, in which only the puts and gets take time.
fn segments(buffers: u32, engine: &str) -> Stack {
    stack(&format!(
        "[media.map]\nprofile = \"pcm-halo-2012\"\nchip_bytes = \"512K\"\n[media.remote]\nmedium = \"object\"\nobject_bytes = \"16K\"\n\
         objects = 512\nconnections = 64\nt_put = \"10 ms\"\nt_get = \"3 ms\"\nt_delete = \"1 ms\"\nconnection_mb_per_s = 1000\n\
         link_mb_per_s = 1000000\n[top]\nkind = \"segments\"\nmap = \"table\"\nstore = \"remote\"\nsize = \"2M\"\nbuffers = {buffers}\n\
         [table]\nkind = \"ntl\"\npcm = \"map\"\npage_bytes = \"4K\"\n[engine]\nkind = \"{engine}\"\n"
    ))
}

/// A put and a get of a segment, in ns: latency, and the transfer at 1000 MB/s.
const PUT: u64 = 10_000_000 + 16_384;
const GET: u64 = 3_000_000 + 16_384;
/// The claim of the store before the first request, in ns: a list, the put of 64 bytes and a list.
const CLAIM: u64 = 3_000_000 + 10_000_000 + 64 + 3_000_000;
/// A segment on the link of all connections, at 10^6 MB/s: puts at the same time follow each other on it.
const LINK: u64 = 16;

#[test]
fn writes_of_segments_wait_for_the_put_whose_memory_they_use() {
    for engine in ["in-order", "event"] {
        for buffers in [1, 3] {
            let w = run(
                &segments(buffers, engine),
                "gen:sequential,count=100,size=16K,align=16K,span=1600K",
                &RunOptions::default(),
            );
            // With n buffers, n + 1 segments are put between two waits. The last one stays in DRAM.
            assert_eq!(
                w.throughput.duration_ns,
                CLAIM + 99 / (u64::from(buffers) + 1) * PUT + u64::from(buffers) * LINK,
                "{engine}"
            );
        }
    }
}

#[test]
fn a_read_of_segments_waits_for_the_put_of_its_object() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.csv");
    // Two segments, of which the first is put at the second write, and a read of the first.
    std::fs::write(&trace, "time_us,op,sector,sectors,flags\n0,W,0,32,\n0,W,32,32,\n0,R,0,32,\n0,R,0,32,\n")
        .unwrap();
    for engine in ["in-order", "event"] {
        let r = run(&segments(2, engine), trace.to_str().unwrap(), &RunOptions::default());
        assert_eq!(latencies(&r, "read"), (2, CLAIM + PUT + GET), "{engine}");
        assert_eq!(r.throughput.duration_ns, CLAIM + PUT + 2 * GET, "{engine}");
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

/// Data of reads are on their way into a cache while requests change the same pages, and pages are evicted.
#[test]
fn contents_of_a_cache_in_dram_are_right_at_depth() {
    let dir = tempfile::tempdir().unwrap();
    for engine in ["in-order", "event"] {
        for mode in ["read", "write", "read-write"] {
            for hot_ms in [0, 1000] {
                let text = format!(
                    "{}[top]\nkind = \"dram-cache\"\ndevice = \"ssd\"\nmode = \"{mode}\"\nhot_ms = {hot_ms}\n\
                     capacity = \"64K\"\nwrite_back = \"8K\"\n[engine]\nkind = \"{engine}\"\n",
                    flash("ssd")
                );
                let stack = stack(&text);
                let trace = mixed_trace(&dir, sectors(&stack).unwrap().min(1100), 3000);
                let options = RunOptions { verify: true, ..at_depth(16) };
                let r = run(&stack, trace.to_str().unwrap(), &options);
                assert_eq!(r.verification.as_ref().unwrap().mismatches, 0, "{mode} {hot_ms} {engine}");
            }
        }
    }
}

/// The links to media have all commands of the media, and each layer received what the layer above
/// it gave. Each request has a time, except background work in progress at the last acknowledgement.
fn check_links(r: &Report) {
    for l in &r.links {
        let timed = |kind| l.latency.iter().find(|t| t.kind == kind).map_or(0, |t| t.figures.count);
        let to = (&l.from, &l.to);
        let all = |kind, requests: u64| {
            let times: u64 = timed(kind);
            assert!(
                times <= requests && times + IN_PROGRESS_MAX >= requests,
                "{to:?} {kind}: {times} of {requests}"
            );
        };
        all("read", l.reads.commands);
        all("write", l.writes.commands);
        all("discard", l.discards.commands);
        // Fences of memory that take no time are no commands.
        if r.media.iter().all(|m| m.name != l.to) {
            all("flush", l.flushes);
        }
    }
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
