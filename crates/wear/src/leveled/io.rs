//! Accesses of a layer to a leveled PCM: reads, writes and fences at logical addresses.
//!
//! An access is split at stripe boundaries, because the leveler maps each logical stripe to a
//! physical one. A write that completes the interval of its region makes the next move.

use super::{Leveled, Leveler};
use crate::numbers::{LogicalStripe, PhysicalStripe, RegionId};
use crate::planted::WearBug;
use frit_core::convert::{count_u32, low_u32, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Counts, Error, MediumKind, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::Store;

/// Part of an access that is in one stripe.
#[derive(Clone, Copy, Debug)]
pub(super) struct StripePart {
    /// Physical address.
    pub(super) physical_at: u64,
    pub(super) stripe: PhysicalStripe,
    region: RegionId,
    /// Offset in the access.
    from: u32,
    /// Length in bytes.
    pub(super) len: u32,
}

impl Leveled {
    #[inline]
    pub(super) fn check_range(&self, at: u64, len: u64) -> Result<()> {
        match at.checked_add(len) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(past_end(at)),
        }
    }

    /// Part of an access that starts at offset `from` and ends at the end of its stripe. The access
    /// must be in range.
    #[inline]
    pub(super) fn stripe_part(&self, at: u64, from: u32, len: u32) -> StripePart {
        let at = at + u64::from(from);
        let place = self.leveler.map(LogicalStripe::of_u64(at >> self.stripe_shift));
        let stripe_bytes = 1 << self.stripe_shift;
        let offset = low_u32(at) & (stripe_bytes - 1);
        StripePart {
            physical_at: place.stripe.byte(self.stripe_shift, offset),
            stripe: place.stripe,
            region: place.region,
            from,
            len: (len - from).min(stripe_bytes - offset),
        }
    }

    /// Physical address of a logical one, which must be in range.
    #[inline]
    pub(super) fn physical(&self, at: u64) -> u64 {
        if self.passthrough { at } else { self.stripe_part(at, 0, 1).physical_at }
    }

    /// Prefetches the wear counter and the clean bits that a write to an address will update. The address must be in
    /// range.
    #[inline]
    pub fn prefetch_wear(&self, at: u64) {
        self.pcm.prefetch_wear(self.physical(at));
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// `Rule` if the range passes the end; errors of the store.
    #[inline]
    pub fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        if self.passthrough {
            return self.pcm.read(sink, at, into, cause, after);
        }
        let len = into.len();
        self.check_range(at, u64::from(len))?;
        let (mut done, mut from) = (None, 0);
        while from < len {
            let p = self.stripe_part(at, from, len);
            let after = sink.join(after, self.ready.get(p.stripe.idx()));
            let one = self.pcm.read(sink, p.physical_at, into.part(p.from, p.len), cause, after)?;
            done = Some(done.map_or(one, |d| sink.join(d, one)));
            from += p.len;
        }
        Ok(done.unwrap_or(after))
    }

    /// Writes bytes in place. The bytes count towards the next move of each region that the write
    /// reaches. A move that becomes due is made before the call returns; the returned token does
    /// not wait for it.
    ///
    /// # Errors
    /// As for [`Pcm::write`](frit_media::Pcm::write); `ReadOnly` after a move failed half-way.
    #[inline]
    pub fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.put::<false>(sink, at, data, cause, after)
    }

    /// Writes bytes. With `CLEAN`, clean writes are used where possible.
    #[inline]
    pub(super) fn put<const CLEAN: bool>(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        if self.passthrough {
            return self.write_part::<CLEAN>(sink, at, data, cause, after);
        }
        let len = data.len();
        self.check_range(at, u64::from(len))?;
        self.check_writable()?;
        let (mut done, mut from) = (None, 0);
        while from < len {
            let p = self.stripe_part(at, from, len);
            let after = self.after_move(sink, p, after);
            let data = data.part(p.from, p.len);
            let one = self.write_part::<CLEAN>(sink, p.physical_at, data, cause, after)?;
            done = Some(done.map_or(one, |d| sink.join(d, one)));
            from += p.len;
            self.record_write(sink, p, one)?;
        }
        Ok(done.unwrap_or(after))
    }

    #[inline]
    fn write_part<const CLEAN: bool>(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        if CLEAN {
            self.pcm.write_fresh(sink, at, data, cause, after)
        } else {
            self.pcm.write(sink, at, data, cause, after)
        }
    }

    /// Returns the token that a write to a stripe waits for: the stripe must not be in a move.
    #[inline]
    pub(super) fn after_move(&self, sink: &mut Sink, p: StripePart, after: Tok) -> Tok {
        if is_planted(WearBug::WriteEarly) { after } else { sink.join(after, self.ready.get(p.stripe.idx())) }
    }

    /// Records a write to a stripe: its token, and its length in whole write units. Makes the moves
    /// that become due.
    #[inline]
    pub(super) fn record_write(&mut self, sink: &mut Sink, p: StripePart, done: Tok) -> Result<()> {
        let stripe = p.stripe.idx();
        self.last_writes.set(stripe, sink.join(self.last_writes.get(stripe), done));
        let unit = u64::from(self.pcm.geometry().write_unit);
        let end = (p.physical_at + u64::from(p.len)).next_multiple_of(unit);
        let region = &mut self.regions[p.region.idx()];
        region.bytes_since_move += end - (p.physical_at & !(unit - 1));
        if region.bytes_since_move < self.interval_bytes {
            return Ok(());
        }
        self.make_due_moves(sink, p.region)
    }

    /// Copies bytes from the store without a command, to verify checksums beside a read.
    ///
    /// # Errors
    /// `Rule` if the range passes the end; errors of the store.
    pub fn peek(&self, at: u64, into: &mut [u8]) -> Result<()> {
        if self.passthrough {
            return self.pcm.peek(at, into);
        }
        self.check_range(at, to_u64(into.len()))?;
        let mut done = 0;
        while done < into.len() {
            let at = at + to_u64(done);
            let p = self.stripe_part(at, 0, count_u32((into.len() - done).min(1 << 30)));
            self.pcm.peek(p.physical_at, &mut into[done..done + to_usize(p.len)])?;
            done += to_usize(p.len);
        }
        Ok(())
    }

    /// Sets bytes without commands or wear, for preconditioning.
    ///
    /// # Errors
    /// `Rule` if the range passes the end; errors of the store.
    pub fn preset(&mut self, at: u64, data: &[u8]) -> Result<()> {
        if self.passthrough {
            return self.pcm.preset(at, data);
        }
        self.check_range(at, to_u64(data.len()))?;
        let mut done = 0;
        while done < data.len() {
            let at = at + to_u64(done);
            let p = self.stripe_part(at, 0, count_u32((data.len() - done).min(1 << 30)));
            self.pcm.preset(p.physical_at, &data[done..done + to_usize(p.len)])?;
            done += to_usize(p.len);
        }
        Ok(())
    }

    /// Prefetches bytes that will be read soon, if the store holds them in memory.
    pub fn prefetch_bytes(&self, at: u64, len: usize) {
        if at.checked_add(to_u64(len)).is_none_or(|end| end > self.bytes) || len == 0 {
            return;
        }
        // Only up to the end of the stripe: the next stripe is at another physical address.
        let len =
            if self.passthrough { len } else { len.min(to_usize(self.stripe_part(at, 0, u32::MAX).len)) };
        self.pcm.store().prefetch(self.physical(at), len);
    }

    /// Orders all writes that `after` covers before everything that waits for the returned token.
    #[inline]
    pub fn fence(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        self.pcm.fence(sink, after)
    }

    /// Commands by operation and cause, including those of moves.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.pcm.counts()
    }

    #[inline]
    pub(super) fn check_writable(&self) -> Result<()> {
        match &self.refuse_reason {
            None => Ok(()),
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
        }
    }
}

#[cold]
fn past_end(at: u64) -> Error {
    Error::Rule { medium: MediumKind::Pcm, at, what: "an access reaches past the end of the leveled PCM" }
}
