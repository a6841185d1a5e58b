//! The first bytes of a trace, from which its format is recognised.

use super::DecoderOutput;
use crate::text::{Cursor, LineParser};

/// A format is not recognised if more than one line in this number is malformed (our choice).
const MALFORMED_SHARE: usize = 10;
/// Number of malformed lines that never prevent recognition, for short traces.
const MALFORMED_ALWAYS: usize = 2;

/// The first bytes of a trace.
#[derive(Clone, Copy)]
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
    /// yields no request, or if it rejects too many lines after the first request.
    ///
    /// Lines before the first request may be a preamble. Many malformed lines after it show that
    /// the text has another format, of which some lines happen to parse.
    pub(crate) fn share(&self, parser: &mut impl LineParser) -> f32 {
        let mut out = DecoderOutput::default();
        let (mut preamble, mut bad) = (0usize, 0usize);
        for line in self.lines().take(self.judged) {
            let rejected = parser.line(Cursor::new(line), &mut out).is_err();
            let count = if out.requests.is_empty() { &mut preamble } else { &mut bad };
            *count += usize::from(rejected);
        }
        let good = out.requests.len();
        if bad > MALFORMED_ALWAYS && bad * MALFORMED_SHARE > good + bad {
            return 0.0;
        }
        good as f32 / (good + preamble + bad).max(1) as f32
    }
}
