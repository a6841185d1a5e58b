//! Bounds of requests.

use crate::{Error, Result, SECTOR_BYTES, Sector};

/// Checks that `len` bytes from byte `at` on lie inside a volume of `capacity` bytes.
///
/// # Errors
/// `OutOfRange` if they do not.
#[inline]
pub fn check_bytes(at: u64, len: u64, capacity: u64) -> Result<()> {
    if is_inside(at, len, capacity) { Ok(()) } else { Err(out_of_range(at / SECTOR_BYTES, len, capacity)) }
}

/// Checks that `len` bytes from a sector on lie inside a volume of `capacity` bytes, and returns
/// the address of the first byte.
///
/// # Errors
/// `OutOfRange` if they do not.
#[inline]
pub fn check_sectors(at: Sector, len: u64, capacity: u64) -> Result<u64> {
    let first = at.0.saturating_mul(SECTOR_BYTES);
    if is_inside(first, len, capacity) { Ok(first) } else { Err(out_of_range(at.0, len, capacity)) }
}

#[inline]
fn is_inside(at: u64, len: u64, capacity: u64) -> bool {
    at.checked_add(len).is_some_and(|end| end <= capacity)
}

#[cold]
fn out_of_range(at: u64, len: u64, capacity: u64) -> Error {
    Error::OutOfRange { at, sectors: len.div_ceil(SECTOR_BYTES), capacity: capacity / SECTOR_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_past_the_end_is_refused() {
        assert!(check_bytes(512, 512, 1024).is_ok());
        assert_eq!(check_sectors(Sector(1), 512, 1024).unwrap(), 512);
        for error in
            [check_bytes(512, 1024, 1024).unwrap_err(), check_sectors(Sector(1), 1024, 1024).unwrap_err()]
        {
            assert!(matches!(error, Error::OutOfRange { at: 1, sectors: 2, capacity: 2 }), "{error:?}");
        }
        assert!(check_bytes(u64::MAX, 512, u64::MAX).is_err());
        assert!(matches!(
            check_sectors(Sector(u64::MAX), 512, 1024),
            Err(Error::OutOfRange { at: u64::MAX, sectors: 1, capacity: 2 })
        ));
    }
}
