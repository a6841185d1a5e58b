//! Writeback of processor cache lines to durable memory.

// Unsafe code for three instructions. The other raw memory accesses of this crate are in
// `memory.rs` and `overlaid/store.rs`.
#![allow(unsafe_code)]

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Method of cache line writeback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CacheLineFlush {
    /// No writeback: the kernel writes pages back, or the memory ends with the process.
    NoFlush,
    /// `clwb`: the line is written and stays in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// `clflushopt`: the line is written and leaves the cache.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// `clflush`: as `clflushopt`, but ordered with respect to other flushes.
    #[cfg(target_arch = "x86_64")]
    Clflush,
}

impl CacheLineFlush {
    /// Returns the best method of this processor (Intel 64 and IA-32 Architectures Software
    /// Developer's Manual, vol. 2A, CPUID: leaf 7, EBX bits 23 and 24). Other architectures than
    /// x86-64 have none here and rely on a sync.
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{__cpuid, __cpuid_count};

            let ebx = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
            match ebx {
                _ if ebx >> 24 & 1 == 1 => Self::Clwb,
                _ if ebx >> 23 & 1 == 1 => Self::ClflushOpt,
                _ => Self::Clflush,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self::NoFlush
    }

    /// Writes back the lines of a range. They are durable after the next fence.
    ///
    /// # Safety
    /// The range is mapped.
    #[inline]
    pub(super) unsafe fn write_back(self, at: *const u8, len: usize) {
        if self == Self::NoFlush || len == 0 {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        {
            let first = at.wrapping_sub(at as usize % LINE);
            let lines = (at as usize % LINE + len).div_ceil(LINE);
            for i in 0..lines {
                let line = first.wrapping_add(i * LINE);
                // SAFETY: the caller guarantees that the range is mapped; these instructions change
                // no contents.
                unsafe {
                    match self {
                        Self::Clwb => {
                            std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags));
                        }
                        Self::ClflushOpt => {
                            std::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                        }
                        _ => std::arch::x86_64::_mm_clflush(line),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_back_whatever_their_range() {
        let bytes = vec![7_u8; 1000];
        for (from, len) in [(0, 1000), (1, 1), (63, 2), (64, 64), (5, 0), (900, 100)] {
            // SAFETY: inside `bytes`.
            unsafe { CacheLineFlush::detect().write_back(bytes[from..].as_ptr(), len) };
        }
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}
