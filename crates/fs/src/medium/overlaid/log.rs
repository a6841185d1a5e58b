//! The double-write file: what a sync is about to write to the image, so that a power cut in the middle of that can be
//! made good. And the *stamp* in the image: which sync it is at.
//!
//! ```text
//! block 0   words: magic, version, number of this sync, tag of the one before, bytes of the image, pages, tag
//! behind    16 bytes a page: its number, the CRC-64 of its contents
//! behind    from the next multiple of 4096 on: the contents, in the same order
//! ```
//!
//! The tag is the CRC-64 of all words before it and of the index, so it stands for contents, numbers and everything
//! that was synced before. The first page of the image is always among the pages, and ends with the stamp.

use super::disk::Disk;
use crate::error::{Error, Result};
use crate::format::BLOCK;
use frit_core::planted::{Bug, is};
use frit_media::checksum::digest;

const PAGE: usize = BLOCK as usize;
/// The first bytes of a log that is to be carried out again. A log that is done begins with zeros.
const MAGIC: u64 = u64::from_le_bytes(*b"frit-syn");
const VERSION: u64 = 1;
/// Words of the header before the tag.
const HEADER: usize = 6;
/// The first bytes of a stamp.
const STAMP_MAGIC: u64 = u64::from_le_bytes(*b"frit-sta");
/// Words of a stamp, the last ones of the image's first block.
const STAMP: usize = 4;
/// Where it lies, in bytes.
const STAMP_AT: usize = PAGE - STAMP * 8;

/// Which sync an image is at: its number, and what stands for all that was written up to then. Zeros: none yet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Stamp {
    pub(super) number: u64,
    pub(super) tag: u64,
}

impl Stamp {
    /// The stamp in the first block of an image.
    pub(super) fn of(first: &[u8; PAGE]) -> Self {
        let mut words = [0_u64; STAMP];
        bytemuck::cast_slice_mut(&mut words).copy_from_slice(&first[STAMP_AT..]);
        let sound = words[0] == STAMP_MAGIC && words[3] == check(&words);
        if sound { Self { number: words[1], tag: words[2] } } else { Self::default() }
    }

    /// Puts it into the first block.
    pub(super) fn put(self, first: &mut [u8; PAGE]) {
        let mut words = [STAMP_MAGIC, self.number, self.tag, 0];
        words[3] = check(&words);
        first[STAMP_AT..].copy_from_slice(bytemuck::cast_slice(&words));
    }

    /// The stamp of an image.
    pub(super) fn read(disk: &impl Disk) -> Self {
        let mut first = [0; PAGE];
        disk.read_image(0, &mut first);
        Self::of(&first)
    }
}

fn check(words: &[u64; STAMP]) -> u64 {
    digest(bytemuck::cast_slice(&words[..STAMP - 1]))
}

/// What a log says of itself: the header's words up to the tag, and the index behind them.
#[derive(Debug)]
pub(super) struct Log {
    words: Vec<u64>,
    tag: u64,
}

impl Log {
    /// The log of the sync behind `before`, for pages with the CRCs of their contents.
    pub(super) fn new(before: Stamp, bytes: u64, pages: &[(u64, u64)]) -> Self {
        let mut words = vec![MAGIC, VERSION, before.number + 1, before.tag, bytes, pages.len() as u64];
        words.extend(pages.iter().flat_map(|(page, crc)| [*page, *crc]));
        let tag = digest(bytemuck::cast_slice(&words));
        Self { words, tag }
    }

    /// The sync before, by which its image is known.
    fn before(&self) -> Stamp {
        Stamp { number: self.words[2] - 1, tag: self.words[3] }
    }

