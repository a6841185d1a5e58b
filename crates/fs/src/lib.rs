//! ISPFS: a file system on byte-addressable memory, as a library that needs no kernel.
//!
//! The crate implements files, directories, permissions and crash consistency. It does not mount
//! anything (`frit-serve` does), and it has no data cache: data is copied between the caller's
//! memory and the medium.

mod api;
mod attr;
mod check;
mod checksums;
mod clock;
mod content_store;
mod contents;
mod counters;
mod dir;
mod direct;
mod error;
mod extents;
mod files;
mod format;
mod fs;
mod in_storage;
mod inode;
mod journal;
mod library;
mod medium;
mod nameless;
mod names;
mod open;
mod orphans;
mod permissions;
pub mod planted;
mod registers;
mod removed;
mod space;
mod sync;
mod types;
mod xattr;

pub use check::{
    Report, check, check_contents, check_placed, check_pool, repair, repair_placed, repair_pool,
};
pub use clock::Clock;
pub use content_store::{BackingFs, ContentFile, ContentId, ContentMetadata, ContentStore, Pool, StatFs};
pub use contents::FileContents;
pub use direct::DirectFiles;
pub use error::{Error, Result};
pub use files::FileSystem;
pub use format::{Geometry, Region};
pub use fs::Fs;
pub use in_storage::InStorage;
pub use library::{File, FileMap, OpenFile, Paths};
pub use medium::{
    AnyMedium, Disk, Image, ImageFile, LockFile, Mapped, Medium, Overlaid, OverlayNote, OverlayOptions,
};
pub use nameless::{ContentDevice, DeviceAccess, DeviceOwner, PlacedContents, VirtualBlock, VirtualBlocks};
pub use open::{FormatOptions, FsOptions};
pub use registers::{
    REGISTER_QUERIES, REGISTER_SETS, RegisterSet, RegisterStatus, RegistersHeld, read_registers,
};
pub use types::{
    Allocate, Attr, AttrChanges, COMMAND_NAME, Caller, DefragResult, DirEntry, FILE_MAX, FileExtent, Ino,
    InodeType, LINK_MAX, LookedUp, NAME_MAX, NewInode, Overrides, RenameMode, Seek, SetTime, TARGET_MAX,
    Time, Usage, XATTR_MAX, XattrMode,
};
