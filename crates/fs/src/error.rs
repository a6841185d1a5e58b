//! Errors of the file system and their error numbers (errno).

use std::path::PathBuf;

/// Error of a file system operation. Its `Display` text is the message for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// no such file or directory
    #[error("no such file or directory")]
    NotFound,
    /// already exists
    #[error("already exists")]
    Exists,
    /// not a directory
    #[error("not a directory")]
    NotDirectory,
    /// is a directory
    #[error("is a directory")]
    IsDirectory,
    /// the directory is not empty
    #[error("the directory is not empty")]
    NotEmpty,
    /// no space left
    #[error("no space left")]
    NoSpace,
    /// a quota of the underlying file system is exceeded
    #[error("a quota of the underlying file system is exceeded")]
    Quota,
    /// no free inode left
    #[error("no free inode left")]
    NoInode,
    /// permission denied
    #[error("permission denied")]
    Access,
    /// a file that others can have placed where it is, and that is therefore not written
    #[error(
        "{what} is in a directory that {whose}, so others can have placed it there: {remedy}, or write to a directory \
         that only you can write to"
    )]
    Placed {
        /// What has the name.
        what: &'static str,
        /// Who can change the names of the directory.
        whose: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// operation not permitted for this user
    #[error("operation not permitted for this user")]
    NotPermitted,
    /// the name is longer than 255 bytes
    #[error("the name is longer than 255 bytes")]
    NameTooLong,
    /// too many symbolic links in the path
    #[error("too many symbolic links in the path")]
    TooManyLinks,
    /// the file has the maximum number of hard links
    #[error("the file has the maximum number of hard links")]
    LinksFull,
    /// something else is mounted there
    #[error("something else is mounted there")]
    Covered,
    /// the file would exceed the maximum file size
    #[error("the file would exceed the maximum file size")]
    TooLarge,
    /// an argument is invalid for this operation
    #[error("{0}")]
    Invalid(&'static str),
    /// no such extended attribute
    #[error("no such extended attribute")]
    NoAttribute,
    /// an extended attribute, or all those of a file, exceed the size limit
    #[error("the extended attributes exceed the size limit")]
    AttributeTooLarge,
    /// the name of an extended attribute is longer than 255 bytes
    #[error("the name of an extended attribute is longer than 255 bytes")]
    AttributeName,
    /// no data and no hole at or after this position
    #[error("no data or hole at or after this position")]
    BeyondEnd,
    /// not supported by this file system
    #[error("not supported by this file system: {0}")]
    Unsupported(&'static str),
    /// the file system is read-only
    #[error("the file system is read-only")]
    ReadOnly,
    /// in use by the system
    #[error("in use by the system")]
    Busy,
    /// the inode no longer exists
    #[error("the inode no longer exists")]
    Stale,
    /// data on the medium fails its checksum or is inconsistent
    #[error("damaged: {what} at byte {at:#x}; run `frit fsck` on the image")]
    Damaged {
        /// The damaged structure.
        what: &'static str,
        /// Byte position on the medium.
        at: u64,
    },
    /// the medium, its file or an image is unusable
    #[error("{0}")]
    Image(String),
    /// a system call failed
    #[error("{what} {}: {error}", path.display())]
    Os {
        /// The action that failed.
        what: &'static str,
        /// The file that it concerns.
        path: PathBuf,
        /// The error that the system returned.
        error: std::io::Error,
    },
}

/// Result of a file system operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the error number (errno(3)) for the calling program.
    #[must_use]
    pub fn errno(&self) -> i32 {
        use rustix::io::Errno as E;
        match self {
            Self::NotFound => E::NOENT,
            Self::Exists => E::EXIST,
            Self::NotDirectory => E::NOTDIR,
            Self::IsDirectory => E::ISDIR,
            Self::NotEmpty => E::NOTEMPTY,
            Self::NoSpace | Self::NoInode | Self::AttributeTooLarge => E::NOSPC,
            Self::Quota => E::DQUOT,
            Self::Access | Self::Placed { .. } => E::ACCESS,
            Self::NotPermitted => E::PERM,
            Self::NameTooLong => E::NAMETOOLONG,
            Self::TooManyLinks => E::LOOP,
            Self::LinksFull => E::MLINK,
            Self::Covered => E::XDEV,
            Self::TooLarge => E::FBIG,
            Self::Invalid(_) => E::INVAL,
            Self::NoAttribute => E::NODATA,
            Self::AttributeName => E::RANGE,
            Self::BeyondEnd => E::NXIO,
            Self::Unsupported(_) => E::OPNOTSUPP,
            Self::ReadOnly => E::ROFS,
            Self::Busy => E::BUSY,
            Self::Stale => E::STALE,
            Self::Damaged { .. } | Self::Image(_) => E::IO,
            Self::Os { error, .. } => return error.raw_os_error().unwrap_or(E::IO.raw_os_error()),
        }
        .raw_os_error()
    }
}