    /// The sync that it is of.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp { number: self.words[2], tag: self.tag }
    }

    /// Page numbers and CRCs.
    fn pages(&self) -> impl Iterator<Item = (u64, u64)> {
        self.words[HEADER..].chunks_exact(2).map(|entry| (entry[0], entry[1]))
    }

    /// Where the contents of so many pages begin, in bytes.
    pub(super) fn contents_at(pages: usize) -> u64 {
        BLOCK + (pages as u64 * 16).next_multiple_of(BLOCK)
    }

    /// Returns how large a log of so many pages is.
    pub(super) fn bytes_of(pages: usize) -> u64 {
        Self::contents_at(pages) + (pages * PAGE) as u64
    }

    /// Reads the contents of its page number `i`. Returns whether they are there.
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
        disk.write_log(0, bytemuck::cast_slice(&first))
    }

    /// The log that is there, if it is whole: what a stop tore is `None`, as the image was not touched then.
    fn read(disk: &impl Disk) -> Result<Option<Self>> {
        let mut first = [0_u64; PAGE / 8];
        if !disk.read_log(0, bytemuck::cast_slice_mut(&mut first))? || first[0] != MAGIC {
            return Ok(None);
        }
        let (bytes, pages) = (first[4], first[5]);
        if first[1] != VERSION || first[2] == 0 || pages > bytes / BLOCK {
            return Ok(None);
        }
        let mut words = first[..HEADER].to_vec();
        words.resize(HEADER + pages as usize * 2, 0);
        if !disk.read_log(BLOCK, bytemuck::cast_slice_mut(&mut words[HEADER..]))? {
            return Ok(None);
        }
        let log = Self { tag: digest(bytemuck::cast_slice(&words)), words };
        if (log.tag != first[HEADER] && !is(Bug::FileTornLogTaken))
            || log.pages().any(|(page, _)| page >= bytes / BLOCK)
        {
            return Ok(None);
        }
        let mut page = [0; PAGE];
        for (i, (_, crc)) in log.pages().enumerate() {
            let there = log.contents(disk, i, &mut page)?;
            if !there || (digest(&page) != crc && !is(Bug::FileTornLogTaken)) {
                return Ok(None);
            }
        }
        Ok(Some(log))
    }

    /// Whether there is none to be carried out.
    #[cfg(test)]
    pub(super) fn is_done(disk: &impl Disk) -> bool {
        Self::read(disk).unwrap().is_none()
    }

    /// Writes its pages to the image.
    fn carry_out(&self, disk: &impl Disk) -> Result<()> {
        let mut page = [0; PAGE];
        for (i, (number, _)) in self.pages().enumerate() {
            self.contents(disk, i, &mut page)?;
            if number == 0 {
                self.stamp().put(&mut page);
            }
            disk.write_image(number * BLOCK, &page)?;
        }
        disk.sync_image()
    }
}

/// Completes a sync that was cut off. Doing it twice, or after one that was not, changes nothing. Returns which sync
/// the image is at.
///
/// # Errors
/// There is a log of another image, or of another state of this one; what the operating system says.
pub(super) fn recover(disk: &impl Disk) -> Result<Stamp> {
    let at = Stamp::read(disk);
    let Some(log) = Log::read(disk)?.filter(|_| !is(Bug::FileLogForgotten)) else { return Ok(at) };
    let belongs = (at == log.before() || at == log.stamp()) && log.words[4] == disk.bytes();
    if !belongs && !is(Bug::FileNumberIgnored) {
        return Err(Error::Image(format!(
            "the file IMAGE.sync beside it completes sync {} of an image that is at sync {}, and this one is at sync \
             {}: it was replaced, or the file was. Put back what belongs together, or remove IMAGE.sync to go on \
             without it",
            log.stamp().number,
            log.before().number,
            at.number
        )));
    }
    log.carry_out(disk)?;
    done(disk)?;
    Ok(log.stamp())
}

/// Notes that the image has it all. Whether that outlives the machine does not matter.
pub(super) fn done(disk: &impl Disk) -> Result<()> {
    disk.write_log(0, &[0; 8])
}
