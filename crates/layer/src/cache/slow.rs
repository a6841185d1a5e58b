//! Prediction of requests that would have to wait for the disk. It only reads the directory.

use super::config::{Mode, Overwrite};
use super::directory::PINNED;
use super::layer::{Cache, Span, spans};
use crate::Token;
use frit_core::{Intent, SECTOR_BYTES, Sector};
use frit_media::Store;

/// Longest request, in bytes, that is looked up. A longer one occupies its caller for long in any
/// case, so it always counts as slow.
const LOOKED_UP: u64 = 1 << 20;

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Returns `true` if a request would have to wait for the disk now. It is always `false` if
    /// accesses are not deferred.
    pub(super) fn would_wait(&self, what: Intent, at: Sector, sectors: u64) -> bool {
        if !self.left.on() {
            return false;
        }
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        match what {
            // The disk zeros the range, except parts of cached blocks.
            Intent::Discard => true,
            Intent::Flush => self.unflushed.is_some() || self.left.syncs(),
            Intent::Read | Intent::Write => match self.check_range(at, bytes) {
                // The request is refused at once.
                Err(_) => false,
                Ok(_) if bytes > LOOKED_UP => true,
                Ok(at) if what == Intent::Read => spans(at, bytes as u32).any(|s| self.lacks(s)),
                Ok(at) => self.write_waits(at, bytes as u32),
            },
        }
    }

    /// Returns `true` if a fragment of a part of a block is not cached.
    fn lacks(&self, span: Span) -> bool {
        self.dir.get(span.lbn).is_none_or(|slot| span.mask() & !self.dir.valid(slot) != 0)
    }

    /// Returns `true` if a write goes to the disk, or needs more slots than can be freed without
    /// the disk.
    fn write_waits(&self, at: u64, len: u32) -> bool {
        if self.config.mode == Mode::WriteThrough {
            return true;
        }
        let bypass = self.config.bypass_bytes;
        let direct = self.config.around() || bypass > 0 && self.streams.with(at, u64::from(len)) >= bypass;
        // A direct write as a whole must not overlap accesses in flight.
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
