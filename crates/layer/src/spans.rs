//! Ranges of requests: their bounds, and their division into pages, blocks and sub-pages.

use frit_core::Lpn;
use frit_core::convert::bounded_u32;
use std::ops::Range;

/// Part of a range that lies in one unit of a division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Number of the unit.
    pub(crate) index: u32,
    /// Offset from the start of the unit, in bytes.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// Offset from the start of the range, in bytes.
    pub(crate) from: u32,
}

/// Divides `len` bytes from byte `at` on into parts of units of `unit_bytes` bytes. `split` returns
/// the number of the unit of a byte, and the offset of the byte in it.
#[inline]
pub(crate) fn parts(
    at: u64,
    len: u32,
    unit_bytes: u32,
    split: impl Fn(u64) -> (u64, u64),
) -> impl Iterator<Item = Part> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from == len {
            return None;
        }
        let (index, offset) = split(at + u64::from(from));
        let offset = bounded_u32(offset);
        let part =
            Part { index: bounded_u32(index), offset, len: (unit_bytes - offset).min(len - from), from };
        from += part.len;
        Some(part)
    })
}

/// Returns quotient and remainder, by shift and mask if `d` is a power of two. It nearly always is,
/// and a division costs as much as the rest of dividing a request.
#[inline]
pub(crate) fn split(n: u64, d: u64) -> (u64, u64) {
    if d.is_power_of_two() { (n >> d.trailing_zeros(), n & (d - 1)) } else { (n / d, n % d) }
}

/// Part of one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageSpan {
    pub(crate) lpn: Lpn,
    /// Offset from the start of the page, in bytes.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// Offset from the start of the request, in bytes.
    pub(crate) from: u32,
}

impl PageSpan {
    /// Returns the span of a whole page.
    #[inline]
    pub(crate) fn whole(lpn: Lpn, page_bytes: u32) -> PageSpan {
        PageSpan { lpn, offset: 0, len: page_bytes, from: 0 }
    }

    #[inline]
    fn of(part: Part) -> PageSpan {
        PageSpan { lpn: Lpn(part.index), offset: part.offset, len: part.len, from: part.from }
    }
}

/// Divides `len` bytes from byte `at` on into parts of pages of any size.
#[inline]
pub(crate) fn page_spans(at: u64, len: u32, page_bytes: u32) -> impl Iterator<Item = PageSpan> {
    parts(at, len, page_bytes, move |byte| split(byte, u64::from(page_bytes))).map(PageSpan::of)
}

/// Divides `len` bytes from byte `at` on into part of a page, whole pages as one span, and part of a page.
pub(crate) fn whole_page_spans(at: u64, len: u32, page_bytes: u32) -> Vec<PageSpan> {
    let mut all: Vec<PageSpan> = Vec::new();
    for span in page_spans(at, len, page_bytes) {
        match all.last_mut() {
            Some(last)
                if last.offset == 0 && last.len.is_multiple_of(page_bytes) && span.len == page_bytes =>
            {
                last.len += span.len;
            }
            _ => all.push(span),
        }
    }
    all
}

/// A range of bytes, divided by blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DividedRange {
    /// Parts of a block before and after the whole blocks, or of one block or two if there are none.
    pub(crate) parts: [Range<u64>; 2],
    /// Whole blocks.
    pub(crate) whole: Range<u64>,
}

/// Divides `bytes` bytes from byte `at` on into whole blocks, and parts of blocks at both ends.
pub(crate) fn divide_range(at: u64, bytes: u64, block: u64) -> DividedRange {
    let end = at + bytes;
    let (first, last) = (at.div_ceil(block) * block, end / block * block);
    if first < last {
        return DividedRange { parts: [at..first, last..end], whole: first..last };
    }
    // The range lies inside one block, or crosses the boundary of two.
    let border = first.clamp(at, end);
    DividedRange { parts: [at..border, border..end], whole: border..border }
}

/// Divides `len` bytes from byte `at` on into parts of pages of `1 << shift` bytes.
#[inline]
pub(crate) fn page_spans_by_shift(at: u64, len: u32, shift: u32) -> impl Iterator<Item = PageSpan> {
    parts(at, len, 1 << shift, move |byte| (byte >> shift, byte & ((1 << shift) - 1))).map(PageSpan::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(spans: impl Iterator<Item = PageSpan>) -> Vec<(u32, u32, u32, u32)> {
        spans.map(|s| (s.lpn.0, s.offset, s.len, s.from)).collect()
    }

    #[test]
    fn ranges_are_cut_at_pages() {
        assert_eq!(
            cut(page_spans(1536, 3072, 2048)),
            [(0, 1536, 512, 0), (1, 0, 2048, 512), (2, 0, 512, 2560)]
        );
        assert_eq!(cut(page_spans(0, 0, 2048)), []);
        assert_eq!(cut(page_spans(600, 900, 1000)), [(0, 600, 400, 0), (1, 0, 500, 400)]);
    }

    #[test]
    fn a_shift_cuts_at_the_same_places() {
        let at = 4096 * 3 + 3584;
        assert_eq!(
            cut(page_spans_by_shift(at, 6144, 12)),
            [(3, 3584, 512, 0), (4, 0, 4096, 512), (5, 0, 1536, 4608)]
        );
        assert_eq!(cut(page_spans_by_shift(0, 0, 9)), []);
        for len in [512, 4096, 70_000] {
            assert_eq!(cut(page_spans_by_shift(at, len, 12)), cut(page_spans(at, len, 4096)));
        }
    }
}
