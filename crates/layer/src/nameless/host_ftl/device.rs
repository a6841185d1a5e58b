//! The interface of a nameless-write device.

use super::maps::tag_of;
use super::{DeviceBlocks, HostFtl, VIRTUAL};
use crate::planted::NamelessBug;
use frit_core::convert::{count_u32, low_u32, to_usize};
use frit_core::visible::Metric;
use frit_core::{
    Cause, Claimed, ContentsSpace, CrashKind, Error, Lpn, MediumKind, Migration, NamelessDevice, OwnedBlock,
    PhysicalAddress, Ppn, Precondition, Progress, ReadTarget, Recovery, Result, Sink, StackView, Tok,
    WriteData,
};
use frit_media::ExpectedPage;

impl HostFtl {
    /// Present address of a block. A block that was moved is found by its address before, until its owner
    /// has acknowledged the migration.
    fn locate(&self, block: OwnedBlock) -> Result<PhysicalAddress> {
        let at = match self.stores_bytes() {
            true => self.maps.moved_to(block.owner, block.at.version).unwrap_or(block.at),
            false => self.follow(block),
        };
        if at.page < self.flash.nand().geometry().pages()
            && self.flash.lpn_of(Ppn(at.page)) == Some(Lpn(block.owner))
        {
            return Ok(at);
        }
        let what = format!("it holds no block of owner {}", block.owner);
        Err(Error::Corrupt { medium: MediumKind::Nand, at: u64::from(at.page), what })
    }

    /// Present address of a block on NAND without bytes. Copies have new versions there, because no spare
    /// area has the old one.
    fn follow(&self, block: OwnedBlock) -> PhysicalAddress {
        // The oldest comes first, so one pass follows a block that was moved several times.
        let moves = self.maps.migrations().iter().filter(|m| m.owner == block.owner);
        moves.fold(block.at, |at, m| m.to.filter(|_| m.from == at.page).unwrap_or(at))
    }

    /// Refuses changes until the owner has claimed its blocks.
    fn check_resumed(&self) -> Result<()> {
        if !self.recovering {
            return Ok(());
        }
        let why = "the device waits until its owner has claimed the blocks that it refers to (claim, resume)";
        Err(Error::ReadOnly { why: why.to_owned() })
    }

    /// Returns `true` if a page has another version than an address states: the block was freed, and its
    /// page is used again.
    fn has_other_version(&self, at: PhysicalAddress) -> bool {
        let spare = self.flash.nand().spare(Ppn(at.page));
        matches!(spare, Ok(Some(spare)) if low_u32(spare.seq) != at.version)
    }

    /// Emits the read of `pages` pages of one virtual page, or of all of it.
    fn read_run(&mut self, sink: &mut Sink, first: Option<Ppn>, pages: u32, cause: Cause) -> Result<Tok> {
        let Some(ppn) = first else { return Ok(sink.start()) };
        let (ppn, pages) = match self.page_reads {
            true => (Ppn(ppn.0 - ppn.0 % self.unit_pages), self.unit_pages),
            false => (ppn, pages),
        };
        self.flash.read_unit(sink, ppn, pages, cause, Tok::default())
    }

