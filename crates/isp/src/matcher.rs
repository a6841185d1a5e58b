//! Conditions on lines and blocks: words, or a regular expression.

mod caches;
mod lines;
mod stepping;

use crate::engine::{Account, Charge};
use crate::instructions::Words;
use crate::outcome::Failure;
use crate::scan::StepTime;
use crate::text::{Keys, shortened};
use caches::{Caches, Held};
use lines::without_line_feeds;
use regex_automata::Input;
use regex_automata::meta::{BuildError, Cache, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Hir, Look};
use serde_json::Value;
use std::ops::Range;
use std::sync::OnceLock;
use stepping::{Pair, Stepping};

/// Function that fails if a search has to stop.
pub(crate) type Check<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// Maximum memory of a compiled regular expression, in bytes. The caches of a thread that searches for the expressions
/// of an instruction have as much in all for each direction, unless these are many.
const PROGRAM_BYTES_MAX: usize = 8 << 20;
/// Least memory of a cache in bytes.
const CACHE_BYTES_MIN: usize = 256 << 10;
/// Memory of the compiler in bytes, for an expression that may be large and one that is not: its own copies beside the
/// program.
const COMPILER_BYTES: [usize; 2] = [3 * PROGRAM_BYTES_MAX, 256 << 10];
/// Length of an expression in bytes, and number of its classes, up to which it is compiled at once if it has no counted
/// repetition.
const QUICK_BYTES: usize = 256;
const QUICK_CLASSES: usize = 8;

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

    /// Memory of the pattern itself in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Words(words) => words.iter().map(|word| 4 * word.len() + 64).sum(),
            Self::Regex(regex) => regex.len(),
        }
    }

    /// Returns `true` if it is compiled within about a millisecond.
    pub(crate) fn compiles_quickly(&self) -> bool {
        match self {
            Self::Words(_) => true,
            Self::Regex(regex) => is_quick_to_compile(regex),
        }
    }
}

/// Returns `true` if an expression is surely small.
pub(crate) fn is_quick_to_compile(regex: &str) -> bool {
    let classes = regex.bytes().filter(|byte| matches!(byte, b'\\' | b'[' | b'.')).count();
    let has_flags = regex.contains("(?");
    regex.len() <= QUICK_BYTES && classes <= QUICK_CLASSES && !regex.contains('{') && !has_flags
}

/// Memory for the expressions of one instruction.
#[derive(Clone, Copy)]
pub(crate) struct Expressions<'a> {
    account: &'a Account,
    /// Number of expressions, which share the memory of caches.
    number: usize,
}

impl<'a> Expressions<'a> {
    pub(crate) fn new(account: &'a Account, number: usize) -> Self {
        Self { account, number: number.max(1) }
    }
}

/// Number of steps of a search that cannot be stopped: about half a second. A step is one byte for one state of the
/// expression, of which any number can be active in the worst case.
const STEPS_MAX: u64 = 1 << 26;

/// Number of states with which a search of one chunk can take long.
const COMPLEX: u64 = 128;

/// Compiled pattern.
pub(crate) struct Matcher {
    regex: Regex,
    caches: Caches<Cache>,
    account: Account,
    /// Memory of each cache.
    cache_bytes: usize,
    _charge: Charge,
    /// `true` if a search in a block of lines finds the first line that matches. With the flags `mR`, `^` and `$`
    /// match also at carriage returns, and not between one and a line feed: in a block, the last byte of a line can
    /// have such a line feed behind it.
    blocks: bool,
    /// Largest number of states that are active at a byte.
    states: u64,
    steps_max: u64,
    hir: Hir,
    stepping: OnceLock<Result<Stepping, Failure>>,
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
    pub(crate) fn of_lines(pattern: &Pattern, account: &Account) -> Result<Self, Failure> {
        Self::new(pattern, Scope::Line, Expressions::new(account, 1))
    }

    /// Compiles a pattern of texts that can have line feeds. `^` and `$` match at them.
    pub(crate) fn of_texts(pattern: &Pattern, expressions: Expressions<'_>) -> Result<Self, Failure> {
        Self::new(pattern, Scope::Text, expressions)
    }

