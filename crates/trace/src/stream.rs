//! A trace file as a stream of requests, with the devices of the trace and times from its first
//! request on.

use crate::formats::{Decoder, DecoderOutput, Head};
use crate::input::TraceInput;
use crate::measured::ServiceTime;
use crate::pages::PageRounder;
use crate::problems::Problems;
use crate::recognise::{first_line, recognise};
use crate::{Error, Options, Reading, Request, Result};
use frit_core::Nanos;

/// A trace that is being read.
pub(crate) struct TraceStream {
    path: String,
    input: TraceInput,
    decoder: Box<dyn Decoder + Send>,
    decoded: DecoderOutput,
    reading: Reading,
    first_line: String,
    clock: ClockNormaliser,
    pages: PageRounder,
    any: bool,
    over: bool,
}

impl TraceStream {
    /// Opens a trace and recognises its format.
    pub(crate) fn open(path: &str, options: &Options, hash: bool) -> Result<TraceStream> {
        TraceStream::of(path, TraceInput::open(path, options, hash)?, options)
    }

    /// Creates a stream from an open input.
    pub(crate) fn of(path: &str, mut input: TraceInput, options: &Options) -> Result<TraceStream> {
        let mut head = Head { bytes: input.bytes(), whole: input.at_end(), judged: usize::MAX };
        let mut reading = Reading { container: input.container(), ..Reading::default() };
        if head.bytes.is_empty() {
            // A file that is truncated before its first byte is an error, but not an empty file.
            input.finish(true, &mut Problems::default())?;
            let inside = if reading.container.is_empty() { "" } else { " inside" };
            return Err(Error::Empty { path: path.into(), inside });
        }
        let format = recognise(path, &mut head, options)?;
        reading.format = format.name.into();
        reading.about = format.about.into();
        let first_line = first_line(&head);
        let decoder = (format.open)(&head, options, &mut reading).map_err(|e| match e {
            // The decoder knows the text, but not its path.
            Error::Spec { what, why } => Error::spec(format!("{path}: {what}"), why),
            other => other,
        })?;
        let decoded = DecoderOutput { strict: options.strict, ..DecoderOutput::default() };
        let clock = ClockNormaliser { max_gap: options.max_gap, ..ClockNormaliser::default() };
        let (path, pages) = (path.into(), PageRounder::new(options.whole_pages));
        let (any, over) = (false, false);
        Ok(TraceStream { path, input, decoder, decoded, reading, first_line, clock, pages, any, over })
    }

    /// Replaces the contents of `out` by the next requests; returns `false` at the end.
    pub(crate) fn fill(&mut self, out: &mut Vec<Request>) -> Result<bool> {
        out.clear();
        std::mem::swap(out, &mut self.decoded.requests);
        let more = self.decode();
        std::mem::swap(out, &mut self.decoded.requests);
        if more? {
            self.clock.normalise(out, &mut self.decoded.problems);
            self.pages.apply(out);
            return Ok(true);
        }
        Ok(false)
    }

    /// Keeps the measured times of requests for [`TraceStream::take_measured`].
    pub(crate) fn keep_measured(&mut self) {
        self.decoded.measured = Some(Vec::new());
    }

