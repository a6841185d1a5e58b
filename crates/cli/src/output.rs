//! Writing to the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use frit_core::text::lines;
use miette::{
    Diagnostic, IntoDiagnostic, LabeledSpan, MietteHandlerOpts, NamedSource, Report, ReportHandler, Result,
    Severity, SourceCode,
};
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Writes to standard output. A reader that closes the pipe (`| head`) is no error. Control
/// characters of names and values in the text are escaped.
pub(crate) fn print(text: &str) -> Result<()> {
    print_raw(&lines(text))
}

/// Writes to standard output without escaping, for text with intentional control characters.
pub(crate) fn print_raw(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output. A reader that closes the pipe is no error.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.into_diagnostic(),
    }
}

/// Writes a value as JSON to standard output.
pub(crate) fn print_json<T: serde::Serialize>(value: &T) -> Result<()> {
    let json = serde_json::to_string_pretty(value).into_diagnostic()?;
    print(&format!("{json}\n"))
}

/// Writes to standard error. Control characters of names and values in the text are escaped.
pub(crate) fn print_stderr(text: &str) -> Result<()> {
    io::stderr().lock().write_all(lines(text).as_bytes()).into_diagnostic()
}

/// Writes an error or a warning to standard error, in the format of a command's final error.
pub(crate) fn report(report: &Report) -> Result<()> {
    io::stderr().lock().write_all(format!("{report:?}\n").as_bytes()).into_diagnostic()
}

/// Returns a table without rules, whose long cells wrap at the width of the terminal (100 columns
/// without a terminal).
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

/// Aligns a column of numbers to the right.
pub(crate) fn right(t: &mut Table, column: usize) {
    if let Some(c) = t.column_mut(column) {
        c.set_cell_alignment(CellAlignment::Right);
    }
}

/// Returns a table as text, without trailing blanks.
pub(crate) fn text(t: &Table) -> String {
    t.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// Report handler that prints the causes of an error, unless its message already contains them.
#[derive(Debug)]
pub(crate) struct ErrorReporter;

impl ReportHandler for ErrorReporter {
    fn debug(&self, error: &dyn Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = error.to_string();
        let mut causes = std::iter::successors(error.source(), |&e| e.source());
        let options = MietteHandlerOpts::new();
        let options = if causes.all(|c| told.contains(&c.to_string())) {
            options.without_cause_chain()
        } else {
            options
        };
        options.build().debug(&EscapedDiagnostic::of(error), f)
    }
}

/// A diagnostic with escaped texts: names of files, keys and values may contain control characters.
struct EscapedDiagnostic<'a> {
    of: &'a dyn Diagnostic,
    message: String,
    cause: Option<EscapedCause>,
    related: Vec<EscapedDiagnostic<'a>>,
    /// The source text of the labels, masked if it contains control characters.
    source: Option<NamedSource<String>>,
}

impl<'a> EscapedDiagnostic<'a> {
    fn of(of: &'a dyn Diagnostic) -> EscapedDiagnostic<'a> {
        let related = of.related().into_iter().flatten().map(EscapedDiagnostic::of).collect();
        let cause = of.source().map(EscapedCause::of);
        EscapedDiagnostic {
            of,
            message: lines(&of.to_string()),
            cause,
            related,
            source: of.source_code().and_then(masked),
        }
    }
}

impl fmt::Debug for EscapedDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for EscapedDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for EscapedDiagnostic<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|c| c as &(dyn Error + 'static))
    }
}

impl Diagnostic for EscapedDiagnostic<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.of.code()
    }

    fn severity(&self) -> Option<Severity> {
        self.of.severity()
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.of.help().map(|h| Box::new(lines(&h.to_string())) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        match &self.source {
            Some(masked) => Some(masked),
            None => self.of.source_code(),
        }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.of.labels()
    }

    fn related<'b>(&'b self) -> Option<Box<dyn Iterator<Item = &'b dyn Diagnostic> + 'b>> {
        if self.related.is_empty() {
            return None;
        }
        Some(Box::new(self.related.iter().map(|r| r as &dyn Diagnostic)))
    }
}

/// Returns the source text of an error with `?` for each byte of a control character, so that the
/// offsets of labels stay valid; `None` if the text has no control characters.
fn masked(source: &dyn SourceCode) -> Option<NamedSource<String>> {
    let whole = source.read_span(&(0, 0).into(), 0, u32::MAX as usize).ok()?;
    let text = String::from_utf8_lossy(whole.data());
    let name = whole.name().unwrap_or_default();
    if lines(&text) == text && lines(name) == name {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if lines(c.encode_utf8(&mut [0; 4])).chars().eq([c]) {
            out.push(c);
        } else {
            out.extend(std::iter::repeat_n('?', c.len_utf8()));
        }
    }
    Some(NamedSource::new(lines(name), out))
}

/// A cause of an error, with its own cause.
#[derive(Debug)]
struct EscapedCause {
    message: String,
    cause: Option<Box<EscapedCause>>,
}

impl EscapedCause {
    fn of(error: &dyn Error) -> EscapedCause {
        EscapedCause {
            message: lines(&error.to_string()),
            cause: error.source().map(|c| Box::new(EscapedCause::of(c))),
        }
    }
}

impl fmt::Display for EscapedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for EscapedCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|c| c as &(dyn Error + 'static))
    }
}
