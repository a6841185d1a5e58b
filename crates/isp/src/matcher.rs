//! Conditions on lines and blocks: words, or a regular expression.

use crate::instructions::Words;
use crate::outcome::Failure;
use crate::text::{Keys, shortened};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
};
use serde_json::Value;

/// Maximum memory of a compiled regular expression, in bytes.
const PROGRAM_BYTES_MAX: usize = 8 << 20;

/// Pattern for messages.
const EXAMPLE: &str = r#"{"words": ["error"]}"#;

/// Pattern of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// At least one of the words occurs.
    Words(Vec<Vec<u8>>),
    /// The regular expression matches. `^` and `$` match at the ends of lines.
    Regex(String),
}

impl Pattern {
    /// Reads `{"words": […]}` or `{"regex": "…"}`.
    pub(crate) fn parse(key: &'static str, value: &Value) -> Result<Self, Failure> {
        let mut keys = Keys::new(key, EXAMPLE, value)?;
        let words = keys.take("words").map(|words| keys.words("words", words)).transpose()?;
        let regex = keys.text("regex")?;
        keys.finish()?;
        match (words, regex) {
            (Some(words), None) => Ok(Self::Words(words)),
            (None, Some(regex)) => Ok(Self::Regex(regex)),
            _ => {
                Err(Failure::invalid(format!("{key:?} has either \"words\" or \"regex\", such as {EXAMPLE}")))
            }
        }
    }
}

/// Compiled pattern.
pub(crate) struct Matcher {
    regex: Regex,
    /// `true` if a search in a block of lines finds the first line that matches. The begin and the end
    /// of the text (`\A`, `\z`) are those of a line, so a search in a block would miss them. The same
    /// is true at carriage returns with the flag `R`.
    blocks: bool,
}

/// Text that a pattern is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// A line without its line feed.
    Line,
    /// A text that can have line feeds.
    Text,
}

impl Matcher {
    /// Compiles a pattern of lines without their line feeds.
    pub(crate) fn of_lines(pattern: &Pattern) -> Result<Self, Failure> {
        Self::new(pattern, Scope::Line)
    }

    /// Compiles a pattern of texts that can have line feeds. `^` and `$` match at them.
    pub(crate) fn of_texts(pattern: &Pattern) -> Result<Self, Failure> {
        Self::new(pattern, Scope::Text)
    }

    fn new(pattern: &Pattern, scope: Scope) -> Result<Self, Failure> {
        let pattern = match pattern {
            Pattern::Regex(regex) => regex.clone(),
            Pattern::Words(words) => {
                Words::check(words)?;
                alternatives(words)
            }
        };
        let explain = |error: &dyn std::fmt::Display| {
            Failure::invalid(format!("the regular expression {pattern:?} is not valid: {error}"))
        };
        let mut syntax = regex_syntax::ParserBuilder::new();
        let hir =
            syntax.multi_line(true).utf8(false).build().parse(&pattern).map_err(|error| explain(&error))?;
        let looks = hir.properties().look_set();
        // Without line feeds, a match stays within its line, and so does a search.
        let expression =
            if scope == Scope::Line { without_line_feeds(&hir).to_string() } else { pattern.clone() };
        let regex = RegexBuilder::new(&expression)
            .multi_line(true)
            .size_limit(PROGRAM_BYTES_MAX)
            .dfa_size_limit(PROGRAM_BYTES_MAX)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(bytes) => too_large(&pattern, bytes),
                error => explain(&error),
            })?;
        let of_text = [Look::Start, Look::End, Look::StartCRLF, Look::EndCRLF];
        let blocks = scope == Scope::Line && !of_text.into_iter().any(|look| looks.contains(look));
        Ok(Self { regex, blocks })
    }

    /// Returns `true` if a line without its line feed, or a block, matches.
    pub(crate) fn is_match(&self, record: &[u8]) -> bool {
        self.regex.is_match(record)
    }

    /// Matches in a line, in order and without overlaps.
    pub(crate) fn matches<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
        self.regex.find_iter(line).map(|found| found.range())
    }

    /// Begin and end (with the line feed) of the first line at or behind `from` that matches. `from` is
    /// the begin of a line.
    ///
    /// A line matches alone if and only if it matches in the block: no match has a line feed, and line feeds
    /// have the effect of the ends of a text.
    pub(crate) fn next_line(&self, block: &[u8], mut from: usize) -> Option<(usize, usize)> {
        while from < block.len() {
            let found = if self.blocks { self.regex.find_at(block, from)?.start() } else { from };
            if found >= block.len() && block.ends_with(b"\n") {
                return None;
            }
            let begin = memchr::memrchr(b'\n', &block[from..found]).map_or(from, |at| from + at + 1);
            let end = memchr::memchr(b'\n', &block[found..]).map_or(block.len(), |at| found + at + 1);
            if self.blocks || self.is_match(without_line_feed(&block[begin..end])) {
                return Some((begin, end));
            }
            from = end;
        }
        None
    }
}

/// Returns the expression that matches the same texts as far as they have no line feed.
fn without_line_feeds(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => hir.clone(),
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(without_line_feeds(&repetition.sub)))
        }
        HirKind::Capture(capture) => without_line_feeds(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_line_feeds).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_line_feeds).collect()),
    }
}

fn too_large(pattern: &str, bytes: usize) -> Failure {
    Failure::invalid(format!(
        "the regular expression {} needs more than {bytes} bytes of memory: use smaller numbers of repetitions, and \
         classes of ASCII, such as [0-9] or (?-u:\\w), in place of those of Unicode, such as \\d or \\w",
        shortened(&pattern.into())
    ))
}

/// Line without its line feed.
pub(crate) fn without_line_feed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Regular expression that matches the given bytes.
fn alternatives(words: &[Vec<u8>]) -> String {
    let words = words.iter().map(|word| word.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>());
    format!("(?-u:{})", words.collect::<Vec<_>>().join("|"))
}

#[cfg(test)]
mod tests {
    use super::{Matcher, Pattern};

    type Lines = Vec<(usize, usize)>;

    /// Lines that a search in a block finds, and those that match alone.
    fn both(expression: &str, block: &[u8]) -> (Lines, Lines) {
        let matcher = Matcher::of_lines(&Pattern::Regex(expression.into())).unwrap();
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some((begin, end)) = matcher.next_line(block, from) {
            found.push((begin, end));
            from = end;
        }
        let (mut alone, mut begin) = (Vec::new(), 0);
        for line in block.split_inclusive(|byte| *byte == b'\n') {
            let end = begin + line.len();
            if matcher.is_match(super::without_line_feed(line)) {
                alone.push((begin, end));
            }
            begin = end;
        }
        (found, alone)
    }

    #[test]
    fn a_search_in_a_block_finds_the_lines_that_match_alone() {
        let blocks = ["ab", "b\na", "a\n", "\n", "\n\n", "a\r\nb\r\n", "\r\n\r", "ab\n\nb\na b", "x\ny\nz"];
        let expressions =
            ["$", "^", "", r"\z", r"\A", r"(?R)\r$", r"(?R)$", r"a\s*b", r"\s$", "z|y", r"(?-m)a$"];
        for expression in expressions {
            for block in blocks {
                let (found, alone) = both(expression, block.as_bytes());
                assert_eq!(found, alone, "{expression:?} in {block:?}");
            }
        }
    }
}
