//! Occurrences of words: counts, and the first positions of each word.

use super::{Answer, Kind, Report};
use crate::engine::{Charge, Start};
use crate::outcome::Failure;
use crate::scan::{Begin, Finished, Flow, Operation, Role, Unit, View};
use crate::search::{Searcher, WORD_BYTES_MAX, WORDS_MAX};
use crate::text::Keys;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Largest number of positions of each word that the caller's thread finds itself. Their text takes longer.
pub(super) const INLINE_POSITIONS: usize = 1000;

/// Counts the occurrences of words, and locates the first ones of each word.
///
/// An occurrence of a word is a position of the range at which all its bytes follow in the range.
/// Occurrences may overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Words {
    /// Words: 1 to 64 of 1 to 256 bytes.
    pub words: Vec<Vec<u8>>,
    /// Number of positions to report of each word, at most.
    pub positions: usize,
}

/// Results of `Words`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WordsAnswer {
    /// Results of each word, in the order of the instruction.
    pub words: Vec<WordAnswer>,
}

/// Results of one word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WordAnswer {
    /// The word.
    #[serde(serialize_with = "text")]
    pub word: Vec<u8>,
    /// Number of occurrences.
    pub count: u64,
    /// Positions of the first occurrences, ascending.
    pub positions: Vec<u64>,
}

/// Writes bytes as a string if they are UTF-8, and as `{"hex": …}` if they are not.
fn text<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serializer.serialize_str(text),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            serializer.collect_map([("hex", hex)])
        }
    }
}

impl Report for WordsAnswer {
    fn bytes(&self) -> usize {
        self.words.iter().map(|word| size_of_val(&word.positions[..])).sum()
    }
}

impl Words {
    /// Checks the numbers and lengths of the words.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn check(words: &[Vec<u8>]) -> Result<(), Failure> {
        if words.is_empty() || words.len() > WORDS_MAX {
            return Err(Failure::invalid(format!(
                "there are {} words; an instruction has 1 to {WORDS_MAX}",
                words.len()
            )));
        }
        match words.iter().position(|word| word.is_empty() || word.len() > WORD_BYTES_MAX) {
            Some(at) => Err(Failure::invalid(format!(
                "word {} has {} bytes; a word has 1 to {WORD_BYTES_MAX}",
                at + 1,
                words[at].len()
            ))),
            None => Ok(()),
        }
    }
}

impl Kind for Words {
    const NAME: &'static str = "words";

    fn parse(value: &Value, keys: &mut Keys<'_>) -> Result<Self, Failure> {
        let words = keys.words("words", value)?;
        Ok(Self { words, positions: keys.size("positions")?.unwrap_or(0) })
    }

    fn held_bytes(&self) -> usize {
        self.words.iter().map(|word| 4 * word.len() + 64).sum()
    }

    fn start(&self, start: Start) -> Result<(), Failure> {
        Self::check(&self.words)?;
        start.with(Search { searcher: Searcher::new(&self.words), words: self.clone() })
    }
}

/// Operation of `Words`.
struct Search {
    searcher: Searcher,
    words: Words,
}

struct Found {
    /// Number of occurrences of each word.
    counts: Vec<u64>,
    /// First positions of each word.
    positions: Vec<Vec<u64>>,
    role: Role,
    /// Number of positions of each word for which there is memory.
    max: usize,
    overflow: bool,
    charge: Charge,
    /// Refusal of memory for a position.
    refused: Option<Failure>,
}

impl Found {
    /// Keeps a position. Few occurrences have one that is kept.
    #[cold]
    fn keep(&mut self, word: usize, at: u64) {
        let positions = &mut self.positions[word];
        if positions.len() >= self.max {
            self.overflow = true;
        } else if let Err(failure) = self.charge.push(positions, at) {
            self.refused = Some(failure);
        }
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.refused.take().map_or(Ok(()), Err)
    }
}

impl Operation for Search {
    type Results = Found;

    fn unit(&self) -> Unit {
        Unit::Positions { overlap: self.searcher.longest().saturating_sub(1) }
    }

    fn inline_bytes(&self, usual: u64) -> u64 {
        if self.words.positions <= INLINE_POSITIONS { usual } else { 0 }
    }

    fn begin(&self, begin: Begin) -> Found {
        let number = self.words.words.len();
        let max = begin.memory / size_of::<u64>() / number;
        let (counts, positions) = (vec![0; number], vec![Vec::new(); number]);
        let charge = begin.account.charge();
        Found { counts, positions, role: begin.role, max, overflow: false, charge, refused: None }
    }

    fn view(&self, found: &mut Found, view: View<'_>) -> Result<Flow, Failure> {
        let wanted = self.words.positions as u64;
        let mut counts = std::mem::take(&mut found.counts);
        if counts.iter().all(|count| *count >= wanted) {
            // Most views: it takes two thirds of the time of the other search.
            self.searcher.search(view.bytes, view.starts, |word, _| counts[word] += 1);
        } else {
            self.searcher.search(view.bytes, view.starts, |word, at| {
                if counts[word] < wanted {
                    found.keep(word, view.at + at as u64);
                }
                counts[word] += 1;
            });
        }
        found.counts = counts;
        found.check()?;
        Ok(if found.overflow && found.role == Role::Part { Flow::Overflow } else { Flow::Continue })
    }

    fn merge(&self, total: &mut Found, next: Found) -> Result<Flow, Failure> {
        for (word, (more, positions)) in next.counts.into_iter().zip(next.positions).enumerate() {
            let wanted = (self.words.positions as u64).saturating_sub(total.counts[word]);
            for at in positions.into_iter().take(usize::try_from(wanted).unwrap_or(usize::MAX)) {
                total.keep(word, at);
            }
            total.counts[word] += more;
        }
        total.check()?;
        Ok(Flow::Continue)
    }

    fn finish(&self, total: Found) -> Result<Finished, Failure> {
        let found = total.counts.into_iter().zip(total.positions);
        let words = self.words.words.iter().cloned().zip(found);
        let words = words.map(|(word, (count, positions))| WordAnswer { word, count, positions }).collect();
        Ok(Finished::new(Answer::Words(WordsAnswer { words }), total.overflow, total.charge))
    }
}