    /// Reads consecutive contents, with one command for blocks of one virtual page.
    fn read_blocks(
        &mut self,
        sink: &mut Sink,
        blocks: &[OwnedBlock],
        offset: u32,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok> {
        // The pages that are read by one command: the first one, and their number.
        let (mut done, mut first, mut pages) = (Tok::default(), None, 0);
        let (mut from, mut offset) = (0, offset);
        for &block in blocks {
            let at = self.locate(block)?;
            let len = (self.page_bytes - offset).min(into.len() - from);
            let ppn = Ppn(at.page);
            let unit = |p: Ppn| p.0 / self.unit_pages;
            if first.is_some_and(|f| unit(f) != unit(ppn)) {
                let read = self.read_run(sink, first.take(), pages, cause)?;
                done = sink.join(done, read);
            }
            // Blocks can lie in the virtual page in any order.
            let (low, end) = first.map_or((ppn.0, ppn.0), |f| (f.0.min(ppn.0), (f.0 + pages).max(ppn.0)));
            first = Some(Ppn(low));
            pages = (end - low).max(ppn.0 + 1 - low);
            self.flash.copy_out(ppn, offset, into.part(from, len), tag_of(at))?;
            (from, offset) = (from + len, 0);
        }
        let read = self.read_run(sink, first, pages, cause)?;
        Ok(sink.join(done, read))
    }

    /// Refuses numbers that are no virtual block.
    fn check_virtual(&self, block: u32) -> Result<()> {
        let blocks = self.maps.virtual_blocks();
        if block < blocks {
            return Ok(());
        }
        Err(Error::param("virtual block", block, format!("the virtual space has blocks 0 to {}", blocks - 1)))
    }

    /// Verifies that a page holds a version.
    fn verify_page(&mut self, sink: &mut Sink, lpn: Lpn, at: PhysicalAddress, data: bool) -> Result<()> {
        let ppn = Ppn(at.page);
        if data && self.stores_bytes() {
            let mut page = std::mem::take(&mut self.unit);
            let into = ReadTarget::Bytes(&mut page[..to_usize(self.page_bytes)]);
            let read = self.flash.read(sink, ppn, 0, into, tag_of(at), Cause::Meta);
            self.unit = page;
            return read.map(|_| ());
        }
        self.flash.version(ppn, lpn, tag_of(at)).map(|_| ())
    }

    /// Reads a page whatever the tables state, and verifies it. A page is rejected only if it is damaged
    /// twice: a single read may have failed.
    pub(super) fn read_version(&mut self, ppn: Ppn, lpn: u32, tag: u16, page: &mut [u8]) -> Result<()> {
        let expect = Some(ExpectedPage { lpn, tag });
        match self.flash.nand_mut().copy_out(ppn, 0, ReadTarget::Bytes(page), expect) {
            Err(Error::Corrupt { .. }) => {
                self.flash.nand_mut().copy_out(ppn, 0, ReadTarget::Bytes(page), expect)
            }
            read => read,
        }
    }

    fn list_metrics(&self) -> Vec<Metric> {
        let m = Metric::count;
        let (s, f) = (&self.stats, self.flash.stats());
        vec![
            m("nand_pages", self.flash.valid_pages(), "pages", "valid pages in NAND"),
            m("nand_free_blocks", self.flash.free_blocks(), "blocks", "erased blocks in the pools"),
            m("nameless_queues", s.nameless_queues, "queues", "request queues of nameless writes"),
            m("nameless_blocks", s.nameless_blocks, "blocks", "blocks written without a name"),
            m("virtual_queues", s.virtual_queues, "queues", "request queues of virtual writes"),
            m("virtual_blocks", s.virtual_blocks, "blocks", "virtual blocks written"),
            m("padded", s.padded, "pages", "pages of padding in virtual pages"),
            m("checkpoints", s.checkpoints, "checkpoints", "saved maps of virtual blocks"),
            m("map_parts", s.map_parts, "pages", "parts of the map of virtual blocks that flushes wrote"),
            m("checkpoint_bytes", self.checkpoint_bytes(), "bytes", "size of one of them"),
            m("migrations", self.maps.moved, "blocks", "blocks that the device has moved"),
            m("gc_victims", f.victims, "blocks", "blocks cleaned"),
            m("gc_victim_valid", f.victim_valid, "pages", "valid pages in blocks when chosen for cleaning"),
            m("gc_forced", f.forced, "blocks", "blocks cleaned while a write waited"),
            m("wear_relocated", f.relocated, "blocks", "blocks moved by static wear leveling"),
            m("blocks_retired", f.retired, "blocks", "blocks that went bad"),
            m("program_retries", f.program_retries, "pages", "pages programmed again after a failure"),
        ]
    }
}

impl NamelessDevice for HostFtl {
    fn block_bytes(&self) -> u32 {
        self.page_bytes
    }

    fn queue_blocks(&self) -> u32 {
        self.unit_pages
    }

    fn pages(&self) -> u32 {
        self.flash.nand().geometry().pages()
    }

    fn virtual_blocks(&self) -> u32 {
        self.maps.virtual_blocks()
    }

    fn flushes_atomically(&self) -> bool {
        self.blocks.atomic_flush && self.scans
    }

    fn space(&self) -> ContentsSpace {
        let DeviceBlocks { capacity, waiting, .. } = self.blocks;
        ContentsSpace { capacity, waiting, stored: self.maps.stored }
    }

