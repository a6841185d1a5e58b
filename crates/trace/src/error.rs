//! Errors of workloads, with messages that tell the user what to do.

use frit_core::size;

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a workload. The doc comment of each variant is its meaning; the message is for the
/// user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened or created.
    #[error("{path}: {source}")]
    Open {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Reading failed before the end.
    #[error("{path}: reading failed after {at} bytes: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Number of uncompressed bytes that were read before the error.
        at: u64,
        /// Error of the operating system or the decompressor.
        source: std::io::Error,
    },
    /// Writing failed.
    #[error("{path}: writing failed: {source}")]
    Write {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file contains no data.
    #[error("{path} is empty{inside}: it contains no requests")]
    Empty {
        /// Path of the file.
        path: String,
        /// Location inside the file, if the file is a container.
        inside: &'static str,
    },
    /// The content matches no known format.
    #[error(
        "the format of {path} is not recognised.\n  first line: {first}{near}\n  tried: {tried}\n  \
         name the format with --format, or describe the columns with --columns \
         (such as --columns time=ts:us,op=type,sector=lba,bytes=len)"
    )]
    Unrecognised {
        /// Path of the file.
        path: String,
        /// The first line, shortened and escaped.
        first: String,
        /// Description of every format that was tried.
        tried: String,
        /// The format that most lines have, with the reason against it; empty, or a line that
        /// begins with a line break.
        near: String,
    },
    /// The content is binary, but not a binary trace.
    #[error(
        "{path} contains binary data ({first}) that is not VSCSI, tar, gzip, zstd, xz or bzip2; \
         decode it to text first (blktrace files: blkparse -i FILE)"
    )]
    Binary {
        /// Path of the file.
        path: String,
        /// First bytes of the file, in hexadecimal.
        first: String,
    },
    /// The whole file was read in a format and contained no request.
    #[error(
        "{path} was read as {format} to its end ({lines} lines) and held no request.\n  \
         first line: {first}\n  {why}"
    )]
    NothingParsed {
        /// Path of the file.
        path: String,
        /// The format that was used.
        format: String,
        /// Number of lines that were read.
        lines: u64,
        /// The first line, shortened and escaped.
        first: String,
        /// Reason of the first malformed line, or a description of the lines that were skipped.
        why: String,
    },
    /// Strict mode met a malformed line.
    #[error(
        "{path}, line {line}: {reason}: {text}\n  (strict mode stops here; without it, malformed lines are counted and skipped)"
    )]
    Malformed {
        /// Path of the file.
        path: String,
        /// Line number, from 1 (for a binary format, the number of the record).
        line: u64,
        /// The line, shortened and escaped.
        text: String,
        /// Reason for which the line is malformed.
        reason: &'static str,
    },
    /// Strict mode met an input that is truncated.
    #[error("{path}: {what}")]
    Truncated {
        /// Path of the file.
        path: String,
        /// Description of the position where the input ends.
        what: String,
    },
    /// No format has this name.
    #[error("there is no format '{name}'; there are {known}")]
    UnknownFormat {
        /// The requested name.
        name: String,
        /// All known names, separated by commas.
        known: String,
    },
    /// A workload specification or an option is not valid.
    #[error("{what}: {why}")]
    Spec {
        /// The specification or option.
        what: String,
        /// The reason, and the accepted values.
        why: String,
    },
    /// The address space of the trace is larger than the volume.
    #[error(
        "{name} reaches {} and the volume holds {}.\n  options: a volume of at least that size; --wrap (addresses modulo \
         the volume); --compact (only the {} of chunks that are touched, packed in order of first touch)",
        size::format(*trace), size::format(*volume), size::format(*compact)
    )]
    TooLarge {
        /// Name of the workload.
        name: String,
        /// Bytes from zero to the end of the highest request.
        trace: u64,
        /// Capacity of the volume in bytes.
        volume: u64,
        /// Number of bytes that the packed trace needs.
        compact: u64,
    },
    /// A request is outside the volume, in a trace that was not scanned beforehand.
    #[error(
        "{name}: a request at byte {at} of {} is outside the volume of {}.\n  options: a larger volume; --wrap (addresses \
         modulo the volume); --compact (touched chunks packed in order of first touch)",
        size::format(*bytes), size::format(*volume)
    )]
    Outside {
        /// Name of the workload.
        name: String,
        /// Address of the request in bytes.
        at: u64,
        /// Length of the request in bytes.
        bytes: u64,
        /// Capacity of the volume in bytes.
        volume: u64,
    },
    /// The chunks that a packed trace touches are larger than the volume.
    #[error(
        "{name} touches {} of {} and the volume of {} holds {}, even packed.\n  options: a larger volume; a smaller \
         chunk; --wrap instead of --compact (addresses modulo the volume)",
        needed_chunks(*needed, *volume / *chunk), size::format(*chunk), size::format(*volume), *volume / *chunk
    )]
    CompactFull {
        /// Name of the workload.
        name: String,
        /// Number of chunks that the workload touches, if it was counted beforehand.
        needed: Option<u64>,
        /// Size of a chunk in bytes.
        chunk: u64,
        /// Capacity of the volume in bytes.
        volume: u64,
    },
    /// A request is a command that the format of the output does not have.
    #[error(
        "{path}: the format {format} has no command {command} (request {number}, at sector {sector}); write the trace \
         as recorded, which has all commands"
    )]
    CommandNotWritable {
        /// Path of the output.
        path: String,
        /// Name of the format.
        format: &'static str,
        /// Name of the command.
        command: &'static str,
        /// Number of the request, from 1.
        number: u64,
        /// First sector of the request.
        sector: u64,
    },
    /// A command would have to be moved to other addresses.
    #[error(
        "{name}: {command} at sector {sector} cannot be moved: its device defines blocks and zones at their own \
         addresses; {remedy}"
    )]
    CommandMoved {
        /// Name of the workload.
        name: String,
        /// Name of the command.
        command: &'static str,
        /// First sector of the request.
        sector: u64,
        /// The remedy.
        remedy: &'static str,
    },
    /// The devices of the trace cannot be mapped to one address space.
    #[error("{name}: {why}")]
    Devices {
        /// Name of the workload.
        name: String,
        /// The reason, and a remedy.
        why: String,
    },
}

/// Returns the number of chunks that a packed workload needs, as far as it is known.
fn needed_chunks(needed: Option<u64>, held: u64) -> String {
    match needed {
        Some(n) => format!("{n} chunks"),
        None => format!("more than {held} chunks"),
    }
}

impl Error {
    /// Creates an error of a specification or an option.
    pub(crate) fn spec(what: impl Into<String>, why: impl Into<String>) -> Error {
        Error::Spec { what: what.into(), why: why.into() }
    }
}
