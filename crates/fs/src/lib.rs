//! ISPFS: a file system on byte-addressable memory, as a library that needs no kernel.
//!
//! The crate implements files, directories, permissions and crash consistency. It does not mount
//! anything (`frit-serve` does), and it has no data cache: data is copied between the caller's
//! memory and the medium.

mod api;
mod attr;
mod bodies;
mod check;
mod clock;
mod contents;
mod dir;
mod error;
mod extents;
mod files;
mod format;
mod fs;
mod inode;
mod journal;
mod ledger;
mod library;
mod medium;
mod names;
mod open;
mod orphans;
mod rules;
mod space;
mod sums;
mod sync;
mod types;
mod xattr;

pub use bodies::{Bodies, Body, BodyId, Ground, Look, Pool, Room};
pub use check::{Report, check, check_contents, check_pool, repair, repair_pool};
pub use clock::Clock;
pub use error::{Error, Result};
pub use files::Files;
pub use format::{Geometry, Region};
pub use fs::Fs;
pub use library::{File, OpenFile, Paths};
pub use medium::{Disk, Image, ImageFile, LockFile, Mapped, Medium, Overlaid, Overlay};
pub use open::{Format, Open};
pub use types::{
    Allocate, Attr, Caller, Changes, Entry, FILE_MAX, Gathered, Ino, Kind, LINK_MAX, NAME_MAX, New, Piece,
    RenameMode, Seek, SetTime, TARGET_MAX, Time, Usage, XATTR_MAX, XattrMode,
};
