//! Fetching memory ahead of its use.

/// Starts to load the cache line that `row` begins in.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline]
pub(crate) fn fetch<R>(row: Option<&R>) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    if let Some(row) = row {
        // SAFETY: a prefetch changes nothing and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(row).cast()) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn fetch<R>(_: Option<&R>) {}
