//! What can go wrong with a workload, in words a user can act on.

use frit_core::size;

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a workload. The doc comment of each variant is what it means; its message is what the
/// user sees.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened or created.
    #[error("{path}: {source}")]
    Open {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Reading failed half-way.
    #[error("{path}: reading failed after {at} bytes: {source}")]
    Read {
        /// The file.
        path: String,
        /// Uncompressed bytes that were read before.
        at: u64,
        /// What the operating system or the decompressor said.
        source: std::io::Error,
    },
    /// Writing failed.
    #[error("{path}: writing failed: {source}")]
    Write {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// There is nothing in the file.
    #[error("{path} is empty{inside}: there are no requests to read")]
    Empty {
        /// The file.
        path: String,
        /// Where inside it, when it is a container.
        inside: &'static str,
    },
    /// The content is no known format.
    #[error(
        "{path} is in no format that frit recognises.\n  first line: {first}\n  tried: {tried}\n  \
         name the format with --format, or describe the columns with --columns \
         (such as --columns time=ts:us,op=type,sector=lba,bytes=len)"
    )]
    Unrecognised {
        /// The file.
        path: String,
        /// The first line, shortened and escaped.
        first: String,
        /// Every format and what it made of the first line.
        tried: String,
    },
    /// The content is binary and not a binary trace.
    #[error(
        "{path} holds binary data ({first}) that is neither VSCSI, nor tar, gzip, zstd, xz or bzip2; \
         decode it to text first (blktrace files: blkparse -i FILE)"
    )]
    Binary {
        /// The file.
        path: String,
        /// Its first bytes, in hexadecimal.
        first: String,
    },
    /// The whole file was read as a format and held no request.
    #[error(
        "{path} was read as {format} to its end ({lines} lines) and held no request.\n  \
         first line: {first}\n  {why}"
    )]
    NothingParsed {
        /// The file.
        path: String,
        /// The format that was used.
        format: String,
        /// Lines that were read.
        lines: u64,
        /// The first line, shortened and escaped.
        first: String,
        /// The first reason, or what was skipped.
        why: String,
    },
    /// Strict mode met a line that cannot be understood.
    #[error(
        "{path}, line {line}: {reason}: {text}\n  (strict mode stops here; without it such lines are counted)"
    )]
    Malformed {
        /// The file.
        path: String,
        /// Its number, from 1 (for a binary format, the record's).
        line: u64,
        /// The line, shortened and escaped.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Strict mode met an input that ends early.
    #[error("{path}: {what}")]
    Truncated {
        /// The file.
        path: String,
        /// Where it ends.
        what: String,
    },
    /// There is no such format.
    #[error("there is no format '{name}'; there are {known}")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// A workload specification or an option cannot be understood.
    #[error("{what}: {why}")]
    Spec {
        /// The specification or option.
        what: String,
        /// What is wrong and what is understood.
        why: String,
    },
    /// The trace does not fit the volume.
    #[error(
        "{name} reaches {} and the volume holds {}.\n  ways out: a volume of at least that size; --wrap (addresses modulo \
         the volume); --compact (only the {} of chunks that are touched, packed in order of first touch)",
        size::show(*trace), size::show(*volume), size::show(*compact)
    )]
    TooLarge {
        /// The workload.
        name: String,
        /// Bytes from zero to the end of its highest request.
        trace: u64,
        /// The volume's bytes.
        volume: u64,
        /// Bytes that the packed trace needs.
        compact: u64,
    },
    /// A request lies outside the volume, in a trace that was not scanned beforehand.
    #[error(
        "{name}: a request at byte {at} of {} lies past the volume of {}.\n  ways out: a larger volume; --wrap (addresses \
         modulo the volume); --compact (touched chunks packed in order of first touch)",
        size::show(*bytes), size::show(*volume)
    )]
    Outside {
        /// The workload.
        name: String,
        /// The request's address in bytes.
        at: u64,
        /// The request's length in bytes.
        bytes: u64,
        /// The volume's bytes.
        volume: u64,
    },
    /// What a packed trace touches is larger than the volume.
    #[error(
        "{name} touches more chunks of {} than the volume of {} holds, even packed; use a larger volume, a smaller chunk, or --wrap",
        size::show(*chunk), size::show(*volume)
    )]
    CompactFull {
        /// The workload.
        name: String,
        /// Bytes a chunk.
        chunk: u64,
        /// The volume's bytes.
        volume: u64,
    },
    /// Devices cannot be laid out one after another.
    #[error("{name}: {why}")]
    Devices {
        /// The workload.
        name: String,
        /// Why, and what to do.
        why: String,
    },
}

impl Error {
    /// An error of a specification or an option.
    pub(crate) fn spec(what: impl Into<String>, why: impl Into<String>) -> Error {
        Error::Spec { what: what.into(), why: why.into() }
    }
}