    fn new(pattern: &Pattern, scope: Scope, expressions: Expressions<'_>) -> Result<Self, Failure> {
        let account = expressions.account;
        let mut charge = account.charged(COMPILER_BYTES[usize::from(pattern.compiles_quickly())])?;
        let cache_bytes = (PROGRAM_BYTES_MAX / expressions.number).max(CACHE_BYTES_MIN);
        let (text, is_words) = match pattern {
            Pattern::Regex(regex) => (regex.clone(), false),
            Pattern::Words(words) => {
                Words::check(words)?;
                (alternatives(words), true)
            }
        };
        let explain = |error: &dyn std::fmt::Display| {
            Failure::invalid(format!("the regular expression {text:?} is not valid: {error}"))
        };
        let mut syntax = regex_syntax::ParserBuilder::new();
        syntax.multi_line(scope == Scope::Text).utf8(false);
        let hir = syntax.build().parse(&text).map_err(|error| explain(&error))?;
        let looks = hir.properties().look_set();
        let at_returns = [Look::StartCRLF, Look::EndCRLF].into_iter().any(|look| looks.contains(look));
        let blocks = scope == Scope::Line && !at_returns;
        // Without line feeds, a match stays within its line, and so does a search.
        let hir = if scope == Scope::Line { without_line_feeds(&hir) } else { hir };
        let config = Config::new()
            .utf8_empty(false)
            .which_captures(WhichCaptures::Implicit)
            .nfa_size_limit(Some(PROGRAM_BYTES_MAX))
            .hybrid_cache_capacity(cache_bytes);
        let failed = |error: BuildError| match error.size_limit() {
            Some(bytes) => too_large(&text, bytes),
            None => explain(&error),
        };
        let regex = Regex::builder().configure(config).build_from_hir(&hir).map_err(failed)?;
        // The search for words takes a step for each byte, however many they are.
        let states = if is_words {
            1
        } else {
            stepping::states(&hir).ok_or_else(|| too_large(&text, PROGRAM_BYTES_MAX))?
        };
        let program_bytes = regex.memory_usage();
        // The syntax tree of an expression has about as much.
        charge.shrink(2 * program_bytes as u64);
        let (caches, account) = (Caches::new(account, Cache::memory_usage), account.clone());
        let (steps_max, stepping) = (STEPS_MAX, OnceLock::new());
        Ok(Self {
            regex,
            caches,
            account,
            cache_bytes,
            _charge: charge,
            blocks,
            states,
            steps_max,
            hir,
            stepping,
        })
    }

    /// Returns `true` if a search of one chunk can take long.
    pub(crate) fn is_complex(&self) -> bool {
        self.states > COMPLEX
    }

    /// Returns the time that a search of one chunk can take.
    pub(crate) fn step_time(&self) -> StepTime {
        if self.is_complex() { StepTime::Long } else { StepTime::Short }
    }

    /// Returns the largest range that the caller's thread searches itself.
    pub(crate) fn inline_bytes(&self, usual: u64) -> u64 {
        if self.is_complex() { usual.saturating_mul(COMPLEX) / self.states } else { usual }
    }

    /// Returns `true` if a search in so many bytes ends soon.
    fn is_quick(&self, bytes: usize) -> bool {
        self.states.saturating_mul(bytes as u64) <= self.steps_max
    }

    fn stepping(&self) -> Result<&Stepping, Failure> {
        let stepping = self.stepping.get_or_init(|| {
            let stepping = Stepping::new(&self.hir, self.cache_bytes, &self.account);
            stepping.unwrap_or_else(|| Err(too_large(&self.hir.to_string(), PROGRAM_BYTES_MAX)))
        });
        stepping.as_ref().map_err(Clone::clone)
    }

    /// Returns searches for one thread.
    pub(crate) fn searches(&self) -> Searches<'_> {
        Searches { matcher: self, cache: self.caches.hold(), steps: None }
    }

    /// End of the lines from `from` on that are searched at once, if there are any.
    fn quick_lines(&self, block: &[u8], from: usize) -> Option<usize> {
        if !self.blocks {
            return None;
        }
        if self.is_quick(block.len() - from) {
            return Some(block.len());
        }
        let bytes = usize::try_from(self.steps_max / self.states).unwrap_or(usize::MAX);
        let lines = &block[from..from.saturating_add(bytes).min(block.len())];
        memchr::memrchr(b'\n', lines).map(|last| from + last + 1)
    }
}

/// Searches of one thread, which keep a cache while they last: those in a view, for example.
pub(crate) struct Searches<'m> {
    matcher: &'m Matcher,
    cache: Held<'m, Cache>,
    /// Cache of the searches that can be stopped.
    steps: Option<Held<'m, Pair>>,
}

impl<'m> Searches<'m> {
    /// Returns `true` if a line without its line feed, or a text, matches.
    pub(crate) fn is_match(&mut self, record: &[u8], check: Check<'_>) -> Result<bool, Failure> {
        if self.matcher.is_quick(record.len()) {
            let (regex, input) = (&self.matcher.regex, Input::new(record).earliest(true));
            let search = |cache: &mut Cache| regex.search_half_with(cache, &input);
            return Ok(self.cache.search(|| regex.create_cache(), search).is_some());
        }
        let (stepping, held) = self.steps()?;
        stepping.is_match(held, record, check)
    }

