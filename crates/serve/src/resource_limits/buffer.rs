//! A buffer whose memory returns to the system as soon as it is freed.

use memmap2::MmapMut;
use std::io;
use std::ops::{Deref, DerefMut, Range};

/// A buffer of zeroed memory, mapped from the system and unmapped when it is dropped or made smaller.
///
/// An allocator caches freed memory per thread. With a thread for each client, these caches would
/// hold far more memory than the clients use.
#[derive(Default, Debug)]
pub(crate) struct MappedBuffer {
    map: Option<MmapMut>,
}

impl MappedBuffer {
    /// Changes the length, and moves the bytes of the range `keep` of the old buffer to the start
    /// of the new one.
    ///
    /// # Errors
    /// The system has no memory left; the buffer is unchanged.
    pub(crate) fn resize(&mut self, len: usize, keep: Range<usize>) -> io::Result<()> {
        let mut map = if len == 0 { None } else { Some(MmapMut::map_anon(len)?) };
        if let Some(map) = map.as_mut().filter(|_| !keep.is_empty()) {
            map[..keep.len()].copy_from_slice(&self[keep]);
        }
        self.map = map;
        Ok(())
    }
}

impl Deref for MappedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

impl DerefMut for MappedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_move_to_the_start_of_the_new_buffer() {
        let mut buffer = MappedBuffer::default();
        assert!(buffer.is_empty());
        buffer.resize(10, 0..0).unwrap();
        buffer.copy_from_slice(b"0123456789");
        buffer.resize(5000, 3..7).unwrap();
        assert_eq!((&buffer[..6], buffer.len()), (&b"3456\0\0"[..], 5000));
        buffer.resize(2, 1..3).unwrap();
        assert_eq!(&buffer[..], b"45");
        buffer.resize(0, 0..0).unwrap();
        assert!(buffer.is_empty());
    }
}
