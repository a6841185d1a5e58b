//! Support for clean writes: cells that were refreshed (RESET) beforehand can be written faster.
//!
//! A refresh leaves zeros, so cells that contain zeros are equivalent to refreshed cells. A device
//! that was recovered from a store uses this to find the cells that accept a clean write.

use super::Pcm;
use crate::Store;
use crate::memory::prefetch;
use frit_core::{Cause, Op, Result, Sink, Tok, WriteData};
use std::ops::Range;

/// Number of bytes that are checked or zeroed at a time.
const CHUNK: u32 = 4096;

/// The write units that accept a clean write.
#[derive(Debug)]
pub(super) struct CleanMap {
    /// One bit per write unit: it was refreshed and not written since. Empty for a device without
    /// refresh.
    bits: Vec<u64>,
    /// One bit per write unit: its bytes were not examined yet, and its bit in `bits` is invalid.
    /// Empty for a device that was not recovered from a store.
    unknown: Vec<u64>,
    unit_shift: u32,
}

/// Returns the words that contain a range of bits, each with a mask of the bits in the range.
#[inline]
fn words(bits: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let first = bits.start / 64;
    let end = if bits.is_empty() { first } else { bits.end.div_ceil(64) };
    (first..end).map(move |w| {
        let from = bits.start.saturating_sub(w * 64);
        let to = (bits.end - w * 64).min(64);
        (w as usize, u64::MAX << from & u64::MAX >> (64 - to))
    })
}

/// Copies `n` bits of a table to another position in it.
fn copy_bits(table: &mut [u64], mut from: u64, mut to: u64, mut n: u64) {
    while n > 0 {
        // Copies a part that crosses no word boundary on either side.
        let part = n.min(64 - from % 64).min(64 - to % 64);
        let mask = u64::MAX >> (64 - part);
        let moved = table[(from / 64) as usize] >> (from % 64) & mask;
        let word = &mut table[(to / 64) as usize];
        *word = *word & !(mask << (to % 64)) | moved << (to % 64);
        (from, to, n) = (from + part, to + part, n - part);
    }
}

impl CleanMap {
    /// Creates the state of a device without refresh: no bits are kept.
    pub(super) fn none() -> CleanMap {
        CleanMap { bits: Vec::new(), unknown: Vec::new(), unit_shift: 0 }
    }

    /// Creates the state of `units` write units of `1 << unit_shift` bytes. The cells of a blank
    /// device are equivalent to refreshed ones; those of a recovered device are unknown.
    pub(super) fn new(units: u64, unit_shift: u32, blank: bool) -> CleanMap {
        let words = units.div_ceil(64) as usize;
        let full = |yes: bool| if yes { vec![u64::MAX; words] } else { Vec::new() };
        let bits = if blank { full(true) } else { vec![0; words] };
        CleanMap { bits, unknown: full(!blank), unit_shift }
    }

    #[inline]
    fn is_tracked(&self) -> bool {
        !self.bits.is_empty()
    }

    /// Prefetches the bit of the write unit that holds an address.
    #[inline]
    pub(super) fn prefetch(&self, at: u64) {
        prefetch(self.bits.get((at >> self.unit_shift) as usize / 64));
    }

    /// Returns the bits of the write units in a range. An empty range has none, even inside a unit.
    #[inline]
    fn range(&self, at: u64, len: u32) -> Range<u64> {
        let past = if len == 0 { 0 } else { (1 << self.unit_shift) - 1 };
        at >> self.unit_shift..(at + u64::from(len) + past) >> self.unit_shift
    }

    /// Returns `true` if all bits of a range are set. All of them must be known.
    #[inline]
    fn all(&self, bits: Range<u64>) -> bool {
        words(bits).all(|(w, mask)| self.bits[w] & mask == mask)
    }

    /// Sets all bits of a range and marks them as known.
    fn set(&mut self, bits: Range<u64>) {
        for (w, mask) in words(bits) {
            self.bits[w] |= mask;
            if let Some(unknown) = self.unknown.get_mut(w) {
                *unknown &= !mask;
            }
        }
    }

