//! Whether a request would wait for the disk: a look at the directory, without doing anything.

use super::config::{Mode, Overwrite};
use super::directory::PINNED;
use super::layer::{Cache, Span, spans};
use crate::Token;
use frit_core::{Intent, SECTOR_BYTES, Sector};
use frit_media::Store;

/// Longer requests, in bytes, are not looked up: to carry one out keeps its caller from others for long in any case.
const LOOKED_UP: u64 = 1 << 20;

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Whether a request would have to wait for the disk now, while accesses to it are left to others.
    pub(super) fn would_wait(&self, what: Intent, at: Sector, sectors: u64) -> bool {
        if !self.left.on() {
            return false;
        }
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        match what {
            // The disk gets the zeros, but for parts of blocks that are cached.
            Intent::Discard => true,
            Intent::Flush => self.unflushed.is_some() || self.left.syncs(),
            Intent::Read | Intent::Write => match self.check_range(at, bytes) {
                // It is refused at once.
                Err(_) => false,
                Ok(_) if bytes > LOOKED_UP => true,
                Ok(at) if what == Intent::Read => spans(at, bytes as u32).any(|s| self.lacks(s)),
                Ok(at) => self.write_waits(at, bytes as u32),
            },
        }
    }

    /// Whether some of a part of a block is not cached.
    fn lacks(&self, span: Span) -> bool {
        self.dir.get(span.lbn).is_none_or(|slot| span.mask() & !self.dir.valid(slot) != 0)
    }

    /// Whether a write goes to the disk, or needs more slots than there are without the disk's help.
    fn write_waits(&self, at: u64, len: u32) -> bool {
        if self.config.mode == Mode::WriteThrough {
            return true;
        }
        let bypass = self.config.bypass_bytes;
        let direct = self.config.around() || bypass > 0 && self.streams.with(at, u64::from(len)) >= bypass;
        // As a whole it may not meet what is under way.
        if direct && self.free_to(at, at + u64::from(len), true).is_err() {
            return true;
        }
        let mut needed = 0;
        for span in spans(at, len) {
            let slot = self.dir.get(span.lbn);
            if direct && slot.is_none_or(|slot| self.may_pass(slot)) {
                return true;
            }
            let stays = self.config.overwrite == Overwrite::InPlace
                && slot.is_some_and(|slot| self.dir.flags(slot) & PINNED == 0);
            needed += usize::from(!stays);
        }
        needed > self.dir.free_len() as usize + self.space.unsynced()
    }
}
