//! Splitting of a buffer into lines: lines are counted and parsed, malformed ones are recorded.

use crate::formats::{Decoder, DecoderOutput};
use crate::problems::Reason;
use crate::text::Cursor;
use memchr::memchr;

/// A line longer than this is malformed; no format has such lines.
pub(crate) const LINE_MAX: usize = 64 << 10;

/// Parser of a format in which a line is at most one request.
pub(crate) trait LineParser {
    /// Parses one line, without its line end. A line that yields no request (a header, a summary)
    /// adds nothing to `out`.
    fn line(&mut self, line: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason>;
}

/// A [`Decoder`] based on a [`LineParser`].
pub(crate) struct LineDecoder<P> {
    parser: P,
    skipping: bool,
}

impl<P: LineParser> LineDecoder<P> {
    pub(crate) fn new(parser: P) -> Self {
        LineDecoder { parser, skipping: false }
    }

    fn one(&mut self, line: &[u8], out: &mut DecoderOutput) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        out.problems.lines += 1;
        if let Err(reason) = self.parser.line(Cursor::new(line), out) {
            reject(line, reason, out);
        }
    }
}

/// Records a line that the parser rejected, unless it is blank, a comment or padding.
#[cold]
fn reject(line: &[u8], reason: Reason, out: &mut DecoderOutput) {
    let text = line.trim_ascii();
    let padding = text.iter().all(|&b| b == 0);
    if !padding && !text.starts_with(b"#") && !text.starts_with(b"//") {
        let n = out.problems.lines;
        out.problems.malformed(n, line, reason);
        out.stop |= out.strict;
    }
}

impl<P: LineParser> Decoder for LineDecoder<P> {
    fn decode(&mut self, bytes: &[u8], last: bool, out: &mut DecoderOutput) -> usize {
        let mut at = 0;
        while out.accepts_more() {
            let rest = &bytes[at..];
            match memchr(b'\n', rest) {
                Some(n) => {
                    if !std::mem::take(&mut self.skipping) {
                        self.one(&rest[..n], out);
                    }
                    at += n + 1;
                }
                None if last && !rest.is_empty() => {
                    if !std::mem::take(&mut self.skipping) {
                        self.one(rest, out);
                    }
                    return bytes.len();
                }
                None if rest.len() >= LINE_MAX => {
                    if !self.skipping {
                        out.problems.lines += 1;
                        reject(rest, "line longer than 64 KiB", out);
                    }
                    // The line is too long; the rest of it is skipped when it arrives.
                    self.skipping = true;
                    return bytes.len();
                }
                None => return at,
            }
        }
        at
    }
}
