//! Sections at the end of the output, which experiments share.

use super::{Cell, OutcomePart, OutcomeTable};

/// A section at the end of the output. Sections of several experiments with the same title are one,
/// and entries with the same key are shown once.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedSection {
    /// Place among the sections.
    pub place: SharedPlace,
    /// Title.
    pub title: String,
    /// Text below the title.
    pub about: Option<String>,
    /// Number of first columns that are names.
    pub names: usize,
    /// Headings of the table; empty: no table.
    pub head: Vec<Cell>,
    /// Entries: a row of the table and an item of the list below it.
    pub entries: Vec<SharedEntry>,
}

/// Place of a section: the order of the output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SharedPlace {
    /// Assumptions of sweeps.
    Sweeps,
    /// Assumptions of studies of caches.
    Studies,
    /// Workloads of the studies of caches.
    StudyWorkloads,
    /// Assumptions of comparisons.
    Comparisons,
    /// Workloads of the other experiments.
    Workloads,
}

/// An entry of a section.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedEntry {
    /// Key.
    pub key: String,
    /// Row of the table; empty without a table.
    pub row: Vec<Cell>,
    /// Item of the list.
    pub item: String,
}

impl SharedSection {
    /// Returns a section of assumptions.
    pub(crate) fn assumptions(place: SharedPlace, title: String, readings: &[String]) -> SharedSection {
        let entry = |r: &String| SharedEntry { key: r.clone(), row: Vec::new(), item: r.clone() };
        SharedSection {
            place,
            title,
            about: None,
            names: 0,
            head: Vec::new(),
            entries: readings.iter().map(entry).collect(),
        }
    }

    /// Returns the parts below the title.
    pub(super) fn into_parts(self) -> Vec<OutcomePart> {
        let mut parts: Vec<OutcomePart> = self.about.into_iter().map(OutcomePart::Text).collect();
        let (rows, items): (Vec<Vec<Cell>>, Vec<String>) =
            self.entries.into_iter().map(|e| (e.row, e.item)).unzip();
        if !self.head.is_empty() {
            parts.push(OutcomePart::Table(OutcomeTable { names: self.names, head: self.head, rows }));
        }
        parts.push(OutcomePart::List { head: None, items });
        parts
    }
}

/// Joins sections with the same title, and puts all in their order. Sections without entries are
/// left out.
pub(super) fn merged(all: impl Iterator<Item = SharedSection>) -> Vec<SharedSection> {
    let mut out: Vec<SharedSection> = Vec::new();
    for section in all {
        match out.iter_mut().find(|o| o.title == section.title) {
            Some(same) => {
                for entry in section.entries {
                    if same.entries.iter().all(|e| e.key != entry.key) {
                        same.entries.push(entry);
                    }
                }
            }
            None => out.push(section),
        }
    }
    out.retain(|s| !s.entries.is_empty());
    // The sort is stable: sections of one place stay in the order of the experiments.
    out.sort_by_key(|s| s.place);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sections_are_joined_and_all_are_in_order() {
        let section = |place, title: &str, readings: &[&str]| {
            let readings: Vec<String> = readings.iter().map(|r| (*r).to_owned()).collect();
            SharedSection::assumptions(place, title.to_owned(), &readings)
        };
        let all = [
            section(SharedPlace::Comparisons, "b", &["x"]),
            section(SharedPlace::Sweeps, "a", &["x", "y"]),
            section(SharedPlace::Studies, "none", &[]),
            section(SharedPlace::Sweeps, "a", &["y", "z"]),
        ];
        let shown: Vec<(String, Vec<String>)> = merged(all.into_iter())
            .into_iter()
            .map(|s| (s.title, s.entries.into_iter().map(|e| e.item).collect()))
            .collect();
        let words = |w: &[&str]| w.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        assert_eq!(shown, [("a".to_owned(), words(&["x", "y", "z"])), ("b".to_owned(), words(&["x"]))]);
    }
}
