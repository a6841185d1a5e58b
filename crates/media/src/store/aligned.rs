//! Mappings that begin at the boundary of a huge page.

use super::populate::HUGE_PAGE;
use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;

/// A shared mapping of a file. Where it can, it begins at a multiple of a huge page: the kernel maps
/// huge pages of a file only if address and offset agree, and does not align mappings of tmpfs itself
/// as long as huge pages are off for the system.
#[derive(Debug)]
pub(super) struct AlignedMap {
    /// Reserved addresses, of which the mapping takes a part; or the mapping itself.
    map: MmapMut,
    /// First byte of the mapping in `map`, and its length.
    start: usize,
    len: usize,
}

impl AlignedMap {
    /// Takes a mapping as it is.
    pub(super) fn unaligned(map: MmapMut) -> AlignedMap {
        AlignedMap { start: 0, len: map.len(), map }
    }

    /// Maps the first `len` bytes of a file, which it must have, at an aligned address.
    ///
    /// # Errors
    /// A host that cannot map the file.
    #[allow(unsafe_code)]
    pub(super) fn shared(file: &File, len: usize) -> io::Result<AlignedMap> {
        // The reserved pages are never touched, so they need no memory.
        let mut map = MmapOptions::new().len(len + HUGE_PAGE).no_reserve_swap().map_anon()?;
        let base = map.as_mut_ptr();
        let start = base.addr().next_multiple_of(HUGE_PAGE) - base.addr();
        let (read_write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: the call replaces pages inside the reservation, which this value owns and unmaps
        // whole, and to which no reference exists yet. For the contents, what `MmapStore::map` says
        // about a mapped file holds.
        let at = unsafe {
            let at = base.add(start).cast();
            libc::mmap(at, len, read_write, flags, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(AlignedMap { map, start, len })
        }
    }
}

impl Deref for AlignedMap {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedMap {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.len]
    }
}
