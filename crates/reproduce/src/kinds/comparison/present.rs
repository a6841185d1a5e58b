//! Results of comparisons in generic parts.

use super::{
    BreakEven, CheckVerdict, ComparedTable, ComparisonOutcome, Crossing, CrossingLine, CrossingPoint,
};
use crate::kinds::Present;
use crate::outcome::{
    Cell, JudgedAspect, Judgement, LogPlot, Outcome, OutcomePart, OutcomeTable, SharedPlace, SharedSection,
    generated, seconds,
};

impl Present for ComparisonOutcome {
    fn present(&self) -> Outcome {
        let mut parts = Vec::new();
        if !self.checks.is_empty() {
            parts.push(OutcomePart::Table(check_table(&self.checks)));
        }
        parts.extend(self.tables.iter().flat_map(compared_parts));
        parts.extend(self.crossings.iter().flat_map(crossing_parts));
        let title = format!("Assumptions of the comparison `{}`", self.of);
        Outcome {
            not_measured: None,
            parts,
            blank_end: true,
            plots: self.crossings.iter().map(crossing_plot).collect(),
            shared: vec![SharedSection::assumptions(SharedPlace::Comparisons, title, &self.readings)],
        }
    }
}

fn check_table(all: &[CheckVerdict]) -> OutcomeTable {
    let head = ["claim", "workload", "variant", "metric", "published", "measured", "rule", "verdict"];
    let row = |c: &CheckVerdict| {
        let measured = match (c.value, c.published) {
            (Some(value), Some(published)) if published != 0.0 => Cell::Measured { value, published },
            (Some(value), _) => Cell::Value(value),
            (None, _) => Cell::Missing,
        };
        vec![
            Cell::text(&c.claim),
            Cell::Text(generated(&c.workload, c.kind)),
            Cell::text(&c.variant),
            Cell::text(&c.what),
            c.published.map_or(Cell::Missing, Cell::Value),
            measured,
            Cell::text(&c.rule),
            Cell::verdict(vec![Judgement::of(aspect(c), c.holds)]),
        ]
    };
    OutcomeTable::new(4, &head, all.iter().map(row).collect())
}

fn aspect(c: &CheckVerdict) -> JudgedAspect {
    if c.input { JudgedAspect::Input } else { JudgedAspect::Claim }
}

fn compared_parts(t: &ComparedTable) -> [OutcomePart; 2] {
    let table = match t.rows.is_empty() {
        true => OutcomePart::no_workload(),
        false => OutcomePart::Table(compared_table(t)),
    };
    [OutcomePart::section(&t.about, None), table]
}

fn compared_table(t: &ComparedTable) -> OutcomeTable {
    let variants = t.rows.iter().any(|r| r.variant.is_some());
    let views = t.rows.iter().any(|r| r.view != t.rows[0].view);
    let mut table = OutcomeTable::new(2, &["workload", "stands for"], Vec::new());
    table.head.extend(views.then(|| Cell::text("view")));
    table.head.extend(variants.then(|| Cell::text("variant")));
    table.names = table.head.len();
    table.head.extend(t.columns.iter().map(|c| Cell::text(&c.0)));
    for r in &t.rows {
        let mut row = vec![Cell::Text(generated(&r.workload, r.kind)), Cell::name(r.stands_for.as_deref())];
        row.extend(views.then(|| Cell::text(&r.view)));
        row.extend(r.variant.clone().map(Cell::Text));
        row.extend(r.values.iter().zip(&t.columns).map(|(v, c)| number(*v, c.1)));
        table.rows.push(row);
    }
    table
}

fn number(value: Option<f64>, digits: usize) -> Cell {
    match value {
        None => Cell::Missing,
        Some(v) if digits == 0 && v >= 0.0 => Cell::Count(v.round() as u64),
        Some(v) => Cell::number(v, digits),
    }
}

