//! Results of comparisons as text.

use super::comparison::{BreakEven, CheckVerdict, ComparedTable, ComparisonOutcome, Crossing};
use super::format::{change, count, generated, table};
use frit_core::size;
use std::fmt::Write as _;

/// Returns verdicts and all tables.
pub(super) fn comparison(o: &ComparisonOutcome) -> String {
    let mut out = String::new();
    if !o.checks.is_empty() {
        out += &checks(&o.checks);
        out.push('\n');
    }
    for t in &o.tables {
        let _ = writeln!(out, "**{}**\n", t.about);
        out += &compared(t);
        out.push('\n');
    }
    for c in &o.crossings {
        out += &crossing(c);
    }
    out
}

fn checks(all: &[CheckVerdict]) -> String {
    let head = ["claim", "workload", "variant", "metric", "published", "measured", "rule", "verdict"];
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|c| {
            let measured = match (c.value, c.published) {
                (Some(v), Some(p)) if p != 0.0 => format!("{} ({})", plain(v), change(v / p)),
                (Some(v), _) => plain(v),
                (None, _) => "–".into(),
            };
            let verdict = match c.holds {
                Some(true) => "agrees",
                Some(false) => "DIFFERS",
                None => "nothing to count",
            };
            vec![
                c.claim.clone(),
                generated(&c.workload, c.kind),
                c.variant.clone(),
                c.what.clone(),
                c.published.map_or_else(|| "–".into(), plain),
                measured,
                c.rule.clone(),
                verdict.into(),
            ]
        })
        .collect();
    table(&head.map(String::from), 4, &rows)
}

/// Formats an integer with thousands separators, or another number with three decimals.
fn plain(v: f64) -> String {
    if v.fract() == 0.0 && v >= 0.0 { count(v as u64) } else { format!("{v:.3}") }
}

fn compared(t: &ComparedTable) -> String {
    if t.rows.is_empty() {
        return "No workload is available.\n".into();
    }
    let variants = t.rows.iter().any(|r| r.variant.is_some());
    let views = t.rows.iter().any(|r| r.view != t.rows[0].view);
    let mut head = vec!["workload".to_owned(), "stands for".to_owned()];
    head.extend(views.then(|| "view".to_owned()));
    head.extend(variants.then(|| "variant".to_owned()));
    let names = head.len();
    head.extend(t.columns.iter().map(|c| c.0.clone()));
    let mut rows = Vec::new();
    for r in &t.rows {
        let stands = r.stands_for.clone().unwrap_or_else(|| "–".into());
        let mut row = vec![generated(&r.workload, r.kind), stands];
        row.extend(views.then(|| r.view.clone()));
        row.extend(r.variant.clone());
        row.extend(r.values.iter().zip(&t.columns).map(|(v, c)| number(*v, c.1)));
        rows.push(row);
    }
    table(&head, names, &rows)
}

fn number(value: Option<f64>, digits: usize) -> String {
    match value {
        None => "–".into(),
        Some(v) if digits == 0 && v >= 0.0 => count(v.round() as u64),
        Some(v) => format!("{v:.digits$}"),
    }
}

fn crossing(c: &Crossing) -> String {
    let mut out = format!("**{}**\n\n", c.about);
    if c.lines.is_empty() {
        return out + "No workload is available.\n\n";
    }
    let _ =
        writeln!(out, "{} at which the variant costs as much as {}, for each {}:\n", c.price, c.base, c.axis);
    out += &grid(c, |p| match p.even {
        BreakEven::At(price) => seconds(price),
        BreakEven::Never => "never".into(),
        BreakEven::Always => "any".into(),
    });
    for (name, prices) in &c.marks {
        let prices: Vec<String> = prices.iter().map(|p| seconds(*p)).collect();
        let _ = writeln!(out, "\nFor comparison, {name}: {}.", prices.join(", "));
    }
    let _ = writeln!(out, "\nCost relative to {} at a price of zero:\n", c.base);
    out += &grid(c, |p| format!("{:.3}", p.free));
    for (i, price) in c.prices.iter().enumerate() {
        let _ = writeln!(out, "\nCost relative to {} at a price of {}:\n", c.base, seconds(*price));
        out += &grid(c, |p| p.ratios.get(i).map_or("–".into(), |r| format!("{r:.3}")));
    }
    out.push('\n');
    out
}

fn grid(c: &Crossing, cell: impl Fn(&super::CrossingPoint) -> String) -> String {
    let mut head = vec!["workload".to_owned(), "variant".to_owned()];
    head.extend(c.values.iter().map(|v| size::format(*v)));
    let row = |l: &super::CrossingLine| {
        let mut row = vec![generated(&l.workload, l.kind), l.variant.clone()];
        row.extend(l.points.iter().map(&cell));
        row
    };
    table(&head, 2, &c.lines.iter().map(row).collect::<Vec<_>>())
}

/// Formats a time in the most readable unit.
pub(super) fn seconds(s: f64) -> String {
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

/// Returns the assumptions of the comparisons, each once.
pub(super) fn readings<'a>(all: impl Iterator<Item = &'a ComparisonOutcome>) -> String {
    let (mut out, mut told) = (String::new(), Vec::new());
    for o in all {
        if told.contains(&&o.of) {
            continue;
        }
        told.push(&o.of);
        let _ = writeln!(out, "## Assumptions of the comparison `{}`\n", o.of);
        for r in &o.readings {
            let _ = writeln!(out, "- {r}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_unit() {
        assert_eq!([0.1, 0.0125, 2.5e-6, 3.0].map(seconds), ["100 ms", "12.5 ms", "2.5 µs", "3 s"]);
    }

    #[test]
    fn numbers_show_what_is_missing() {
        assert_eq!(number(None, 2), "–");
        assert_eq!((number(Some(70156.0), 0), number(Some(1.0153), 4)), ("70,156".into(), "1.0153".into()));
        assert_eq!((plain(67595.0), plain(1.5301)), ("67,595".into(), "1.530".into()));
    }
}
