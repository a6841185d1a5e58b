//! Formatting of numbers and tables.

use comfy_table::{CellAlignment, Table, presets};
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
pub(super) fn generated(workload: &str, kind: WorkloadKind) -> String {
    format!("{workload}{}", if kind == WorkloadKind::Generated { " (GENERATED)" } else { "" })
}

/// Formats a share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a ratio as a change in percent, with its sign.
pub(super) fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0).replace('-', "−")
}

/// Returns a Markdown table whose first `names` columns are names and the others numbers. It is
/// readable as it is, and documents can include it.
pub(super) fn table(head: &[String], names: usize, rows: &[Vec<String>]) -> String {
    let mut t = Table::new();
    t.load_preset(presets::ASCII_MARKDOWN).set_header(head);
    for row in rows {
        t.add_row(row);
    }
    for i in names..head.len() {
        if let Some(c) = t.column_mut(i) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    t.lines().map(|l| l.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1.0, 0.55, 1.2].map(change), ["+0.0 %", "−45.0 %", "+20.0 %"]);
    }
}
