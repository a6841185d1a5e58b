//! Recognition of the time unit of a DiskSim ASCII file from its head.
//!
//! Recorders have a resolution of microseconds, 100 ns or ns. So at most three decimals indicate ms,
//! and integers that are multiples of a thousand indicate ns (MQSim's converter). The other cases are
//! decided by the mean gap between requests: in recorded traces it is between some µs and some
//! seconds.

use super::Head;
use crate::options::TimeUnit;
use crate::reading::FactSource;
use crate::text::Cursor;

/// Number of lines of the head that are examined.
const LINES: usize = 8192;

/// One line of the head.
pub(super) struct SampleRow<'a> {
    time: &'a [u8],
    pub(super) dev: u64,
    pub(super) address: u64,
    pub(super) size: u64,
}

/// Returns the first lines that have the columns of the format.
pub(super) fn rows<'a>(head: &Head<'a>) -> Vec<SampleRow<'a>> {
    let row = |line: &'a [u8]| {
        let mut c = Cursor::new(line);
        c.blanks();
        let time = c.word().ok()?;
        c.gap().ok()?;
        let dev = c.u64().ok()?;
        c.gap().ok()?;
        let address = c.u64().ok()?;
        c.gap().ok()?;
        let size = c.u64().ok()?;
        Some(SampleRow { time, dev, address, size })
    };
    head.lines().take(LINES).filter_map(row).collect()
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
