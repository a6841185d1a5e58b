//! Payloads whose bytes may be absent: a simulation moves only lengths, a volume moves bytes.

/// Data to be written.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// Only the length in bytes is known.
    Len(u32),
    /// The bytes.
    Bytes(&'a [u8]),
}

impl<'a> Source<'a> {
    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            Source::Len(n) => *n,
            Source::Bytes(b) => b.len() as u32,
        }
    }

    /// Returns `true` if the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `len` bytes that start at `from`. The range must lie inside the payload.
    #[inline]
    #[must_use]
    pub fn part(&self, from: u32, len: u32) -> Source<'a> {
        match self {
            Source::Len(_) => Source::Len(len),
            Source::Bytes(b) => Source::Bytes(&b[from as usize..(from + len) as usize]),
        }
    }

    /// Returns the bytes, if they are present.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Source::Len(_) => None,
            Source::Bytes(b) => Some(b),
        }
    }
}

/// Destination of data that is read.
#[derive(Debug)]
pub enum Target<'a> {
    /// No destination; only the length in bytes is known.
    Len(u32),
    /// A buffer. A read writes all of it.
    Bytes(&'a mut [u8]),
}

impl Target<'_> {
    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            Target::Len(n) => *n,
            Target::Bytes(b) => b.len() as u32,
        }
    }

    /// Returns `true` if the destination is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reborrows `len` bytes that start at `from`. The range must lie inside the destination.
    #[inline]
    pub fn part(&mut self, from: u32, len: u32) -> Target<'_> {
        match self {
            Target::Len(_) => Target::Len(len),
            Target::Bytes(b) => Target::Bytes(&mut b[from as usize..(from + len) as usize]),
        }
    }

    /// Fills the destination with zeros, the contents of sectors that were never written.
    #[inline]
    pub fn zero(&mut self) {
        if let Target::Bytes(b) = self {
            b.fill(0);
        }
    }

    /// Returns the bytes, if they are present.
    #[inline]
    pub fn bytes(&mut self) -> Option<&mut [u8]> {
        match self {
            Target::Len(_) => None,
            Target::Bytes(b) => Some(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_bytes_and_of_lengths_agree() {
        let b = [1, 2, 3, 4];
        assert_eq!(Source::Bytes(&b).part(1, 2).bytes(), Some(&[2, 3][..]));
        assert_eq!(Source::Len(4).part(1, 2).len(), 2);
        let mut out = [9; 4];
        let mut t = Target::Bytes(&mut out);
        t.part(2, 2).zero();
        assert_eq!(out, [9, 9, 0, 0]);
    }
}
