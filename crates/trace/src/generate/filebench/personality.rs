//! The personalities of filebench: their file sets and operation loops.
//!
//! Source: `workloads/{fileserver,webserver,varmail}.f` of filebench 1.5 (github.com/filebench).

/// An operation of a loop (a flowop of filebench). Each thread has one open file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::generate) enum FlowOp {
    /// Creates the next file that does not exist, and opens it.
    Create,
    /// Opens the next file that exists.
    Open,
    /// Writes the planned size of the open file.
    WriteWhole,
    /// Appends 0 to just below the append size, uniformly distributed, to the open file.
    Append,
    /// Appends as [`FlowOp::Append`] does to the log file, which all threads share.
    AppendLog,
    /// Reads the whole open file.
    ReadWhole,
    /// Makes the open file durable.
    Fsync,
    /// Closes the open file.
    Close,
    /// Deletes the next file that exists and is not open.
    Delete,
    /// Reads the attributes of the next file that exists.
    Stat,
}

/// A personality of filebench, with the defaults of its file.
#[derive(Debug)]
pub struct Personality {
    /// Name, as in `gen:NAME`.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// `nfiles`.
    pub files: u32,
    /// `meanfilesize`, in bytes.
    pub mean_file_bytes: u32,
    /// `meandirwidth`: files in a directory.
    pub dir_width: u32,
    /// `prealloc`: share of the files that exist at the start.
    pub preallocated: f64,
    /// `nthreads`.
    pub threads: u32,
    /// `meanappendsize`, in bytes. It is the upper limit of an append.
    pub append_bytes: u32,
    /// The loop of each thread.
    pub(in crate::generate) operations: &'static [FlowOp],
}

/// All personalities.
pub static PERSONALITIES: &[Personality] = &[
    Personality {
        name: "fileserver",
        about: "filebench's fileserver: files are created, appended to, read and deleted",
        files: 10_000,
        mean_file_bytes: 128 << 10,
        dir_width: 20,
        preallocated: 0.8,
        threads: 50,
        append_bytes: 16 << 10,
        operations: &[
            FlowOp::Create,
            FlowOp::WriteWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::Append,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Delete,
            FlowOp::Stat,
        ],
    },
    Personality {
        name: "webserver",
        about: "filebench's webserver: ten files are read, and a log is appended to",
        files: 1_000,
        mean_file_bytes: 16 << 10,
        dir_width: 20,
        preallocated: 1.0,
        threads: 100,
        append_bytes: 16 << 10,
        operations: &[
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
            FlowOp::AppendLog,
        ],
    },
    Personality {
        name: "varmail",
        about: "filebench's varmail: small files are created, appended to and read, with fsync",
        files: 1_000,
        mean_file_bytes: 16 << 10,
        dir_width: 1_000_000,
        preallocated: 0.8,
        threads: 16,
        append_bytes: 16 << 10,
        operations: &[
            FlowOp::Delete,
            FlowOp::Create,
            FlowOp::Append,
            FlowOp::Fsync,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Append,
            FlowOp::Fsync,
            FlowOp::Close,
            FlowOp::Open,
            FlowOp::ReadWhole,
            FlowOp::Close,
        ],
    },
];
