//! The first bytes of a trace, from which its format is recognised.

use super::DecoderOutput;
use crate::text::{Cursor, LineParser};

/// The first bytes of a trace.
pub(crate) struct Head<'a> {
    /// Contents of the head.
    pub(crate) bytes: &'a [u8],
    /// `true` if the trace ends with these bytes.
    pub(crate) whole: bool,
    /// Number of lines on which the score of a format is based.
    pub(crate) judged: usize,
}

impl<'a> Head<'a> {
    /// Returns the complete lines, without blank lines, padding and comments.
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

    /// Returns the share of lines that a parser accepts, among those that it does not skip; 0 if it
    /// yields no request.
    pub(crate) fn share(&self, parser: &mut impl LineParser) -> f32 {
        let mut out = DecoderOutput::default();
        let mut bad = 0usize;
        for line in self.lines().take(self.judged) {
            bad += usize::from(parser.line(Cursor::new(line), &mut out).is_err());
        }
        let good = out.requests.len();
        good as f32 / (good + bad).max(1) as f32
    }
}
