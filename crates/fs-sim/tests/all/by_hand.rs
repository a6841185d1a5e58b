//! Latencies of single operations, computed by hand from the profile and the host.
//!
//! The memory has rows of 64 bytes on two controllers in turn, and the file system uses the first
//! group of these. A row is read in 181 ns plus 32 ns on the bus, and written in 32 ns on the bus
//! plus 3556 ns. A part of a row costs as much, except that the bus takes 0.5 ns a byte. The link
//! takes 40 ns plus 2.5 ns a byte, one transfer at a time: 200 ns a row.

use frit_fs_sim::MediumCall;
use frit_fs_sim::plan::{OperationSpec, Plan, explain};

const PAPER: &str = "lpddr2-nvm-ispfs-2018";
const LINK: u64 = 200;
const READ: u64 = 181 + 32;
const WRITE: u64 = 32 + 3556;
/// Time of a fence with nothing in flight: a status word over the link.
const STATUS: u64 = 40 + 10;

fn plan(what: &str, host: &str) -> Plan {
    explain(OperationSpec::parse(what).unwrap(), PAPER, host, Some(64 << 20), false).unwrap()
}

#[test]
fn a_read_of_a_file_in_use_is_its_first_row_and_the_link() {
    // The first row comes from the cells. After it the link is the bottleneck.
    assert_eq!(plan("read 4K", "zedboard-2018").latency_ns, READ + 64 * LINK);
    assert_eq!(plan("read 64", "zedboard-2018").latency_ns, READ + LINK);
    // Few bytes: the cells take as long, the bus takes 8 × 0.5 ns, and the processor fetches the
    // whole line.
    assert_eq!(plan("read 8", "zedboard-2018").latency_ns, 181 + 4 + LINK);
    // With one request in flight, each row waits for the one before it.
    assert_eq!(plan("read 4K", "zedboard-2018,outstanding=1").latency_ns, 64 * (READ + LINK));
    // Software time comes before the access, copying after it.
    let more = plan("read 4K", "zedboard-2018,software=2 us,copy_per_byte=1 ns");
    assert_eq!(more.latency_ns, 2000 + READ + 64 * LINK + 4096);
}

#[test]
fn a_write_over_what_is_there_is_the_link_and_the_rest_is_posted() {
    let p = plan("write 4K", "zedboard-2018");
    assert_eq!((p.latency_ns, p.done_ns), (64 * LINK, 2 * LINK + 32 * WRITE));
    assert_eq!((p.commands.len(), p.steps.len()), (128, 1));
    // Half of the write may be posted. It waits until all rows except the last 32 are in the cells:
    // up to row 31 of 0 to 63, the 16th of the second controller. It continues with the last row
    // once the link has carried it.
    let half = plan("write 4K", "zedboard-2018,posted_bytes=2K");
    assert_eq!(half.latency_ns, 2 * LINK + 16 * WRITE);
    // Nothing is posted: each row is in the cells before the next one starts.
    assert_eq!(plan("write 4K", "zedboard-2018,posted_bytes=0").latency_ns, 64 * (LINK + WRITE));
}

#[test]
fn a_create_is_a_slot_a_fence_and_the_words_at_home() {
    let p = plan("create", "zedboard-2018");
    let calls: Vec<(MediumCall, u64)> = p.steps.iter().map(|s| (s.call, s.bytes)).collect();
    let write = |bytes| (MediumCall::Write, bytes);
    let homes = [write(256), write(32), write(8), write(16), write(8), write(64)];
    assert_eq!(calls[..2], [write(456), (MediumCall::Fence, 0)], "header, records and their words");
    assert_eq!(calls[2..], homes, "inode, name, three places of the directory's inode, ledger");
    // The slot takes seven rows and 8 bytes. The second controller has four of them, the last with
    // 4 ns on the bus. It starts when the link is free of the first row.
    let slot = LINK + LINK + 3 * WRITE + 4 + 3556;
    assert_eq!(p.steps[0].end_ns, slot);
    assert_eq!((p.steps[1].start_ns, p.steps[1].end_ns), (slot, slot + STATUS));
    // The words at their home locations are posted: the program waits only for the link.
    let link: u64 = homes.iter().map(|(_, bytes)| bytes.div_ceil(64) * 40 + bytes * 5 / 2).sum();
    assert_eq!(p.latency_ns, slot + STATUS + link);
    assert!(p.done_ns > p.latency_ns);
    let after: Vec<&[usize]> = p.steps.iter().map(|s| s.after.as_slice()).collect();
    assert_eq!(after, [&[] as &[usize], &[0], &[1], &[2], &[3], &[4], &[5], &[6]]);
}

#[test]
fn a_sync_waits_for_what_is_on_its_way() {
    // A row was written just before: the program waited only for the link, and the cells are busy
    // for WRITE.
    let p = plan("fsync 64", "zedboard-2018");
    let calls: Vec<MediumCall> = p.steps.iter().map(|s| s.call).collect();
    // The time of the write was only in DRAM: the sync writes a transaction, and fences.
    assert_eq!(
        calls,
        [MediumCall::Write, MediumCall::Fence, MediumCall::Write, MediumCall::Write, MediumCall::Fence]
    );
    assert!(p.steps[1].end_ns >= WRITE + STATUS, "{}", p.steps[1].end_ns);
    assert_eq!(p.latency_ns, p.steps[4].end_ns);
    assert_eq!(p.latency_ns, p.steps[3].end_ns + STATUS);
    assert_eq!(p.done_ns, p.latency_ns, "nothing is in flight");
}

#[test]
fn a_stat_reads_the_name_and_an_append_fences_twice() {
    let p = plan("stat", "zedboard-2018");
    assert_eq!((p.steps.len(), p.latency_ns), (1, 181 + 16 + LINK));
    let p = plan("append 4K", "zedboard-2018");
    let fences: Vec<&_> = p.steps.iter().filter(|s| s.call == MediumCall::Fence).collect();
    assert_eq!(fences.len(), 2);
    // The contents are in the cells before the slot is written.
    assert_eq!(fences[0].end_ns, 2 * LINK + 32 * WRITE + STATUS);
    assert_eq!(p.steps[2].start_ns, fences[0].end_ns);
}

#[test]
fn other_memories_cost_what_their_profiles_say() {
    let of = |what: &str, profile: &str| {
        explain(OperationSpec::parse(what).unwrap(), profile, "direct", Some(64 << 20), false).unwrap()
    };
    assert_eq!(of("read 4K", "dimm-optane-2019").latency_ns, 916);
    assert_eq!(of("read 64K", "cxl-mem-2023").latency_ns, 2978);
    let p = of("write 4K", "dimm-optane-2019");
    assert_eq!((p.latency_ns, p.done_ns), (0, 1781), "the controller's queues hold 4 KiB");
}

#[test]
fn operations_are_read_as_people_write_them() {
    for good in ["create", "write 4K", "read 1M", "fsync", " stat "] {
        assert!(OperationSpec::parse(good).is_ok(), "{good}");
    }
    for (bad, part) in
        [("creat", "no plan"), ("write x", "is not a size"), ("read 0", "1 byte"), ("read 1G", "64 MiB")]
    {
        assert!(OperationSpec::parse(bad).unwrap_err().contains(part), "{bad}");
    }
}
