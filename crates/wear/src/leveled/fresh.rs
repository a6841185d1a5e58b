//! Refresh and clean writes under a leveler: refreshed cells move with their stripe.

use super::Leveled;
use frit_core::{Cause, Error, MediumKind, Result, Sink, Tok, WriteData};

impl Leveled {
    /// Size of the refresh unit, in bytes. `None` for a part without clean writes, and if the
    /// leveler's stripes are smaller than the unit: a refresh would reach into other stripes.
    #[must_use]
    pub fn refresh_bytes(&self) -> Option<u32> {
        let unit = self.pcm.config().refresh_bytes;
        unit.filter(|&bytes| self.passthrough || bytes <= self.shape.stripe_bytes)
    }

    /// Returns `true` if all write units of a range accept a clean write: see
    /// [`Pcm::is_clean`](frit_media::Pcm::is_clean).
    #[inline]
    pub fn is_clean(&mut self, at: u64, len: u32) -> bool {
        if self.passthrough {
            return self.pcm.is_clean(at, len);
        }
        if self.check_range(at, u64::from(len)).is_err() {
            return false;
        }
        let mut from = 0;
        while from < len {
            let p = self.stripe_part(at, from, len);
            if !self.pcm.is_clean(p.physical_at, p.len) {
                return false;
            }
            from += p.len;
        }
        self.pcm.config().refresh_bytes.is_some()
    }

    /// Writes bytes. In each stripe a clean write is used if all its write units accept one,
    /// otherwise the write is in place. The bytes count towards moves as with [`Leveled::write`].
    ///
    /// # Errors
    /// As for [`Leveled::write`].
    #[inline]
    pub fn write_fresh(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.put::<true>(sink, at, data, cause, after)
    }

    /// Refreshes the refresh unit that starts at `at`: see
    /// [`Pcm::refresh`](frit_media::Pcm::refresh). Its bytes count towards moves like written
    /// bytes.
    ///
    /// # Errors
    /// `Rule` past the end, if [`Leveled::refresh_bytes`] is `None`, or if no refresh unit starts
    /// at `at`; the store fails; `ReadOnly` after a move failed half-way.
    pub fn refresh(&mut self, sink: &mut Sink, at: u64, cause: Cause, after: Tok) -> Result<Tok> {
        if self.passthrough {
            return self.pcm.refresh(sink, at, cause, after);
        }
        let Some(bytes) = self.refresh_bytes() else {
            let what = "refresh of leveled PCM without refresh, or with stripes smaller than a refresh unit";
            return Err(Error::Rule { medium: MediumKind::Pcm, at, what });
        };
        self.check_range(at, u64::from(bytes))?;
        self.check_writable()?;
        let p = self.stripe_part(at, 0, bytes);
        let after = self.after_move(sink, p, after);
        let done = self.pcm.refresh(sink, p.physical_at, cause, after)?;
        self.record_write(sink, p, done)?;
        Ok(done)
    }
}
