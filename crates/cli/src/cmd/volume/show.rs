//! Text of sizes, recoveries and dates of volumes.

use frit_core::{Recovery, size};
use frit_volume::OpenReport;
use std::fmt::Write;

/// Returns a size in units and in bytes.
pub(crate) fn sizes(bytes: u64) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { format!("{} ({bytes} bytes)", size::format(bytes)) }
}

/// Least amount of data in durable memory, in bytes, for which the time for a GB is shown.
const RATE_BYTES_MIN: u64 = 100_000_000;

/// Maximum number of lost pages that are listed.
const LOST_SHOWN: usize = 20;

/// Returns the time of an open for a GB of data in durable memory, if there is enough of it: the
/// fixed costs of an open determine the time of less data.
pub(crate) fn seconds_per_gb(seconds: f64, bytes: u64) -> Option<f64> {
    (bytes >= RATE_BYTES_MIN).then(|| seconds / (bytes as f64 / 1e9))
}

/// Returns the result of a recovery as text.
pub(crate) fn recovery(r: &OpenReport, page_bytes: u32) -> String {
    let f = &r.recovery;
    let mut out = String::new();
    if f.clean {
        let _ = writeln!(out, "The volume had been closed properly: no recovery was needed.");
    } else {
        let what = if r.power_loss {
            "The machine crashed or lost power"
        } else {
            "The program crashed or was killed"
        };
        let _ = writeln!(out, "{what} while the volume was open.");
        if f.from_flush {
            let _ = writeln!(out, "The map as of the last flush was used; later writes are lost.");
        }
    }
    figures(&mut out, f);
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<16} {value}");
    };
    let mut took = format!("{:.3} s, {:.3} s for a GB of volume", r.seconds, r.seconds_per_gb);
    if let Some(rate) = seconds_per_gb(r.seconds, f.pages_in_pcm * u64::from(page_bytes)) {
        let _ = write!(took, ", {rate:.3} s for a GB in durable memory");
    }
    row("took", took);
    losses(&mut out, f, Some(page_bytes));
    for below in &f.below {
        let _ = writeln!(out, "Layer '{}':", below.layer);
        figures(&mut out, &below.recovery);
        losses(&mut out, &below.recovery, None);
    }
    out
}

/// Adds what a layer recovered.
fn figures(out: &mut String, f: &Recovery) {
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<16} {value}");
    };
    row("pages", format!("{} mapped, {} of them in durable memory", f.pages, f.pages_in_pcm));
    // The last two concern NAND; a cache in front of a disk has none.
    if !f.clean {
        row("redone", format!("{} entries of an interrupted commit", f.redone));
    }
    if f.padded > 0 {
        row("padded", format!("{} pages whose program operation may have been interrupted", f.padded));
    }
    if f.suspect_blocks > 0 {
        let from = if f.clean { ", left by an earlier crash" } else { "" };
        row("suspect blocks", format!("{}{from}, erased again before use", f.suspect_blocks));
    }
    row("lost", lost(f));
    row("read", size::format(f.bytes_read));
}

/// Adds the lost pages of a layer, with their addresses in the volume if the layer serves it.
fn losses(out: &mut String, f: &Recovery, page_bytes: Option<u32>) {
    for l in f.lost.iter().take(LOST_SHOWN) {
        let _ = match page_bytes {
            Some(bytes) => {
                let at = u64::from(l.lpn) * u64::from(bytes);
                writeln!(out, "  lost: {bytes} bytes at {at} (page {}): {}", l.lpn, l.why)
            }
            None => writeln!(out, "  lost: page {}: {}", l.lpn, l.why),
        };
    }
    if f.lost.len() > LOST_SHOWN {
        let _ = writeln!(out, "  ... and {} more; --json lists all", f.lost.len() - LOST_SHOWN);
    }
    for what in &f.unnamed {
        let _ = writeln!(out, "  lost: {what}");
    }
}

/// Returns the extent of the losses as text.
fn lost(f: &Recovery) -> String {
    match (f.lost.len(), f.unnamed.is_empty()) {
        (0, true) => "nothing".into(),
        (0, false) => "pages with unknown addresses".into(),
        (n, true) => format!("{n} pages"),
        (n, false) => format!("{n} pages, and pages with unknown addresses"),
    }
}

/// Returns seconds since 1970 as date and time in UTC.
pub(crate) fn when(unix: u64) -> String {
    let (days, second) = ((unix / 86_400) as i64, unix % 86_400);
    // Civil date from days (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * m + 2) / 5 + 1;
    let month = if m < 10 { m + 3 } else { m - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (h, min, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {h:02}:{min:02}:{s:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::when;

    #[test]
    fn dates_are_civil() {
        assert_eq!(when(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(when(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(when(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(when(1_795_238_589), "2026-11-21 05:23:09 UTC");
    }
}
