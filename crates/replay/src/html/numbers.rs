//! Formatting of numbers on the page.

use std::fmt::Write;

/// Formats a coordinate with at most one decimal, as short as possible.
pub(super) fn px(v: f64) -> String {
    let mut out = String::new();
    put(&mut out, v);
    out
}

/// Appends a coordinate.
pub(super) fn put(out: &mut String, v: f64) {
    let tenths = (v * 10.0).round() as i64;
    let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
    // Writing to a String cannot fail.
    let _ = match tenths % 10 {
        0 => write!(out, "{sign}{}", tenths / 10),
        rest => write!(out, "{sign}{}.{rest}", tenths / 10),
    };
}

/// Formats a number at a tick of an axis, without trailing zeros.
pub(super) fn tick(v: f64) -> String {
    let text = match v.abs() {
        0.0 => return "0".into(),
        a if a >= 1e9 => return format!("{}G", tick(v / 1e9)),
        a if a >= 1e6 => return format!("{}M", tick(v / 1e6)),
        a if a >= 1e4 => return format!("{}k", tick(v / 1e3)),
        a if a >= 1.0 => format!("{v:.2}"),
        a if a >= 1e-4 => format!("{v:.5}"),
        _ => return format!("{v:.0e}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a duration at a tick of an axis.
pub(super) fn tick_time(ns: f64) -> String {
    match ns {
        0.0 => "0".into(),
        n if n < 1e3 => format!("{} ns", tick(n)),
        n if n < 1e6 => format!("{} µs", tick(n / 1e3)),
        n if n < 1e9 => format!("{} ms", tick(n / 1e6)),
        n => format!("{} s", tick(n / 1e9)),
    }
}

/// Formats a share at a tick of an axis.
pub(super) fn tick_percent(share: f64) -> String {
    format!("{} %", tick(share * 100.0))
}

/// Returns the smallest of 1, 2 or 5 times a power of ten that is not below `v`; 1 if `v` is not
/// above zero.
pub(super) fn ceiling(v: f64) -> f64 {
    if !(v > 0.0 && v.is_finite()) {
        return 1.0;
    }
    let decade = 10f64.powf(v.log10().floor());
    // The tolerance covers values that rounding has raised slightly above a step.
    [1.0, 2.0, 5.0].into_iter().map(|s| s * decade).find(|&c| c >= v * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 1.0, 1.25, -0.04, -3.46, 1080.0].map(px), ["0", "1", "1.3", "0", "-3.5", "1080"]);
        assert_eq!(
            [0.0, 0.5, 2.0, 2.5, 1500.0, 20_000.0, 3e6, 2e9].map(tick),
            ["0", "0.5", "2", "2.5", "1500", "20k", "3M", "2G"]
        );
        assert_eq!([0.0, 500.0, 2e3, 1.5e6, 1e9].map(tick_time), ["0", "500 ns", "2 µs", "1.5 ms", "1 s"]);
        assert_eq!([0.0, 0.5, 1.0, 0.001].map(tick_percent), ["0 %", "50 %", "100 %", "0.1 %"]);
    }

    #[test]
    fn ceilings_are_one_two_five() {
        assert_eq!(
            [0.0, -1.0, f64::NAN, 1.0, 1.1, 3.0, 7.0, 0.3].map(ceiling),
            [1.0, 1.0, 1.0, 1.0, 2.0, 5.0, 10.0, 0.5]
        );
        assert_eq!(ceiling(1000.0), 1000.0);
    }
}
