//! Payloads whose bytes may be absent: a simulation moves only lengths, a volume moves bytes.

/// Data to be written.
#[derive(Clone, Copy, Debug)]
pub enum WriteData<'a> {
    /// Only the length in bytes is known.
    Len(u32),
    /// The bytes.
    Bytes(&'a [u8]),
}

impl<'a> WriteData<'a> {
    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            WriteData::Len(n) => *n,
            WriteData::Bytes(b) => b.len() as u32,
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
    pub fn part(&self, from: u32, len: u32) -> WriteData<'a> {
        match self {
            WriteData::Len(_) => WriteData::Len(len),
            WriteData::Bytes(b) => WriteData::Bytes(&b[from as usize..(from + len) as usize]),
        }
    }

    /// Returns the bytes, if they are present.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            WriteData::Len(_) => None,
            WriteData::Bytes(b) => Some(b),
        }
    }
}

/// Destination of data that is read.
#[derive(Debug)]
pub enum ReadTarget<'a> {
    /// No destination; only the length in bytes is known.
    Len(u32),
    /// A buffer. A read writes all of it.
    Bytes(&'a mut [u8]),
}

impl ReadTarget<'_> {
    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            ReadTarget::Len(n) => *n,
            ReadTarget::Bytes(b) => b.len() as u32,
        }
    }

    /// Returns `true` if the destination is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reborrows `len` bytes that start at `from`. The range must lie inside the destination.
    #[inline]
    pub fn part(&mut self, from: u32, len: u32) -> ReadTarget<'_> {
        match self {
            ReadTarget::Len(_) => ReadTarget::Len(len),
            ReadTarget::Bytes(b) => ReadTarget::Bytes(&mut b[from as usize..(from + len) as usize]),
        }
    }

    /// Fills the destination with zeros, the contents of sectors that were never written.
    #[inline]
    pub fn zero(&mut self) {
        if let ReadTarget::Bytes(b) = self {
            b.fill(0);
        }
    }

    /// Returns the bytes, if they are present.
    #[inline]
    pub fn bytes(&mut self) -> Option<&mut [u8]> {
        match self {
            ReadTarget::Len(_) => None,
            ReadTarget::Bytes(b) => Some(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_bytes_and_of_lengths_agree() {
        let b = [1, 2, 3, 4];
        assert_eq!(WriteData::Bytes(&b).part(1, 2).bytes(), Some(&[2, 3][..]));
        assert_eq!(WriteData::Len(4).part(1, 2).len(), 2);
        let mut out = [9; 4];
        let mut t = ReadTarget::Bytes(&mut out);
        t.part(2, 2).zero();
        assert_eq!(out, [9, 9, 0, 0]);
    }
}
