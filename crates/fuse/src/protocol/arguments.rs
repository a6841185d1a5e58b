//! Arguments of a request: a structure that its number determines, then names or data.

use super::abi;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use zerocopy::FromBytes;

/// Arguments of a request that were not read yet. Structures are copied out, so the bytes need no
/// alignment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    fixed: &'a [u8],
    rest: &'a [u8],
}

/// A request that is shorter than its number requires, or has a name without its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

impl<'a> Arguments<'a> {
    /// Returns arguments whose structure is separate from the rest.
    pub(crate) fn new(fixed: &'a [u8], rest: &'a [u8]) -> Arguments<'a> {
        Arguments { fixed, rest }
    }

    /// Returns arguments in one piece.
    pub(crate) fn contiguous(opcode: u32, bytes: &'a [u8]) -> Arguments<'a> {
        let (fixed, rest) = bytes.split_at(abi::fixed_bytes(opcode).min(bytes.len()));
        Arguments { fixed, rest }
    }

    /// Returns the structure.
    pub(crate) fn structure<T: FromBytes>(&self) -> Result<T, Malformed> {
        T::read_from_prefix(self.fixed).map(|(value, _)| value).map_err(|_| Malformed)
    }

    /// Takes a name, which a zero byte ends.
    pub(crate) fn name(&mut self) -> Result<&'a OsStr, Malformed> {
        let end = self.rest.iter().position(|&b| b == 0).ok_or(Malformed)?;
        let name = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if name.is_empty() { Err(Malformed) } else { Ok(OsStr::from_bytes(name)) }
    }

    /// Takes bytes.
    pub(crate) fn bytes(&mut self, len: u32) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(len as usize).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Takes a structure of the rest.
    pub(crate) fn next<T: FromBytes>(&mut self) -> Result<T, Malformed> {
        let (value, rest) = T::read_from_prefix(self.rest).map_err(|_| Malformed)?;
        self.rest = rest;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_follow_the_structure() {
        let bytes = [&7u64.to_ne_bytes()[..], b"old\0new\0"].concat();
        let mut arguments = Arguments::contiguous(abi::opcode::RENAME, &bytes);
        assert_eq!(arguments.structure::<abi::RenameIn>().unwrap().newdir, 7);
        assert_eq!(arguments.name().unwrap(), "old");
        assert_eq!(arguments.name().unwrap(), "new");
        assert_eq!(arguments.name(), Err(Malformed));
        assert!(
            Arguments::contiguous(abi::opcode::RENAME, &bytes[..7]).structure::<abi::RenameIn>().is_err()
        );
        assert_eq!(Arguments::new(&[], b"open").name(), Err(Malformed), "no end");
        assert_eq!(Arguments::new(&[], b"\0").name(), Err(Malformed), "no name");
        let mut data = Arguments::new(&[], b"abc");
        assert_eq!(data.bytes(2).unwrap(), b"ab");
        assert_eq!(data.bytes(2), Err(Malformed));
        assert!(data.next::<u64>().is_err());
    }
}
