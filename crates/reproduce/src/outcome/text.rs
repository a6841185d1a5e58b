//! Results as text, with tables in Markdown.

use super::shared::merged;
use super::{Cell, Outcome, OutcomePart, OutcomeTable, SharedSection};
use comfy_table::{CellAlignment, Table, presets};

/// Returns the results of an experiment.
pub(crate) fn outcome_text(o: &Outcome) -> String {
    let mut out = parts_text(&o.parts);
    if o.blank_end && !o.parts.is_empty() {
        out.push('\n');
    }
    out
}

/// Returns the sections that experiments share, each once.
pub(crate) fn shared_text(all: impl Iterator<Item = SharedSection>) -> String {
    let mut out = String::new();
    for section in merged(all) {
        out += &format!("## {}\n\n", section.title);
        out += &parts_text(&section.into_parts());
        out.push('\n');
    }
    out
}

/// Returns parts with blank lines between them.
fn parts_text(parts: &[OutcomePart]) -> String {
    parts.iter().map(part_text).collect::<Vec<_>>().join("\n")
}

fn part_text(part: &OutcomePart) -> String {
    match part {
        OutcomePart::Section { title, about: Some(about) } => format!("**{title}**: {about}.\n"),
        OutcomePart::Section { title, about: None } => format!("**{title}**\n"),
        OutcomePart::Text(text) => format!("{text}\n"),
        OutcomePart::Table(t) => table_text(t),
        OutcomePart::List { head, items } => {
            let head = head.iter().map(|h| format!("{h}\n"));
            head.chain(items.iter().map(|i| format!("- {i}\n"))).collect()
        }
    }
}

/// Returns a Markdown table. It is readable as it is, and documents can include it.
fn table_text(t: &OutcomeTable) -> String {
    let words = |cells: &[Cell]| cells.iter().map(Cell::to_string).collect::<Vec<_>>();
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(words(&t.head));
    for row in &t.rows {
        table.add_row(words(row));
    }
    for i in t.names..t.head.len() {
        if let Some(c) = table.column_mut(i) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|l| l.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_separated_by_blank_lines() {
        let table = OutcomeTable::new(1, &["name", "n"], vec![vec![Cell::text("a"), Cell::Count(1000)]]);
        let parts = vec![
            OutcomePart::section("new", Some("a new volume")),
            OutcomePart::Table(table),
            OutcomePart::List { head: Some("Reasons:".into()), items: vec!["x".into()] },
        ];
        let mut o = Outcome::of(parts);
        let text = "**new**: a new volume.\n\n| name |     n |\n|------|-------|\n| a    | 1,000 |\n\nReasons:\n- x\n";
        assert_eq!(outcome_text(&o), text);
        o.blank_end = true;
        assert_eq!(outcome_text(&o), format!("{text}\n"));
    }

    #[test]
    fn shared_sections_have_a_title_and_a_blank_line_behind() {
        use crate::outcome::SharedPlace;
        let readings = ["one".to_owned(), "two".to_owned()];
        let section = SharedSection::assumptions(SharedPlace::Sweeps, "Assumptions".into(), &readings);
        let twice = [section.clone(), section];
        assert_eq!(shared_text(twice.into_iter()), "## Assumptions\n\n- one\n- two\n\n");
    }
}