    /// Returns the measured times of the requests of the last [`TraceStream::fill`], each with the
    /// index of its request.
    pub(crate) fn take_measured(&mut self) -> Vec<(usize, ServiceTime)> {
        self.decoded.measured.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Decodes until there is a request, or until the trace ends.
    fn decode(&mut self) -> Result<bool> {
        while !self.over {
            let last = self.input.at_end();
            // A truncated input may end inside a line; the decoder must not parse that line.
            let whole = last && self.input.ended_well();
            let taken = self.decoder.decode(self.input.bytes(), whole, &mut self.decoded);
            self.input.take(taken);
            if self.decoded.stop {
                return Err(self.stopped());
            }
            if !self.decoded.requests.is_empty() {
                self.any = true;
                return Ok(true);
            }
            if !last {
                self.input.fill();
            } else if taken == 0 || self.input.bytes().is_empty() {
                self.over = true;
                self.end()?;
            }
        }
        Ok(false)
    }

    fn stopped(&mut self) -> Error {
        self.over = true;
        let path = self.path.clone();
        match self.decoded.problems.shown.last().cloned() {
            Some(m) => Error::Malformed { path, line: m.line, text: m.text, reason: m.reason },
            None => Error::spec(path, "stopped at a malformed line"),
        }
    }

    fn end(&mut self) -> Result<()> {
        let strict = self.decoded.strict;
        let problems = &mut self.decoded.problems;
        self.input.finish(strict, problems)?;
        if self.any {
            return Ok(());
        }
        let why = match (problems.shown.first(), &problems.cut) {
            (Some(m), _) => format!(
                "the first of {} malformed lines is line {}: {}",
                problems.malformed, m.line, m.reason
            ),
            (None, Some(cut)) => cut.clone(),
            (None, None) => "all lines are headers, comments or events that stand for no request".into(),
        };
        Err(Error::NothingParsed {
            path: self.path.clone(),
            format: self.reading.about.clone(),
            lines: problems.lines,
            first: self.first_line.clone(),
            why,
        })
    }

    /// Returns the reading, with the changes to requests so far.
    pub(crate) fn reading(&self) -> Reading {
        let mut reading = self.reading.clone();
        self.pages.add_to(&mut reading);
        reading
    }

    /// Returns the problems so far.
    pub(crate) fn problems(&self) -> &Problems {
        &self.decoded.problems
    }

    /// Returns the device names so far.
    pub(crate) fn devices(&self) -> &[String] {
        self.decoded.names.list()
    }

    /// Reads to the end of the input and returns the hash of the uncompressed bytes.
    pub(crate) fn digest(&mut self) -> Option<String> {
        self.input.digest()
    }
}

/// A step between two requests that is longer than this, in either direction, means that the clock
/// was set (a phone that boots), and is not a pause: 30 days.
const CLOCK_SET: u64 = 30 * 86_400 * 1_000_000_000;

/// Converts times to start at the first request, prevents them from running backwards, and shortens
/// pauses.
#[derive(Default)]
struct ClockNormaliser {
    started: bool,
    /// Last time that the trace gave.
    raw: u64,
    /// Difference between normalised time and trace time, modulo 2^64.
    offset: u64,
    latest: u64,
    max_gap: Option<Nanos>,
}

impl ClockNormaliser {
    fn normalise(&mut self, requests: &mut [Request], problems: &mut Problems) {
        for r in requests {
            let raw = r.at.0;
            if !self.started || raw.abs_diff(self.raw) > CLOCK_SET {
                problems.clock_steps += u64::from(self.started);
                self.started = true;
                self.offset = self.latest.wrapping_sub(raw);
            }
            self.raw = raw;
            let at = raw.wrapping_add(self.offset);
            // Both are within some steps of at most 30 days of each other, so the sign of the
            // difference is correct.
            let step = at.wrapping_sub(self.latest) as i64;
            if step < 0 {
                problems.backwards += 1;
                problems.backwards_max = problems.backwards_max.max(Nanos(step.unsigned_abs()));
            } else {
                // The offset shrinks by the same amount, so that all later requests move together.
                let cut = self.max_gap.map_or(0, |max| (step as u64).saturating_sub(max.0));
                self.offset = self.offset.wrapping_sub(cut);
                self.latest = at.wrapping_sub(cut);
            }
            r.at = Nanos(self.latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReqOp, SectorCut};
    use frit_core::{Hints, Sector};

    fn normalised(times: &[u64], max_gap: Option<u64>) -> (Vec<u64>, Problems) {
        let mut clock = ClockNormaliser { max_gap: max_gap.map(Nanos), ..ClockNormaliser::default() };
        let mut rs: Vec<Request> = times
            .iter()
            .map(|&t| Request {
                at: Nanos(t),
                sector: Sector(0),
                sectors: 1,
                device: 0,
                op: ReqOp::Read,
                hints: Hints::NONE,
                cut: SectorCut::NONE,
            })
            .collect();
        let mut p = Problems::default();
        // In two parts: the clock continues across batches.
        let (a, b) = rs.split_at_mut(times.len() / 2);
        clock.normalise(a, &mut p);
        clock.normalise(b, &mut p);
        (rs.iter().map(|r| r.at.0).collect(), p)
    }

    #[test]
    fn jitter_is_clamped_and_a_clock_that_was_set_is_no_pause() {
        let (t, p) = normalised(&[100, 150, 120, 160], None);
        assert_eq!((t, p.backwards, p.backwards_max.0, p.clock_steps), (vec![0, 50, 50, 60], 1, 30, 0));
        let year = 365 * 86_400_000_000_000;
        let (t, p) = normalised(&[5, 10, year, year + 7, 12, 15, year + 9], None);
        assert_eq!((t, p.backwards, p.clock_steps), (vec![0, 5, 5, 12, 12, 15, 15], 0, 3));
        let (t, _) = normalised(&[0, 1000, 1001, 5000, 5001], Some(10));
        assert_eq!(t, [0, 10, 11, 21, 22]);
        let (t, p) = normalised(&[u64::MAX, 0, u64::MAX], None);
        assert_eq!((t, p.clock_steps), (vec![0, 0, 0], 2));
    }
}
