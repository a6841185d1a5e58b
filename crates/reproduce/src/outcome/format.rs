//! Formatting of numbers and names.

use frit_trace::identity::WorkloadKind;

/// Formats an integer with thousands separators.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Returns the name of a workload; generated ones are marked.
pub(crate) fn generated(workload: &str, kind: WorkloadKind) -> String {
    format!("{workload}{}", if kind == WorkloadKind::Generated { " (GENERATED)" } else { "" })
}

/// Formats a ratio as a change in percent, with its sign.
pub(crate) fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0).replace('-', "−")
}

/// Formats a time in the most readable unit.
pub(crate) fn seconds(s: f64) -> String {
    let (value, unit) = match s {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        _ => (s * 1e9, "ns"),
    };
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1.0, 0.55, 1.2].map(change), ["+0.0 %", "−45.0 %", "+20.0 %"]);
    }

    #[test]
    fn times_have_their_unit() {
        assert_eq!([0.1, 0.0125, 2.5e-6, 3.0].map(seconds), ["100 ms", "12.5 ms", "2.5 µs", "3 s"]);
    }
}