    fn nameless_write(
        &mut self,
        sink: &mut Sink,
        owners: &[u32],
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
        placed: &mut Vec<PhysicalAddress>,
    ) -> Result<Tok> {
        self.check_resumed()?;
        self.check_queue(owners, data, VIRTUAL, "owner")?;
        // With atomic flushes, a checkpoint states nothing about contents.
        self.checkpoint.outdated |= !self.blocks.atomic_flush;
        let written = self.program_nameless(sink, owners, data, cause, after, placed);
        written.map_err(|e| self.refuse_after(e))
    }

    fn virtual_write(
        &mut self,
        sink: &mut Sink,
        blocks: &[u32],
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.check_resumed()?;
        self.check_queue(blocks, data, self.maps.virtual_blocks(), "virtual block")?;
        self.checkpoint.outdated = true;
        self.program_virtual(sink, blocks, data, cause, after).map_err(|e| self.refuse_after(e))
    }

    fn virtual_discard(&mut self, sink: &mut Sink, block: u32) -> Result<()> {
        self.check_resumed()?;
        self.check_virtual(block)?;
        if !self.blocks.atomic_flush {
            return Err(Error::param("discard", block, "requires a device with atomic flushes"));
        }
        self.flash.writable()?;
        self.checkpoint.outdated = true;
        // The version that the last checkpoint names stays until the next one.
        if let Some(at) = self.maps.get(block).filter(|at| !self.maps.is_saved_at(block, *at)) {
            self.flash.invalidate_after(sink, Ppn(at.page), Tok::default());
        }
        self.maps.clear(block);
        Ok(())
    }

