//! Rules about wear.

use super::{Evidence, FindingKind, Rule, kind_name};
use crate::report::MediumReport;
use crate::report::show::{count, figure};
use frit_core::{MediumKind, size};

/// Smallest ratio of the maximum to the mean of erases of NAND blocks. Leveling keeps it below 2.
const NAND_RATIO_MIN: f64 = 3.0;
/// Smallest maximum of erases: fewer differ by chance, and before wear leveling begins to move blocks.
const NAND_CYCLES_MIN: u32 = 100;
/// Smallest ratio of the maximum to the mean of writes of PCM lines.
const PCM_RATIO_MIN: f64 = 10.0;
/// Smallest maximum of writes of a PCM line.
const PCM_CYCLES_MIN: u32 = 100;

pub(super) const UNEVEN: Rule = Rule {
    name: "uneven-wear",
    kind: FindingKind::Explanation,
    condition: || {
        format!(
            "the most worn NAND block has at least {NAND_CYCLES_MIN} erases and {NAND_RATIO_MIN} times the mean; \
             or the most worn PCM line at least {PCM_CYCLES_MIN} writes and {PCM_RATIO_MIN} times the mean"
        )
    },
    reason: "The medium wears out when its most worn part does; the place shows which area it is.",
    find: |r| {
        let uneven = |m: &&MediumReport| {
            let w = &m.wear.run;
            let ratio = f64::from(w.max) / w.mean;
            match m.kind {
                MediumKind::Nand => w.max >= NAND_CYCLES_MIN && ratio >= NAND_RATIO_MIN,
                _ => w.max >= PCM_CYCLES_MIN && ratio >= PCM_RATIO_MIN,
            }
        };
        let m = r.media.iter().filter(|m| m.wears() && m.wear.run.mean > 0.0).find(uneven)?;
        let w = &m.wear.run;
        let ratio = f64::from(w.max) / w.mean;
        let cells = m.wear.map.max.len().max(1) as u64;
        let cell = m.wear.map.max.iter().position(|&c| c == w.max)? as u64;
        let from = m.bytes * cell / cells;
        let area = m.wear.areas.iter().find(|a| a.max == w.max);
        let area = area.map(|a| format!(", in the area {} (mean {})", a.name, figure(a.mean)));
        Some(
            Evidence::new(format!(
                "Wear of {} is uneven: the most worn {} has {} cycles, {} times the mean of {}; it lies near byte {} \
                 of {}{}. The medium lasts 1/{} of the time that its mean suggests.",
                kind_name(m.kind),
                m.wear.per,
                count(u64::from(w.max)),
                figure(ratio),
                figure(w.mean),
                count(from),
                size::format(m.bytes),
                area.unwrap_or_default(),
                figure(ratio)
            ))
            .with("cycles_max", f64::from(w.max), "")
            .with("cycles_mean", w.mean, "")
            .with("place", from as f64, "bytes"),
        )
    },
};
