//! Several NAND devices below one HFSL: as many times the bandwidth, exactly as one device with all
//! of their channels.

use super::{mixed_trace, run};
use crate::{InitialState, Report, RunOptions, WarmUp, WarmUpRequests, sectors};
use frit_core::Op;
use frit_engine::LoopMode;
use frit_stack::Stack;

/// Read and program of a page of 2 KiB in Table 7 of the HFSL paper, in ns.
const READ: u64 = 75_500;
const PROGRAM: u64 = 213_200;

/// Returns a stack with an HFSL over this many NAND devices, with this many channels each.
fn stack(devices: u32, channels: u32, more: &str) -> Stack {
    let names: Vec<String> = (0..devices).map(|i| format!("d{i}")).collect();
    let media: String = names
        .iter()
        .map(|n| {
            format!(
                "[media.{n}]\nprofile = \"slc-k9-2016\"\nchannels = {channels}\nchips_per_channel = 1\n\
                 blocks_per_plane = 24\npages_per_block = 16\n"
            )
        })
        .collect();
    let text = format!("{media}[hfsl]\nnand = [\"{}\"]\n{more}", names.join("\", \""));
    Stack::parse("t", &text, &[]).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()))
}

const NO_PCM: &str = "pcm = \"none\"\nFUSION_METHOD = \"none\"\n";

fn at_depth(depth: u32) -> RunOptions {
    RunOptions { mode: LoopMode::Closed { depth }, ..RunOptions::default() }
}

#[test]
fn an_array_of_n_devices_has_n_times_the_bandwidth() {
    for engine in ["in-order", "event"] {
        let more = format!("{NO_PCM}[engine]\nkind = \"{engine}\"\n");
        for n in [1, 2, 3] {
            let spec = format!("gen:sequential,count={},size=2K,align=2K,span={}K", 60 * n, 120 * n);
            let w = run(&stack(n, 1, &more), &spec, &at_depth(n));
            assert_eq!(w.throughput.duration_ns, 60 * PROGRAM, "{n} devices, {engine}");
            let filled = RunOptions {
                warm: WarmUp { start: InitialState::Fill, warm_up_requests: WarmUpRequests::None },
                ..at_depth(n)
            };
            let r = run(&stack(n, 1, &more), &format!("{spec},read=1"), &filled);
            assert_eq!(r.throughput.duration_ns, 60 * READ, "{n} devices, {engine}");
            // Each device has its share of the commands.
            for m in &w.media {
                assert_eq!(m.writes.commands, 60, "{}", m.name);
            }
        }
    }
}

fn by_device(r: &Report, op: Op) -> Vec<u64> {
    let op: &str = op.into();
    let of = |name: &str| {
        r.counts.iter().filter(|c| c.medium == name && c.op == op).map(|c| c.count.commands).sum()
    };
    r.media.iter().filter(|m| m.name.starts_with('d')).map(|m| of(&m.name)).collect()
}

/// The units of an array are numbered as those of a device with all channels, so garbage collection,
/// destaging and all times are the same.
#[test]
fn an_array_is_the_same_as_one_device_with_all_channels() {
    let dir = tempfile::tempdir().unwrap();
    let pcm = "FUSION_METHOD = \"both\"\n[media.pcm]\nprofile = \"pcm-p8p-2016\"\nchip_bytes = \"8K\"\n";
    for engine in ["in-order", "event"] {
        for (fused, copyback) in [(pcm, false), (NO_PCM, true)] {
            let more = format!(
                "copyback = {copyback}\n{fused}[engine]\nkind = \"{engine}\"\nscheduler = \"fifo\"\n"
            );
            let (one, two) = (stack(1, 4, &more), stack(2, 2, &more));
            let trace = mixed_trace(&dir, sectors(&one).unwrap(), 4000);
            let options = RunOptions { verify: true, ..at_depth(4) };
            let [one, two] = [&one, &two].map(|s| run(s, trace.to_str().unwrap(), &options));
            for r in [&one, &two] {
                assert_eq!(r.verification.as_ref().unwrap().mismatches, 0);
            }
            assert_eq!(one.throughput.duration_ns, two.throughput.duration_ns, "{engine}");
            for class in ["read", "write", "all"] {
                let figures = |r: &Report| r.class(class).unwrap().response.figures;
                assert_eq!(figures(&one), figures(&two), "{engine} {class}");
            }
            for op in [Op::NandRead, Op::NandProgram, Op::NandErase, Op::NandCopyback] {
                let (whole, parts) = (by_device(&one, op), by_device(&two, op));
                assert_eq!(whole.iter().sum::<u64>(), parts.iter().sum::<u64>(), "{op:?}");
            }
            assert!(by_device(&two, Op::NandErase).iter().all(|&n| n > 0));
        }
    }
}

#[test]
fn devices_of_an_array_can_differ_in_their_times() {
    let more = format!("{NO_PCM}[engine]\nkind = \"in-order\"\n");
    let text = stack(2, 1, &more).identity().text;
    let slow = Stack::parse("t", &text, &["media.d1.t_prog=1ms".to_owned()]).unwrap();
    let spec = "gen:sequential,count=120,size=2K,align=2K,span=240K";
    let [equal, mixed] = [&stack(2, 1, &more), &slow].map(|s| run(s, spec, &at_depth(64)));
    assert!(mixed.throughput.duration_ns > 60_000_000 && equal.throughput.duration_ns == 60 * PROGRAM);
}