    fn physical_read(
        &mut self,
        sink: &mut Sink,
        blocks: &[OwnedBlock],
        offset: u32,
        into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok> {
        let held = u64::from(count_u32(blocks.len())) * u64::from(self.page_bytes);
        if u64::from(offset) + u64::from(into.len()) > held || offset >= self.page_bytes {
            let range = format!("{} bytes at {offset}", into.len());
            return Err(Error::param("read", range, format!("the blocks have {held} bytes")));
        }
        self.read_blocks(sink, blocks, offset, into, cause)
    }

    fn virtual_read(
        &mut self,
        sink: &mut Sink,
        block: u32,
        offset: u32,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<Tok> {
        self.check_virtual(block)?;
        if u64::from(offset) + u64::from(into.len()) > u64::from(self.page_bytes) {
            let range = format!("{} bytes at {offset}", into.len());
            return Err(Error::param("read", range, format!("a block has {} bytes", self.page_bytes)));
        }
        if let Some(why) = self.maps.why_lost(block) {
            let what = format!("virtual block {block} is lost: {why}");
            return Err(Error::Corrupt { medium: MediumKind::Nand, at: 0, what });
        }
        let Some(at) = self.maps.get(block) else {
            into.zero();
            return Ok(sink.start());
        };
        let len = into.len();
        match self.flash.read(sink, Ppn(at.page), offset, into.part(0, len), tag_of(at), cause) {
            // A single read may have failed, and much depends on a virtual block.
            Err(Error::Corrupt { .. }) => {
                self.flash.read(sink, Ppn(at.page), offset, into, tag_of(at), cause)
            }
            read => read,
        }
    }

    fn virtual_written(&self, block: u32) -> bool {
        block < self.maps.virtual_blocks()
            && (self.maps.get(block).is_some() || self.maps.why_lost(block).is_some())
    }

    fn virtual_losses(&self, each: &mut dyn FnMut(u32, &str)) {
        self.maps.losses().for_each(|(block, why)| each(block, why));
    }

    fn free(&mut self, sink: &mut Sink, block: OwnedBlock, after: Tok) {
        // A block that is lost has no page any more.
        let Ok(at) = self.locate(block) else { return };
        if !self.has_other_version(at) {
            self.flash.invalidate_after(sink, Ppn(at.page), after);
            self.maps.stored -= 1;
        }
    }

    fn migration(&self) -> Option<Migration> {
        self.maps.migrations().front().copied()
    }

    fn migrations(&self, most: usize, into: &mut Vec<Migration>) {
        into.extend(self.maps.migrations().iter().take(most));
    }

    fn pending_migrations(&self) -> usize {
        self.maps.migrations().len()
    }

    fn acknowledge(&mut self, n: usize) {
        (0..n.min(self.maps.migrations().len())).for_each(|_| self.maps.acknowledge_oldest());
    }

    fn written(&self) -> Tok {
        self.programmed
    }

    fn sync(&mut self) -> Result<()> {
        self.sync_files()
    }

    fn flush(&mut self, sink: &mut Sink) -> Result<Tok> {
        self.check_resumed()?;
        self.flush_all(sink).map_err(|e| self.refuse_after(e))
    }

    fn step(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        if self.recovering {
            return Ok(Progress::Idle);
        }
        self.flash.step(sink, &mut self.maps, budget).map_err(|e| self.refuse_after(e))
    }

    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        if self.recovering {
            // Nothing was written since the recovery.
            return Ok(());
        }
        self.flash.writable()?;
        if self.scans {
            let done = self.write_checkpoint(sink, true)?;
            sink.ack(done);
            // The state of the halt must not be that of a volume in use.
            self.flash.in_use = sink.join(self.flash.in_use, done);
        }
        self.flash.make_durable(sink, &mut self.maps)
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        self.find_blocks(sink, crash)
    }

    fn found_blocks(&self) -> u64 {
        self.found.nameless_blocks()
    }

    fn awaits_claims(&self) -> bool {
        self.recovering
    }

    fn claim(&mut self, block: OwnedBlock) -> Result<Claimed> {
        self.claim_block(block)
    }

    fn resume(&mut self, sink: &mut Sink, recovery: &mut Recovery) -> Result<()> {
        self.end_recovery(sink, recovery)
    }

    fn verify(&mut self, sink: &mut Sink, block: OwnedBlock, data: bool) -> Result<()> {
        let at = self.locate(block)?;
        self.verify_page(sink, Lpn(block.owner), at, data)
    }

    fn verify_virtual(&mut self, sink: &mut Sink, block: u32, data: bool) -> Result<()> {
        self.check_virtual(block)?;
        if let Some(why) = self.maps.why_lost(block) {
            return Err(Error::Corrupt { medium: MediumKind::Nand, at: 0, what: why.to_owned() });
        }
        match self.maps.get(block) {
            Some(at) => self.verify_page(sink, Lpn(VIRTUAL + block), at, data),
            None => Ok(()),
        }
    }

    fn precondition(
        &mut self,
        how: Precondition,
        blocks: u32,
        placed: &mut dyn FnMut(OwnedBlock),
    ) -> Result<()> {
        if self.flash.valid_pages() > 0 {
            return Err(Error::param("warm", "fill or steady", "the volume is not new"));
        }
        self.checkpoint.outdated = true;
        let stored = &mut self.maps.stored;
        self.flash.precondition(how, blocks, &mut |lpn: Lpn, ppn: Ppn, seq| {
            *stored += 1;
            placed(OwnedBlock { owner: lpn.0, at: super::maps::address_of(ppn, seq) });
        })
    }

    fn writable(&self) -> Result<()> {
        self.flash.writable()
    }

    fn refuses(&self) -> Option<String> {
        self.flash.health.refusal().map(str::to_owned)
    }

    fn refuse(&mut self, why: String) {
        self.flash.health.refuse(why);
    }

    fn holds_bytes(&self) -> bool {
        self.stores_bytes()
    }

    fn dram_bytes(&self) -> u64 {
        self.ftl_bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        self.list_metrics()
    }

    fn visible(&self, view: &mut StackView) {
        view.media.extend(self.flash.nand().views());
    }
}

impl HostFtl {
    /// Refuses writes after an unexpected error.
    #[cold]
    fn refuse_after(&mut self, e: Error) -> Error {
        self.flash.health.refuse_after(e, false, NamelessBug::NotPoisoned)
    }

    fn flush_all(&mut self, sink: &mut Sink) -> Result<Tok> {
        let mut done = self.all_written(sink);
        if self.scans && (self.checkpoint.outdated || self.maps.lost_part()) {
            done = self.write_checkpoint(sink, false)?;
        }
        self.flash.make_durable(sink, &mut self.maps)?;
        Ok(done)
    }

    /// Syncs media in files.
    pub(super) fn sync_files(&mut self) -> Result<()> {
        if self.over_files { self.flash.nand_mut().sync() } else { Ok(()) }
    }
}
