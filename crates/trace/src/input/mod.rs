//! Opening of a trace as plain bytes: decompression and unpacking are transparent, the bytes are
//! counted and hashed.

mod archive;
mod decompress;
mod state;

use crate::problems::Problems;
use crate::{Error, Options, Result};
use decompress::decompress;
use sha2::{Digest, Sha256};
use state::{InputState, lock};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Mutex};

/// Size of the buffer; also the number of bytes that recognition of a format sees.
pub(crate) const BUFFER: usize = 256 << 10;

/// Plain bytes of a trace, read through one buffer.
pub(crate) struct TraceInput {
    path: String,
    reader: Box<dyn Read + Send>,
    shared: Arc<Mutex<InputState>>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
    failed: Option<std::io::Error>,
}

impl TraceInput {
    /// Opens a file, or standard input for `-`. With `hash`, the uncompressed bytes are hashed.
    pub(crate) fn open(path: &str, options: &Options, hash: bool) -> Result<TraceInput> {
        let raw: Box<dyn Read + Send> = if path == "-" {
            Box::new(std::io::stdin())
        } else {
            let open = |source| Error::Open { path: path.into(), source };
            let file = File::open(path).map_err(open)?;
            if file.metadata().map_err(open)?.is_dir() {
                return Err(open(std::io::Error::from(ErrorKind::IsADirectory)));
            }
            Box::new(file)
        };
        TraceInput::from_reader(path, raw, options, hash)
    }

    /// Creates an input from a reader. Errors refer to it as `path`.
    pub(crate) fn from_reader(
        path: &str,
        raw: Box<dyn Read + Send>,
        options: &Options,
        hash: bool,
    ) -> Result<TraceInput> {
        let shared = InputState { hash: hash.then(Sha256::new), drain: hash, ..InputState::default() };
        let shared = Arc::new(Mutex::new(shared));
        let mut input = TraceInput {
            path: path.into(),
            reader: Box::new(std::io::empty()),
            shared: Arc::clone(&shared),
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            eof: false,
            failed: None,
        };
        // A truncated header of a compressed file is not an error here: `finish` reports it.
        match decompress(raw, options.member.as_deref(), &shared) {
            Ok(reader) => input.reader = reader,
            Err(source) if lock(&shared).is_truncated(&source) => input.failed = Some(source),
            Err(source) => return Err(Error::Read { path: path.into(), at: 0, source }),
        }
        input.fill();
        Ok(input)
    }

    /// Reads until the buffer is full or the input ends.
    pub(crate) fn fill(&mut self) {
        // The rest of an incomplete record moves to the front of the buffer.
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < self.buffer.len() && !self.eof && self.failed.is_none() {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => self.failed = Some(e),
            }
        }
    }

    /// Returns the bytes in the buffer that are not consumed yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Consumes bytes from the front of the buffer.
    pub(crate) fn take(&mut self, n: usize) {
        self.start += n;
    }

    /// Returns `true` if nothing follows the contents of the buffer: the input has ended or failed.
    pub(crate) fn at_end(&self) -> bool {
        self.eof || self.failed.is_some()
    }

    /// Returns `true` if the input has ended without error or truncation, so that its last line is
    /// complete.
    pub(crate) fn ended_well(&self) -> bool {
        self.eof && self.failed.is_none() && lock(&self.shared).tar_truncation.is_none()
    }

    /// Returns the containers around the bytes, outermost first.
    pub(crate) fn container(&self) -> Vec<String> {
        lock(&self.shared).layers.clone()
    }

    /// Reports how the input ended. A truncation is added to the problems (an error in strict
    /// mode); any other failure is an error.
    pub(crate) fn finish(&mut self, strict: bool, problems: &mut Problems) -> Result<()> {
        let shared = lock(&self.shared);
        problems.notes.extend(shared.notes.iter().cloned());
        let at = shared.plain;
        let cut = match self.failed.take() {
            None => shared.tar_truncation.clone(),
            Some(e) if shared.is_truncated(&e) => Some(format!(
                "the compressed input is truncated after {} compressed bytes ({at} uncompressed): the requests before that were read, \
                 an incomplete last line was skipped",
                shared.compressed
            )),
            Some(source) => return Err(Error::Read { path: self.path.clone(), at, source }),
        };
        if let (Some(what), true) = (&cut, strict) {
            return Err(Error::Truncated { path: self.path.clone(), what: what.clone() });
        }
        problems.cut = cut;
        Ok(())
    }

    /// Reads to the end of the input, so that the hash covers all bytes, and returns the hash.
    pub(crate) fn digest(&mut self) -> Option<String> {
        self.start = 0;
        self.end = 0;
        while !self.at_end() {
            self.fill();
            self.end = 0;
        }
        let hash = lock(&self.shared).hash.take()?;
        Some(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
    }
}
