//! Clean writes: cells that were refreshed (RESET) beforehand take less time to write.

use super::Pcm;
use crate::Store;
use frit_core::{Cause, Op, Result, Sink, Source};

impl<St: Store> Pcm<St> {
    /// The bits of the write units of a range, as first and one past the last.
    fn bits(&self, at: u64, len: u32) -> std::ops::Range<u64> {
        let unit = u64::from(self.config.geometry.write_unit);
        at / unit..(at + u64::from(len)).div_ceil(unit)
    }

    /// Forgets that the write units of a range were refreshed.
    #[inline]
    pub(super) fn mark_dirty(&mut self, at: u64, len: u32) {
        if self.clean.is_empty() {
            return;
        }
        for bit in self.bits(at, len) {
            self.clean[(bit / 64) as usize] &= !(1 << (bit % 64));
        }
    }

    /// Whether all write units of a range were refreshed and not written since.
    #[must_use]
    pub fn is_clean(&self, at: u64, len: u32) -> bool {
        !self.clean.is_empty()
            && self.inside(at, len).is_ok()
            && self.bits(at, len).all(|bit| self.clean[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }

    /// Writes bytes over refreshed cells.
    ///
    /// # Errors
    /// `Rule` when one of the write units was not refreshed since it was last written; else as for
    /// [`Pcm::write`].
    pub fn write_clean<S: Sink>(
        &mut self,
        sink: &mut S,
        at: u64,
        data: Source<'_>,
        cause: Cause,
        after: S::Tok,
    ) -> Result<S::Tok> {
        self.inside(at, data.len())?;
        if !self.is_clean(at, data.len()) {
            return Self::rule(at, "a clean write over cells that were not refreshed");
        }
        self.write_as(sink, Op::PcmWriteClean, at, data, cause, after)
    }

    /// Refreshes the refresh unit that starts at `at`: it reads as zeros, its lines wear once, and it
    /// takes clean writes. One command for each channel that the unit lies on.
    ///
    /// # Errors
    /// `Rule` on a part without refresh, or where no refresh unit starts; a store that fails.
    pub fn refresh<S: Sink>(&mut self, sink: &mut S, at: u64, cause: Cause, after: S::Tok) -> Result<S::Tok> {
        let Some(bytes) = self.config.refresh_bytes else {
            return Self::rule(at, "a refresh on a part that has none (refresh_bytes is not given)");
        };
        self.inside(at, bytes)?;
        if !at.is_multiple_of(u64::from(bytes)) {
            return Self::rule(at, "a refresh has to start where a refresh unit does");
        }
        self.wear_lines(at, bytes);
        for bit in self.bits(at, bytes) {
            self.clean[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        let g = self.config.geometry;
        let channels = (bytes / g.interleave_bytes).clamp(1, g.channels);
        let mut done = after;
        for n in 0..channels {
            let first = at + u64::from(n) * u64::from(g.interleave_bytes);
            let tok = self.give(sink, Op::PcmRefresh, first, bytes / channels, cause, after);
            done = if n == 0 { tok } else { sink.join(done, tok) };
        }
        if St::HOLDS {
            let zeros = [0; 4096];
            let mut from = 0;
            while from < bytes {
                let n = (bytes - from).min(4096);
                self.store.write(at + u64::from(from), &zeros[..n as usize])?;
                from += n;
            }
        }
        Ok(done)
    }
}
