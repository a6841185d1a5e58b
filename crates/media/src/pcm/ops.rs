//! PCM commands.

use super::Pcm;
use crate::Store;
use crate::memory::prefetch;
use frit_core::{Cause, Cmd, Op, ReadTarget, Result, Sink, Tok, WriteData};

impl Pcm {
    /// Counts a command and emits it into the sink.
    #[inline]
    pub(super) fn emit_one(
        &mut self,
        sink: &mut Sink,
        op: Op,
        at: u64,
        len: u32,
        cause: Cause,
        after: Tok,
    ) -> Tok {
        self.counts.add(op, cause, len);
        let hazard = (at >> self.line_shift) as u32;
        let unit = self.unit_of(at);
        sink.emit(Cmd { addr: at, len, hazard, unit, op, cause }, after)
    }

    /// Emits one command for each contiguous part of a range on one unit, all after the same token.
    /// Returns a token for all of them.
    #[inline]
    pub(super) fn emit_split(
        &mut self,
        sink: &mut Sink,
        op: Op,
        mut at: u64,
        mut len: u32,
        cause: Cause,
        after: Tok,
    ) -> Tok {
        let mut done: Option<Tok> = None;
        while len > 0 {
            let n = self.contiguous_len(at, len);
            let tok = self.emit_one(sink, op, at, n, cause, after);
            done = Some(match done {
                Some(d) => sink.join(d, tok),
                None => tok,
            });
            at += u64::from(n);
            len -= n;
        }
        done.unwrap_or(after)
    }

    /// Returns how many of the `len` bytes that start at `at` lie on one unit without a gap.
    #[inline]
    fn contiguous_len(&self, at: u64, len: u32) -> u32 {
        let n = self.stripe.contiguous_len(at, len);
        if self.config.geometry.groups == 1 {
            return n;
        }
        u64::from(n).min(self.group_bytes - at % self.group_bytes) as u32
    }

    #[inline]
    pub(super) fn check_range(&self, at: u64, len: u32) -> Result<()> {
        match at.checked_add(u64::from(len)) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Self::rule(at, "an access reaches past the end of the device"),
        }
    }

    /// Returns the write units that a range covers, as address and length.
    #[inline]
    pub(super) fn covered_units(&self, at: u64, len: u32) -> (u64, u32) {
        let unit = u64::from(self.config.geometry.write_unit);
        let first = at & !(unit - 1);
        let end = (at + u64::from(len)).next_multiple_of(unit);
        (first, (end - first) as u32)
    }

    /// Counts a write of all lines of a range. A line that is written in parts wears with each
    /// part.
    #[inline]
    pub(super) fn wear_lines(&mut self, at: u64, len: u32) {
        let first = (at >> self.line_shift) as usize;
        let last = ((at + u64::from(len) - 1) >> self.line_shift) as usize;
        for w in &mut self.wear[first..=last] {
            *w = w.saturating_add(1);
        }
    }

    /// Prefetches the wear counter and the clean bit of the line that holds an address.
    #[inline]
    pub fn prefetch_wear(&self, at: u64) {
        self.clean.prefetch(at);
        prefetch(self.wear.get((at >> self.line_shift) as usize));
    }

    /// Reads bytes. Emits one command for each contiguous part on one unit.
    ///
    /// # Errors
    /// `Rule` for an access past the end of the device, or an error of the store.
    #[inline]
    pub fn read(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let len = into.len();
        self.check_range(at, len)?;
        let tok = self.emit_split(sink, Op::PcmRead, at, len, cause, after);
        if let Some(into) = into.bytes() {
            self.store.read(at, into)?;
        }
        Ok(tok)
    }

    /// Reads bytes from the store without a command, for a checksum over bytes whose read was
    /// already emitted.
    ///
    /// # Errors
    /// `Rule` for an access past the end of the device, or an error of the store.
    pub fn peek(&self, at: u64, into: &mut [u8]) -> Result<()> {
        match u32::try_from(into.len()) {
            Ok(len) => self.check_range(at, len)?,
            Err(_) => return Self::rule(at, "a peek of 4 GiB or more"),
        }
        self.store.read(at, into)
    }

    /// Writes bytes in place. Emits one command for each contiguous part on one unit. A command
    /// covers whole write units, all of which wear.
    ///
    /// # Errors
    /// `Rule` for an access past the end of the device, or for a write without bytes if the store
    /// holds bytes; an error of the store.
    #[inline]
    pub fn write(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.check_write(at, data)?;
        self.write_as(sink, Op::PcmWrite, at, data, cause, after)
    }

    /// Checks that a write is possible.
    #[inline]
    pub(super) fn check_write(&self, at: u64, data: WriteData<'_>) -> Result<()> {
        self.check_range(at, data.len())?;
        if self.stores_bytes() && data.bytes().is_none() {
            return Self::rule(at, "a write without bytes on a device that holds bytes");
        }
        Ok(())
    }

    /// Executes a write that [`Pcm::check_write`] has accepted.
    #[inline]
    pub(super) fn write_as(
        &mut self,
        sink: &mut Sink,
        op: Op,
        at: u64,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let len = data.len();
        if len == 0 {
            return Ok(after);
        }
        let (first, covered) = self.covered_units(at, len);
        self.wear_lines(first, covered);
        self.mark_dirty(first, covered);
        let tok = self.emit_split(sink, op, first, covered, cause, after);
        if let (true, Some(bytes)) = (self.stores_bytes(), data.bytes()) {
            self.store.write(at, bytes)?;
        }
        Ok(tok)
    }

    /// Orders all writes that `after` waits for before all commands that wait for the returned
    /// token. Emits one fence for each unit.
    pub fn fence(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        let strip = u64::from(self.config.geometry.interleave_bytes);
        let mut done = after;
        let channels = self.config.geometry.channels;
        for unit in 0..self.config.geometry.units() {
            let (group, channel) = (u64::from(unit / channels), u64::from(unit % channels));
            // Any address on the unit will do: the unit of the command is derived from it.
            let tok = self.emit_one(
                sink,
                Op::PcmFence,
                group * self.group_bytes + channel * strip,
                0,
                Cause::Meta,
                after,
            );
            done = if unit == 0 { tok } else { sink.join(done, tok) };
        }
        done
    }

    /// Sets bytes without commands and without wear, for preconditioning.
    ///
    /// # Errors
    /// `Rule` for an access past the end of the device, or an error of the store.
    pub fn preset(&mut self, at: u64, data: &[u8]) -> Result<()> {
        let Ok(len) = u32::try_from(data.len()) else {
            return Self::rule(at, "a preset of 4 GiB or more");
        };
        self.check_range(at, len)?;
        if len > 0 {
            let (first, covered) = self.covered_units(at, len);
            self.mark_dirty(first, covered);
        }
        self.store.write(at, data)
    }
}
