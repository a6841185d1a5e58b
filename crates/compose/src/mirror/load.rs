//! The start of a mirror: which sides serve, and which regions are to be copied.

use super::assemble::{Expected, SideFound, assemble};
use super::layout::REGIONS_PER_SECTOR;
use super::sector::{Found, SECTOR, Superblock, decode_bitmap};
use super::{Mirror, SIDES_MOST, each};
use crate::planted::MirrorBug;
use frit_core::BlockDevice;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, ReadTarget, Recovery, Result, Sink};

impl Mirror {
    /// Reads the state of the mirror from its sides.
    pub(super) fn start(&mut self, sink: &mut Sink) -> Result<Recovery> {
        let found: Vec<SideFound> =
            (0..self.base.devices.len()).map(|i| self.find_superblock(sink, i)).collect();
        if found.iter().all(|f| *f == SideFound::Read(Found::Blank)) {
            // Devices without bytes return zeros; what was written is known in DRAM.
            return if self.formatted {
                Ok(Recovery { clean: true, ..Recovery::default() })
            } else {
                Err(Error::Medium { what: "the devices of the mirror were never formatted".into() })
            };
        }
        let prefer = usize::try_from(self.base.config.prefer).ok();
        let mut a = assemble(&found, &Expected { identity: self.identity, layout: &self.layout, prefer })?;
        if is_planted(MirrorBug::StaleSideServes) {
            a.serving |= std::mem::take(&mut a.stale);
        }
        self.reset();
        self.formatted = true;
        self.joining = a.stale | a.new;
        self.stale = u32::MAX >> (SIDES_MOST - self.base.devices.len()) & !a.serving;
        self.events = a.events + u64::from(a.unnoted);
        self.noted = !a.unnoted;
        self.out = a.out;
        self.set_serving(a.serving);
        let with_bitmaps =
            if is_planted(MirrorBug::StaleBitmapIgnored) { a.serving } else { a.serving | a.stale };
        let mut bytes_read = (self.base.devices.len() * 2 * SECTOR) as u64;
        for i in each(with_bitmaps) {
            bytes_read += self.load_bitmap(sink, i);
        }
        self.plan_copies(a.new != 0);
        if a.overruled != 0 {
            self.overrule(sink, a.overruled)?;
        }
        let clean = self.regions.marks() == 0 && self.stale == 0;
        Ok(Recovery { clean, bytes_read, ..Recovery::default() })
    }

    fn find_superblock(&mut self, sink: &mut Sink, side: usize) -> SideFound {
        let copies = self.layout.superblocks().map(|at| self.read_sector(sink, side, at));
        match copies {
            [Err(e), Err(_)] => SideFound::Unreadable(e.to_string()),
            [a, b] => {
                let read = |c: Result<_>| c.map_or(Found::Damaged, |b| Superblock::decode(&b));
                SideFound::Read(Superblock::newer(read(a), read(b)))
            }
        }
    }

    /// Marks the regions that the bitmap of a side marks, and all that an unreadable part of it
    /// would describe. Returns the number of bytes that it read.
    fn load_bitmap(&mut self, sink: &mut Sink, side: usize) -> u64 {
        let sectors = self.layout.bitmap_sectors();
        let mut bytes = vec![0; sectors * SECTOR];
        let (at, start) = (self.layout.bitmap_at(0), sink.start());
        let into = ReadTarget::Bytes(&mut bytes);
        // Zeros are not a valid sector.
        if self.base.devices.get_mut(side).read(sink, at, into, Cause::Meta, start).is_err() {
            bytes.fill(0);
        }
        for (sector, bytes) in bytes.chunks_exact(SECTOR).enumerate() {
            let Ok(bytes) = bytes.try_into() else { continue };
            let first = sector * REGIONS_PER_SECTOR;
            match decode_bitmap(bytes, self.identity, sector) {
                Some((sequence, marked)) => {
                    self.sequence = self.sequence.max(sequence);
                    let regions = self.layout.regions();
                    marked.map(|i| first + i).filter(|&r| r < regions).for_each(|r| {
                        self.regions.mark(r);
                    });
                }
                None => {
                    for region in first..(first + REGIONS_PER_SECTOR).min(self.layout.regions()) {
                        self.regions.mark(region);
                    }
                }
            }
        }
        bytes.len() as u64
    }

    /// Plans copies of all marked regions, or of all regions for a new side.
    fn plan_copies(&mut self, all: bool) {
        if self.active().count_ones() < 2 {
            return;
        }
        for region in 0..self.layout.regions() {
            if all || self.regions.is_marked(region) {
                self.regions.copy(region);
            }
        }
    }

    /// Ends a contradiction between sides: the superblocks of the overruled sides call themselves
    /// stale.
    fn overrule(&mut self, sink: &mut Sink, overruled: u32) -> Result<()> {
        let start = sink.start();
        let noted = self.note(sink, start)?;
        for i in each(overruled & self.joining) {
            match self.put_superblock(sink, i, self.stale, noted) {
                Ok(tok) => self.superblocks = sink.join(self.superblocks, tok),
                Err(e) => self.take_out(1 << i, &e),
            }
        }
        Ok(())
    }
}