fn crossing_parts(c: &Crossing) -> Vec<OutcomePart> {
    let mut parts = vec![OutcomePart::section(&c.about, None)];
    if c.lines.is_empty() {
        parts.push(OutcomePart::no_workload());
        return parts;
    }
    let even = format!("{} at which the variant costs as much as {}, for each {}:", c.price, c.base, c.axis);
    parts.extend([OutcomePart::Text(even), OutcomePart::Table(even_table(c))]);
    for (name, prices) in &c.marks {
        let prices: Vec<String> = prices.iter().map(|p| seconds(*p)).collect();
        parts.push(OutcomePart::Text(format!("For comparison, {name}: {}.", prices.join(", "))));
    }
    let mut costs = |price: &str, cell: &dyn Fn(&CrossingPoint) -> Cell| {
        parts.push(OutcomePart::Text(format!("Cost relative to {} at a price of {price}:", c.base)));
        parts.push(OutcomePart::Table(grid(c, cell)));
    };
    costs("zero", &|p| Cell::number(p.free, 3));
    for (i, price) in c.prices.iter().enumerate() {
        costs(&seconds(*price), &|p| p.ratios.get(i).map_or(Cell::Missing, |r| Cell::number(*r, 3)));
    }
    parts
}

/// Returns the break-even prices.
fn even_table(c: &Crossing) -> OutcomeTable {
    grid(c, &|p| match p.even {
        BreakEven::At(price) => Cell::Duration(price),
        BreakEven::Never => Cell::text("never"),
        BreakEven::Always => Cell::text("any"),
    })
}

fn grid(c: &Crossing, cell: &dyn Fn(&CrossingPoint) -> Cell) -> OutcomeTable {
    let mut table = OutcomeTable::new(2, &["workload", "variant"], Vec::new());
    table.head.extend(c.values.iter().map(|v| Cell::Size(*v)));
    let row = |l: &CrossingLine| {
        let mut row = vec![Cell::Text(generated(&l.workload, l.kind)), Cell::text(&l.variant)];
        row.extend(l.points.iter().map(cell));
        row
    };
    table.rows = c.lines.iter().map(row).collect();
    table
}

/// Returns the plot of the break-even prices.
fn crossing_plot(c: &Crossing) -> LogPlot {
    LogPlot {
        about: c.about.clone(),
        title: format!("{} at which the variant costs as much as {}", c.price, c.base),
        note: "a variant costs less below its line, and never without a line".to_owned(),
        axis: c.axis.clone(),
        table: even_table(c),
        marks: c.marks.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_trace::identity::WorkloadKind;

    #[test]
    fn numbers_show_what_is_missing() {
        assert_eq!(number(None, 2).to_string(), "–");
        assert_eq!(number(Some(70156.0), 0).to_string(), "70,156");
        assert_eq!(number(Some(1.0153), 4).to_string(), "1.0153");
    }

    #[test]
    fn lines_are_drawn_where_costs_cross() {
        let point = |even| CrossingPoint { even, count: 1.0, free: 1.0, ratios: Vec::new() };
        let line = |workload: &str, evens: [BreakEven; 3]| CrossingLine {
            workload: workload.into(),
            kind: WorkloadKind::Real,
            variant: "log".into(),
            points: evens.map(point).into(),
        };
        let c = Crossing {
            about: "a < b".into(),
            base: "base".into(),
            axis: "unit".into(),
            values: vec![4096, 8192, 16384],
            price: "time".into(),
            prices: Vec::new(),
            marks: vec![("100 ms".into(), vec![0.1; 3])],
            lines: vec![
                line("crosses", [BreakEven::At(0.001), BreakEven::At(0.01), BreakEven::Never]),
                line("does not", [BreakEven::Never; 3]),
            ],
        };
        let svg = crossing_plot(&c).svg();
        // Sizes are in powers of two, prices in powers of ten, with steps of equal length.
        assert!(svg.contains("M80.0 450.0L320.0 250.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("crosses, log") && !svg.contains("does not, log"));
        assert!(svg.contains("100 ms") && svg.contains("8 KiB"));
    }
}
