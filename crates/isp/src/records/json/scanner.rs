//! Scanner of JSON text (RFC 8259). It checks the syntax, and tells where values are.
//!
//! Readers of JSON in libraries limit the depth, or allocate what they read. A line that is valid here must not
//! depend on the fields that are asked for, and most of its values are only skipped.

use std::borrow::Cow;

/// Receiver of the places of values that it wants. Of each value that begins, it gets the wanted values inside, and
/// then the end. The outermost value is wanted.
pub(super) trait Events {
    /// A key of the object that has begun last. Returns `true` if its value is wanted.
    fn key(&mut self, key: Text<'_>) -> bool;

    /// A wanted value begins.
    fn begin(&mut self, at: usize);

    /// The wanted value that has begun last has ended before `at`.
    fn end(&mut self, at: usize);
}

/// String in a JSON text.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    /// Bytes between the quotes.
    pub(super) bytes: &'a [u8],
    /// `true` if there are escape sequences.
    pub(super) is_escaped: bool,
}

/// Position in a JSON text. A method that returns `None` has found something that is not JSON.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Scans an object. `open` is a buffer.
    pub(super) fn object(&mut self, open: &mut Vec<u8>, events: &mut impl Events) -> Option<()> {
        self.skip_space();
        if self.peek() == Some(b'{') { self.value(open, events) } else { None }
    }

    /// Fails if something else than white space follows.
    pub(super) fn end(&mut self) -> Option<()> {
        self.skip_space();
        (self.at == self.text.len()).then_some(())
    }

    /// Scans a value. Nesting is not limited: the brackets that are not closed are kept in `open`, so that
    /// a value needs no stack of the thread.
    fn value(&mut self, open: &mut Vec<u8>, events: &mut impl Events) -> Option<()> {
        open.clear();
        let mut wanted = true;
        // Number of open objects that are wanted. They are the outermost ones, and their keys are told.
        let mut objects = 0;
        // `true` if the array in them is wanted.
        let mut in_array = false;
        loop {
            self.skip_space();
            if wanted {
                events.begin(self.at);
            }
            match self.peek()? {
                b'"' => _ = self.string()?,
                begin @ (b'{' | b'[') => {
                    self.at += 1;
                    self.skip_space();
                    // In ASCII, a bracket is closed by the character after the next one.
                    if !self.take(begin + 2) {
                        open.push(begin + 2);
                        let is_object = begin == b'{';
                        objects += usize::from(wanted && is_object);
                        in_array |= wanted && !is_object;
                        wanted = is_object && self.wants_key(objects == open.len(), events)?;
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
                if wanted {
                    events.end(self.at);
                }
                let Some(close) = open.last().copied() else { return Some(()) };
                self.skip_space();
                if !self.take(close) {
                    self.expect(b',')?;
                    wanted = close == b'}' && self.wants_key(objects == open.len(), events)?;
                    break;
                }
                let depth = open.len();
                wanted = depth == objects || in_array && depth == objects + 1;
                in_array &= depth != objects + 1;
                objects = objects.min(depth - 1);
                open.pop();
            }
        }
    }

    /// Scans a key, and tells it if its object is wanted. Returns `true` if its value is wanted.
    fn wants_key(&mut self, in_wanted: bool, events: &mut impl Events) -> Option<bool> {
        let key = self.key()?;
        Some(in_wanted && events.key(key))
    }

    /// Scans a key and the colon behind it.
    fn key(&mut self) -> Option<Text<'a>> {
        self.skip_space();
        let key = self.string()?;
        self.skip_space();
        self.expect(b':')?;
        Some(key)
    }

    fn string(&mut self) -> Option<Text<'a>> {
        self.expect(b'"')?;
        let (begin, mut is_escaped) = (self.at, false);
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
            match self.text[self.at] {
                b'"' => {
                    self.at += 1;
                    return Some(Text { bytes: &self.text[begin..self.at - 1], is_escaped });
                }
                b'\\' => {
                    self.at += escape_len(&self.text[self.at..])?;
                    is_escaped = true;
                }
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
    use super::{Events, Scanner, Text, decode};
    use proptest::prelude::*;
    use serde_json::Value;

    /// Keys and values of an object as they are written.
    #[derive(Default)]
    struct Written {
        open: usize,
        found: Vec<(Vec<u8>, std::ops::Range<usize>)>,
    }

    impl Events for Written {
        fn key(&mut self, key: Text<'_>) -> bool {
            let is_wanted = self.open == 1;
            if is_wanted {
                self.found.push((key.bytes.to_vec(), 0..0));
            }
            is_wanted
        }

        fn begin(&mut self, at: usize) {
            self.open += 1;
            if let Some((_, value)) = self.found.last_mut() {
                value.start = at;
            }
        }

        fn end(&mut self, at: usize) {
            self.open -= 1;
            if self.open == 1 {
                self.found.last_mut().unwrap().1.end = at;
            }
        }
    }

    fn scanned(text: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let (mut scanner, mut written) = (Scanner::new(text), Written::default());
        scanner.object(&mut Vec::new(), &mut written)?;
        scanner.end()?;
        Some(written.found.into_iter().map(|(key, value)| (key, text[value].to_vec())).collect())
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
