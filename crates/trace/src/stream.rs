//! A trace file as a stream of requests: devices as the trace has them, times from its first request on.

use crate::formats::{Decoded, Decoder, Head};
use crate::input::Input;
use crate::problems::Problems;
use crate::recognise::{first_line, recognise};
use crate::{Error, Options, Reading, Request, Result};
use frit_core::Nanos;

/// A trace that is being read.
pub(crate) struct Stream {
    path: String,
    input: Input,
    decoder: Box<dyn Decoder + Send>,
    decoded: Decoded,
    reading: Reading,
    first_line: String,
    clock: Clock,
    any: bool,
    over: bool,
}

impl Stream {
    /// Opens a trace and finds out how to read it.
    pub(crate) fn open(path: &str, options: &Options, hash: bool) -> Result<Stream> {
        Stream::of(path, Input::open(path, options, hash)?, options)
    }

    /// The same for an input that is open already.
    pub(crate) fn of(path: &str, mut input: Input, options: &Options) -> Result<Stream> {
        let mut head = Head { bytes: input.bytes(), whole: input.at_end(), judged: usize::MAX };
        let mut reading = Reading { container: input.container(), ..Reading::default() };
        if head.bytes.is_empty() {
            // A file that is cut off before its first byte is not an empty one.
            input.finish(true, &mut Problems::default())?;
            let inside = if reading.container.is_empty() { "" } else { " inside" };
            return Err(Error::Empty { path: path.into(), inside });
        }
        let format = recognise(path, &mut head, options)?;
        reading.format = format.name.into();
        reading.about = format.about.into();
        let first_line = first_line(&head);
        let decoder = (format.open)(&head, options, &mut reading)?;
        let decoded = Decoded { strict: options.strict, ..Decoded::default() };
        let clock = Clock { max_gap: options.max_gap, ..Clock::default() };
        let path = path.into();
        Ok(Stream { path, input, decoder, decoded, reading, first_line, clock, any: false, over: false })
    }

    /// Puts the next requests into `out`, replacing what is there; false at the end.
    pub(crate) fn fill(&mut self, out: &mut Vec<Request>) -> Result<bool> {
        out.clear();
        std::mem::swap(out, &mut self.decoded.requests);
        let more = self.decode();
        std::mem::swap(out, &mut self.decoded.requests);
        if more? {
            self.clock.normalise(out, &mut self.decoded.problems);
            return Ok(true);
        }
        Ok(false)
    }

    /// Decodes until there is a request, or the trace ends.
    fn decode(&mut self) -> Result<bool> {
        while !self.over {
            let last = self.input.at_end();
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
            (Some(m), _) => format!("the first of {} malformed lines is line {}: {}", problems.malformed, m.line, m.reason),
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

    /// How it is read.
    pub(crate) fn reading(&self) -> &Reading {
        &self.reading
    }

    /// What was wrong so far.
    pub(crate) fn problems(&self) -> &Problems {
        &self.decoded.problems
    }

    /// Device names so far.
    pub(crate) fn devices(&self) -> &[String] {
        self.decoded.names.list()
    }

    /// Reads to the very end and returns the hash of the uncompressed bytes.
    pub(crate) fn digest(&mut self) -> Option<String> {
        self.input.digest()
    }
}

/// Makes times count from the first request, keeps them from running backwards, and shortens pauses.
#[derive(Default)]
struct Clock {
    first: Option<u64>,
    latest: u64,
    removed: u64,
    max_gap: Option<Nanos>,
}

impl Clock {
    fn normalise(&mut self, requests: &mut [Request], problems: &mut Problems) {
        let first = match (self.first, requests.first()) {
            (Some(first), _) => first,
            (None, Some(r)) => {
                self.latest = r.at.0;
                *self.first.insert(r.at.0)
            }
            (None, None) => return,
        };
        for r in requests {
            if r.at.0 < self.latest {
                problems.backwards += 1;
                problems.backwards_max = problems.backwards_max.max(Nanos(self.latest - r.at.0));
            } else {
                if let Some(max) = self.max_gap {
                    self.removed += (r.at.0 - self.latest).saturating_sub(max.0);
                }
                self.latest = r.at.0;
            }
            r.at = Nanos(self.latest - first - self.removed);
        }
    }
}
