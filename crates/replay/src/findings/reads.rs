//! Rules about the requests of the workload: what it reads and writes.

use super::{Evidence, FindingKind, Rule, filled, share};
use crate::report::Report;
use crate::report::show::{count, percent};
use frit_core::{MediumKind, size};

/// Smallest share of reads of unwritten pages that changes means visibly.
const UNWRITTEN_SHARE_MIN: f64 = 0.05;
/// Largest share of read bytes that the workload wrote itself at which it "never" reads them.
const REREAD_SHARE_MAX: f64 = 0.01;

pub(super) const NOTHING_MEASURED: Rule = Rule {
    name: "nothing-measured",
    kind: FindingKind::Doubt,
    condition: || "no read and no write in the measured part".into(),
    reason: "Flushes and discards alone say nothing about the placement of data.",
    find: |r| {
        let a = &r.asked;
        (a.reads + a.writes == 0).then(|| {
            let others = format!("{} flushes and {} discards", count(a.flushes), count(a.discards));
            Evidence::new(format!("The run has no read and no write, only {others}."))
                .with("flushes", a.flushes as f64, "")
                .with("discards", a.discards as f64, "")
        })
    },
};

pub(super) const UNWRITTEN_READS: Rule = Rule {
    name: "unwritten-reads",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "no disk; new volume: at least {} of the bytes read were never written; or the volume \
             was discarded in part: this share of the reads took 0 ns",
            percent(UNWRITTEN_SHARE_MIN)
        )
    },
    reason: "A read of a page that was never written needs no medium and takes 0 ns.",
    find: unwritten_reads,
};

pub(super) const NOTHING_READ: Rule = Rule {
    name: "nothing-read",
    kind: FindingKind::Doubt,
    condition: || "writes, but no read".into(),
    reason: "The delay of reads by writes and by cleaning is a cost of a design, and it is missing.",
    find: |r| {
        (r.asked.reads == 0 && r.asked.writes > 0).then(|| {
            Evidence::new(format!(
                "Nothing was read in {} writes: the run says nothing about reads, and writes never wait for one.",
                count(r.asked.writes)
            ))
            .with("reads", 0.0, "")
            .with("writes", r.asked.writes as f64, "")
        })
    },
};

pub(super) const NEVER_REREAD: Rule = Rule {
    name: "never-reread",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "reads and writes; less than {} of the bytes read were written by the workload, warm-up included",
            percent(REREAD_SHARE_MAX)
        )
    },
    reason: "Where a design puts the writes of the workload then has no effect on its reads.",
    find: |r| {
        let a = &r.asked;
        let again = share(a.reread_bytes, a.read_bytes);
        // On a new volume the cause is that the reads find nothing, which another rule says.
        let applies = a.read_bytes > 0 && a.writes > 0 && unwritten_reads(r).is_none();
        (applies && again < REREAD_SHARE_MAX).then(|| {
            Evidence::new(format!(
                "The workload hardly reads what it writes: it wrote {} of the {} that it reads ({}). The \
                 placement of its writes has no effect on its reads.",
                size::format(a.reread_bytes),
                size::format(a.read_bytes),
                percent(again)
            ))
            .with("reread_bytes", a.reread_bytes as f64, "bytes")
            .with("read_bytes", a.read_bytes as f64, "bytes")
        })
    },
};

pub(super) const NOTHING_WRITTEN: Rule = Rule {
    name: "nothing-written",
    kind: FindingKind::Explanation,
    condition: || "reads, but no write".into(),
    reason: "Write amplification, wear and cleaning have no values then.",
    find: |r| {
        (r.asked.writes == 0 && r.asked.reads > 0).then(|| {
            Evidence::new(format!(
                "Nothing was written in {} reads: the run says nothing about write amplification, wear and \
                 cleaning.",
                count(r.asked.reads)
            ))
            .with("writes", 0.0, "")
            .with("reads", r.asked.reads as f64, "")
        })
    },
};

fn unwritten_reads(r: &Report) -> Option<Evidence> {
    // A disk has to be read wherever its data lies.
    if r.asked.reads == 0 || r.has(MediumKind::Disk) {
        return None;
    }
    let unwritten = if filled(r) { 0 } else { r.asked.read_bytes - r.asked.reread_bytes };
    let free = r
        .class("read")
        .map_or(0, |c| c.service.buckets.iter().filter(|b| b.to_ns == 0).map(|b| b.count).sum::<u64>());
    let (never, free_share) = (share(unwritten, r.asked.read_bytes), share(free, r.asked.reads));
    let discarded = r.asked.discards > 0 && free_share >= UNWRITTEN_SHARE_MIN;
    if never < UNWRITTEN_SHARE_MIN && !discarded {
        return None;
    }
    let text = if never >= UNWRITTEN_SHARE_MIN {
        format!(
            "{} of the bytes read ({} of {}) were never written, and {} of {} reads took 0 ns: latencies of \
             reads, their mean with writes, and requests/s are too good. Fill the volume first: --warm fill.",
            percent(never),
            size::format(unwritten),
            size::format(r.asked.read_bytes),
            count(free),
            count(r.asked.reads)
        )
    } else {
        format!(
            "{} of {} reads ({}) took 0 ns, because they found only discarded pages: latencies of reads and \
             requests/s are too good.",
            count(free),
            count(r.asked.reads),
            percent(free_share)
        )
    };
    Some(
        Evidence::new(text)
            .with("unwritten_bytes", unwritten as f64, "bytes")
            .with("read_bytes", r.asked.read_bytes as f64, "bytes")
            .with("reads_of_0_ns", free as f64, "")
            .with("reads", r.asked.reads as f64, ""),
    )
}
