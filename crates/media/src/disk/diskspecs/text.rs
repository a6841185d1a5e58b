//! DiskSim's parameter grammar: blocks of `key = value`, lists, sources, comments.

use super::DiskspecsError;
use std::path::{Path, PathBuf};

/// Maximum depth of nested blocks, and of files that include each other.
const DEPTH_MAX: usize = 16;
/// Maximum size of a parameter file in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// A location in a parameter file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Location {
    pub file: PathBuf,
    pub line: usize,
}

impl Location {
    pub(super) fn error(&self, what: impl Into<String>) -> DiskspecsError {
        DiskspecsError { file: self.file.clone(), line: self.line, what: what.into() }
    }
}

/// A value and its location.
#[derive(Clone, Debug)]
pub(super) struct ParameterValue {
    pub at: Location,
    pub kind: ValueKind,
}

#[derive(Clone, Debug)]
pub(super) enum ValueKind {
    Text(String),
    List(Vec<ParameterValue>),
    Block(ParameterBlock),
}

/// `type name { key = value, … }`.
#[derive(Clone, Debug)]
pub(super) struct ParameterBlock {
    pub at: Location,
    pub kind: String,
    pub name: String,
    pub entries: Vec<(String, ParameterValue)>,
}

impl ParameterBlock {
    pub(super) fn find(&self, key: &str) -> Option<&ParameterValue> {
        // The last entry of a key applies, as in DiskSim.
        self.entries.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

/// Reads a file of at most [`BYTES_MAX`] bytes.
pub(super) fn load(file: &Path) -> Result<String, DiskspecsError> {
    let fail = |what: String| DiskspecsError { file: file.to_path_buf(), line: 0, what };
    let bytes = frit_core::files::read(file, BYTES_MAX).map_err(|e| match e.kind() {
        std::io::ErrorKind::FileTooLarge => {
            fail(format!("has more than {BYTES_MAX} bytes, far more than a parameter file of DiskSim"))
        }
        _ => fail(format!("cannot be read: {e}")),
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the top-level blocks of a file, and of the files that it sources at the top level.
pub(super) fn blocks(file: &Path) -> Result<Vec<ParameterBlock>, DiskspecsError> {
    blocks_of(file, &load(file)?, 0)
}

/// Parses the top-level blocks of a text that is treated as the contents of `file`.
pub(super) fn blocks_of(
    file: &Path,
    text: &str,
    depth: usize,
) -> Result<Vec<ParameterBlock>, DiskspecsError> {
    let tokens = tokens(file, text);
    let mut p = Parser { tokens: &tokens, next: 0, file, depth };
    let mut out = Vec::new();
    while let Some((at, token)) = p.peek() {
        let Lexeme::Text(words) = token else {
            p.next += 1;
            continue;
        };
        p.next += 1;
        if matches!(p.peek(), Some((_, Lexeme::Open))) {
            let (at, words) = (at.clone(), words.clone());
            out.push(p.block(at, &words)?);
        } else if let Some(source) = words.strip_prefix("source ") {
            let sourced = relative_to(file, source.trim());
            if !sourced.is_file() {
                return Err(at.error(format!("sources '{}', which does not exist", sourced.display())));
            }
            p.enter(at, depth)?;
            out.extend(blocks_of(&sourced, &load(&sourced)?, depth + 1)?);
        }
        // `instantiate`, `topology`: they do not describe the drive.
    }
    Ok(out)
}

/// Returns a path that a file names, relative to the folder of the file.
pub(super) fn relative_to(file: &Path, name: &str) -> PathBuf {
    file.parent().map_or_else(|| PathBuf::from(name), |d| d.join(name))
}

enum Lexeme {
    Text(String),
    Open,
    Close,
    ListOpen,
    ListClose,
    Equals,
    Comma,
}

/// Splits a text into tokens, without comments. Words between punctuation form one token, which
/// ends at the end of the line.
fn tokens(file: &Path, text: &str) -> Vec<(Location, Lexeme)> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let at = Location { file: file.to_path_buf(), line: i + 1 };
        let line = line.split('#').next().unwrap_or_default();
        let mut words = String::new();
        for c in line.chars() {
            let token = match c {
                '{' => Lexeme::Open,
                '}' => Lexeme::Close,
                '[' => Lexeme::ListOpen,
                ']' => Lexeme::ListClose,
                '=' => Lexeme::Equals,
                ',' => Lexeme::Comma,
                c => {
                    words.push(c);
                    continue;
                }
            };
            flush(&at, &mut words, &mut out);
            out.push((at.clone(), token));
        }
        flush(&at, &mut words, &mut out);
    }
    out
}

fn flush(at: &Location, words: &mut String, out: &mut Vec<(Location, Lexeme)>) {
    let text: Vec<&str> = words.split_whitespace().collect();
    if !text.is_empty() {
        out.push((at.clone(), Lexeme::Text(text.join(" "))));
    }
    words.clear();
}

struct Parser<'a> {
    tokens: &'a [(Location, Lexeme)],
    next: usize,
    file: &'a Path,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a (Location, Lexeme)> {
        self.tokens.get(self.next)
    }

    fn next_token(&mut self, at: &Location, wanted: &str) -> Result<&'a (Location, Lexeme), DiskspecsError> {
        let t = self.peek().ok_or_else(|| at.error(format!("the file ends here, before {wanted}")))?;
        self.next += 1;
        Ok(t)
    }

