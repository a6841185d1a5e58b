//! Findings as text for a terminal.

use super::{ComparisonFindings, Finding, FindingKind, FindingOfRuns};

/// Width of a line of text.
const WIDTH: usize = 100;
/// Column at which the text of a finding begins, as in the head of a report.
const INDENT: usize = 15;

/// Formats the findings of a run.
pub(crate) fn text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return wrapped("findings", "none");
    }
    findings.iter().map(|f| wrapped(label(f.kind), &with_rule(&f.text, f.rule))).collect()
}

impl ComparisonFindings {
    /// Formats the findings of the runs, which precede the table of a comparison.
    pub(crate) fn head(&self) -> String {
        let line = |FindingOfRuns { runs, finding: f }: &FindingOfRuns| {
            wrapped(label(f.kind), &with_rule(&format!("{runs}: {}", f.text), f.rule))
        };
        self.of_runs.iter().map(line).collect()
    }

    /// Formats the conclusion, which follows the table of a comparison.
    pub(crate) fn conclusion(&self) -> String {
        self.conclusion.iter().map(|f| wrapped("conclusion", &f.text)).collect()
    }
}

pub(crate) fn label(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Doubt => "doubt",
        FindingKind::Explanation => "finding",
    }
}

fn with_rule(text: &str, rule: &str) -> String {
    format!("{text} [{rule}]")
}

/// Breaks a text into lines, of which all but the first are indented.
fn wrapped(label: &str, text: &str) -> String {
    let mut out = format!(" {label:<width$}", width = INDENT - 1);
    let mut column = INDENT;
    for (i, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if i > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        let text = "word ".repeat(60);
        let shown = wrapped("doubt", text.trim());
        assert!(shown.lines().count() > 3 && shown.lines().all(|l| l.chars().count() <= WIDTH), "{shown}");
        assert!(shown.lines().skip(1).all(|l| l.starts_with(&" ".repeat(INDENT))), "{shown}");
        assert_eq!(shown.split_whitespace().filter(|w| *w == "word").count(), 60);
    }
}
