//! Selection of the format of a trace: recognised from its head, or given by the user.

use crate::formats::{DecoderOutput, FORMATS, Head, TraceFormat};
use crate::problems::snippet;
use crate::{Error, Options, Reading, Result};

/// Returns the format with the given name.
///
/// # Errors
/// No format has this name.
pub fn by_name(name: &str) -> Result<&'static TraceFormat> {
    FORMATS.iter().find(|f| f.name.eq_ignore_ascii_case(name)).copied().ok_or_else(|| Error::UnknownFormat {
        name: name.into(),
        known: FORMATS.iter().map(|f| f.name).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the format of a trace: the one that the user named, else the best match for the head.
pub(crate) fn recognise(path: &str, head: &mut Head<'_>, options: &Options) -> Result<&'static TraceFormat> {
    if head.bytes.iter().all(|b| b.is_ascii_whitespace() || *b == 0) && head.whole {
        let inside = if head.bytes.is_empty() { "" } else { " (only white space)" };
        return Err(Error::Empty { path: path.into(), inside });
    }
    match (&options.format, &options.columns) {
        (Some(name), None) => return by_name(name),
        (Some(name), Some(_)) if !name.eq_ignore_ascii_case("csv") => {
            return Err(Error::spec(
                format!("format {name}"),
                "--columns belongs to the format csv; remove one of the two",
            ));
        }
        (_, Some(_)) => return by_name("csv"),
        (None, None) => {}
    }
    best_match(head).ok_or_else(|| unknown(path, head))
}

/// Returns the format that matches the head best, if one matches.
fn best_match(head: &mut Head<'_>) -> Option<&'static TraceFormat> {
    // The first lines are tried first. If they match no format (a long preamble), the whole head is
    // tried.
    for judged in [256, usize::MAX] {
        head.judged = judged;
        let scores = FORMATS.iter().map(|&f| (f, (f.score)(head)));
        let best = scores.fold(None::<(&TraceFormat, f32)>, |best, (f, score)| match best {
            // `>=` keeps the earlier format of two with equal scores.
            Some((_, b)) if b >= score => best,
            _ => Some((f, score)),
        });
        if let Some((format, score)) = best
            && score > 0.0
        {
            return Some(format);
        }
    }
    None
}

/// Returns an error that describes the content.
fn unknown(path: &str, head: &Head<'_>) -> Error {
    let sample = &head.bytes[..head.bytes.len().min(4096)];
    let odd = sample.iter().filter(|&&b| b < b'\t' || (b > b'\r' && b < b' ') || b >= 0x80).count();
    if odd * 10 > sample.len() {
        let first = sample.iter().take(16).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        return Error::Binary { path: path.into(), first };
    }
    let first = first_line(head);
    let tried = FORMATS.iter().filter(|f| f.name != "csv").map(|f| f.about).collect::<Vec<_>>().join(", ");
    Error::Unrecognised { path: path.into(), first, tried, near: near_miss(head) }
}

/// Describes the format that the head nearly has, as a line of the error; empty if there is none.
fn near_miss(head: &Head<'_>) -> String {
    let points: Vec<u8> = head.bytes.iter().map(|&b| if b == b',' { b'.' } else { b }).collect();
    if let Some(format) = best_match(&mut Head { bytes: &points, ..*head }) {
        return format!(
            "\n  nearest: {}, but with decimal commas; convert them to points (0,5 to 0.5)",
            format.about
        );
    }
    let decoded = FORMATS.iter().filter_map(|&f| {
        let mut decoder = (f.open)(head, &Options::default(), &mut Reading::default()).ok()?;
        let mut out = DecoderOutput::default();
        decoder.decode(head.bytes, head.whole, &mut out);
        Some((f, out))
    });
    let best = decoded.filter(|(_, out)| !out.requests.is_empty()).max_by_key(|(_, out)| out.requests.len());
    let Some((format, out)) = best else { return String::new() };
    // The first malformed line of a text is often its header.
    let sample = out.problems.shown.iter().find(|m| m.line > 1).or(out.problems.shown.first());
    let sample = sample.map_or(String::new(), |m| format!(", such as line {}: {}", m.line, m.reason));
    format!(
        "\n  nearest: {}, but {} of {} lines are malformed{sample}; --format {} skips them",
        format.about, out.problems.malformed, out.problems.lines, format.name
    )
}

/// Returns the first line, shortened and escaped.
pub(crate) fn first_line(head: &Head<'_>) -> String {
    let line = head.lines().next().unwrap_or(head.bytes);
    snippet(line)
}