    /// Returns the first match in a text.
    #[inline]
    fn first(&mut self, input: &Input<'_>) -> Option<Range<usize>> {
        let regex = &self.matcher.regex;
        self.cache
            .search(|| regex.create_cache(), |cache| regex.search_with(cache, input))
            .map(|found| found.range())
    }

    /// Searches that can be stopped.
    fn steps(&mut self) -> Result<(&'m Stepping, &mut Held<'m, Pair>), Failure> {
        let stepping = self.matcher.stepping()?;
        Ok((stepping, self.steps.get_or_insert_with(|| stepping.hold())))
    }

    /// Calls `each` with the matches in a line that are not empty, in order and without overlaps.
    pub(crate) fn matches(
        &mut self,
        line: &[u8],
        check: Check<'_>,
        mut each: impl FnMut(Range<usize>),
    ) -> Result<(), Failure> {
        let is_quick = self.matcher.is_quick(line.len());
        let mut from = 0;
        while from <= line.len() {
            check()?;
            let found = if is_quick {
                self.first(&Input::new(line).range(from..))
            } else {
                let (stepping, held) = self.steps()?;
                stepping.find(held, line, from, check)?
            };
            let Some(found) = found else { break };
            if found.is_empty() {
                from = found.end + 1;
            } else {
                from = found.end;
                each(found);
            }
        }
        Ok(())
    }

