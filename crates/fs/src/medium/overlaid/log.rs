//! The double-write file: the data that a sync is about to write to the image, so that a sync that
//! a power loss interrupts can be completed. The *stamp* in the image identifies its last sync.
//!
//! ```text
//! block 0   words: magic, version, number of this sync, tag of the one before, bytes of the image, pages, tag
//! behind    16 bytes a page: its number, the CRC-64 of its contents
//! behind    from the next multiple of 4096 on: the contents, in the same order
//! ```
//!
//! The tag is the CRC-64 of all words before it and of the index. It therefore identifies the
//! contents, the page numbers and all earlier syncs. The first page of the image is always among
//! the pages, and ends with the stamp.

use super::disk::Disk;
use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::planted::ImageFileBug;
use frit_core::planted::is_planted;
use frit_media::checksum::digest;

const PAGE: usize = BLOCK as usize;
/// First bytes of a log that has to be replayed. A completed log begins with zeros.
const MAGIC: u64 = u64::from_le_bytes(*b"frit-syn");
const VERSION: u64 = 1;
/// Number of header words before the tag.
const HEADER: usize = 6;
/// First bytes of a stamp.
const STAMP_MAGIC: u64 = u64::from_le_bytes(*b"frit-sta");
/// Number of words of a stamp, which are the last ones of the image's first block.
const STAMP: usize = 4;
/// Position of the stamp in the first block, in bytes.
const STAMP_AT: usize = PAGE - STAMP * 8;

/// Identifies the last sync of an image: its number, and a tag for all data written up to then.
/// Zeros if there was no sync.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct SyncStamp {
    pub(super) number: u64,
    pub(super) tag: u64,
}

impl SyncStamp {
    /// Returns the stamp in the first block of an image.
    pub(super) fn of(first: &[u8; PAGE]) -> Self {
        let mut words = [0_u64; STAMP];
        bytemuck::cast_slice_mut(&mut words).copy_from_slice(&first[STAMP_AT..]);
        let sound = words[0] == STAMP_MAGIC && words[3] == check(&words);
        if sound { Self { number: words[1], tag: words[2] } } else { Self::default() }
    }

    /// Writes the stamp into the first block.
    pub(super) fn put(self, first: &mut [u8; PAGE]) {
        let mut words = [STAMP_MAGIC, self.number, self.tag, 0];
        words[3] = check(&words);
        first[STAMP_AT..].copy_from_slice(bytemuck::cast_slice(&words));
    }

    /// Reads the stamp of an image.
    pub(super) fn read(disk: &impl Disk) -> Self {
        let mut first = [0; PAGE];
        disk.read_image(0, &mut first);
        Self::of(&first)
    }
}

fn check(words: &[u64; STAMP]) -> u64 {
    digest(bytemuck::cast_slice(&words[..STAMP - 1]))
}

/// Metadata of a log: the words of the header up to the tag, and the index.
#[derive(Debug)]
pub(super) struct DoubleWriteLog {
    words: Vec<u64>,
    tag: u64,
}

impl DoubleWriteLog {
    /// Creates the log of the sync after `before`, for pages with the CRCs of their contents.
    pub(super) fn new(before: SyncStamp, bytes: u64, pages: &[(u64, u64)]) -> Self {
        let mut words = vec![MAGIC, VERSION, before.number + 1, before.tag, bytes, pages.len() as u64];
        words.extend(pages.iter().flat_map(|(page, crc)| [*page, *crc]));
        let tag = digest(bytemuck::cast_slice(&words));
        Self { words, tag }
    }

    /// Returns the stamp of the previous sync, which the image has before the log is replayed.
    fn before(&self) -> SyncStamp {
        SyncStamp { number: self.words[2] - 1, tag: self.words[3] }
    }

    /// Returns the stamp of the sync in the log.
    pub(super) fn stamp(&self) -> SyncStamp {
        SyncStamp { number: self.words[2], tag: self.tag }
    }

    /// Iterates over page numbers and CRCs.
    fn pages(&self) -> impl Iterator<Item = (u64, u64)> {
        self.words[HEADER..].chunks_exact(2).map(|entry| (entry[0], entry[1]))
    }

    /// Returns the position of the contents in a log of this many pages, in bytes.
    pub(super) fn contents_at(pages: usize) -> u64 {
        BLOCK + (pages as u64 * 16).next_multiple_of(BLOCK)
    }

    /// Returns the size of a log of this many pages, in bytes.
    pub(super) fn bytes_of(pages: usize) -> u64 {
        Self::contents_at(pages) + (pages * PAGE) as u64
    }

