//! Errors and warnings of a stack with their locations, collected in one report.

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use std::fmt;
use std::sync::Arc;

/// A source text of a stack: the file, or the argument of a `--set`.
pub(crate) type SourceText = Arc<NamedSource<String>>;

/// A range of bytes in a source text.
#[derive(Clone, Debug)]
pub(crate) struct TextSpan {
    pub(crate) text: SourceText,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An error or a warning about a stack.
#[derive(Clone, Debug)]
pub struct Problem {
    message: String,
    label: String,
    help: Option<String>,
    span: Option<TextSpan>,
    warning: bool,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), label: String::new(), help: None, span: None, warning: false }
    }

    pub(crate) fn warning(message: impl Into<String>) -> Problem {
        Problem { warning: true, ..Problem::new(message) }
    }

    pub(crate) fn at(mut self, span: Option<TextSpan>, label: impl Into<String>) -> Problem {
        self.span = span;
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        let help = help.into();
        self.help = (!help.is_empty()).then_some(help);
        self
    }

    /// Returns the message, a sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns a hint for the correction, if one is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the name of the source text that the problem is in: a file, or `--set`.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.span.as_ref().map(|s| s.text.name())
    }

    /// Returns the sort key of the problem in a report: by position in the text `first`, then
    /// overrides.
    pub(crate) fn sort_key(&self, first: &str) -> (bool, usize) {
        (self.text().is_some_and(|t| t != first), self.span.as_ref().map_or(0, |s| s.start))
    }

    /// Returns line and column in the source text, both from 1. Columns count characters.
    #[must_use]
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let span = self.span.as_ref()?;
        let before = span.text.inner().get(..span.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Some((line, column))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(if self.warning { Severity::Warning } else { Severity::Error })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.span.as_ref().map(|s| &*s.text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span.as_ref()?;
        let label = (!self.label.is_empty()).then(|| self.label.clone());
        let labeled = LabeledSpan::new(label, span.start, span.end.saturating_sub(span.start));
        Some(Box::new(std::iter::once(labeled)))
    }
}

/// Reasons for which a stack cannot be used: at least one [`Problem`].
#[derive(Debug)]
pub struct StackError {
    title: String,
    problems: Vec<Problem>,
}

/// Shorthand for results with [`StackError`].
pub type Result<T> = std::result::Result<T, StackError>;

/// Maximum number of problems in a report. Further ones are mostly repetitions of the same mistake,
/// or the file is not a stack at all.
const PROBLEMS_MAX: usize = 20;

impl StackError {
    pub(crate) fn new(stack: &str, mut problems: Vec<Problem>) -> StackError {
        let title = match problems.len() {
            1 => problems[0].message.clone(),
            n if n > PROBLEMS_MAX => {
                format!("stack '{stack}' has {n} errors; the first {PROBLEMS_MAX} are shown")
            }
            n => format!("stack '{stack}' has {n} errors"),
        };
        problems.truncate(PROBLEMS_MAX);
        StackError { title, problems }
    }

    /// Returns the problems, at most the first 20.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the problem if there is exactly one. It is then rendered as the report itself.
    fn single_problem(&self) -> Option<&Problem> {
        if let [one] = &self.problems[..] { Some(one) } else { None }
    }
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)
    }
}

impl std::error::Error for StackError {}

impl Diagnostic for StackError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.single_problem()?.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.single_problem()?.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single_problem()?.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.single_problem().is_some() {
            return None;
        }
        Some(Box::new(self.problems.iter().map(|p| p as &dyn Diagnostic)))
    }
}
