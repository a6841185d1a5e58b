//! Rules about media: which of them took the data of the workload.

use super::{Evidence, FindingKind, Rule, bytes, kind_name, setting, share};
use crate::report::Report;
use crate::report::show::{count, percent};
use frit_core::{Cause, MediumKind, Op, size};
use frit_stack::layers::LayerKind;

/// Largest share of the written bytes, and of the writes, at which PCM counts as unused.
const PCM_SHARE_MAX: f64 = 0.01;
/// Smallest share of the data written to PCM that moves on to another medium at which PCM counts as
/// too small.
const CHURN_MIN: f64 = 0.75;
/// Largest share of block accesses that a cache before a disk serves at which it counts as too small.
const HIT_SHARE_MAX: f64 = 0.10;
/// Largest share of the data written to PCM that moves on at which PCM counts as absorbing writes.
const ABSORBED_CHURN_MAX: f64 = 0.50;
/// Smallest share of the written bytes that PCM has to take for it.
const ABSORBED_SHARE_MIN: f64 = 0.25;
/// Smallest share of writes that change part of a NAND page.
const PARTIAL_SHARE_MIN: f64 = 0.25;
/// Largest size of a write for which a larger SSW is proposed: PCM is slower than NAND for large ones.
const SMALL_WRITE_MAX: u64 = 32 << 10;

pub(super) const PCM_UNUSED: Rule = Rule {
    name: "pcm-unused",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "PCM beside another medium; no write of the host went to it, or less than {} of the bytes and of \
             the writes; and no read",
            percent(PCM_SHARE_MAX)
        )
    },
    reason: "The run measures the other medium alone, with the cost of PCM and without its benefit.",
    find: pcm_unused,
};

pub(super) const MEDIUM_UNUSED: Rule = Rule {
    name: "medium-unused",
    kind: FindingKind::Doubt,
    condition: || "a NAND, DRAM or disk of the stack has no command in the measured part".into(),
    reason: "The run says nothing about this medium.",
    find: medium_unused,
};

pub(super) const PCM_TOO_SMALL: Rule = Rule {
    name: "pcm-too-small",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "HFSL: more than the size of PCM was written to it, and at least {} of that left for NAND. Cache: \
             blocks were evicted, and it served less than {} of the block accesses",
            percent(CHURN_MIN),
            percent(HIT_SHARE_MAX)
        )
    },
    reason: "Data passes through PCM and is written twice, so PCM adds work instead of saving it.",
    find: |r| pcm_churns(r).or_else(|| cache_misses(r)),
};

pub(super) const PCM_ABSORBS: Rule = Rule {
    name: "pcm-absorbs",
    kind: FindingKind::Explanation,
    condition: || {
        format!(
            "at least {} of the written bytes went to PCM, and less than {} of them left for NAND",
            percent(ABSORBED_SHARE_MIN),
            percent(ABSORBED_CHURN_MAX)
        )
    },
    reason: "These writes cost no NAND program and no cleaning.",
    find: |r| {
        let (taken, left) = hfsl_flow(r)?;
        let of_host = share(taken, r.asked.written_bytes);
        let applies = of_host >= ABSORBED_SHARE_MIN && share(left, taken) < ABSORBED_CHURN_MAX;
        applies.then(|| {
            Evidence::new(format!(
                "PCM absorbs writes: of {} that the host wrote to it, {} left for NAND ({}).",
                size::format(taken),
                size::format(left),
                percent(share(left, taken))
            ))
            .with("written_to_pcm", taken as f64, "bytes")
            .with("left_for_nand", left as f64, "bytes")
        })
    },
};

