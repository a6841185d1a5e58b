//! Formatting of numbers and tables for text output.

use comfy_table::{CellAlignment, Table, presets};

/// Formats a whole number with commas: 459,800.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats a number with about three significant digits.
pub(crate) fn figure(v: f64) -> String {
    match v.abs() {
        a if a >= 1000.0 => count(v.round() as u64),
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    }
}

/// Formats a duration in nanoseconds with a suitable unit.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{} µs", figure(n / 1e3)),
        n if n < 1e9 => format!("{} ms", figure(n / 1e6)),
        n => format!("{} s", figure(n / 1e9)),
    }
}

/// Formats a share in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a ratio, or a dash if there is none.
pub(crate) fn ratio_or_dash(v: Option<f64>) -> String {
    v.map_or_else(|| "–".into(), |v| format!("{v:.3}"))
}

/// Creates an empty table with a header. The first `names` columns are names, the others numbers.
pub(crate) fn table(head: &[&str], names: usize) -> Table {
    let mut t = Table::new();
    t.load_preset(presets::NOTHING).set_header(head);
    for i in names..head.len() {
        if let Some(c) = t.column_mut(i) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    t
}

/// Formats a table as text, without blanks at the ends of lines.
pub(crate) fn lines(t: &Table) -> String {
    t.lines().map(|l| l.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 12, 999, 1000, 459_800, 1_234_567].map(count),
            ["0", "12", "999", "1,000", "459,800", "1,234,567"]
        );
        assert_eq!([0.126, 12.345, 456.7, 12_345.6].map(figure), ["0.13", "12.3", "457", "12,346"]);
        assert_eq!([75.0, 75_500.0, 1_500_000.0, 2e9].map(time), ["75 ns", "75.5 µs", "1.50 ms", "2.00 s"]);
        assert_eq!(ratio_or_dash(None), "–");
    }
}
