//! Flat, zeroed tables with one row per page, and prefetching of rows. Large tables lie on huge
//! pages where the kernel has them: a map of several gigabytes is accessed at random, and with
//! small pages each access would also miss the TLB.

/// Tables smaller than this many bytes stay on ordinary pages.
const HUGE_FROM: usize = 4 << 20;

/// Returns a table of `rows` zeros. Huge pages are requested before the first access, so that the
/// first touch of each page can already allocate one.
#[must_use]
pub fn table32(rows: usize) -> Vec<u32> {
    let mut v = vec![0u32; rows];
    advise_huge(v.as_mut_ptr().cast(), rows * size_of::<u32>());
    v
}

/// Returns a table of 64-bit rows; see [`table32`].
#[must_use]
pub fn table64(rows: usize) -> Vec<u64> {
    let mut v = vec![0u64; rows];
    advise_huge(v.as_mut_ptr().cast(), rows * size_of::<u64>());
    v
}

/// Returns a table of `rows` copies of `row`, on huge pages as for [`table32`].
#[must_use]
pub fn table_of<R: Copy>(rows: usize, row: R) -> Vec<R> {
    let mut v: Vec<R> = Vec::with_capacity(rows);
    // Advise before `resize`, which touches the pages.
    advise_huge(v.as_mut_ptr().cast(), rows * size_of::<R>());
    v.resize(rows, row);
    v
}

/// Asks the kernel for huge pages. Measured on the 32 GB geometry of `make bench`: without them a
/// random 4 KiB write takes about 1.5 × as long, and `fill` about 2 ×.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn advise_huge(start: *mut u8, bytes: usize) {
    const PAGE: usize = 4096;
    let skip = start.align_offset(PAGE);
    if bytes < HUGE_FROM {
        return;
    }
    // `madvise` accepts only whole pages: skip the part before the first page boundary.
    let len = (bytes - skip) / PAGE * PAGE;
    // SAFETY: the range lies inside one live allocation, and MADV_HUGEPAGE changes neither the
    // contents nor the validity of memory. A failure means small pages, so the result is ignored.
    unsafe {
        libc::madvise(start.add(skip).cast(), len, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_: *mut u8, _: usize) {}

/// Prefetches the processor's cache line in which `row` begins.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
pub fn prefetch<R>(row: Option<&R>) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    if let Some(row) = row {
        // SAFETY: a prefetch changes nothing and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(row).cast()) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn prefetch<R>(_: Option<&R>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_small_and_large_are_zero() {
        for rows in [0, 1, 1000, 2 << 20] {
            assert_eq!((table32(rows).len(), table64(rows).len()), (rows, rows));
            assert!(table32(rows).iter().all(|&x| x == 0) && table64(rows).iter().all(|&x| x == 0));
        }
    }
}
