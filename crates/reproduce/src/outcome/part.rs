//! Parts of a result.

use super::{Cell, LogPlot, SharedSection};

/// Results of an experiment, in the order of the output.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Outcome {
    /// Reason why nothing was measured. The finding of the experiment says it.
    pub not_measured: Option<String>,
    /// Parts, which the text separates by blank lines.
    pub parts: Vec<OutcomePart>,
    /// `true` if the text has a blank line behind the last part, too.
    pub blank_end: bool,
    /// Plots.
    pub plots: Vec<LogPlot>,
    /// Sections at the end of the whole output.
    pub shared: Vec<SharedSection>,
}

/// A part of a result.
#[derive(Clone, PartialEq, Debug)]
pub enum OutcomePart {
    /// Heading of the parts up to the next heading.
    Section {
        /// Title, in bold.
        title: String,
        /// Description, in a sentence without its period.
        about: Option<String>,
    },
    /// A sentence, or several.
    Text(String),
    /// A table.
    Table(OutcomeTable),
    /// A list.
    List {
        /// Line before the list.
        head: Option<String>,
        /// Items.
        items: Vec<String>,
    },
}

/// A table of typed cells.
#[derive(Clone, PartialEq, Debug)]
pub struct OutcomeTable {
    /// Number of first columns that are names; the others are numbers, which are aligned right.
    pub names: usize,
    /// Headings: words, or values of a parameter.
    pub head: Vec<Cell>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Outcome {
    /// Returns an outcome of these parts.
    pub(crate) fn of(parts: Vec<OutcomePart>) -> Outcome {
        Outcome { parts, ..Outcome::default() }
    }
}

impl OutcomePart {
    /// Returns the heading of a section.
    pub(crate) fn section(title: &str, about: Option<&str>) -> OutcomePart {
        OutcomePart::Section { title: title.to_owned(), about: about.map(str::to_owned) }
    }

    /// Returns the sentence in place of a table whose workloads are all missing.
    pub(crate) fn no_workload() -> OutcomePart {
        OutcomePart::Text("No workload is available.".to_owned())
    }
}

impl OutcomeTable {
    /// Returns a table with these words as headings.
    pub(crate) fn new(names: usize, head: &[&str], rows: Vec<Vec<Cell>>) -> OutcomeTable {
        OutcomeTable { names, head: head.iter().map(|h| Cell::text(h)).collect(), rows }
    }
}
