//! Writing requests in formats that other tools read; compressed when the file's name says so.

mod line;
mod sink;

pub use line::{WRITABLE, WriteFormat};

use crate::{Error, ReqOp, Request, Result};
use frit_core::Hints;
use line::Line;
use serde::Serialize;
use sink::Sink;

/// What was written, and what the format could not hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Written {
    /// Requests that were written.
    pub requests: u64,
    /// Flushes that the format cannot say; they were left out.
    pub flushes_lost: u64,
    /// Discards that the format cannot say; they were left out.
    pub discards_lost: u64,
    /// Written requests whose hints (metadata, FUA, SYNC) the format cannot say.
    pub hints_lost: u64,
}

impl Written {
    /// One sentence a loss, ready to be shown.
    #[must_use]
    pub fn sentences(&self, format: WriteFormat) -> Vec<String> {
        let name = format.name();
        let mut out = Vec::new();
        if self.flushes_lost > 0 {
            out.push(format!("{} flushes were left out: {name} has none", self.flushes_lost));
        }
        if self.discards_lost > 0 {
            out.push(format!("{} discards were left out: {name} has none", self.discards_lost));
        }
        if self.hints_lost > 0 {
            out.push(format!(
                "the hints (metadata, FUA, SYNC) of {} requests were left out: {name} has none",
                self.hints_lost
            ));
        }
        out
    }
}

/// Writes requests to a file.
pub struct Writer {
    path: String,
    sink: Sink,
    line: Line,
    buffer: Vec<u8>,
    written: Written,
}

impl Writer {
    /// Writes a file, which takes the place of what has its name when it is finished, or to standard output for `-`. `.gz` and `.zst` compress. With `devices`, the format's device
    /// column (if it has one) holds each request's device; without, everything is on device 0.
    ///
    /// # Errors
    /// The file cannot be created, or its name asks for a compression that is only read.
    pub fn create(path: &str, format: WriteFormat, devices: bool) -> Result<Writer> {
        Writer::over(Sink::create(path, false)?, path, format, devices)
    }

    /// Creates a file that readers see while it grows; what is there already is not replaced.
    ///
    /// # Errors
    /// As for [`Writer::create`].
    pub fn create_growing(path: &str, format: WriteFormat, devices: bool) -> Result<Writer> {
        Writer::over(Sink::create(path, true)?, path, format, devices)
    }

    fn over(sink: Sink, path: &str, format: WriteFormat, devices: bool) -> Result<Writer> {
        let mut buffer = Vec::with_capacity(1 << 16);
        let line = Line::new(format, devices, &mut buffer);
        Ok(Writer { path: path.into(), sink, line, buffer, written: Written::default() })
    }

    /// Writes requests; `names` are the device names of their workload.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, requests: &[Request], names: &[String]) -> Result<()> {
        for r in requests {
            if self.line.put(r, names, &mut self.buffer) {
                self.written.requests += 1;
                self.written.hints_lost += u64::from(r.hints != Hints::NONE && !self.line.has_hints());
            } else if r.op == ReqOp::Flush {
                self.written.flushes_lost += 1;
            } else {
                self.written.discards_lost += 1;
            }
        }
        self.drain()
    }

    /// Hands what was written so far to the file, so that it can be read up to here: for a writer that
    /// stays open for long. Compression is a little worse for it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let path = &self.path;
        self.sink.flush().map_err(|source| Error::Write { path: path.clone(), source })
    }

    fn drain(&mut self) -> Result<()> {
        let path = &self.path;
        self.sink.put(&self.buffer).map_err(|source| Error::Write { path: path.clone(), source })?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left and says what the file holds.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<Written> {
        self.line.end(&mut self.buffer);
        self.drain()?;
        let path = self.path;
        self.sink.finish().map_err(|source| Error::Write { path, source })?;
        Ok(self.written)
    }
}
