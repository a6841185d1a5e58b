//! The head: whose memory this is, and whether the layer was halted in order.

use super::layer::Ntl;
use super::layout::STATE_AT;
use super::mapping::Mapping;
use crate::Token;
use frit_core::{Cause, Error, MediumKind, Result, Sink, Source};
use frit_media::Store;
use frit_media::checksum::crc32c;

const MAGIC: &[u8; 8] = b"fritNTL\0";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 64;

/// Not in use: the last user halted in order.
const HALTED: u64 = 1;
/// In use, or stopped while it was.
const IN_USE: u64 = 2;

impl<T: Token, P: Store> Ntl<T, P> {
    /// Magic (8), version, mapping, page bytes, block pages, chips, home pages and log pages of a chip, pages of a
    /// row, protected, log (4 each), zeros (12), CRC32C (4).
    fn head(&self) -> [u8; HEAD_BYTES] {
        let l = &self.space.layout;
        let mut h = [0; HEAD_BYTES];
        h[..8].copy_from_slice(MAGIC);
        let mapping = self.config.mapping_kind().map_or(u32::MAX, |kind| kind as u32);
        let words = [
            VERSION,
            mapping,
            l.page_bytes,
            self.config.block_pages,
            l.chips,
            l.homes,
            l.logs,
            l.row_pages,
            u32::from(self.space.protected),
            self.config.log_kind() as u32,
        ];
        for (to, word) in h[8..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c(&h[..HEAD_BYTES - 4]);
        h[HEAD_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        h
    }

    fn write_state<S: Sink<Tok = T>>(&mut self, sink: &mut S, state: u64) -> Result<()> {
        let after = self.space.fenced();
        let word = state.to_le_bytes();
        let source = if P::HOLDS { Source::Bytes(&word) } else { Source::Len(8) };
        let tok = self.space.pcm.write(sink, STATE_AT, source, Cause::Meta, after)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        Ok(())
    }

    /// The first write since the layer came up is noted, where somebody will ask.
    #[inline]
    pub(super) fn begin_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.noted || !P::HOLDS {
            return Ok(());
        }
        let mut head = [0; HEAD_BYTES];
        self.space.pcm.peek(0, &mut head)?;
        // A simulation over bytes begins without being formatted: it can be halted and booted all the same.
        if head == [0; HEAD_BYTES] {
            self.put_head(sink)?;
        }
        self.write_state(sink, IN_USE)?;
        self.noted = true;
        Ok(())
    }

    pub(super) fn put_head<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let after = self.space.pcm.format(sink)?;
        let head = self.head();
        let source = if P::HOLDS { Source::Bytes(&head) } else { Source::Len(HEAD_BYTES as u32) };
        let tok = self.space.pcm.write(sink, 0, source, Cause::Meta, after)?;
        let done = self.space.fence_after(sink, tok);
        sink.ack(done);
        self.write_state(sink, HALTED)?;
        self.space.pcm.sync(sink)
    }

    /// Everything is written down, and the head says so.
    pub(super) fn stop<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.flush_all(sink)?;
        if self.space.protected {
            self.space.set_mark(sink)?;
        } else {
            self.save(sink)?;
        }
        self.noted = false;
        self.write_state(sink, HALTED)?;
        self.space.pcm.sync(sink)
    }

    /// Reads the head: whether the layer was halted.
    pub(super) fn read_head(&self) -> Result<bool> {
        let corrupt = |what: String| Err(Error::Corrupt { medium: MediumKind::Pcm, at: 0, what });
        let mut head = [0; HEAD_BYTES];
        self.space.pcm.peek(0, &mut head)?;
        if head != self.head() {
            let crc = crc32c(&head[..HEAD_BYTES - 4]).to_le_bytes();
            return corrupt(match head[HEAD_BYTES - 4..] == crc {
                true if head[..8] == *MAGIC => "it holds pages of another mapping, log, page size or size than this \
                     stack says"
                    .into(),
                _ => "it holds no pages of this layer, or its head is damaged: put the right file or device back"
                    .into(),
            });
        }
        let mut state = [0; 8];
        self.space.pcm.peek(STATE_AT, &mut state)?;
        match u64::from_le_bytes(state) {
            HALTED => Ok(true),
            IN_USE => Ok(false),
            other => corrupt(format!("its state is {other:#x}, which is none")),
        }
    }

    /// Forgets all that is not in memory that lasts.
    pub(super) fn forget(&mut self) {
        self.space.forget();
        self.mapping.forget();
        for bits in [&mut self.used, &mut self.live, &mut self.logged] {
            bits.fill(0, false);
        }
        self.warm.iter_mut().for_each(|b| b.fill(0, false));
        if let Some(log) = &mut self.log {
            log.forget();
        }
        self.buffer.clear();
        self.buffer.ready = T::default();
        self.gate = T::default();
        (self.warm_left, self.turn, self.noted) = (0, 0, false);
    }
}
