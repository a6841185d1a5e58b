//! Search with vector instructions, for processors that have AVX-512BW or AVX2.
//!
//! A group of up to eight words is searched for in one pass with the method of Teddy (Hyperscan,
//! NSDI 2019): each word has a bit, and two tables for each of three positions of a fingerprint give
//! the words that have the low half and the high half of a byte at this position. Since no two words
//! share a bit, a candidate has all three bytes of a word. The few candidates are compared with the
//! words.

use super::fingerprint::{Fingerprint, OFFSET_MAX, OFFSETS};
use super::{Kernel, Needle};
use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_prefetch, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_set1_epi8, _mm512_shuffle_epi8,
    _mm512_srli_epi16, _mm512_test_epi8_mask,
};

/// Number of positions of a block: bits of a mask.
const BLOCK: usize = 64;
/// Number of words of a group: bits of a byte.
pub(super) const GROUP: usize = 8;
/// Bytes of a pass, so that the passes of the other groups find them in the cache.
const PASS: usize = 64 << 10;
/// Bytes that are read for a block.
const WINDOW: usize = BLOCK + OFFSET_MAX;
/// Number of blocks of a batch.
const BATCH: usize = 64;
/// Bytes of a copy of the end of the data with zeros after it, in which a whole window can be read.
const END: usize = 2 * WINDOW;
/// Distance of the prefetched bytes: the fastest of 1, 2, 4, 8 and 16 KiB (`benches/words.rs`).
const AHEAD: usize = 8192;

/// Reports the occurrences of the needles that begin before `starts`. `kernel` is one of those that
/// the processor has (`Kernel::available`).
pub(super) fn search<F: FnMut(usize, usize)>(
    kernel: Kernel,
    needles: &[Needle],
    fingerprints: &[Fingerprint],
    hay: &[u8],
    starts: usize,
    found: &mut F,
) {
    let step = if needles.len() <= GROUP { starts.max(1) } else { PASS };
    for from in (0..starts).step_by(step) {
        let to = starts.min(from.saturating_add(step));
        for (group, (needles, fingerprint)) in needles.chunks(GROUP).zip(fingerprints).enumerate() {
            let mut found = |needle: usize, at| found(group * GROUP + needle, at);
            pass(kernel, (needles, fingerprint), hay, from, to, &mut found);
        }
    }
}

/// Searches for the needles of a group at the positions `from..to`.
#[inline]
fn pass(
    kernel: Kernel,
    (needles, fingerprint): (&[Needle], &Fingerprint),
    hay: &[u8],
    mut from: usize,
    to: usize,
    found: &mut impl FnMut(usize, usize),
) {
    // Positions of each block of a batch that have the fingerprint of a word.
    let mut masks = [0; BATCH];
    let mut end = [0; END];
    while from < to {
        let rest = &hay[from..];
        let windows = if rest.len() >= WINDOW {
            rest
        } else {
            end[..rest.len()].copy_from_slice(rest);
            &end
        };
        let blocks = ((windows.len() - WINDOW) / BLOCK + 1).min(BATCH).min((to - from).div_ceil(BLOCK));
        run(kernel, fingerprint, windows, &mut masks[..blocks]);
        for (block, mask) in masks[..blocks].iter().enumerate() {
            let mut mask = *mask;
            while mask != 0 {
                let at = from + block * BLOCK + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                if at < to {
                    compare(needles, hay, at, found);
                }
            }
        }
        from += blocks * BLOCK;
    }
}

/// Reports the words that occur at a position.
#[inline]
fn compare(needles: &[Needle], hay: &[u8], at: usize, found: &mut impl FnMut(usize, usize)) {
    let rest = &hay[at..];
    // A comparison of eight bytes is enough for most candidates. A call of `memcmp` is slower.
    let first = rest.first_chunk().map(|first| u64::from_le_bytes(*first));
    for (index, needle) in needles.iter().enumerate() {
        let possible = first.is_none_or(|first| (first ^ needle.prefix) & needle.prefix_mask == 0);
        if possible && (first.is_some() && needle.bytes.len() <= 8 || rest.starts_with(&needle.bytes)) {
            found(index, at);
        }
    }
}

