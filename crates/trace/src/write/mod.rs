//! Writes requests in formats that other tools read, compressed according to the extension of the
//! file name.

mod line;
mod output;

pub use line::{WRITABLE, WriteFormat};

use crate::{DeviceCommand, Error, ReqOp, Request, Result};
use frit_core::Hints;
use line::LineWriter;
use output::OutputEncoder;
use serde::Serialize;

/// Counts of the requests that were written and of the data that the format cannot represent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct WriteSummary {
    /// Number of requests that were written.
    pub requests: u64,
    /// Number of flushes that were dropped because the format cannot represent them.
    pub flushes_lost: u64,
    /// Number of discards that were dropped because the format cannot represent them.
    pub discards_lost: u64,
    /// Number of written requests whose hints (metadata, hot, cold, FUA, SYNC) the format cannot
    /// represent.
    pub hints_lost: u64,
    /// Number of requests of bytes that were widened because the format has whole sectors only.
    pub widened: u64,
}

impl WriteSummary {
    /// Returns one sentence for each kind of loss, for display.
    #[must_use]
    pub fn sentences(&self, format: WriteFormat) -> Vec<String> {
        let name = format.name();
        let mut out = Vec::new();
        if self.flushes_lost > 0 {
            out.push(format!("{} flushes were left out: {name} cannot represent them", self.flushes_lost));
        }
        if self.discards_lost > 0 {
            out.push(format!("{} discards were left out: {name} cannot represent them", self.discards_lost));
        }
        if self.hints_lost > 0 {
            out.push(format!(
                "the hints (metadata, hot, cold, FUA, SYNC) of {} requests were left out: {name} cannot represent them",
                self.hints_lost
            ));
        }
        if self.widened > 0 {
            out.push(format!(
                "{} requests of bytes were widened to whole sectors: {name} cannot represent them",
                self.widened
            ));
        }
        out
    }
}

/// Writes requests to a file.
pub struct Writer {
    path: String,
    output: OutputEncoder,
    line: LineWriter,
    buffer: Vec<u8>,
    written: WriteSummary,
}

impl Writer {
    /// Creates a writer to a file, or to standard output for `-`. The file replaces an existing one
    /// of the same name when it is finished. The extensions `.gz` and `.zst` select compression.
    /// With `devices`, the format's device column (if it has one) contains each request's device;
    /// without, all requests are on device 0.
    ///
    /// # Errors
    /// The file cannot be created, or its extension selects a compression that is only supported
    /// for reading.
    pub fn create(path: &str, format: WriteFormat, devices: bool) -> Result<Writer> {
        Writer::over(OutputEncoder::create(path, false)?, path, format, devices)
    }

    /// Creates a file that readers can follow while it grows; an existing file is not replaced.
    ///
    /// # Errors
    /// As for [`Writer::create`].
    pub fn create_growing(path: &str, format: WriteFormat, devices: bool) -> Result<Writer> {
        Writer::over(OutputEncoder::create(path, true)?, path, format, devices)
    }

    fn over(output: OutputEncoder, path: &str, format: WriteFormat, devices: bool) -> Result<Writer> {
        let mut buffer = Vec::with_capacity(1 << 16);
        let line = LineWriter::new(format, devices, &mut buffer);
        Ok(Writer { path: path.into(), output, line, buffer, written: WriteSummary::default() })
    }

    /// Writes requests. `names` are the device names of their workload.
    ///
    /// # Errors
    /// The file cannot be written; a request is a command that the format does not have.
    pub fn write(&mut self, requests: &[Request], names: &[String]) -> Result<()> {
        for r in requests {
            if self.line.put(r, names, &mut self.buffer) {
                self.written.requests += 1;
                self.written.hints_lost += u64::from(r.hints != Hints::NONE && !self.line.has_hints());
                self.written.widened += u64::from(!r.is_whole() && !self.line.has_bytes());
            } else if r.op == ReqOp::Flush {
                self.written.flushes_lost += 1;
            } else if let ReqOp::Command(command) = r.op {
                return Err(self.no_command(command, r));
            } else {
                self.written.discards_lost += 1;
            }
        }
        self.drain()
    }

    /// Returns the error of a command that the format does not have. A trace without it would be
    /// another workload, so it is not left out.
    #[cold]
    fn no_command(&self, command: DeviceCommand, r: &Request) -> Error {
        let WriteSummary { requests, flushes_lost, discards_lost, .. } = self.written;
        Error::CommandNotWritable {
            path: self.path.clone(),
            format: self.line.format_name(),
            command: command.name(),
            number: requests + flushes_lost + discards_lost + 1,
            sector: r.sector.0,
        }
    }

    /// Passes all data to the file, so that a reader can see it, for a writer that stays open for
    /// long. Compression becomes slightly worse.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let path = &self.path;
        self.output.flush().map_err(|source| Error::Write { path: path.clone(), source })
    }

    fn drain(&mut self) -> Result<()> {
        let path = &self.path;
        self.output.put(&self.buffer).map_err(|source| Error::Write { path: path.clone(), source })?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the remaining data and returns the counts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<WriteSummary> {
        self.line.end(&mut self.buffer);
        self.drain()?;
        let path = self.path;
        self.output.finish().map_err(|source| Error::Write { path, source })?;
        Ok(self.written)
    }
}
