//! Recognition of the units of a DiskSim ASCII file from its head.
//!
//! **Size.** Sequential streams show the unit: a request begins where one of the last few requests
//! on its device ended. That end depends on the unit, so the unit under which more requests
//! continue another one is the right one. If neither unit is clearly ahead, sizes that are all
//! multiples of 8 are assumed to be sectors (as pages, all sizes would be multiples of 32 KiB,
//! which is unlikely). Otherwise sectors are assumed.
//!
//! **Time.** Recorders have a resolution of microseconds, 100 ns or ns. So at most three decimals
//! indicate ms, and integers that are multiples of a thousand indicate ns (MQSim's converter). The
//! other cases are decided by the mean gap between requests: in recorded traces it is between some
//! µs and some seconds.

use super::Head;
use crate::options::{SizeUnit, TimeUnit};
use crate::reading::FactSource;
use crate::text::Cursor;

/// Number of lines of the head that are examined.
const LINES: usize = 8192;
/// Maximum distance, in requests, between a request and the one that it continues. It must be less
/// than 8: in a plain stream of requests of equal size in sectors, the eighth request back, if
/// counted in pages, ends exactly at the current one.
const WINDOW: usize = 7;
/// Number of continuations that count as evidence.
const ENOUGH: u32 = 4;

struct SampleRow<'a> {
    time: &'a [u8],
    dev: u64,
    sector: u64,
    size: u64,
}

fn rows<'a>(head: &Head<'a>) -> Vec<SampleRow<'a>> {
    let row = |line: &'a [u8]| {
        let mut c = Cursor::new(line);
        c.blanks();
        let time = c.word().ok()?;
        c.gap().ok()?;
        let dev = c.u64().ok()?;
        c.gap().ok()?;
        let sector = c.u64().ok()?;
        c.gap().ok()?;
        let size = c.u64().ok()?;
        Some(SampleRow { time, dev, sector, size })
    };
    head.lines().take(LINES).filter_map(row).collect()
}

/// Recognises the size unit.
pub(super) fn size(head: &Head<'_>) -> (SizeUnit, FactSource) {
    let rows = rows(head);
    let (mut sectors, mut pages) = (0u32, 0u32);
    for (i, r) in rows.iter().enumerate() {
        let before = &rows[i.saturating_sub(WINDOW)..i];
        let follows = |unit: u64| {
            before.iter().any(|b| {
                b.dev == r.dev
                    && b.size.checked_mul(unit).and_then(|n| n.checked_add(b.sector)) == Some(r.sector)
            })
        };
        sectors += u32::from(follows(1));
        pages += u32::from(follows(8));
    }
    let n = rows.len();
    let seen = format!("of {n} requests {sectors} continue another in sectors, {pages} in 4 KiB pages");
    if sectors >= ENOUGH && sectors > 2 * pages {
        (SizeUnit::SECTORS, FactSource::Recognised(seen))
    } else if pages >= ENOUGH && pages > 2 * sectors {
        (SizeUnit::PAGES, FactSource::Recognised(seen))
    } else if n > 1 && rows.iter().all(|r| r.size % 8 == 0) {
        (SizeUnit::SECTORS, FactSource::Recognised("every size is a multiple of 8".into()))
    } else {
        (SizeUnit::SECTORS, FactSource::Assumed(format!("undecided: {seen}; see --size-unit")))
    }
}