    /// Clears all bits of a range and marks them as known.
    #[inline]
    fn clear(&mut self, bits: Range<u64>) {
        for (w, mask) in words(bits) {
            self.bits[w] &= !mask;
            if let Some(unknown) = self.unknown.get_mut(w) {
                *unknown &= !mask;
            }
        }
    }

    /// Returns `true` if a bit of a range is unknown.
    #[inline]
    fn has_unknown(&self, bits: Range<u64>) -> bool {
        !self.unknown.is_empty() && words(bits).any(|(w, mask)| self.unknown[w] & mask != 0)
    }

    /// Sets the unknown bits of a range from its `bytes`, which start at the write unit `first`.
    fn resolve_unknown(&mut self, first: u64, bytes: &[u8]) {
        for (bit, unit) in (first..).zip(bytes.chunks(1 << self.unit_shift)) {
            let (w, mask) = ((bit / 64) as usize, 1 << (bit % 64));
            if self.unknown[w] & mask != 0 {
                self.unknown[w] &= !mask;
                if unit.iter().all(|&b| b == 0) {
                    self.bits[w] |= mask;
                }
            }
        }
    }
}

impl Pcm {
    /// Marks the write units of a range as not refreshed.
    #[inline]
    pub(super) fn mark_dirty(&mut self, at: u64, len: u32) {
        if self.clean.is_tracked() {
            self.clean.clear(self.clean.range(at, len));
        }
    }

    /// Examines the bytes of the unknown write units in a range.
    #[cold]
    fn examine(&mut self, bits: Range<u64>) -> Result<()> {
        let shift = self.clean.unit_shift;
        let mut bytes = [0; CHUNK as usize];
        let step = u64::from(CHUNK) >> shift;
        let mut first = bits.start;
        while first < bits.end {
            let end = bits.end.min(first + step);
            if self.clean.has_unknown(first..end) {
                let part = &mut bytes[..((end - first) << shift) as usize];
                self.store.read(first << shift, part)?;
                self.clean.resolve_unknown(first, part);
            }
            first = end;
        }
        Ok(())
    }

    /// Returns `true` if all write units of a range accept a clean write: they were refreshed and
    /// not written since, or, on a device that was recovered from a store, contained zeros when
    /// they were first examined. Returns `false` for a range past the end, for a device without
    /// refresh, and after a read error of the store. An empty range is clean.
    #[inline]
    pub fn is_clean(&mut self, at: u64, len: u32) -> bool {
        if !self.clean.is_tracked() || self.check_range(at, len).is_err() {
            return false;
        }
        let bits = self.clean.range(at, len);
        if self.clean.has_unknown(bits.clone()) && self.examine(bits.clone()).is_err() {
            return false;
        }
        self.clean.all(bits)
    }

    /// Writes bytes over refreshed cells.
    ///
    /// # Errors
    /// `Rule` if one of the write units was not refreshed since it was last written; otherwise the
    /// errors of [`Pcm::write`].
    pub fn write_clean(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.check_write(at, data)?;
        if !self.is_clean(at, data.len()) {
            return Self::rule(at, "a clean write needs cells that were refreshed");
        }
        self.write_as(sink, Op::PcmWriteClean, at, data, cause, after)
    }

    /// Writes bytes with a clean write if all write units of the range accept one, otherwise in
    /// place.
    ///
    /// # Errors
    /// The errors of [`Pcm::write`].
    #[inline]
    pub fn write_fresh(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.check_write(at, data)?;
        let op = if self.is_clean(at, data.len()) { Op::PcmWriteClean } else { Op::PcmWrite };
        self.write_as(sink, op, at, data, cause, after)
    }

