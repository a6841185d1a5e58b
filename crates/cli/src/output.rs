//! Writing to the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use miette::{Diagnostic, IntoDiagnostic, MietteHandlerOpts, ReportHandler, Result};
use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Writes to standard output; a reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.into_diagnostic(),
    }
}

/// Writes a value as JSON to standard output.
pub(crate) fn print_json<T: serde::Serialize>(value: &T) -> Result<()> {
    let json = serde_json::to_string_pretty(value).into_diagnostic()?;
    print(&format!("{json}\n"))
}

/// Writes to standard error.
pub(crate) fn complain(text: &str) -> Result<()> {
    io::stderr().lock().write_all(text.as_bytes()).into_diagnostic()
}

/// A table without lines, whose long cells wrap at the width of the terminal (100 columns where there
/// is none).
pub(crate) fn table(header: &[&str]) -> Table {
    let mut t = Table::new();
    t.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let width = terminal_size::terminal_size().map_or(100, |(w, _)| w.0);
    t.set_width(width.max(60));
    if !header.is_empty() {
        t.set_header(header.to_vec());
    }
    t
}

/// Aligns a column to the right: numbers.
pub(crate) fn right(t: &mut Table, column: usize) {
    if let Some(c) = t.column_mut(column) {
        c.set_cell_alignment(CellAlignment::Right);
    }
}

/// A table as text, without blanks at the ends of lines.
pub(crate) fn text(t: &Table) -> String {
    t.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// Shows an error with its causes, but for those that it tells of itself.
#[derive(Debug)]
pub(crate) struct Teller;

impl ReportHandler for Teller {
    fn debug(&self, error: &dyn Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = error.to_string();
        let mut causes = std::iter::successors(error.source(), |&e| e.source());
        let options = MietteHandlerOpts::new();
        let options = if causes.all(|c| told.contains(&c.to_string())) {
            options.without_cause_chain()
        } else {
            options
        };
        options.build().debug(error, f)
    }
}
