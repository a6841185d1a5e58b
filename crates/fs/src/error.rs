//! What can go wrong in a file system, each with the error number that a program is told.

use std::path::PathBuf;

/// A failure of an operation. Its text is the message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// no such file or directory
    #[error("no such file or directory")]
    NotFound,
    /// exists already
    #[error("exists already")]
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
    /// no space is left
    #[error("no space is left")]
    NoSpace,
    /// a quota of the file system below is used up
    #[error("a quota of the file system below is used up")]
    Quota,
    /// no inode is left
    #[error("no inode is left")]
    NoInode,
    /// permission denied
    #[error("permission denied")]
    Access,
    /// not permitted to this user
    #[error("not permitted to this user")]
    NotPermitted,
    /// a name longer than 255 bytes
    #[error("a name longer than 255 bytes")]
    NameTooLong,
    /// too many symbolic links on the way
    #[error("too many symbolic links on the way")]
    TooManyLinks,
    /// the file has as many hard links as it can have
    #[error("the file has as many hard links as it can have")]
    LinksFull,
    /// beyond the largest size of a file
    #[error("beyond the largest size of a file")]
    TooLarge,
    /// the argument makes no sense here
    #[error("{0}")]
    Invalid(&'static str),
    /// no such extended attribute
    #[error("no such extended attribute")]
    NoAttribute,
    /// an extended attribute, or all of a file, larger than there is room for
    #[error("extended attributes take more room than there is")]
    AttributeTooLarge,
    /// the name of an extended attribute is longer than 255 bytes
    #[error("the name of an extended attribute is longer than 255 bytes")]
    AttributeName,
    /// no data and no hole behind this position
    #[error("nothing of the kind behind this position")]
    BeyondEnd,
    /// not done by this file system
    #[error("not done by this file system: {0}")]
    Unsupported(&'static str),
    /// the file system is read-only
    #[error("the file system is read-only")]
    ReadOnly,
    /// in use by the system itself
    #[error("in use by the system itself")]
    Busy,
    /// the inode is gone
    #[error("the inode is gone")]
    Stale,
    /// what the medium holds contradicts its checksum or itself
    #[error("damaged: {what} at byte {at:#x}; run `frit fsck` on the image")]
    Damaged {
        /// What is damaged.
        what: &'static str,
        /// Where in the medium, in bytes.
        at: u64,
    },
    /// the medium, its file or an image that cannot be used
    #[error("{0}")]
    Image(String),
    /// a call of the operating system
    #[error("{what} {}: {error}", path.display())]
    Os {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system answered.
        error: std::io::Error,
    },
}

/// What operations return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The error number (errno(3)) that a program sees.
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
            Self::Access => E::ACCESS,
            Self::NotPermitted => E::PERM,
            Self::NameTooLong => E::NAMETOOLONG,
            Self::TooManyLinks => E::LOOP,
            Self::LinksFull => E::MLINK,
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