    /// Reads the contents of its `i`-th page. Returns `false` if the log is too short.
    fn contents(&self, disk: &impl Disk, i: usize, into: &mut [u8; PAGE]) -> Result<bool> {
        let pages = (self.words.len() - HEADER) / 2;
        disk.read_log(Self::contents_at(pages) + (i * PAGE) as u64, into)
    }

    /// Writes header and index.
    pub(super) fn write(&self, disk: &impl Disk) -> Result<()> {
        disk.write_log(BLOCK, bytemuck::cast_slice(&self.words[HEADER..]))?;
        let mut first = [0_u64; PAGE / 8];
        first[..HEADER].copy_from_slice(&self.words[..HEADER]);
        first[HEADER] = self.tag;
        // The order of these writes is irrelevant: the tag detects an incomplete log.
        disk.write_log(0, bytemuck::cast_slice(&first))
    }

    /// Reads the log if it is complete. A log torn by a crash counts as `None`, because the image
    /// was not modified at that point.
    fn read(disk: &impl Disk) -> Result<Option<Self>> {
        let mut first = [0_u64; PAGE / 8];
        if !disk.read_log(0, bytemuck::cast_slice_mut(&mut first))? || first[0] != MAGIC {
            return Ok(None);
        }
        let (bytes, pages) = (first[4], first[5]);
        // The header is not verified yet, so the page count is limited before the allocation.
        if first[1] != VERSION || first[2] == 0 || pages > bytes / BLOCK {
            return Ok(None);
        }
        let mut words = first[..HEADER].to_vec();
        words.resize(HEADER + pages as usize * 2, 0);
        if !disk.read_log(BLOCK, bytemuck::cast_slice_mut(&mut words[HEADER..]))? {
            return Ok(None);
        }
        let log = Self { tag: digest(bytemuck::cast_slice(&words)), words };
        if (log.tag != first[HEADER] && !is_planted(ImageFileBug::TornLogTaken))
            || log.pages().any(|(page, _)| page >= bytes / BLOCK)
        {
            return Ok(None);
        }
        // The contents may be torn even if header and index are complete.
        let mut page = [0; PAGE];
        for (i, (_, crc)) in log.pages().enumerate() {
            let complete = log.contents(disk, i, &mut page)?;
            if !complete || (digest(&page) != crc && !is_planted(ImageFileBug::TornLogTaken)) {
                return Ok(None);
            }
        }
        Ok(Some(log))
    }

    /// Returns `true` if no log has to be replayed.
    #[cfg(test)]
    #[cfg(not(feature = "shuttle"))]
    pub(super) fn is_done(disk: &impl Disk) -> bool {
        Self::read(disk).unwrap().is_none()
    }

    /// Writes the pages of the log to the image.
    fn replay(&self, disk: &impl Disk) -> Result<()> {
        let mut page = [0; PAGE];
        for (i, (number, _)) in self.pages().enumerate() {
            self.contents(disk, i, &mut page)?;
            // The stamp is added here, because its tag depends on the contents of the log.
            if number == 0 {
                self.stamp().put(&mut page);
            }
            disk.write_image(number * BLOCK, &page)?;
        }
        disk.sync_image()
    }
}

/// Completes an interrupted sync, and returns the stamp of the image. The operation is idempotent
/// and has no effect after a completed sync.
///
/// # Errors
/// The log belongs to another image, or to another state of this one; a call of the operating
/// system failed.
pub(super) fn recover(disk: &impl Disk) -> Result<SyncStamp> {
    let at = SyncStamp::read(disk);
    let Some(log) = DoubleWriteLog::read(disk)?.filter(|_| !is_planted(ImageFileBug::LogForgotten)) else {
        return Ok(at);
    };
    // The image must be at the sync before the log, or already at the sync of the log.
    let belongs = (at == log.before() || at == log.stamp()) && log.words[4] == disk.bytes();
    if !belongs && !is_planted(ImageFileBug::NumberIgnored) {
        let name = disk.log_name();
        return Err(Error::Image(format!(
            "the file {name} beside it completes sync {} of an image that is at sync {}, but this one is at sync \
             {}: it was replaced, or the file was. Restore the matching file, or remove {name} to continue \
             without it",
            log.stamp().number,
            log.before().number,
            at.number
        )));
    }
    log.replay(disk)?;
    done(disk)?;
    Ok(log.stamp())
}

/// Marks the log as completed. Durability of the mark is not required, as replay is idempotent.
pub(super) fn done(disk: &impl Disk) -> Result<()> {
    disk.write_log(0, &[0; 8])
}
