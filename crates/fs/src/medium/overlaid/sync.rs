//! A sync: the frozen layer to the double-write file, then to the image.

use super::log::{Log, Stamp, done};
use super::{Disk, Overlaid};
use crate::error::Result;
use crate::format::{BLOCK, uuid_in};
use frit_core::planted::{Bug, is};
use frit_media::checksum::digest;
use std::sync::atomic::Ordering;

const PAGE: usize = BLOCK as usize;
/// Most pages that are written by one call.
const RUN_MAX: usize = 256;

/// What syncs know of each other; who holds its lock makes one.
#[derive(Debug)]
pub(super) struct Run {
    /// The last one that was asked for and is done.
    done: u64,
    /// The sync that the image is at.
    at: Stamp,
    /// Whether the name of the log is known to outlive the machine.
    named: bool,
}

impl Run {
    pub(super) fn new(at: Stamp) -> Self {
        Self { done: 0, at, named: false }
    }
}

impl<D: Disk> Overlaid<D> {
    /// Makes everything that was written before outlive the machine. Those who ask while another one is at work share
    /// the next.
    pub(super) fn sync_once(&self) -> Result<()> {
        let ticket = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut run = self.run.lock();
        if run.done >= ticket {
            return Ok(());
        }
        let covers = self.asked.load(Ordering::Acquire);
        // What a sync that failed, or was killed, has left.
        self.write_frozen(&mut run)?;
        if self.store.count(self.store.current()) > 0 {
            self.gate.alone(|| self.store.freeze());
            self.write_frozen(&mut run)?;
        }
        run.done = covers;
        Ok(())
    }

    /// Writes the frozen layer, and empties it.
    fn write_frozen(&self, run: &mut Run) -> Result<()> {
        let frozen = 1 - self.store.current();
        if self.store.count(frozen) == 0 {
            return Ok(());
        }
        let mut pages = self.store.pages(frozen);
        if pages.first() != Some(&0) {
            // The first page says which sync the image is at.
            pages.insert(0, 0);
        }
        let mut first = self.first_page(frozen);
        let log = self.write_log(run.at, frozen, &pages, &first)?;
        if !is(Bug::FileLogNotSynced) {
            self.disk.sync_log()?;
        }
        if !run.named && !is(Bug::FileNameNotSynced) {
            self.disk.sync_names()?;
            run.named = true;
        }
        if is(Bug::FileDoneEarly) {
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
        // Nobody reads from it any more when its memory goes.
        self.gate.alone(|| self.store.empty(frozen));
        self.store.give_back(frozen);
        done(&self.disk)
    }

    /// Writes the log. One that is there is overwritten as it lies: if it is still needed, because a sync failed, it
    /// has the same pages.
    fn write_log(&self, at: Stamp, frozen: usize, pages: &[u64], first: &[u8; PAGE]) -> Result<Log> {
        let mut index = Vec::with_capacity(pages.len());
        let mut place = Log::contents_at(pages.len());
        for some in pages.chunks(RUN_MAX) {
            let contents = self.contents(frozen, some, first);
            let crcs = contents.chunks_exact(PAGE).map(digest);
            index.extend(some.iter().copied().zip(crcs));
            self.disk.write_log(place, &contents)?;
            place += contents.len() as u64;
        }
        let log = Log::new(at, self.disk.bytes(), &index);
        // Before the log can be whole: who carries it out finds an overlay that knows of it.
        self.store.expect(log.stamp());
        log.write(&self.disk)?;
        Ok(log)
    }

    /// The contents of pages, one behind the other.
    fn contents(&self, frozen: usize, pages: &[u64], first: &[u8; PAGE]) -> Vec<u8> {
        let mut all = vec![0; pages.len() * PAGE];
        for (page, into) in pages.iter().zip(all.chunks_exact_mut(PAGE)) {
            let later = is(Bug::FileLaterPages) && self.store.has(1 - frozen, *page);
            match page {
                0 => into.copy_from_slice(first),
                _ => self.store.read(if later { 1 - frozen } else { frozen }, page * BLOCK, into),
            }
        }
        all
    }

    /// The image's first page as it will be, with a stamp that says nothing.
    fn first_page(&self, frozen: usize) -> [u8; PAGE] {
        let mut first = [0; PAGE];
        if self.store.has(frozen, 0) {
            self.store.read(frozen, 0, &mut first);
        } else {
            self.disk.read_image(0, &mut first);
        }
        Stamp::default().put(&mut first);
        first
    }
}
