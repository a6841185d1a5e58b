//! Escaping of text from outside (names of files and of exports, values that clients set) for
//! messages.

use std::fmt;
use std::path::Path;

/// Returns `true` for a character that a terminal may interpret, or that changes the display of the
/// text around it: control characters, and marks of the writing direction.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text from outside in a one-line message. Control characters are escaped (`\n`, `\u{1b}`).
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, |_| false)
    }
}

/// Escapes a message of several lines that contains text from outside: all control characters
/// except tabs and line ends.
#[must_use]
pub fn lines(message: &str) -> String {
    if !message.contains(is_unsafe) {
        return message.to_owned();
    }
    let mut out = String::with_capacity(message.len());
    // Writing to a string does not fail.
    let _ = write(&mut out, message, |c| matches!(c, '\n' | '\t'));
    out
}

/// Returns a path as text that is safe in a message.
#[must_use]
pub fn shown(path: &Path) -> String {
    Escaped(&path.to_string_lossy()).to_string()
}

fn write(out: &mut dyn fmt::Write, text: &str, keep: impl Fn(char) -> bool) -> fmt::Result {
    for c in text.chars() {
        if is_unsafe(c) && !keep(c) {
            for part in c.escape_default() {
                out.write_char(part)?;
            }
        } else {
            out.write_char(c)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_see_no_control_characters() {
        let shown = |s: &str| Escaped(s).to_string();
        assert_eq!(shown("plain – text 漢字 \"'\\"), "plain – text 漢字 \"'\\");
        assert_eq!(
            shown("a\x1b[2Jb\r\nc\t\u{7f}\u{9b}\u{202e}"),
            "a\\u{1b}[2Jb\\r\\nc\\t\\u{7f}\\u{9b}\\u{202e}"
        );
        assert_eq!(lines("one\ntwo\x07\r"), "one\ntwo\\u{7}\\r");
        assert_eq!(lines("one\ttwo\n"), "one\ttwo\n");
    }
}