    fn enter(&self, at: &Location, depth: usize) -> Result<(), DiskspecsError> {
        if depth >= DEPTH_MAX {
            return Err(at.error(format!("nests more than {DEPTH_MAX} deep; does a file source itself?")));
        }
        Ok(())
    }

    /// Parses a block whose type and name were consumed; the next token is its `{`.
    fn block(&mut self, at: Location, words: &str) -> Result<ParameterBlock, DiskspecsError> {
        self.enter(&at, self.depth)?;
        self.depth += 1;
        self.next += 1;
        let (kind, name) = words.split_once(' ').unwrap_or((words, ""));
        let mut block = ParameterBlock { kind: kind.into(), name: name.into(), entries: Vec::new(), at };
        loop {
            let (at, token) = self.next_token(&block.at, "the '}' of the block that opens here")?;
            match token {
                Lexeme::Close => break,
                Lexeme::Comma => {}
                Lexeme::Text(key) => {
                    let (at, equals) = self.next_token(at, &format!("'=' after '{key}'"))?;
                    if !matches!(equals, Lexeme::Equals) {
                        return Err(at.error(format!("'=' is missing after '{key}'")));
                    }
                    let value = self.value(at, key)?;
                    block.entries.push((key.clone(), value));
                }
                _ => return Err(at.error(format!("the name of a parameter is expected here, in '{kind}'"))),
            }
        }
        self.depth -= 1;
        Ok(block)
    }

    fn value(&mut self, at: &Location, key: &str) -> Result<ParameterValue, DiskspecsError> {
        let (at, token) = self.next_token(at, &format!("the value of '{key}'"))?;
        let kind = match token {
            Lexeme::ListOpen => ValueKind::List(self.list(at, key)?),
            Lexeme::Text(words) if matches!(self.peek(), Some((_, Lexeme::Open))) => {
                ValueKind::Block(self.block(at.clone(), words)?)
            }
            Lexeme::Text(words) => match words.strip_prefix("source ") {
                Some(name) => ValueKind::Block(self.source(at, key, name.trim())?),
                None => ValueKind::Text(words.clone()),
            },
            _ => return Err(at.error(format!("the value of '{key}' is missing"))),
        };
        Ok(ParameterValue { at: at.clone(), kind })
    }

    fn list(&mut self, at: &Location, key: &str) -> Result<Vec<ParameterValue>, DiskspecsError> {
        self.enter(at, self.depth)?;
        self.depth += 1;
        let mut out = Vec::new();
        loop {
            match self.peek() {
                Some((_, Lexeme::ListClose)) => break,
                Some((_, Lexeme::Comma)) => self.next += 1,
                Some(_) => out.push(self.value(at, key)?),
                None => return Err(at.error(format!("the file ends inside the list of '{key}'"))),
            }
        }
        self.next += 1;
        self.depth -= 1;
        Ok(out)
    }

    fn source(&self, at: &Location, key: &str, name: &str) -> Result<ParameterBlock, DiskspecsError> {
        let file = relative_to(self.file, name);
        if !file.is_file() {
            let why = format!(
                "'{key}' sources '{}', which does not exist; put it into the same folder, or correct the name",
                file.display()
            );
            return Err(at.error(why));
        }
        self.enter(at, self.depth)?;
        let mut all = blocks_of(&file, &load(&file)?, self.depth + 1)?;
        if all.is_empty() {
            return Err(DiskspecsError { file, line: 0, what: format!("has no block for '{key}'") });
        }
        Ok(all.swap_remove(0))
    }
}
