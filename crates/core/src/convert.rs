//! Conversions between integer widths that `From` does not offer, each with the reason why no value
//! is lost.
//!
//! A conversion that the caller must have bounded is checked in debug builds. It costs nothing in
//! release builds, since these functions are on the path of every request.

const _: () = assert!(usize::BITS >= 32 && usize::BITS <= 64);

/// Converts a number of 32 bits to an index or a length. `usize` has at least 32 bits on all
/// targets that frit supports.
#[inline]
#[must_use]
pub const fn to_usize(n: u32) -> usize {
    n as usize
}

/// Converts a length in memory to 64 bits. `usize` has at most 64 bits.
#[inline]
#[must_use]
pub const fn to_u64(n: usize) -> u64 {
    n as u64
}

/// Converts the size or the offset of an object in memory, which `usize` can express.
#[inline]
#[must_use]
pub const fn size_in_memory(n: u64) -> usize {
    debug_assert!(n <= to_u64(usize::MAX));
    n as usize
}

/// Converts the length of a table or of a buffer that has at most 2^32 - 1 entries: its entries are
/// numbered with 32 bits.
#[inline]
#[must_use]
pub const fn count_u32(n: usize) -> u32 {
    debug_assert!(to_u64(n) <= u32::MAX as u64);
    n as u32
}

/// Converts a number that is below 2^32 because of an earlier check, or because it is a remainder
/// or a quotient of such a number.
#[inline]
#[must_use]
pub const fn bounded_u32(n: u64) -> u32 {
    debug_assert!(n <= u32::MAX as u64);
    n as u32
}

/// Returns the lower 32 bits. The upper ones are dropped on purpose.
#[inline]
#[must_use]
pub const fn low_u32(n: u64) -> u32 {
    n as u32
}

/// Returns the lower 16 bits. The upper ones are dropped on purpose.
#[inline]
#[must_use]
pub const fn low_u16(n: u64) -> u16 {
    n as u16
}

/// Returns the lower 8 bits. The upper ones are dropped on purpose.
#[inline]
#[must_use]
pub const fn low_u8(n: u64) -> u8 {
    n as u8
}

/// Converts a count to a floating-point number, for ratios and reports. Counts above 2^53 are
/// rounded, which is far below the precision of any report.
#[inline]
#[must_use]
pub const fn to_f64(n: u64) -> f64 {
    n as f64
}

/// Returns the integer part of a number that is not negative. Larger numbers than `u32::MAX` become
/// `u32::MAX`; negative ones and NaN become zero.
#[inline]
#[must_use]
pub const fn floor_u32(x: f64) -> u32 {
    x as u32
}

/// Returns the integer part of a number that is not negative. Larger numbers than `u64::MAX` become
/// `u64::MAX`; negative ones and NaN become zero.
#[inline]
#[must_use]
pub const fn floor_u64(x: f64) -> u64 {
    x as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_change_and_values_do_not() {
        assert_eq!((to_usize(7), to_u64(7), size_in_memory(7)), (7, 7, 7));
        assert_eq!((count_u32(9), bounded_u32(u64::from(u32::MAX))), (9, u32::MAX));
        assert_eq!((low_u32(1 << 32 | 5), low_u16(1 << 16 | 5), low_u8(0x105)), (5, 5, 5));
        assert_eq!((floor_u32(2.9), floor_u32(1e20), floor_u32(-1.0)), (2, u32::MAX, 0));
        assert_eq!((floor_u64(2.9), floor_u64(f64::NAN), to_f64(3)), (2, 0, 3.0));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "assertion failed")]
    fn a_number_beyond_its_bound_is_found_in_debug_builds() {
        let _ = bounded_u32(1 << 32);
    }
}