    /// Begin and end (with the line feed) of the first line at or behind `from` that matches. `from` is
    /// the begin of a line.
    ///
    /// A line matches alone if and only if it matches in the block: no match has a line feed, and line feeds
    /// have the effect of the ends of a text.
    pub(crate) fn next_line(
        &mut self,
        block: &[u8],
        mut from: usize,
        check: Check<'_>,
    ) -> Result<Option<(usize, usize)>, Failure> {
        while from < block.len() {
            check()?;
            let Some(to) = self.matcher.quick_lines(block, from) else {
                let end = memchr::memchr(b'\n', &block[from..]).map_or(block.len(), |after| from + after + 1);
                if self.is_match(without_line_feed(&block[from..end]), check)? {
                    return Ok(Some((from, end)));
                }
                from = end;
                continue;
            };
            let found = self.first(&Input::new(&block[..to]).range(from..)).map(|found| found.start);
            // Behind the last line feed, there is no line.
            if let Some(at) = found.filter(|at| *at < to || block[to - 1] != b'\n') {
                let begin = memchr::memrchr(b'\n', &block[from..at]).map_or(from, |before| from + before + 1);
                let end = memchr::memchr(b'\n', &block[at..to]).map_or(to, |after| at + after + 1);
                return Ok(Some((begin, end)));
            }
            from = to;
        }
        Ok(None)
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
    use super::{Matcher, Pattern, without_line_feed};
    use crate::engine::Account;
    use crate::outcome::{Failure, Status};
    use proptest::prelude::*;
    use regex::bytes::RegexBuilder;
    use std::cell::Cell;

    type Lines = Vec<(usize, usize)>;

    fn go_on() -> Result<(), Failure> {
        Ok(())
    }

    /// Compiles an expression whose searches have at most so many bytes, or are those that can be stopped.
    fn matcher(expression: &str, quick_bytes: u64) -> Matcher {
        let mut matcher =
            Matcher::of_lines(&Pattern::Regex(expression.into()), &Account::unlimited()).unwrap();
        matcher.steps_max = matcher.states * quick_bytes;
        matcher
    }

    fn found_lines(matcher: &Matcher, block: &[u8]) -> Lines {
        let (mut found, mut from, mut searches) = (Vec::new(), 0, matcher.searches());
        while let Some((begin, end)) = searches.next_line(block, from, &go_on).unwrap() {
            found.push((begin, end));
            from = end;
        }
        found
    }

    /// Lines that match alone, by another compiler of the same syntax.
    fn lines_alone(expression: &str, block: &[u8]) -> Lines {
        let regex = RegexBuilder::new(expression).build().unwrap();
        let (mut alone, mut begin) = (Vec::new(), 0);
        for line in block.split_inclusive(|byte| *byte == b'\n') {
            let end = begin + line.len();
            if regex.is_match(without_line_feed(line)) {
                alone.push((begin, end));
            }
            begin = end;
        }
        alone
    }

    #[test]
    fn a_search_in_a_block_finds_the_lines_that_match_alone() {
        let blocks = ["ab", "b\na", "a\n", "\n", "\n\n", "a\r\nb\r\n", "\r\n\r", "ab\n\nb\na b", "x\ny\nz"];
        let expressions = [
            "$", "^", "", r"(?mR)b$", r"\z", r"\A", r"(?R)\r$", r"(?R)$", r"a\s*b", r"\s$", "z|y", r"(?-m)a$",
        ];
        for expression in expressions {
            for block in blocks {
                let found = found_lines(&matcher(expression, 1000), block.as_bytes());
                assert_eq!(found, lines_alone(expression, block.as_bytes()), "{expression:?} in {block:?}");
            }
        }
    }

    /// Expressions with operators at all places, and groups that hold one repetition.
    fn expression() -> impl Strategy<Value = String> {
        let leaf = proptest::sample::select(vec![
            "a",
            "b",
            "ab",
            ".",
            "[^a]",
            r"\s",
            r"\n",
            "^",
            "$",
            r"\b",
            r"\B",
            r"\A",
            r"\z",
            "(?s:.)",
            "\u{e4}",
            r"(?-u:\xff)",
            r"\w",
            "",
            r"(?i:B)",
            r"(?R:$)",
            r"(?mR:$)",
            r"(?mR:^)",
            r"(?m:$)",
            r"(?-u:\b)",
            "[b\n]",
        ]);
        leaf.prop_map(str::to_owned).prop_recursive(4, 16, 3, |inner| {
            let operator =
                proptest::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "{0,1}", "*?", "+?", "??"]);
            prop_oneof![
                (inner.clone(), operator, any::<bool>()).prop_map(|(inner, operator, is_capture)| {
                    format!("({}{inner}){operator}", if is_capture { "" } else { "?:" })
                }),
                proptest::collection::vec(inner.clone(), 1..3).prop_map(|parts| parts.concat()),
                proptest::collection::vec(inner, 1..3).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            ]
        })
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = proptest::sample::select(vec![
            &b"a"[..],
            b"b",
            b"ab",
            b"\n",
            b"\r\n",
            b"\r",
            b" ",
            "\u{e4}".as_bytes(),
            b"\xff",
            b"B",
            b"_",
        ]);
        proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn searches_find_what_another_compiler_finds(expression in expression(), text in text(), quick_bytes in 0_u64..20) {
            let matcher = matcher(&expression, quick_bytes);
            let regex = RegexBuilder::new(&expression).build().unwrap();
            let is_unicode = !text.is_ascii() && (expression.contains(r"\b") || expression.contains(r"\B"));
            if (quick_bytes as usize) < text.len() && is_unicode {
                // Such a search may end with a message.
                return Ok(());
            }
            prop_assert_eq!(found_lines(&matcher, &text), lines_alone(&expression, &text));
            for line in text.split(|byte| *byte == b'\n') {
                let mut found = Vec::new();
                matcher.searches().matches(line, &go_on, |range| found.push(range)).unwrap();
                let expected: Vec<_> =
                    regex.find_iter(line).map(|found| found.range()).filter(|range| !range.is_empty()).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_search_that_takes_long_can_be_stopped() {
        let line = vec![b'a'; 1 << 20];
        for expression in ["(?:a{1,500}){1,5}$x|(?:aa?){1,200}b", r"(\w{1,3}x){20}"] {
            let matcher =
                Matcher::of_lines(&Pattern::Regex(expression.into()), &Account::unlimited()).unwrap();
            assert!(!matcher.is_quick(line.len()));
            let checks = Cell::new(0);
            let check = || {
                checks.set(checks.get() + 1);
                if checks.get() > 3 { Err(Failure::new(Status::Cancelled, "stopped")) } else { Ok(()) }
            };
            assert_eq!(matcher.searches().is_match(&line, &check).unwrap_err().status, Status::Cancelled);
            assert_eq!(
                matcher.searches().matches(&line, &check, |_| ()).unwrap_err().status,
                Status::Cancelled
            );
            assert_eq!(matcher.searches().next_line(&line, 0, &check).unwrap_err().status, Status::Cancelled);
        }
    }

    #[test]
    fn a_boundary_of_unicode_words_that_cannot_be_stepped_over_is_explained() {
        let matcher = matcher(r"\bab\b", 0);
        assert!(matcher.searches().is_match(b"x ab", &go_on).unwrap());
        let failure = matcher.searches().is_match("\u{e4} ab".as_bytes(), &go_on).unwrap_err();
        assert_eq!(failure.status, Status::RecordTooLong);
        assert!(failure.message.contains(r"(?-u:\b)"), "{failure}");
    }
}