pub(super) const PARTIAL_WRITES: Rule = Rule {
    name: "partial-writes",
    kind: FindingKind::Explanation,
    condition: || {
        format!(
            "writes of part of a NAND page that do not move it to PCM are at least {} of the writes",
            percent(PARTIAL_SHARE_MIN)
        )
    },
    reason: "Each of them reads the page and programs it as a whole.",
    find: |r| {
        // A small write that moves its page to PCM programs no NAND page.
        let moved = r.counted("moved_to_pcm").unwrap_or(0.0) as u64;
        let n = r.flash_updates?.saturating_sub(moved);
        if share(n, r.asked.writes) < PARTIAL_SHARE_MIN {
            return None;
        }
        let read = bytes(r, Op::NandRead, Cause::Merge);
        Some(
            Evidence::new(format!(
                "{} writes of part of a page in NAND for {} writes of the host: each of them reads a page of {} \
                 and programs it again ({} read for it).",
                count(n),
                count(r.asked.writes),
                size::format(u64::from(r.memory.page_bytes)),
                size::format(read)
            ))
            .with("partial_writes", n as f64, "")
            .with("writes", r.asked.writes as f64, "")
            .with("merge_bytes_read", read as f64, "bytes"),
        )
    },
};

/// Returns the bytes that the host wrote to PCM, and the bytes that left PCM for NAND, on a stack
/// that fuses them.
fn hfsl_flow(r: &Report) -> Option<(u64, u64)> {
    let taken = bytes(r, Op::PcmWrite, Cause::Host);
    let left = bytes(r, Op::NandProgram, Cause::Destage);
    (r.has(MediumKind::Nand) && taken > 0).then_some((taken, left))
}

/// Returns `SSW`: that of the stack, or the default.
fn ssw(r: &Report) -> Option<u64> {
    match setting(r, "SSW") {
        Some(value) => value.parse().ok(),
        None => size::parse(&LayerKind::Hfsl.defaults().into_iter().find(|p| p.key == "SSW")?.value).ok(),
    }
}

fn pcm_unused(r: &Report) -> Option<Evidence> {
    // Without another medium, every request is served by PCM.
    if !r.has(MediumKind::Pcm) || r.media.len() < 2 || r.asked.writes == 0 {
        return None;
    }
    // A cache that takes no writes is a baseline by intention.
    if setting(r, "mode") == Some("write-around") || bytes(r, Op::PcmRead, Cause::Host) > 0 {
        return None;
    }
    let taken = bytes(r, Op::PcmWrite, Cause::Host) + bytes(r, Op::PcmWriteClean, Cause::Host);
    let part = share(taken, r.asked.written_bytes);
    let ssw = ssw(r)?;
    let up_to = |limit: u64| {
        let n = r.write_sizes.iter().filter(|s| s.to_bytes <= limit).map(|s| s.count).sum::<u64>();
        share(n, r.asked.writes)
    };
    let few = part < PCM_SHARE_MAX && up_to(ssw) < PCM_SHARE_MAX;
    if taken > 0 && !few {
        return None;
    }
    let smallest = r.write_sizes.first()?.to_bytes;
    let common = r.write_sizes.iter().max_by_key(|s| s.count)?.to_bytes;
    let what = if taken == 0 {
        "PCM unused: ".to_owned()
    } else {
        format!("PCM took {} of the written bytes: ", percent(part))
    };
    let fused = r.has(MediumKind::Nand);
    let most = common.max(smallest);
    let why = if fused && smallest > ssw && most <= SMALL_WRITE_MAX {
        format!(
            "the smallest write has {}, and SSW is {}. With SSW={}, writes of up to that size ({} of the writes) \
             go to PCM.",
            size::format(smallest),
            size::format(ssw),
            short_size(most),
            percent(up_to(most))
        )
    } else if fused && smallest > ssw {
        format!(
            "the smallest write has {}, and SSW is {}. The writes are too large to gain from PCM.",
            size::format(smallest),
            size::format(ssw)
        )
    } else {
        format!(
            "the smallest write has {}, the most common one {}.",
            size::format(smallest),
            size::format(common)
        )
    };
    Some(
        Evidence::new(what + &why)
            .with("written_to_pcm", taken as f64, "bytes")
            .with("smallest_write", smallest as f64, "bytes")
            .with("most_common_write", common as f64, "bytes")
            .with("ssw", ssw as f64, "bytes"),
    )
}

