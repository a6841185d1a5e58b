//! PCM side of HFSL: the descriptors and the slots of sub-pages.
//!
//! A page in PCM consists of a descriptor and up to eight sub-pages, each in any slot of the data
//! space, so that a small first write takes a sub-page rather than a page. Two regions, storage and
//! cache, share the space by quotas, not by address: a change of the fusion method moves no data by
//! itself.

use super::HfslConfig;
use super::buffer::{BufferPolicy, PcmBuffer};
use super::entry::SUBPAGES_MAX;
use super::layout::{ENTRY_BYTES, ENTRY_LEN, PcmLayout};
use super::redo::{RedoLog, RedoRing};
use crate::planted::HfslBug;
use frit_core::params::parse_name;
use frit_core::planted::is_planted;
use frit_core::{Error, Lpn, MediumKind, Result, Sink, Tok, TokTable};
use frit_media::checksum;
use frit_wear::Leveled;
use std::collections::VecDeque;

/// Marker of an absent slot, descriptor or page.
pub(crate) const NONE: u32 = u32::MAX;

/// Purpose of a page in PCM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PcmRegion {
    /// Storage tier: the page stays until space runs short.
    Storage = 0,
    /// Write cache of NAND.
    Cache = 1,
}

impl PcmRegion {
    pub(crate) const ALL: [PcmRegion; 2] = [PcmRegion::Storage, PcmRegion::Cache];
}

/// Descriptor of a page in PCM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Desc {
    pub(crate) lpn: u32,
    pub(crate) region: PcmRegion,
    pub(crate) seq: u64,
    pub(crate) subs: [u32; SUBPAGES_MAX as usize],
}

impl Desc {
    /// Stored sub-pages, one bit each.
    pub(crate) fn state(&self) -> u8 {
        self.subs.iter().enumerate().fold(0, |s, (i, &slot)| s | (u8::from(slot != NONE) << i))
    }

    pub(crate) fn count(&self) -> u32 {
        self.state().count_ones()
    }
}

/// Usage of a region.
#[derive(Debug)]
pub(crate) struct RegionState {
    pub(crate) buffer: PcmBuffer,
    /// Cooldowns of the heat detector that the buffer has taken account of.
    pub(crate) cooldowns: u64,
    /// Slots in use.
    pub(crate) used: u32,
    /// Slots that the region may use.
    pub(crate) quota: u32,
    /// Pages in the region.
    pub(crate) pages: u32,
}

/// PCM with its free slots, descriptors and regions.
#[derive(Debug)]
pub(crate) struct PcmSpace {
    pub(crate) medium: Leveled,
    pub(crate) layout: PcmLayout,
    pub(crate) redo: RedoLog,
    /// Free slots in the order in which they were freed, so that wear is spread.
    pub(crate) free: VecDeque<u32>,
    /// Token for each slot. A free slot may be written after it: its old contents are then durable
    /// elsewhere. A slot in use has been written when it completes.
    pub(crate) ready: TokTable,
    /// Checksums of the contents of slots; empty if the media hold no bytes.
    pub(crate) sums: Vec<u32>,
    pub(crate) desc: Vec<Desc>,
    pub(crate) desc_free: VecDeque<u32>,
    /// Token for each free descriptor, after which it may be written again.
    pub(crate) desc_ready: TokTable,
    /// Time at which the header says for certain that the layer is in use: no slot is written before.
    pub(crate) in_use: Tok,
    /// Slots and descriptors released since the last flush; the map as of that flush still names
    /// them.
    pub(crate) held: Option<(Vec<u32>, Vec<u32>)>,
    /// Buffer for a sub-page to be verified; empty if the media hold no bytes.
    pub(crate) sub: Vec<u8>,
    pub(crate) regions: [RegionState; 2],
}

