//! Payloads that may be absent: pure simulation moves lengths, a volume moves bytes.

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// Only its length in bytes is known.
    Len(u32),
    /// The bytes.
    Bytes(&'a [u8]),
}

impl<'a> Source<'a> {
    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            Source::Len(n) => *n,
            Source::Bytes(b) => b.len() as u32,
        }
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` bytes from `from` on; both must lie inside.
    #[inline]
    #[must_use]
    pub fn part(&self, from: u32, len: u32) -> Source<'a> {
        match self {
            Source::Len(_) => Source::Len(len),
            Source::Bytes(b) => Source::Bytes(&b[from as usize..(from + len) as usize]),
        }
    }

    /// The bytes, when there are any.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Source::Len(_) => None,
            Source::Bytes(b) => Some(b),
        }
    }
}

/// Where what is read goes.
#[derive(Debug)]
pub enum Target<'a> {
    /// Nowhere; only its length in bytes is known.
    Len(u32),
    /// Into these bytes, all of which are written.
    Bytes(&'a mut [u8]),
}

impl Target<'_> {
    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            Target::Len(n) => *n,
            Target::Bytes(b) => b.len() as u32,
        }
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` bytes from `from` on, borrowed anew; both must lie inside.
    #[inline]
    pub fn part(&mut self, from: u32, len: u32) -> Target<'_> {
        match self {
            Target::Len(_) => Target::Len(len),
            Target::Bytes(b) => Target::Bytes(&mut b[from as usize..(from + len) as usize]),
        }
    }

    /// Fills all of it with zeros: what was never written reads as zero.
    #[inline]
    pub fn zero(&mut self) {
        if let Target::Bytes(b) = self {
            b.fill(0);
        }
    }

    /// The bytes, when there are any.
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