/// Returns a size as an override takes it: `4K`.
fn short_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { format!("{}K", bytes / 1024) } else { bytes.to_string() }
}

fn medium_unused(r: &Report) -> Option<Evidence> {
    if r.asked.reads + r.asked.writes == 0 {
        return None;
    }
    let unused = |m: &&crate::report::MediumReport| {
        m.kind != MediumKind::Pcm && m.reads.commands + m.writes.commands + m.erases == 0
    };
    let m = r.media.iter().find(unused)?;
    let others: Vec<&str> =
        r.media.iter().filter(|o| o.writes.commands > 0).map(|o| kind_name(o.kind)).collect();
    let by = match others.as_slice() {
        [] => String::new(),
        some => format!(": {} took all writes", some.join(" and ")),
    };
    let largest = r.write_sizes.last().map_or(0, |s| s.to_bytes);
    let ssw = match (m.kind, ssw(r)) {
        (MediumKind::Nand, Some(ssw)) if largest > 0 && largest <= ssw => {
            format!(
                ", because none of them is above SSW (largest {}, SSW {})",
                size::format(largest),
                size::format(ssw)
            )
        }
        _ => String::new(),
    };
    Some(
        Evidence::new(format!(
            "{} '{}' unused{by}{ssw}. The run says nothing about it.",
            kind_name(m.kind),
            m.name
        ))
        .with("commands", 0.0, "")
        .with("largest_write", largest as f64, "bytes"),
    )
}

fn pcm_churns(r: &Report) -> Option<Evidence> {
    let (taken, left) = hfsl_flow(r)?;
    let pcm = r.media.iter().find(|m| m.kind == MediumKind::Pcm)?;
    // Under the method cache every write goes to PCM first, whatever its size.
    let fewer = match setting(r, "FUSION_METHOD") {
        Some("cache") => "",
        _ => ", a smaller SSW admits fewer",
    };
    (taken > pcm.bytes && share(left, taken) >= CHURN_MIN).then(|| {
        Evidence::new(format!(
            "PCM too small for this workload: of {} that the host wrote to it, {} ({}) left for NAND and were \
             written a second time. It holds {}. More PCM keeps \
             them longer{fewer}.",
            size::format(taken),
            size::format(left),
            percent(share(left, taken)),
            size::format(pcm.bytes)
        ))
        .with("written_to_pcm", taken as f64, "bytes")
        .with("left_for_nand", left as f64, "bytes")
        .with("pcm_size", pcm.bytes as f64, "bytes")
    })
}

fn cache_misses(r: &Report) -> Option<Evidence> {
    if !r.has(MediumKind::Disk) || setting(r, "mode") == Some("write-around") {
        return None;
    }
    let of = |name: &str| r.counted(name);
    let hits = of("read_hits")? + of("write_hits")?;
    let all = hits + of("read_partial")? + of("read_misses")? + of("write_misses")? + of("direct_writes")?;
    let evicted = of("destaged")? + of("dropped")?;
    let slots = r.layers.iter().flat_map(|l| &l.metrics).find(|m| m.name == "cache_slots")?.value;
    // A cache that was filled less than once misses because it is new.
    (evicted > slots && hits < HIT_SHARE_MAX * all).then(|| {
        Evidence::new(format!(
            "The cache is too small for this workload: it served {} of {} block accesses ({}) and evicted {} \
             blocks; it holds {}.",
            count(hits as u64),
            count(all as u64),
            percent(hits / all),
            count(evicted as u64),
            count(slots as u64)
        ))
        .with("hits", hits, "blocks")
        .with("accesses", all, "blocks")
        .with("evicted", evicted, "blocks")
        .with("cache_slots", slots, "blocks")
    })
}
