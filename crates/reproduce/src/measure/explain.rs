//! Why a row differs: sentences whose condition and numbers both come from the workload and the runs.

use crate::sweep::{Facts, Figures, share};
use frit_core::size;
use std::rc::Rc;

/// The runs of a row that explanations look at.
pub(super) struct Runs<'a> {
    /// The baseline.
    pub(super) first: &'a Figures,
    /// With the largest threshold.
    pub(super) last: &'a Figures,
    /// The same with more PCM, where there is such a run.
    pub(super) more: Option<Rc<Figures>>,
}

/// Below this share something is no reason.
const MATTERS: f64 = 0.05;

pub(super) fn explain(metric: &str, threshold: u64, f: &Facts, hints: bool, runs: &Runs<'_>) -> Vec<String> {
    let small = f.up_to(threshold);
    let mut out = Vec::new();
    let marked = if hints { f.all().metadata } else { 0 };
    if f.all().writes == 0 {
        return vec!["the workload writes nothing".into()];
    }
    if small.writes == 0 && marked == 0 {
        out.push(format!(
            "no write is of at most {threshold} B (the smallest is of {} B), so that the threshold sends nothing to PCM",
            f.smallest().unwrap_or(0)
        ));
        return out;
    }
    match metric {
        "layer.flash_updates" => updates(threshold, f, runs, &mut out),
        "commands.nand-program" | "commands.nand-erase" => programs(metric, threshold, f, marked, runs, &mut out),
        "commands.nand-read" => reads(f, runs, &mut out),
        _ => {}
    }
    if out.is_empty() {
        out.push(format!(
            "{} of writes are of at most {threshold} B{}; PCM took {} writes",
            percent(f.share_up_to(threshold)),
            if marked > 0 { format!(", {} are marked as metadata", percent(share(marked, f.all().writes))) } else { String::new() },
            whole(runs.last.get("commands.pcm-write"))
        ));
    }
    out
}

fn updates(threshold: u64, f: &Facts, runs: &Runs<'_>, out: &mut Vec<String>) {
    let (all, small) = (f.all(), f.up_to(threshold));
    if runs.first.get("layer.flash_updates") == 0.0 {
        out.push(format!(
            "there is nothing to fall: {} of page writes cover their whole page of {}",
            percent(1.0 - share(all.partial, all.parts)),
            size::show(f.page_bytes)
        ));
        return;
    }
    let large = share(all.partial - small.partial, all.partial);
    if large > MATTERS {
        out.push(format!(
            "{} of the partial page writes are ends of requests above {threshold} B, which stay in NAND at any SSW",
            percent(large)
        ));
    }
    moved(runs, out);
    destaged(f, runs, "layer.flash_updates", out);
}

fn programs(metric: &str, threshold: u64, f: &Facts, marked: u64, runs: &Runs<'_>, out: &mut Vec<String>) {
    let (all, small) = (f.all(), f.up_to(threshold));
    let host = share(small.parts, all.parts);
    out.push(format!(
        "writes of at most {threshold} B are {} of writes and make {} of page writes: no threshold can keep more than those from NAND{}",
        percent(f.share_up_to(threshold)),
        percent(host),
        if marked > 0 { format!(", and the {} writes marked as metadata", whole(marked as f64)) } else { String::new() }
    ));
    destaged(f, runs, metric, out);
    let cleaning = |r: &Figures| {
        let all = r.get("commands.nand-program");
        if all > 0.0 { r.get("commands.nand-program.gc") / all } else { 0.0 }
    };
    let (before, after) = (cleaning(runs.first), cleaning(runs.last));
    if (before - after).abs() > MATTERS {
        out.push(format!(
            "cleaning makes {} of programs without PCM and {} with it",
            percent(before),
            percent(after)
        ));
    }
}