impl PcmSpace {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.medium.stores_bytes()
    }

    /// Divides PCM for a volume of `pages` pages.
    pub(crate) fn new(
        mut medium: Leveled,
        pages: u32,
        page_bytes: u32,
        sub_bytes: u32,
        config: &HfslConfig,
        ring: Option<RedoRing>,
    ) -> Result<PcmSpace> {
        let buffer: PcmBuffer = parse_name("buffer", &config.buffer)?;
        let (flush_map, raw_bytes) = (config.flush_map, config.raw_bytes);
        let layout = PcmLayout::new(&mut medium, pages, page_bytes, sub_bytes, flush_map, ring, raw_bytes)?;
        let region = || RegionState { buffer: buffer.clone(), cooldowns: 0, used: 0, quota: 0, pages: 0 };
        let mut space = PcmSpace {
            layout,
            redo: RedoLog::default(),
            free: VecDeque::new(),
            ready: TokTable::default(),
            sums: Vec::new(),
            desc: Vec::new(),
            desc_free: VecDeque::new(),
            desc_ready: TokTable::default(),
            in_use: Tok::default(),
            held: layout.flush_map_at.map(|_| (Vec::new(), Vec::new())),
            sub: vec![0; if medium.stores_bytes() { sub_bytes as usize } else { 0 }],
            regions: [region(), region()],
            medium,
        };
        space.reset();
        Ok(space)
    }

    /// Forgets all pages.
    pub(crate) fn reset(&mut self) {
        let none =
            Desc { lpn: NONE, region: PcmRegion::Storage, seq: 0, subs: [NONE; SUBPAGES_MAX as usize] };
        self.redo = RedoLog::default();
        self.free = (0..self.layout.slots).collect();
        self.ready = TokTable::new(self.layout.slots as usize);
        self.desc = vec![none; self.layout.slots as usize];
        self.desc_free = (0..self.layout.slots).collect();
        self.desc_ready = TokTable::new(self.layout.slots as usize);
        self.in_use = Tok::default();
        self.sums = vec![0; if self.stores_bytes() { self.layout.slots as usize } else { 0 }];
        if let Some((slots, descs)) = &mut self.held {
            slots.clear();
            descs.clear();
        }
        for r in &mut self.regions {
            r.buffer.reset(self.layout.slots);
            r.used = 0;
            r.pages = 0;
        }
    }

    /// DRAM for descriptors, slots and lists, in bytes.
    pub(crate) fn dram_bytes(&self) -> u64 {
        // Checksums are counted even without bytes, since a volume has them.
        let slot = size_of::<Desc>() + 2 * size_of::<Tok>() + 3 * size_of::<u32>() + 16;
        u64::from(self.layout.slots) * slot as u64
    }

    /// Byte address of a slot.
    #[inline]
    pub(crate) fn slot_at(&self, slot: u32) -> u64 {
        self.layout.data_at + u64::from(slot) * u64::from(self.layout.sub_bytes)
    }

    /// Returns `true` if the line at an offset of a slot has at least `spread` cycles more than
    /// that of the next free slot, which was freed first and so is little worn.
    pub(crate) fn is_worn_beyond(&self, slot: u32, offset: u32, spread: u32) -> bool {
        let wear = |slot| self.medium.wear_of(self.slot_at(slot) + u64::from(offset));
        self.free.front().is_some_and(|&free| wear(slot) >= wear(free).saturating_add(spread))
    }

    /// Takes a free slot. It may be written after the returned token. The caller has reserved
    /// space.
    pub(crate) fn alloc_slot(&mut self, sink: &mut Sink) -> Result<(u32, Tok)> {
        let slot = self.free.pop_front().ok_or_else(|| no_space("sub-page"))?;
        Ok((slot, sink.join(self.ready.get(slot as usize), self.in_use)))
    }

    /// Releases a slot, which may be written again after `ready`.
    pub(crate) fn free_slot(&mut self, slot: u32, ready: Tok) {
        self.ready
            .set(slot as usize, if is_planted(HfslBug::SlotReuseEarly) { Tok::default() } else { ready });
        // The map as of the last flush may still name the slot.
        match &mut self.held {
            Some((slots, _)) if !is_planted(HfslBug::ReuseBeforeFlush) => slots.push(slot),
            _ => self.free.push_back(slot),
        }
    }

    /// Returns `true` if a flush would free slots or descriptors.
    pub(crate) fn has_held(&self) -> bool {
        self.held.as_ref().is_some_and(|(slots, descs)| !slots.is_empty() || !descs.is_empty())
    }

    /// Frees everything that was released before the flush that has just completed.
    pub(crate) fn release_held(&mut self) {
        if let Some((slots, descs)) = &mut self.held {
            self.free.extend(slots.drain(..));
            self.desc_free.extend(descs.drain(..));
        }
    }

    /// Returns the entry of a page, as stored in PCM.
    pub(crate) fn peek_entry(&self, lpn: u32) -> Result<u64> {
        let mut raw = [0; ENTRY_LEN];
        if self.stores_bytes() {
            self.medium.peek(self.layout.map_at + u64::from(lpn) * ENTRY_BYTES, &mut raw)?;
        }
        Ok(u64::from_le_bytes(raw))
    }

    /// Records the checksum of the bytes written to a slot.
    #[inline]
    pub(crate) fn record_sum(&mut self, lpn: u32, sub: usize, slot: u32, bytes: &[u8]) {
        if self.stores_bytes() {
            self.sums[slot as usize] = sum_of(lpn, sub, bytes);
        }
    }

    /// Records the checksum of a slot from its contents in PCM.
    pub(crate) fn refresh_sum(&mut self, lpn: u32, sub: usize, slot: u32) -> Result<()> {
        if self.stores_bytes() {
            let at = self.slot_at(slot);
            self.medium.peek(at, &mut self.sub)?;
            self.sums[slot as usize] = sum_of(lpn, sub, &self.sub);
        }
        Ok(())
    }

    /// Verifies a sub-page against its checksum. `part` holds the bytes that were read, all of them
    /// or some.
    #[inline]
    // Only a whole sub-page has a checksum, so a partial read is verified by all bytes in the
    // store.
    pub(crate) fn verify(&mut self, lpn: u32, sub: usize, slot: u32, part: &[u8]) -> Result<()> {
        if !self.stores_bytes() || part.is_empty() {
            return Ok(());
        }
        let at = self.slot_at(slot);
        let found = if part.len() == self.layout.sub_bytes as usize {
            sum_of(lpn, sub, part)
        } else {
            self.medium.peek(at, &mut self.sub)?;
            sum_of(lpn, sub, &self.sub)
        };
        let written = self.sums[slot as usize];
        if found == written || is_planted(HfslBug::PcmDataUnchecked) {
            return Ok(());
        }
        Err(Error::Corrupt {
            medium: MediumKind::Pcm,
            at,
            what: format!(
                "sub-page {sub} of logical page {lpn}: its CRC is {found:06x}, expected was {written:06x}"
            ),
        })
    }

    /// Allocates a descriptor for a page without sub-pages.
    pub(crate) fn admit(&mut self, lpn: Lpn, region: PcmRegion) -> Result<u32> {
        let desc = self.desc_free.pop_front().ok_or_else(|| no_space("descriptor"))?;
        self.desc[desc as usize] = Desc { lpn: lpn.0, region, seq: 0, subs: [NONE; SUBPAGES_MAX as usize] };
        let r = &mut self.regions[region as usize];
        r.buffer.admitted(desc, lpn);
        r.pages += 1;
        Ok(desc)
    }

    /// Attaches a slot to a page.
    pub(crate) fn attach(&mut self, desc: u32, sub: usize, slot: u32) {
        let d = &mut self.desc[desc as usize];
        d.subs[sub] = slot;
        self.regions[d.region as usize].used += 1;
    }

    /// Releases a descriptor. Its slots become free after `ready`, except those in `keep`.
    pub(crate) fn release(&mut self, desc: u32, keep: u8, ready: Tok) {
        let d = self.desc[desc as usize];
        let r = &mut self.regions[d.region as usize];
        r.buffer.removed(desc, Lpn(d.lpn));
        r.pages -= 1;
        r.used -= d.count();
        for (i, &slot) in d.subs.iter().enumerate() {
            if slot != NONE && keep & (1 << i) == 0 {
                self.free_slot(slot, ready);
            }
        }
        self.desc[desc as usize].lpn = NONE;
        self.desc_ready
            .set(desc as usize, if is_planted(HfslBug::DescReuseEarly) { Tok::default() } else { ready });
        match &mut self.held {
            Some((_, descs)) => descs.push(desc),
            None => self.desc_free.push_back(desc),
        }
    }

    /// Records a further write of a page, which may move it to another region.
    pub(crate) fn touch(&mut self, desc: u32, region: PcmRegion) {
        let d = self.desc[desc as usize];
        if d.region == region {
            self.regions[region as usize].buffer.touched(desc);
            return;
        }
        let (lpn, count) = (Lpn(d.lpn), d.count());
        let old = &mut self.regions[d.region as usize];
        old.buffer.removed(desc, lpn);
        old.pages -= 1;
        old.used -= count;
        let new = &mut self.regions[region as usize];
        new.buffer.admitted(desc, lpn);
        new.pages += 1;
        new.used += count;
        self.desc[desc as usize].region = region;
    }

    /// Divides the slots between storage and cache.
    pub(crate) fn set_quotas(&mut self, level: f64, cache: f64) {
        self.regions[PcmRegion::Storage as usize].quota = (f64::from(self.layout.slots) * level) as u32;
        self.regions[PcmRegion::Cache as usize].quota = (f64::from(self.layout.slots) * cache) as u32;
    }

    /// Adopts a descriptor that was read from PCM.
    pub(crate) fn adopt(&mut self, lpn: Lpn, desc: u32, found: Desc) {
        self.desc[desc as usize] = found;
        let region = &mut self.regions[found.region as usize];
        region.buffer.admitted(desc, lpn);
        region.pages += 1;
        region.used += found.count();
    }

    /// Rebuilds the free lists after a boot: all slots and descriptors that no page uses.
    pub(crate) fn rebuild_free(&mut self) {
        let mut used = vec![false; self.layout.slots as usize];
        for d in self.desc.iter().filter(|d| d.lpn != NONE) {
            for &slot in d.subs.iter().filter(|&&s| s != NONE) {
                used[slot as usize] = !is_planted(HfslBug::SlotsForgotten);
            }
        }
        self.free = (0..self.layout.slots).filter(|&s| !used[s as usize]).collect();
        self.desc_free = (0..self.layout.slots).filter(|&d| self.desc[d as usize].lpn == NONE).collect();
    }

    /// Returns `true` if `n` slots and `descs` descriptors are available to a region without
    /// destaging.
    #[inline]
    pub(crate) fn has_space(&self, region: PcmRegion, n: u32, descs: usize) -> bool {
        let r = &self.regions[region as usize];
        self.free.len() >= n as usize && r.used + n <= r.quota && self.desc_free.len() >= descs
    }
}

/// Returns a 24-bit checksum over a sub-page and its logical position, so that a sub-page in the
/// wrong position fails the check. Any error passes with a probability of 1 in 16 million.
#[inline]
pub(crate) fn sum_of(lpn: u32, sub: usize, bytes: &[u8]) -> u32 {
    let place = u64::from(lpn) << 8 | sub as u64;
    checksum::seal(checksum::digest(bytes), &place.to_le_bytes()) >> 8
}

fn no_space(what: &str) -> Error {
    Error::NoSpace { what: format!("no free {what} in PCM although space was reserved: a bug of the layer") }
}
