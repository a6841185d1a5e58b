//! Search with one step for each byte, which can be stopped at any time.
//!
//! The engines of the library search a whole text in one call. In the worst case they take a step for each
//! state of the expression and each byte, which is minutes for a large expression and a line of 1 MiB.

use super::caches::{Caches, Held};
use super::{Check, PROGRAM_BYTES_MAX};
use crate::engine::{Account, Charge};
use crate::outcome::{Failure, Status};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;
use std::ops::Range;

/// Bytes between questions whether the search has to stop. A step can take milliseconds.
const CHECK_BYTES: usize = 256;

/// Deterministic automata whose states are computed when they are needed.
pub(super) struct Stepping {
    /// Finds the end of the first match.
    forward: DFA,
    /// Finds the begin of a match from its end.
    reverse: DFA,
    /// States that were computed.
    caches: Caches<Pair>,
    _charge: Charge,
}

/// States of both directions that were computed.
pub(super) struct Pair {
    forward: Cache,
    reverse: Cache,
}

impl Pair {
    fn bytes(&self) -> usize {
        self.forward.memory_usage() + self.reverse.memory_usage()
    }
}

fn compile(hir: &Hir, reverse: bool) -> Option<NFA> {
    let config = thompson::Config::new()
        .utf8(false)
        .reverse(reverse)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(PROGRAM_BYTES_MAX));
    thompson::Compiler::new().configure(config).build_from_hir(hir).ok()
}

/// Returns the number of states of an expression, or none if it is too large.
pub(super) fn states(hir: &Hir) -> Option<u64> {
    compile(hir, false).map(|nfa| nfa.states().len() as u64)
}

impl Stepping {
    /// Compiles an expression whose searches may use caches of `cache_bytes`.
    ///
    /// # Errors
    /// There is no memory. Returns `None` if the expression is too large.
    pub(super) fn new(hir: &Hir, cache_bytes: usize, account: &Account) -> Option<Result<Self, Failure>> {
        // The states are removed whenever the cache is full, so the search always goes on.
        let config = DFA::config()
            .unicode_word_boundary(true)
            .cache_capacity(cache_bytes)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(None);
        let build = |reverse: bool| {
            let kind = if reverse { MatchKind::All } else { MatchKind::LeftmostFirst };
            let config = config.clone().match_kind(kind);
            DFA::builder().configure(config).build_from_nfa(compile(hir, reverse)?).ok()
        };
        let (forward, reverse) = (build(false)?, build(true)?);
        let bytes = [&forward, &reverse].map(|dfa| dfa.memory_usage() + dfa.get_nfa().memory_usage());
        let charge = account.charged(bytes.iter().sum());
        Some(charge.map(|charge| Self {
            forward,
            reverse,
            caches: Caches::new(account, Pair::bytes),
            _charge: charge,
        }))
    }

    /// Returns a place for what a thread computes.
    pub(super) fn hold(&self) -> Held<'_, Pair> {
        self.caches.hold()
    }

    pub(super) fn is_match(
        &self,
        held: &mut Held<'_, Pair>,
        text: &[u8],
        check: Check<'_>,
    ) -> Result<bool, Failure> {
        held.search(|| self.create(), |pair| Ok(self.end(pair, text, 0, true, check)?.is_some()))
    }

    /// Returns the first match at or behind `from`.
    pub(super) fn find(
        &self,
        held: &mut Held<'_, Pair>,
        text: &[u8],
        from: usize,
        check: Check<'_>,
    ) -> Result<Option<Range<usize>>, Failure> {
        held.search(
            || self.create(),
            |pair| {
                let Some(end) = self.end(pair, text, from, false, check)? else { return Ok(None) };
                let begin = self.begin(pair, text, from..end, check)?;
                Ok(Some(begin..end))
            },
        )
    }

    fn create(&self) -> Pair {
        Pair { forward: self.forward.create_cache(), reverse: self.reverse.create_cache() }
    }

    /// End of the first match at or behind `from`, or with `earliest` a position at which there is a match.
    fn end(
        &self,
        pair: &mut Pair,
        text: &[u8],
        from: usize,
        earliest: bool,
        check: Check<'_>,
    ) -> Result<Option<usize>, Failure> {
        let (dfa, cache) = (&self.forward, &mut pair.forward);
        let start = dfa.start_state_forward(cache, &Input::new(text).range(from..));
        let mut state = start.map_err(|_| too_long(text))?;
        let mut last = None;
        // A state tells a match that ended before the last byte.
        for at in from..=text.len() {
            if (at - from).is_multiple_of(CHECK_BYTES) {
                check()?;
            }
            let next = match text.get(at) {
                Some(byte) => dfa.next_state(cache, state, *byte),
                None => dfa.next_eoi_state(cache, state),
            };
            state = next.map_err(|_| too_long(text))?;
            if state.is_match() {
                last = Some(at);
                if earliest {
                    break;
                }
            } else if ends(state, text)? {
                break;
            }
        }
        Ok(last)
    }

    /// Begin of the match that ends at the end of a range.
    fn begin(
        &self,
        pair: &mut Pair,
        text: &[u8],
        range: Range<usize>,
        check: Check<'_>,
    ) -> Result<usize, Failure> {
        let (dfa, cache) = (&self.reverse, &mut pair.reverse);
        let input = Input::new(text).range(range.clone()).anchored(Anchored::Yes);
        let mut state = dfa.start_state_reverse(cache, &input).map_err(|_| too_long(text))?;
        let mut first = range.end;
        for at in (range.start..=range.end).rev() {
            if (range.end - at).is_multiple_of(CHECK_BYTES) {
                check()?;
            }
            // The byte before the range decides what the text before the match is.
            let next = match at.checked_sub(1) {
                Some(before) => dfa.next_state(cache, state, text[before]),
                None => dfa.next_eoi_state(cache, state),
            };
            state = next.map_err(|_| too_long(text))?;
            if state.is_match() {
                first = at;
            } else if ends(state, text)? {
                break;
            }
        }
        Ok(first)
    }
}

/// Returns `true` if a search ends with a state.
fn ends(state: LazyStateID, text: &[u8]) -> Result<bool, Failure> {
    if state.is_quit() {
        return Err(too_long(text));
    }
    Ok(state.is_dead())
}

fn too_long(text: &[u8]) -> Failure {
    Failure::new(
        Status::RecordTooLong,
        format!(
            "a record of {} bytes is too long for this regular expression, which has boundaries of words in Unicode \
             and many states: use those of ASCII, such as (?-u:\\b), or a simpler expression",
            text.len()
        ),
    )
}
