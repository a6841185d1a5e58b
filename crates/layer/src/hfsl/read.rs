//! Reading a page, wherever it lies.

use super::Hfsl;
use super::entry::Place;
use super::layer::Span;
use super::pcm::{Joined, NONE};
use crate::Token;
use frit_core::{Cause, Result, Sink, Target};
use frit_media::Store;

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Reads part of a page for the host.
    #[inline]
    pub(crate) fn read_page<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        into: Target<'_>,
    ) -> Result<()> {
        let done = self.gather(sink, span, into, Cause::Host)?;
        sink.ack(done);
        Ok(())
    }

    /// Reads part of a page for any cause.
    pub(crate) fn gather<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        mut into: Target<'_>,
        cause: Cause,
    ) -> Result<T> {
        match self.map.get(span.lpn).place() {
            Place::Unmapped => {
                into.zero();
                Ok(sink.start())
            }
            Place::Nand(ppn) => self.flash.read(sink, ppn, span.offset, into, cause),
            Place::Pcm(desc) => self.gather_pcm(sink, desc, span, into, cause),
        }
    }

    fn gather_pcm<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        desc: u32,
        span: Span,
        mut into: Target<'_>,
        cause: Cause,
    ) -> Result<T> {
        let mut all = Joined::new();
        let Some(pcm) = &mut self.map.pcm else { return Ok(sink.start()) };
        let subs = pcm.desc[desc as usize].subs;
        for part in sub_spans(span.offset, span.len, pcm.sub_bytes) {
            let mut piece = into.part(part.from, part.len);
            match subs[part.sub] {
                NONE => piece.zero(),
                slot => {
                    let at = pcm.slot_at(slot) + u64::from(part.offset);
                    let after = sink.start();
                    let done = pcm.medium.read(sink, at, piece, cause, after)?;
                    all.add(sink, done);
                }
            }
        }
        Ok(all.get(sink))
    }
}

/// A part of one sub-page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubSpan {
    pub(crate) sub: usize,
    /// Bytes from the start of the sub-page.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// Bytes from the start of the span.
    pub(crate) from: u32,
}

/// Cuts a part of a page into sub-pages.
pub(crate) fn sub_spans(offset: u32, len: u32, sub_bytes: u32) -> impl Iterator<Item = SubSpan> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from == len {
            return None;
        }
        let byte = offset + from;
        let inside = byte % sub_bytes;
        let part = SubSpan {
            sub: (byte / sub_bytes) as usize,
            offset: inside,
            len: (sub_bytes - inside).min(len - from),
            from,
        };
        from += part.len;
        Some(part)
    })
}
