//! Sync of an image: the frozen layer is written to the double-write file, then to the image.

use super::log::{DoubleWriteLog, SyncStamp, done};
use super::{Disk, Overlaid};
use crate::error::Result;
use crate::format::{BLOCK, uuid_in};
use crate::planted::ImageFileBug;
use frit_core::planted::is_planted;
use frit_media::checksum::digest;
use std::sync::atomic::Ordering;

const PAGE: usize = BLOCK as usize;
/// Maximum number of pages written by one call.
const RUN_MAX: usize = 256;

/// State shared by syncs. The thread that holds its lock performs a sync.
#[derive(Debug)]
pub(super) struct SyncState {
    /// Ticket of the last request that is covered by a completed sync.
    done: u64,
    /// Identifies the last sync of the image.
    at: SyncStamp,
    /// `true` if the directory entry of the log is known to be durable.
    named: bool,
}

impl SyncState {
    pub(super) fn new(at: SyncStamp) -> Self {
        Self { done: 0, at, named: false }
    }
}

impl<D: Disk> Overlaid<D> {
    /// Makes all earlier writes durable. Requests that arrive during a sync share the next one.
    pub(super) fn sync_once(&self) -> Result<()> {
        let ticket = self.syncs_requested.fetch_add(1, Ordering::AcqRel) + 1;
        let mut run = self.run.lock();
        if run.done >= ticket {
            return Ok(());
        }
        let covers = self.syncs_requested.load(Ordering::Acquire);
        // The layer of a sync that failed or was interrupted by a kill is written first.
        self.write_frozen(&mut run)?;
        if self.store.count(self.store.current()) > 0 {
            self.sharded_lock.with_exclusive(|| self.store.freeze());
            self.write_frozen(&mut run)?;
        }
        run.done = covers;
        Ok(())
    }

    /// Writes the frozen layer to the image and empties it.
    fn write_frozen(&self, run: &mut SyncState) -> Result<()> {
        let frozen = 1 - self.store.current();
        if self.store.count(frozen) == 0 {
            return Ok(());
        }
        let mut pages = self.store.pages(frozen);
        if pages.first() != Some(&0) {
            // The first page contains the stamp, so it is part of each sync.
            pages.insert(0, 0);
        }
        let mut first = self.first_page(frozen);
        let log = self.write_log(run.at, frozen, &pages, &first)?;
        if !is_planted(ImageFileBug::LogNotSynced) {
            self.disk.sync_log()?;
        }
        if !run.named && !is_planted(ImageFileBug::NameNotSynced) {
            self.disk.sync_names()?;
            run.named = true;
        }
        if is_planted(ImageFileBug::DoneEarly) {
            done(&self.disk)?;
        }
        log.stamp().put(&mut first);
        for run in pages.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(RUN_MAX)) {
            self.disk.write_image(run[0] * BLOCK, &self.contents(frozen, run, &first))?;
        }
        self.disk.sync_image()?;
        run.at = log.stamp();
        self.store.settle(run.at);
        self.store.name(uuid_in(&first));
        // Readers may still use the layer, so it is emptied with exclusive access before its memory
        // is freed.
        self.sharded_lock.with_exclusive(|| self.store.empty(frozen));
        self.store.free_memory(frozen);
        done(&self.disk)
    }

    /// Writes the log, over an existing one. An existing log that is still needed, because its sync
    /// failed, has the same pages.
    fn write_log(
        &self,
        at: SyncStamp,
        frozen: usize,
        pages: &[u64],
        first: &[u8; PAGE],
    ) -> Result<DoubleWriteLog> {
        let mut index = Vec::with_capacity(pages.len());
        let mut place = DoubleWriteLog::contents_at(pages.len());
        for some in pages.chunks(RUN_MAX) {
            let contents = self.contents(frozen, some, first);
            let crcs = contents.chunks_exact(PAGE).map(digest);
            index.extend(some.iter().copied().zip(crcs));
            self.disk.write_log(place, &contents)?;
            place += contents.len() as u64;
        }
        let log = DoubleWriteLog::new(at, self.disk.bytes(), &index);
        // The stamp is recorded before the log can be complete: a recovery that replays the log
        // then finds an overlay that accepts the new stamp.
        self.store.expect(log.stamp());
        log.write(&self.disk)?;
        Ok(log)
    }

    /// Returns the contents of pages, one after the other.
    fn contents(&self, frozen: usize, pages: &[u64], first: &[u8; PAGE]) -> Vec<u8> {
        let mut all = vec![0; pages.len() * PAGE];
        for (page, into) in pages.iter().zip(all.chunks_exact_mut(PAGE)) {
            let later = is_planted(ImageFileBug::LaterPages) && self.store.has(1 - frozen, *page);
            match page {
                0 => into.copy_from_slice(first),
                _ => self.store.read(if later { 1 - frozen } else { frozen }, page * BLOCK, into),
            }
        }
        all
    }

    /// Returns the image's first page after the sync, with an empty stamp.
    fn first_page(&self, frozen: usize) -> [u8; PAGE] {
        let mut first = [0; PAGE];
        if self.store.has(frozen, 0) {
            self.store.read(frozen, 0, &mut first);
        } else {
            self.disk.read_image(0, &mut first);
        }
        SyncStamp::default().put(&mut first);
        first
    }
}
