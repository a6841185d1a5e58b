//! Scanner of JSON text (RFC 8259). It checks the syntax, and stores nothing but open brackets.

use std::borrow::Cow;
use std::ops::Range;

/// Position in a JSON text. A method that returns `None` has found something that is not JSON.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Scans an object, and calls `each` with the bytes between the quotes of each key, and the place of
    /// its value in the text. `open` is a buffer.
    pub(super) fn object(
        &mut self,
        open: &mut Vec<u8>,
        mut each: impl FnMut(&'a [u8], Range<usize>),
    ) -> Option<()> {
        self.skip_space();
        self.expect(b'{')?;
        self.skip_space();
        if self.take(b'}') {
            return Some(());
        }
        loop {
            let key = self.key()?;
            self.skip_space();
            let begin = self.at;
            self.value(open)?;
            each(key, begin..self.at);
            self.skip_space();
            if self.take(b'}') {
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    /// Fails if something else than white space follows.
    pub(super) fn end(&mut self) -> Option<()> {
        self.skip_space();
        (self.at == self.text.len()).then_some(())
    }

    /// Scans a value. Nesting is not limited: the brackets that are not closed are kept in `open`, so that
    /// a value needs no stack of the thread.
    fn value(&mut self, open: &mut Vec<u8>) -> Option<()> {
        open.clear();
        loop {
            self.skip_space();
            match self.peek()? {
                b'"' => _ = self.string()?,
                begin @ (b'{' | b'[') => {
                    self.at += 1;
                    self.skip_space();
                    // In ASCII, a bracket is closed by the character after the next one.
                    if !self.take(begin + 2) {
                        open.push(begin + 2);
                        if begin == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            // A value has ended, and with it the brackets that are closed behind it.
            loop {
                let Some(close) = open.last().copied() else { return Some(()) };
                self.skip_space();
                if !self.take(close) {
                    self.expect(b',')?;
                    if close == b'}' {
                        self.key()?;
                    }
                    break;
                }
                open.pop();
            }
        }
    }

    /// Scans a key and the colon behind it. Returns the bytes between its quotes.
    fn key(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        let key = self.string()?;
        self.skip_space();
        self.expect(b':')?;
        Some(key)
    }

    /// Scans a string. Returns the bytes between its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let begin = self.at;
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
            match self.text[self.at] {
                b'"' => {
                    self.at += 1;
                    return Some(&self.text[begin..self.at - 1]);
                }
                b'\\' => self.at += escape_len(&self.text[self.at..])?,
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let len = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += len;
        (len > 0).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }
}

/// Length of an escape sequence at the begin of a text.
fn escape_len(text: &[u8]) -> Option<usize> {
    match text.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => text.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// Decodes the bytes between the quotes of a string whose syntax is right. A surrogate without its
/// partner is read as U+FFFD.
pub(in crate::records) fn decode(string: &[u8]) -> Cow<'_, [u8]> {
    let Some(mut at) = memchr::memchr(b'\\', string) else { return Cow::Borrowed(string) };
    let mut text = string[..at].to_vec();
    while let Some(&[_, kind]) = string.get(at..at + 2) {
        at += 2;
        match kind {
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'u' => {
                let (character, len) = character(&string[at..]);
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += len;
            }
            other => text.push(other),
        }
        let plain = memchr::memchr(b'\\', &string[at..]).unwrap_or(string.len() - at);
        text.extend_from_slice(&string[at..at + plain]);
        at += plain;
    }
    Cow::Owned(text)
}

/// Character of an escape sequence behind its `\u`, and the length of the digits, or that up to the end of
/// the second sequence of a pair.
fn character(text: &[u8]) -> (char, usize) {
    let digits = |at: usize| {
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        text.get(at..at + 4)?.iter().try_fold(0, |code, byte| Some(code << 4 | digit(byte)?))
    };
    let code = digits(0).unwrap_or(0xfffd);
    if matches!(code, 0xd800..0xdc00)
        && text.get(4..6) == Some(b"\\u")
        && let Some(low @ 0xdc00..0xe000) = digits(6)
    {
        let pair = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

#[cfg(test)]
mod tests {
    use super::{Scanner, decode};
    use proptest::prelude::*;
    use serde_json::Value;

    /// Returns the keys and values of an object as they are written.
    fn scanned(text: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let (mut scanner, mut found) = (Scanner::new(text), Vec::new());
        scanner.object(&mut Vec::new(), |key, value| found.push((key.to_vec(), text[value].to_vec())))?;
        scanner.end()?;
        Some(found)
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn texts() -> impl Strategy<Value = String> {
        let piece = proptest::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"\\u0041\\n\"",
            "1",
            "-0.5e+7",
            "01",
            "true",
            "null",
            " ",
            "\"",
            "\\",
            "x",
            "{\"a\":",
            "[1,",
            "\"\\ud83d\\ude00\"",
        ]);
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| format!("{{\"k\":{}", pieces.concat()))
    }

    proptest! {
        #[test]
        fn values_are_those_of_another_reader(value in value(), pretty: bool) {
            let object = serde_json::json!({"key": value, "": 1});
            let text = if pretty { format!("{object:#}") } else { object.to_string() };
            let found = scanned(text.as_bytes()).unwrap();
            prop_assert_eq!(found.len(), 2);
            let (_, text) = found.iter().find(|(key, _)| key == b"key").unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(text).unwrap(), value);
        }

        #[test]
        fn texts_are_valid_as_in_another_reader(text in prop_oneof![texts(), ".{0,12}"]) {
            let other: Result<serde_json::Map<String, Value>, _> = serde_json::from_str(&text);
            prop_assert_eq!(scanned(text.as_bytes()).is_some(), other.is_ok(), "{:?}", other);
        }

        #[test]
        fn strings_are_decoded(text: String, ascii: bool) {
            let quoted = if ascii {
                let unit = |unit| format!("\\u{unit:04x}");
                format!("\"{}\"", text.encode_utf16().map(unit).collect::<String>())
            } else {
                Value::from(text.as_str()).to_string()
            };
            prop_assert_eq!(&*decode(&quoted.as_bytes()[1..quoted.len() - 1]), text.as_bytes());
        }
    }
}
