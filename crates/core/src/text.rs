//! Escaping of text from outside (names of files and of exports, values that clients set) for
//! messages, and known words that are similar to a word of the user.

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

/// Returns the known word that is most similar to a misspelt one, if one is similar.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase()), k))
        // At most a third of the characters may differ, and one may always differ.
        .filter(|(d, k)| *d <= (k.chars().count().max(lower.chars().count()) / 3).max(1))
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Returns the message of a TOML parser with one suggestion instead of a list of all keys: the
/// parser lists every key that a table may have after a misspelt one. `all` says where the keys are
/// listed, for a key that no other is similar to.
#[must_use]
pub fn unknown_field(message: &str, all: &str) -> String {
    const LIST: &str = "`, expected one of `";
    let message = message.trim_end();
    let split = || {
        let (before, known) = message.rsplit_once(LIST)?;
        let (_, word) = before.rsplit_once("unknown field `")?;
        let known = known.trim_end_matches('`').split("`, `");
        let hint = match nearest(word, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => all.to_owned(),
        };
        Some(format!("{before}`; {hint}"))
    };
    split().unwrap_or_else(|| message.to_owned())
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
    fn a_misspelt_key_gets_one_suggestion_instead_of_all_keys() {
        let told = |word: &str| {
            let toml =
                format!("line 1\nunknown field `{word}`, expected one of `t_read`, `t_write`, `channels`\n");
            unknown_field(&toml, "the page lists the keys")
        };
        assert_eq!(told("t_raed"), "line 1\nunknown field `t_raed`; did you mean `t_read`?");
        assert_eq!(told("colour"), "line 1\nunknown field `colour`; the page lists the keys");
        assert_eq!(unknown_field("line 2\nis not a time\n", ""), "line 2\nis not a time");
    }

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
