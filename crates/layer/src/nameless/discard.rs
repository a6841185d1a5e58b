//! Discards. They are durable with the map, at the next flush.

use super::layer::Nameless;
use crate::payload::zeros_on;
use crate::spans::split;
use frit_core::convert::bounded_u32;
use frit_core::{Lpn, NamelessDevice, Result, Sink};

impl<D: NamelessDevice> Nameless<D> {
    /// Discards a range of bytes. Parts of pages are overwritten with zeros.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        let page = u64::from(self.page_bytes);
        let (mut byte, end) = (at, at + bytes);
        while byte < end {
            let (lpn, offset) = split(byte, page);
            let len = (page - offset).min(end - byte);
            let lpn = Lpn::of_u64(lpn);
            if len == page {
                self.unmap(lpn);
            } else if self.is_written(lpn) {
                self.write_range(sink, byte, zeros_on(self.device.holds_bytes(), bounded_u32(len)))?;
            }
            byte += len;
        }
        self.release_replaced(sink);
        Ok(())
    }

    /// Forgets the contents of a page.
    fn unmap(&mut self, lpn: Lpn) {
        if let Some(position) = self.queue.find(lpn) {
            self.queue.remove(position);
        }
        if self.map.get(lpn).is_some() || self.map.lost().contains_key(&lpn.0) {
            self.replace(lpn, None);
        }
    }

    /// Returns `true` if a page has contents, or had some that are lost.
    pub(super) fn is_written(&self, lpn: Lpn) -> bool {
        self.map.get(lpn).is_some() || self.queue.find(lpn).is_some() || self.map.lost().contains_key(&lpn.0)
    }
}
