//! Explanations of differing rows. Condition and numbers of each sentence come from the workload
//! and the runs.

use crate::outcome::count;
use crate::sweep::{RunMetrics, WorkloadStats, share};
use frit_core::size;

/// The runs of a row that explanations use.
pub(super) struct RowRuns<'a> {
    /// The baseline.
    pub(super) first: &'a RunMetrics,
    /// Run with the largest threshold.
    pub(super) last: &'a RunMetrics,
    /// The runs that the claim is about, in its order.
    pub(super) over: Vec<&'a RunMetrics>,
    /// Run like `last` with more PCM, if there is one.
    pub(super) more: Option<&'a RunMetrics>,
}

/// Subject of the explanations.
struct RowContext<'a> {
    metric: &'a str,
    threshold: u64,
    facts: &'a WorkloadStats,
    /// Number of pages that are sent to PCM at least once.
    pcm_pages: u64,
    runs: &'a RowRuns<'a>,
}

/// Minimum share that counts as a reason.
const MIN_SHARE: f64 = 0.05;

pub(super) fn explain(
    metric: &str,
    threshold: u64,
    facts: &WorkloadStats,
    hints: bool,
    runs: &RowRuns<'_>,
) -> Vec<String> {
    let (all, small) = (facts.all(), facts.up_to(threshold));
    let (marked, pcm_pages) = match hints {
        true => (all.metadata, facts.small_or_marked_pages),
        false => (0, facts.small_pages),
    };
    let row = RowContext { metric, threshold, facts, pcm_pages, runs };
    if all.writes == 0 {
        return vec!["the workload has no writes".into()];
    }
    let mut out = Vec::new();
    if small.writes == 0 {
        let smallest = facts.smallest().unwrap_or(0);
        let none = format!("no write has {threshold} B or less (the smallest has {smallest} B)");
        if marked == 0 {
            return vec![format!("{none}, so no write goes to PCM at any SSW")];
        }
        out.push(format!(
            "{none}: only the {} writes marked as metadata ({} of the writes) go to PCM, at any SSW",
            count(marked),
            percent(share(marked, all.writes))
        ));
    }
    match metric {
        "layer.flash_updates" => row.updates(&mut out),
        "commands.nand-program" | "commands.nand-erase" => row.programs(&mut out),
        "commands.nand-read" => row.reads(&mut out),
        "commands.pcm-read" | "commands.pcm-write" => row.pcm(&mut out),
        _ => {}
    }
    out
}

