//! Constants of Linux system calls that requests of the kernel contain.

/// Modes of fallocate(2), with the values of linux/falloc.h.
pub(super) mod mode {
    pub(crate) const KEEP_SIZE: i32 = 0x01;
    pub(crate) const PUNCH_HOLE: i32 = 0x02;
    pub(crate) const ZERO_RANGE: i32 = 0x10;
}

/// Directions of lseek(2) that search for data and holes.
pub(super) mod whence {
    pub(crate) const SEEK_DATA: i32 = 3;
    pub(crate) const SEEK_HOLE: i32 = 4;
}
