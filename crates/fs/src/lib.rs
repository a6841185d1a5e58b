//! A file system on byte-addressable memory (ISPFS): files, directories and their rules without any kernel.
//!
//! It is not: a mount (that is `frit-serve`), nor a cache: data goes from the caller's memory to the medium and back.

mod error;
mod files;
mod medium;
mod types;

pub use error::{Error, Result};
pub use files::Files;
pub use medium::{Mapped, Medium};
pub use types::{
    Allocate, Attr, Caller, Changes, Entry, FILE_MAX, Ino, Kind, LINK_MAX, NAME_MAX, New, Piece, RenameMode,
    Seek, SetTime, TARGET_MAX, Time, Usage, XATTR_MAX, XattrMode,
};
