//! A store in memory that allocates on the first write.

use super::{Store, check_range};
use frit_core::Result;

/// Size of an allocation in bytes: large enough to keep the tables small, small enough that a
/// single page does not cost much.
const CHUNK: usize = 64 << 10;
/// Number of chunks in a group: an entry of the table's first level covers 64 MiB.
const GROUP: usize = 1024;

type Chunk = Option<Box<[u8]>>;

/// A sparse store in memory. Its address space can be terabytes; only the chunks that were written
/// are allocated.
#[derive(Debug)]
pub struct MemoryStore {
    len: u64,
    groups: Vec<Option<Box<[Chunk]>>>,
    chunks: u64,
}

impl MemoryStore {
    /// Creates a blank store of `len` bytes.
    #[must_use]
    pub fn new(len: u64) -> MemoryStore {
        let groups = len.div_ceil((CHUNK * GROUP) as u64) as usize;
        MemoryStore { len, groups: (0..groups).map(|_| None).collect(), chunks: 0 }
    }

    /// Number of bytes that are allocated.
    #[cfg(test)]
    fn allocated_bytes(&self) -> u64 {
        self.chunks * CHUNK as u64
    }

    #[inline]
    fn chunk(&self, at: u64) -> Option<&[u8]> {
        let n = at as usize / CHUNK;
        self.groups[n / GROUP].as_ref()?[n % GROUP].as_deref()
    }

    fn chunk_mut(&mut self, at: u64) -> &mut [u8] {
        let n = at as usize / CHUNK;
        let group = self.groups[n / GROUP].get_or_insert_with(|| (0..GROUP).map(|_| None).collect());
        group[n % GROUP].get_or_insert_with(|| {
            self.chunks += 1;
            vec![0; CHUNK].into_boxed_slice()
        })
    }
}

impl Store for MemoryStore {
    fn len(&self) -> u64 {
        self.len
    }

    fn is_blank(&self) -> bool {
        self.chunks == 0
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        check_range(at, into.len(), self.len)?;
        let (mut at, mut rest) = (at, into);
        while !rest.is_empty() {
            let from = at as usize % CHUNK;
            let n = rest.len().min(CHUNK - from);
            let (now, later) = rest.split_at_mut(n);
            match self.chunk(at) {
                Some(c) => now.copy_from_slice(&c[from..from + n]),
                None => now.fill(0),
            }
            at += n as u64;
            rest = later;
        }
        Ok(())
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        check_range(at, data.len(), self.len)?;
        let (mut at, mut rest) = (at, data);
        while !rest.is_empty() {
            let from = at as usize % CHUNK;
            let n = rest.len().min(CHUNK - from);
            let (now, later) = rest.split_at(n);
            self.chunk_mut(at)[from..from + n].copy_from_slice(now);
            at += n as u64;
            rest = later;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        check_range(at, len, self.len).ok()?;
        let from = at as usize % CHUNK;
        // A slice lies within one chunk, and a chunk that was never written has no memory to
        // borrow.
        if len == 0 || from + len > CHUNK {
            return None;
        }
        self.chunk(at).map(|c| &c[from..from + len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terabytes_cost_nothing_until_written() {
        let mut s = MemoryStore::new(16 << 40);
        assert!(s.is_blank() && s.allocated_bytes() == 0);
        s.write((9 << 40) - 1, &[1, 2]).unwrap();
        assert_eq!(s.allocated_bytes(), 2 * CHUNK as u64);
        let mut b = [9; 4];
        s.read((9 << 40) - 2, &mut b).unwrap();
        assert_eq!(b, [0, 1, 2, 0]);
        assert_eq!(s.slice(9 << 40, 1), Some(&[2][..]));
        assert!(!s.is_blank());
    }
}
