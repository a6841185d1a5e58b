//! The first bytes of a trace, from which its format is told.

use super::Decoded;
use crate::text::{Cursor, LineParser};

/// The first bytes of a trace.
pub(crate) struct Head<'a> {
    /// The bytes.
    pub(crate) bytes: &'a [u8],
    /// Whether the trace ends with them.
    pub(crate) whole: bool,
    /// How many lines a format is judged by.
    pub(crate) judged: usize,
}

impl<'a> Head<'a> {
    /// Its whole lines, without blank ones, padding and comments.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let end = match memchr::memrchr(b'\n', self.bytes) {
            Some(n) if !self.whole => n,
            _ => self.bytes.len(),
        };
        self.bytes[..end]
            .split(|&b| b == b'\n')
            .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
            .filter(|l| l.iter().any(|&b| b > b' ') && !l.trim_ascii_start().starts_with(b"#"))
    }

    /// The share of lines that a parser takes, among those that it does not skip; 0 when it delivers
    /// no request.
    pub(crate) fn share(&self, parser: &mut impl LineParser) -> f32 {
        let mut out = Decoded::default();
        let mut bad = 0usize;
        for line in self.lines().take(self.judged) {
            bad += usize::from(parser.line(Cursor::new(line), &mut out).is_err());
        }
        let good = out.requests.len();
        good as f32 / (good + bad).max(1) as f32
    }
}