/// Finds the candidates in as many blocks as there are masks.
#[inline]
fn run(kernel: Kernel, fingerprint: &Fingerprint, windows: &[u8], masks: &mut [u64]) {
    // The compiler does not know at build time which instructions the processor has, so each call of a
    // function that uses them is unsafe.
    #[allow(unsafe_code)]
    match kernel {
        // SAFETY: `Searcher::with_kernel` selects this kernel only if the processor has AVX-512BW.
        Kernel::Avx512 => unsafe { avx512(fingerprint, windows, masks) },
        // SAFETY: as above, with AVX2.
        Kernel::Avx2 => unsafe { avx2(fingerprint, windows, masks) },
        Kernel::Portable => {}
    }
}

/// Requests the cache line at a position that will be read soon. With the prefetcher of the
/// processor alone, the search has a third of the speed.
#[inline]
fn prefetch(windows: &[u8], at: usize) {
    #[allow(unsafe_code)]
    // SAFETY: a prefetch accesses no memory, so any address is allowed.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(windows.as_ptr().wrapping_add(at).cast());
    }
}

// The loops below have indexes, and no branches or calls: iterator adapters are not inlined into
// functions with other target features, and vectors do not stay in registers over a call.

#[target_feature(enable = "avx512f,avx512bw")]
fn avx512(fingerprint: &Fingerprint, windows: &[u8], masks: &mut [u64]) {
    let half = _mm512_set1_epi8(0x0f);
    let table = |bytes: [u8; 16]| _mm512_broadcast_i32x4(bytemuck::cast::<_, __m128i>(bytes));
    let mut low = [half; OFFSETS];
    let mut high = [half; OFFSETS];
    for n in 0..OFFSETS {
        (low[n], high[n]) = (table(fingerprint.low[n]), table(fingerprint.high[n]));
    }
    let mut block = 0;
    while block < masks.len() {
        let Some(window) = windows.get(block * BLOCK..).and_then(<[u8]>::first_chunk::<WINDOW>) else {
            return;
        };
        prefetch(windows, block * BLOCK + AHEAD);
        let mut words = _mm512_set1_epi8(-1);
        let mut n = 0;
        while n < OFFSETS {
            let at = usize::from(fingerprint.at[n]) % (OFFSET_MAX + 1);
            let bytes: __m512i = bytemuck::pod_read_unaligned(&window[at..][..BLOCK]);
            let lows = _mm512_shuffle_epi8(low[n], _mm512_and_si512(bytes, half));
            let highs = _mm512_shuffle_epi8(high[n], _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), half));
            words = _mm512_and_si512(words, _mm512_and_si512(lows, highs));
            n += 1;
        }
        masks[block] = _mm512_test_epi8_mask(words, words);
        block += 1;
    }
}

#[target_feature(enable = "avx2")]
fn avx2(fingerprint: &Fingerprint, windows: &[u8], masks: &mut [u64]) {
    let half = _mm256_set1_epi8(0x0f);
    let table = |bytes: [u8; 16]| _mm256_broadcastsi128_si256(bytemuck::cast::<_, __m128i>(bytes));
    let mut low = [half; OFFSETS];
    let mut high = [half; OFFSETS];
    for n in 0..OFFSETS {
        (low[n], high[n]) = (table(fingerprint.low[n]), table(fingerprint.high[n]));
    }
    let mut block = 0;
    while block < masks.len() {
        let Some(window) = windows.get(block * BLOCK..).and_then(<[u8]>::first_chunk::<WINDOW>) else {
            return;
        };
        prefetch(windows, block * BLOCK + AHEAD);
        let mut mask = 0;
        let mut begin = 0;
        while begin < BLOCK {
            let mut words = _mm256_set1_epi8(-1);
            let mut n = 0;
            while n < OFFSETS {
                let at = usize::from(fingerprint.at[n]) % (OFFSET_MAX + 1);
                let bytes: __m256i = bytemuck::pod_read_unaligned(&window[at + begin..][..BLOCK / 2]);
                let lows = _mm256_shuffle_epi8(low[n], _mm256_and_si256(bytes, half));
                let highs = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), half);
                let highs = _mm256_shuffle_epi8(high[n], highs);
                words = _mm256_and_si256(words, _mm256_and_si256(lows, highs));
                n += 1;
            }
            let none = _mm256_movemask_epi8(_mm256_cmpeq_epi8(words, _mm256_setzero_si256())) as u32;
            mask |= u64::from(!none) << begin;
            begin += BLOCK / 2;
        }
        masks[block] = mask;
        block += 1;
    }
}