impl RowContext<'_> {
    fn updates(&self, out: &mut Vec<String>) {
        let (f, runs) = (self.facts, self.runs);
        let (all, small) = (f.all(), f.up_to(self.threshold));
        if runs.first.get(self.metric) == 0.0 {
            out.push(format!(
                "there are no updates without PCM: {} of the page writes cover their whole page of {}",
                percent(1.0 - share(all.partial, all.parts)),
                size::format(f.page_bytes)
            ));
            return;
        }
        let large = share(all.partial - small.partial, all.partial);
        if large > MIN_SHARE {
            out.push(format!(
                "{} of the partial page writes belong to requests above {} B, which stay in NAND at any SSW",
                percent(large),
                self.threshold
            ));
        }
        let (moved, left) = (runs.last.get("layer.moved_to_pcm"), runs.last.get(self.metric));
        if left > 0.0 && moved / left > MIN_SHARE {
            out.push(format!(
                "{} small writes moved their page from NAND to PCM, which is also an update if the write covers a part of the page",
                whole(moved)
            ));
        }
        self.room(out);
    }

    fn programs(&self, out: &mut Vec<String>) {
        let (f, runs) = (self.facts, self.runs);
        let (all, small) = (f.all(), f.up_to(self.threshold));
        if runs.first.get(self.metric) == 0.0 {
            out.push("the count is already zero without PCM".into());
            return;
        }
        if small.writes > 0 {
            out.push(format!(
                "writes of {} B or less are {} of the writes, but {} of the page writes, and only these can go to PCM by their size",
                self.threshold,
                percent(f.share_up_to(self.threshold)),
                percent(share(small.parts, all.parts))
            ));
        }
        let by_host = runs.last.get("commands.nand-program.host")
            / runs.first.get("commands.nand-program.host").max(1.0);
        out.push(format!("programs for the host are {by_host:.3} times those without PCM"));
        let cleaning =
            |r: &RunMetrics| r.get("commands.nand-program.gc") / r.get("commands.nand-program").max(1.0);
        let (before, after) = (cleaning(runs.first), cleaning(runs.last));
        if before.max(after) > MIN_SHARE {
            out.push(format!(
                "garbage collection causes {} of all programs without PCM and {} with PCM",
                percent(before),
                percent(after)
            ));
        }
        self.room(out);
    }

    fn reads(&self, out: &mut Vec<String>) {
        let (f, runs) = (self.facts, self.runs);
        let of = |r: &RunMetrics, cause: &str| r.get(&format!("commands.nand-read.{cause}"));
        let all = runs.first.get(self.metric);
        let unwritten = share(f.read_unwritten, f.read_parts);
        if all == 0.0 {
            out.push("the count is already zero without PCM".into());
        } else {
            let parts: Vec<String> = [("host", "host"), ("merge", "merge"), ("gc", "garbage collection")]
                .iter()
                .filter(|(cause, _)| of(runs.first, cause) + of(runs.last, cause) > 0.0)
                .map(|(cause, name)| {
                    let (before, after) = (of(runs.first, cause), of(runs.last, cause));
                    format!("{name} {} → {}", whole(before), whole(after))
                })
                .collect();
            out.push(format!("by cause, without PCM → with PCM: {}", parts.join(", ")));
        }
        if unwritten > MIN_SHARE {
            out.push(format!(
                "{} of the page reads access pages that the trace had not written before",
                percent(unwritten)
            ));
        }
        self.room(out);
    }

    fn pcm(&self, out: &mut Vec<String>) {
        let series = |name: &str| {
            let values: Vec<String> = self.runs.over.iter().map(|r| whole(r.get(name))).collect();
            values.join(" → ")
        };
        let mut parts = Vec::new();
        for (cause, name) in [
            ("host", "host"),
            ("merge", "merge with larger writes"),
            ("migrate", "migration of pages to PCM"),
            ("destage", "destage of pages to NAND"),
        ] {
            let key = format!("{}.{cause}", self.metric);
            if self.runs.over.iter().any(|r| r.get(&key) > 0.0) {
                parts.push(format!("{name} {}", series(&key)));
            }
        }
        if !parts.is_empty() {
            out.push(format!("by cause: {}", parts.join(", ")));
        }
        let back = self.runs.over.iter().any(|r| r.get("layer.moved_to_nand") > 0.0);
        if back {
            out.push(format!("larger writes moved {} pages back to NAND", series("layer.moved_to_nand")));
        }
    }

    /// Explains a PCM that is too small for the pages sent there.
    fn room(&self, out: &mut Vec<String>) {
        let (last, base) = (self.runs.last, self.runs.first.get(self.metric));
        let gone = last.get("layer.destaged");
        if gone == 0.0 || gone < self.pcm_pages as f64 * MIN_SHARE {
            return;
        }
        let mut text = format!(
            "PCM of {} (including the map) is too small for the {} pages that are sent to it: pages were written back to NAND {} times to free space",
            size::format(last.get("bytes.pcm") as u64),
            count(self.pcm_pages),
            whole(gone)
        );
        if let Some(more) = self.runs.more.filter(|_| base > 0.0) {
            text += &format!(
                "; a PCM of {} gives {:.3} instead of {:.3}, with {} write-backs",
                size::format(more.get("bytes.pcm") as u64),
                more.get(self.metric) / base,
                last.get(self.metric) / base,
                whole(more.get("layer.destaged"))
            );
        }
        out.push(text);
    }
}

fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p > 0.0 && p < 0.05 { format!("{p:.3} %") } else { format!("{p:.1} %") }
}

fn whole(v: f64) -> String {
    count(v as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_trace::{Options, Workload};

    fn facts(csv: &'static str) -> WorkloadStats {
        let mut w = Workload::from_reader("t", Box::new(csv.as_bytes()), &Options::default()).unwrap();
        WorkloadStats::of(&mut w, 2048, 65_536).unwrap()
    }

    #[test]
    fn what_is_said_holds_for_the_workload() {
        let empty = RunMetrics::default();
        let runs = RowRuns { first: &empty, last: &empty, over: Vec::new(), more: None };
        let large = facts("time_us,op,sector,sectors,flags\n0,W,0,8,M\n");
        let said = explain("commands.nand-program", 2048, &large, false, &runs);
        assert!(said.len() == 1 && said[0].contains("the smallest has 4096 B"), "{said:?}");
        // With hints, marked writes go to PCM, and that sentence would be wrong.
        let said = explain("commands.nand-program", 2048, &large, true, &runs);
        assert!(
            said[0].contains("only the 1 writes marked") && !said[0].contains("no write goes"),
            "{said:?}"
        );
        let mixed = facts("time_us,op,sector,sectors,flags\n0,W,0,4,\n1,W,8,12,\n");
        let said = explain("layer.flash_updates", 2048, &mixed, false, &runs);
        assert!(said[0].contains("100.0 % of the page writes cover their whole page"), "{said:?}");
        assert!(
            explain("commands.nand-read", 2048, &mixed, false, &runs)[0].contains("already zero without PCM")
        );
    }
}