fn reads(f: &Facts, runs: &Runs<'_>, out: &mut Vec<String>) {
    let of = |r: &Figures, cause: &str| r.get(&format!("commands.nand-read.{cause}"));
    let all = runs.first.get("commands.nand-read");
    if all == 0.0 {
        out.push(format!(
            "there is nothing to fall: {} of page reads are of pages that were never written",
            percent(share(f.read_unwritten, f.read_parts))
        ));
        return;
    }
    let parts: Vec<String> = [("host", "the host's reads"), ("merge", "merging"), ("gc", "cleaning")]
        .iter()
        .filter(|(cause, _)| of(runs.first, cause) + of(runs.last, cause) > 0.0)
        .map(|(cause, name)| format!("{name} {} → {}", whole(of(runs.first, cause)), whole(of(runs.last, cause))))
        .collect();
    out.push(format!("of flash reads without PCM {} are the host's: {}", percent(of(runs.first, "host") / all), parts.join(", ")));
    if f.read_unwritten * 20 > f.read_parts {
        out.push(format!(
            "{} of page reads are of pages that the trace had not written before",
            percent(share(f.read_unwritten, f.read_parts))
        ));
    }
    destaged(f, runs, "commands.nand-read", out);
}

/// Pages that small writes met in NAND.
fn moved(runs: &Runs<'_>, out: &mut Vec<String>) {
    let (moved, left) = (runs.last.get("layer.moved_to_pcm"), runs.last.get("layer.flash_updates"));
    if left > 0.0 && moved / left > MATTERS {
        out.push(format!(
            "{} small writes met their page in NAND and moved it to PCM, which is an update too",
            whole(moved)
        ));
    }
}

/// PCM that is too small for what goes there.
fn destaged(f: &Facts, runs: &Runs<'_>, metric: &str, out: &mut Vec<String>) {
    let (gone, came) = (runs.last.get("layer.destaged"), runs.last.get("commands.pcm-write"));
    if gone == 0.0 || came == 0.0 {
        return;
    }
    let mut text = format!(
        "PCM of {} (map included) is too small for the {} pages that writes of at most a page touch: {} pages were written back to NAND to make room",
        size::show(runs.last.get("bytes.pcm") as u64),
        whole(f.small_pages as f64),
        whole(gone)
    );
    if let Some(more) = &runs.more {
        let base = runs.first.get(metric);
        if base > 0.0 {
            text += &format!(
                "; with {} it is {:.3} instead of {:.3}, and {} pages are written back",
                size::show(more.get("bytes.pcm") as u64),
                more.get(metric) / base,
                runs.last.get(metric) / base,
                whole(more.get("layer.destaged"))
            );
        }
    }
    out.push(text);
}

fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p > 0.0 && p < 0.05 { format!("{p:.3} %") } else { format!("{p:.1} %") }
}

fn whole(v: f64) -> String {
    crate::outcome::count(v as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_trace::{Options, Workload};

    fn facts(csv: &'static str) -> Facts {
        let mut w = Workload::from_reader("t", Box::new(csv.as_bytes()), &Options::default()).unwrap();
        Facts::of(&mut w, 2048, 65_536).unwrap()
    }

    #[test]
    fn what_is_said_holds_for_the_workload() {
        let empty = Figures::default();
        let runs = Runs { first: &empty, last: &empty, more: None };
        let large = facts("time_us,op,sector,sectors,flags\n0,W,0,8,M\n");
        let said = explain("commands.nand-program", 2048, &large, false, &runs);
        assert!(said.len() == 1 && said[0].contains("the smallest is of 4096 B"), "{said:?}");
        // With hints the mark sends it to PCM, and that sentence would be wrong.
        let said = explain("commands.nand-program", 2048, &large, true, &runs);
        assert!(!said[0].contains("sends nothing"), "{said:?}");
        let mixed = facts("time_us,op,sector,sectors,flags\n0,W,0,4,\n1,W,8,12,\n");
        let said = explain("commands.nand-program", 2048, &mixed, false, &runs);
        assert!(said[0].contains("50.0 % of writes") && said[0].contains("25.0 % of page writes"), "{said:?}");
        let said = explain("layer.flash_updates", 2048, &mixed, false, &runs);
        assert!(said[0].contains("100.0 % of page writes cover their whole page"), "{said:?}");
    }
}
