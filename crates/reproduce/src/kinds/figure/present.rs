//! Results of a metric over a sweep in generic parts.

use super::{FigureOutcome, FigureRow, FigureTable, Verdict};
use crate::kinds::Present;
use crate::outcome::{
    Cell, Deviation, JudgedAspect, Judgement, Outcome, OutcomePart, OutcomeTable, SharedPlace, SharedSection,
    claim_text, generated,
};
use frit_core::size;
use frit_trace::identity::WorkloadKind;

impl Present for FigureOutcome {
    fn present(&self) -> Outcome {
        let about = match &self.by {
            Some(by) => format!(
                "Measured: `{}`, as a count in the column {by}, and relative to it in the others.",
                self.metric
            ),
            None => format!("Measured: `{}`, as counts.", self.metric),
        };
        let mut parts = vec![OutcomePart::Text(about)];
        for t in &self.tables {
            parts.extend(table_parts(t, self.by.as_deref()));
        }
        let title = format!("Assumptions of the sweep `{}`", self.sweep);
        let shared = vec![SharedSection::assumptions(SharedPlace::Sweeps, title, &self.readings)];
        Outcome { shared, ..Outcome::of(parts) }
    }
}

fn table_parts(t: &FigureTable, by: Option<&str>) -> Vec<OutcomePart> {
    let mut parts = vec![OutcomePart::section(&t.state, Some(&t.about))];
    if t.rows.is_empty() {
        parts.push(OutcomePart::no_workload());
        return parts;
    }
    let mut table = OutcomeTable::new(3, &["workload", "stands for", "volume / PCM"], Vec::new());
    table.head.extend(t.columns.iter().map(|c| Cell::text(c)));
    table.head.push(Cell::text("verdict"));
    table.rows = t.rows.iter().map(|r| row_cells(r, &t.columns, by)).collect();
    parts.push(OutcomePart::Table(table));
    for m in &t.means {
        let kind = if m.kind == WorkloadKind::Real { "recorded" } else { "GENERATED" };
        parts.push(OutcomePart::Text(format!(
            "Mean of the {kind} workloads ({}) at {}: {:.4}; {}",
            m.of.join(", "),
            m.column,
            m.value,
            claim_text(&judgements(&m.verdict))
        )));
    }
    parts.extend(reasons(&t.rows));
    parts
}

/// Returns the explanations of differing rows. Rows with the same reasons are grouped.
fn reasons(rows: &[FigureRow]) -> Option<OutcomePart> {
    let mut groups: Vec<(&[String], Vec<String>)> = Vec::new();
    for r in rows.iter().filter(|r| !r.why.is_empty()) {
        match groups.iter_mut().find(|(why, _)| *why == r.why.as_slice()) {
            Some((_, names)) => names.push(name(r)),
            None => groups.push((&r.why, vec![name(r)])),
        }
    }
    let item = |(why, names): &(&[String], Vec<String>)| format!("{}: {}.", names.join(", "), why.join("; "));
    (!groups.is_empty()).then(|| OutcomePart::List {
        head: Some("Differences and their reasons:".to_owned()),
        items: groups.iter().map(item).collect(),
    })
}

fn name(r: &FigureRow) -> String {
    let hints = if r.hints { " + hints" } else { "" };
    generated(&format!("{}{hints}", r.workload), r.kind)
}

fn row_cells(r: &FigureRow, columns: &[String], by: Option<&str>) -> Vec<Cell> {
    let mut row = vec![
        Cell::Text(name(r)),
        Cell::name(r.stands_for.as_deref()),
        Cell::Text(format!("{} / {}", size::format(r.volume_bytes), size::format(r.pcm_bytes))),
    ];
    for (i, column) in columns.iter().enumerate() {
        row.push(match &r.relative {
            Some(relative) if by != Some(column.as_str()) => Cell::number(relative[i], 3),
            _ => Cell::Count(r.values[i] as u64),
        });
    }
    row.push(Cell::Verdict(r.verdicts.iter().map(judgements).collect()));
    row
}

/// Returns the judgements of direction and bands.
fn judgements(v: &Verdict) -> Vec<Judgement> {
    let direction = v.judged.then(|| Judgement::of(JudgedAspect::Direction, v.direction));
    let bands = v.bands.iter().map(|b| Judgement {
        aspect: JudgedAspect::Value,
        holds: Some(b.holds),
        deviation: Some(Deviation::Band { value: b.value, least: b.least, most: b.most }),
    });
    direction.into_iter().chain(bands).collect()
}