    /// Refreshes the refresh unit that starts at `at`: it reads as zeros, its lines wear by one
    /// write, and it accepts clean writes. Emits one command for each channel on which the unit
    /// lies.
    ///
    /// # Errors
    /// `Rule` on a part without refresh, or if `at` is not the start of a refresh unit; an error of
    /// the store.
    pub fn refresh(&mut self, sink: &mut Sink, at: u64, cause: Cause, after: Tok) -> Result<Tok> {
        let Some(bytes) = self.config.refresh_bytes else {
            return Self::rule(at, "a refresh on a part that has none (no refresh_bytes)");
        };
        self.check_range(at, bytes)?;
        if !at.is_multiple_of(u64::from(bytes)) {
            return Self::rule(at, "a refresh has to start at a multiple of refresh_bytes");
        }
        self.wear_lines(at, bytes);
        let g = self.config.geometry;
        // A refresh unit that is not larger than a stripe unit lies on one channel.
        let channels = (bytes / g.interleave_bytes).clamp(1, g.channels);
        let mut done = after;
        for n in 0..channels {
            let first = at + u64::from(n) * u64::from(g.interleave_bytes);
            let tok = self.emit_one(sink, Op::PcmRefresh, first, bytes / channels, cause, after);
            done = if n == 0 { tok } else { sink.join(done, tok) };
        }
        if self.stores_bytes() {
            let zeros = [0; CHUNK as usize];
            for from in (0..bytes).step_by(CHUNK as usize) {
                let n = (bytes - from).min(CHUNK);
                self.store.write(at + u64::from(from), &zeros[..n as usize])?;
            }
        }
        self.clean.set(self.clean.range(at, bytes));
        Ok(done)
    }

    /// Declares that `len` bytes at `from` were copied to `to` and did not change since. The write
    /// units that are clean at the source contain zeros, so that their copies become clean as well.
    /// All three values must be multiples of the write unit.
    ///
    /// # Errors
    /// `Rule` for a range past the end of the device, or one that does not start and end at a write
    /// unit.
    pub fn copy_clean_state(&mut self, from: u64, to: u64, len: u32) -> Result<()> {
        self.check_range(from, len)?;
        self.check_range(to, len)?;
        if !(from | to | u64::from(len)).is_multiple_of(u64::from(self.config.geometry.write_unit)) {
            return Self::rule(to, "only whole write units can be copied as clean");
        }
        if self.clean.is_tracked() {
            let (of, first) = (self.clean.range(from, len), self.clean.range(to, len).start);
            let n = of.end - of.start;
            copy_bits(&mut self.clean.bits, of.start, first, n);
            if !self.clean.unknown.is_empty() {
                copy_bits(&mut self.clean.unknown, of.start, first, n);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the bits as a plain list, one per write unit.
    fn plain(of: &[u64], units: usize) -> Vec<bool> {
        (0..units).map(|i| of[i / 64] >> (i % 64) & 1 == 1).collect()
    }

    proptest! {
        #[test]
        fn words_of_bits_are_as_single_bits(
            units in 1u64..400,
            ops in prop::collection::vec((0u8..4, any::<u64>(), any::<u64>(), any::<u64>()), 1..80),
        ) {
            let mut clean = CleanMap::new(units, 4, true);
            let mut model = vec![true; units as usize];
            for (what, a, b, c) in ops {
                let (a, b) = (a % (units + 1), b % (units + 1));
                let (from, to) = (a.min(b), a.max(b));
                let range = from as usize..to as usize;
                match what {
                    0 => {
                        clean.set(from..to);
                        model[range].fill(true);
                    }
                    1 => {
                        clean.clear(from..to);
                        model[range].fill(false);
                    }
                    2 => {
                        let n = to - from;
                        let dest = c % (units - n + 1);
                        // Overlapping ranges are not supported.
                        if dest >= to || dest + n <= from {
                            copy_bits(&mut clean.bits, from, dest, n);
                            model.copy_within(range, dest as usize);
                        }
                    }
                    _ => prop_assert_eq!(clean.all(from..to), model[range].iter().all(|&m| m)),
                }
                prop_assert_eq!(&plain(&clean.bits, units as usize), &model);
            }
        }
    }
}
