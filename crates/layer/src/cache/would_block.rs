//! Prediction of requests that would have to wait for the disk. It only reads the directory.

use super::block_span::{BlockSpan, spans};
use super::config::{CacheMode, Overwrite};
use super::directory::PINNED;
use super::layer::Cache;
use frit_core::convert::{bounded_u32, to_usize};
use frit_core::{BlockDevice, RequestIntent, SECTOR_BYTES, Sector};

/// Longest request, in bytes, that is looked up. A longer one occupies its caller for long in any
/// case, so it always counts as slow.
const LOOKUP_BYTES_MAX: u64 = 1 << 20;

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Returns `true` if a request would have to wait for the disk now. It is always `false` if
    /// accesses are not deferred.
    pub(super) fn would_block_on(&self, what: RequestIntent, at: Sector, sectors: u64) -> bool {
        if !self.deferred_io.on() {
            return false;
        }
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        match what {
            // The disk zeros the range, except parts of cached blocks.
            RequestIntent::Discard => true,
            RequestIntent::Flush => self.unflushed.is_some() || self.deferred_io.flush_in_flight(),
            RequestIntent::Read | RequestIntent::Write => match self.check_range(at, bytes) {
                // The request is refused at once.
                Err(_) => false,
                Ok(_) if bytes > LOOKUP_BYTES_MAX => true,
                Ok(at) if what == RequestIntent::Read => {
                    spans(at, bounded_u32(bytes)).any(|s| self.lacks_fragment(s))
                }
                Ok(at) => self.write_would_block(at, bounded_u32(bytes)),
            },
        }
    }

    /// Returns `true` if a fragment of a part of a block is not cached.
    fn lacks_fragment(&self, span: BlockSpan) -> bool {
        self.dir.get(span.lbn).is_none_or(|slot| span.mask() & !self.dir.valid(slot) != 0)
    }

    /// Returns `true` if a write goes to the disk, or needs more slots than can be freed without
    /// the disk.
    fn write_would_block(&self, at: u64, len: u32) -> bool {
        if self.config.mode == CacheMode::WriteThrough {
            return true;
        }
        let bypass = self.config.bypass_bytes;
        let direct = self.config.around() || bypass > 0 && self.streams.with(at, u64::from(len)) >= bypass;
        // A direct write as a whole must not overlap accesses in flight.
        if direct && self.check_no_conflict(at, at + u64::from(len), true).is_err() {
            return true;
        }
        let mut needed = 0;
        for span in spans(at, len) {
            let slot = self.dir.get(span.lbn);
            if direct && slot.is_none_or(|slot| self.may_bypass(slot)) {
                return true;
            }
            let stays = self.config.overwrite == Overwrite::InPlace
                && slot.is_some_and(|slot| self.dir.flags(slot) & PINNED == 0);
            needed += usize::from(!stays);
        }
        needed > to_usize(self.dir.free_len()) + self.space.unsynced()
    }
}
