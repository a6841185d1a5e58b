//! Destination of written bytes: a file or standard output, plain or compressed.

use crate::{Error, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use frit_core::files::OutputFile;
use frit_core::paths::OpenOptions;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

type Raw = BufWriter<OutputTarget>;

/// Uncompressed destination: a file or standard output.
pub(super) enum OutputTarget {
    Stdout(io::Stdout),
    /// The file has its name from the start, so that readers can follow it while it grows.
    Growing(File),
    /// The file gets its name when it is complete.
    Atomic(OutputFile),
}

impl OutputTarget {
    fn create(path: &str, grows: bool) -> io::Result<OutputTarget> {
        Ok(match path {
            "-" => OutputTarget::Stdout(io::stdout()),
            _ if grows => OutputTarget::Growing(new_private(path)?),
            _ => OutputTarget::Atomic(OutputFile::create(Path::new(path))?),
        })
    }

    fn commit(self) -> io::Result<()> {
        match self {
            OutputTarget::Stdout(mut out) => out.flush(),
            OutputTarget::Growing(file) => file.sync_all(),
            OutputTarget::Atomic(file) => file.commit(),
        }
    }
}

impl Write for OutputTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            OutputTarget::Stdout(out) => out.write(bytes),
            OutputTarget::Growing(file) => file.write(bytes),
            OutputTarget::Atomic(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            OutputTarget::Stdout(out) => out.flush(),
            OutputTarget::Growing(file) => file.flush(),
            OutputTarget::Atomic(file) => file.flush(),
        }
    }
}

/// Creates a new file that only its owner can read: a trace reveals which addresses a user's
/// programs write to.
fn new_private(path: &str) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(Path::new(path))
}

/// Destination with optional compression.
pub(super) enum OutputEncoder {
    Plain(Raw),
    Gzip(GzEncoder<Raw>),
    Zstd(zstd::Encoder<'static, Raw>),
}

impl OutputEncoder {
    /// Creates a file that is visible while it grows, or only when it is complete.
    pub(super) fn create(path: &str, grows: bool) -> Result<OutputEncoder> {
        let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if matches!(extension.as_str(), "xz" | "bz2") && path.contains('.') {
            return Err(Error::spec(path, "frit writes .gz and .zst; xz and bzip2 can only be read"));
        }
        let open = |source| Error::Open { path: path.into(), source };
        let raw = BufWriter::with_capacity(1 << 16, OutputTarget::create(path, grows).map_err(open)?);
        Ok(match extension.as_str() {
            "gz" => OutputEncoder::Gzip(GzEncoder::new(raw, Compression::default())),
            // Level 9 makes traces a third smaller than the default level, and is still faster than
            // gzip.
            "zst" => OutputEncoder::Zstd(zstd::Encoder::new(raw, 9).map_err(open)?),
            _ => OutputEncoder::Plain(raw),
        })
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            OutputEncoder::Plain(w) => w.write_all(bytes),
            OutputEncoder::Gzip(w) => w.write_all(bytes),
            OutputEncoder::Zstd(w) => w.write_all(bytes),
        }
    }

    /// Passes all data to the file, so that a reader sees it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            OutputEncoder::Plain(w) => w.flush(),
            OutputEncoder::Gzip(w) => w.flush(),
            OutputEncoder::Zstd(w) => w.flush(),
        }
    }

    /// Completes the file, and gives it its final name.
    pub(super) fn finish(self) -> io::Result<()> {
        let raw = match self {
            OutputEncoder::Plain(w) => w,
            OutputEncoder::Gzip(w) => w.finish()?,
            OutputEncoder::Zstd(w) => w.finish()?,
        };
        raw.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
    }
}