/// Recognises the time unit.
pub(super) fn time(head: &Head<'_>) -> (TimeUnit, FactSource) {
    let rows = rows(head);
    let decimals = rows.iter().map(|r| decimals(r.time)).max().unwrap_or(0);
    let value = |r: &SampleRow<'_>| std::str::from_utf8(r.time).ok().and_then(|t| t.parse::<f64>().ok());
    let times: Vec<f64> = rows.iter().filter_map(value).filter(|t| t.is_finite()).collect();
    let gap = match (times.first(), times.last()) {
        (Some(a), Some(b)) if b > a => (b - a) / (times.len() - 1) as f64,
        _ => {
            return (
                TimeUnit::Ms,
                FactSource::Assumed("undecided: the head shows no time passing; see --time-unit".into()),
            );
        }
    };
    match decimals {
        0 if times.iter().all(|t| t % 1000.0 == 0.0) => {
            (TimeUnit::Ns, FactSource::Recognised("integers in whole thousands".into()))
        }
        0 => integers(gap),
        1..=3 if gap >= 0.01 => {
            (TimeUnit::Ms, FactSource::Recognised(format!("{decimals} decimals at most: microseconds")))
        }
        _ if gap > 10.0 => {
            (TimeUnit::Ms, FactSource::Recognised(format!("a mean gap of {gap:.0} would be long in seconds")))
        }
        _ if gap < 0.01 => (
            TimeUnit::S,
            FactSource::Recognised(format!("a mean gap of {gap:.4} would be short in milliseconds")),
        ),
        d => (
            TimeUnit::S,
            FactSource::Assumed(format!(
                "{d} decimals, mean gap {gap:.3}: s, less likely ms; see --time-unit"
            )),
        ),
    }
}

/// Recognises the unit of integers: the unit that brings the mean gap closest to a millisecond.
fn integers(gap: f64) -> (TimeUnit, FactSource) {
    let off = |u: TimeUnit| (gap.log10() + f64::from(u.power()) - 6.0).abs();
    let mut units = [TimeUnit::Us, TimeUnit::Ns, TimeUnit::Ms];
    units.sort_by(|a, b| off(*a).total_cmp(&off(*b)));
    let why = format!("integers with a mean gap of {gap:.0}");
    // The unit counts as recognised only if the second best is at least half an order of magnitude
    // worse.
    if off(units[1]) - off(units[0]) > 0.5 {
        (units[0], FactSource::Recognised(why))
    } else {
        (units[0], FactSource::Assumed(format!("undecided: {why}; see --time-unit")))
    }
}

/// Returns the number of decimals of a number, without trailing zeros.
fn decimals(text: &[u8]) -> usize {
    match text.iter().position(|&b| b == b'.') {
        Some(dot) => text[dot + 1..].iter().rposition(|&b| b != b'0').map_or(0, |i| i + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head<'_> {
        Head { bytes: text.as_bytes(), whole: true, judged: 256 }
    }

    #[test]
    fn streams_tell_the_size_unit() {
        let pages: String = (0..20).map(|i| format!("{i}.5 0 {} 2 1\n", i * 16)).collect();
        assert_eq!(size(&head(&pages)).0, SizeUnit::PAGES);
        let sectors: String = (0..20).map(|i| format!("{i}.5 0 {} 3 1\n", i * 3)).collect();
        assert!(matches!(size(&head(&sectors)), (SizeUnit::SECTORS, FactSource::Recognised(_))));
        let random: String = (0..20).map(|i| format!("{i}.5 0 {} 3 1\n", i * 7919)).collect();
        assert!(matches!(size(&head(&random)), (SizeUnit::SECTORS, FactSource::Assumed(_))));
    }

    #[test]
    fn digits_and_gaps_tell_the_time_unit() {
        let at = |f: &dyn Fn(u64) -> String| -> TimeUnit {
            let text: String = (1..20).map(|i| format!("{} 0 8 8 1\n", f(i))).collect();
            time(&head(&text)).0
        };
        assert_eq!(at(&|i| format!("{}000", i * 977)), TimeUnit::Ns);
        assert_eq!(at(&|i| format!("{}", i * 3977)), TimeUnit::Us);
        assert_eq!(at(&|i| format!("{}.221000", i * 3)), TimeUnit::Ms);
        assert_eq!(at(&|i| format!("{}.026214", i / 3)), TimeUnit::S);
        assert_eq!(at(&|i| format!("{}.026214", i * 300)), TimeUnit::Ms);
        assert!(matches!(time(&head("5 0 8 8 1\n")), (TimeUnit::Ms, FactSource::Assumed(_))));
    }
}
