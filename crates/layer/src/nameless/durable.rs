//! Durability interface of the volume, its recovery and its shutdown.

use super::layer::Nameless;
use crate::health::Health;
use frit_core::convert::to_usize;
use frit_core::extents::merge_runs;
use frit_core::{
    Cause, CheckCounts, CheckScope, Claimed, CrashKind, DurabilityPoint, Durable, Error, Extent, Finding,
    LostPage, Lpn, MediumKind, NamelessDevice, OwnedBlock, PhysicalAddress, Quiesce, ReadTarget, Recovery,
    Result, SECTOR_BYTES, Sector, Sink, WriteGuarantee,
};

impl<D: NamelessDevice> Nameless<D> {
    /// Recovers the device, reads the map, and claims the blocks that it refers to.
    fn recover_from_media(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        let mut r = self.device.recover(sink, crash)?;
        self.map.reset();
        self.queue.reset();
        self.unrelated = 0;
        self.replaced.clear();
        self.waiting.clear();
        self.health = Health::default();
        self.unflushed = false;
        let mut page = vec![0; to_usize(self.page_bytes)];
        let mut entries: Vec<(Lpn, Option<PhysicalAddress>)> = Vec::new();
        for block in 0..self.device.virtual_blocks() {
            match self.device.virtual_read(sink, block, 0, ReadTarget::Bytes(&mut page), Cause::Meta) {
                Ok(_) => {}
                Err(e @ Error::Corrupt { .. }) => {
                    let why = format!("the part of the map that has it is lost: {e}");
                    for lpn in self.map.pages_of(block) {
                        self.note_lost(Lpn(lpn), why.clone(), &mut r);
                    }
                    continue;
                }
                Err(e) => return Err(e),
            }
            r.bytes_read += u64::from(self.page_bytes);
            self.map.decode(block, &page, |lpn, at| entries.push((lpn, at)));
            for (lpn, at) in entries.drain(..) {
                self.claim(lpn, at, &mut r)?;
            }
        }
        self.device.resume(sink, &mut r)?;
        self.take_migrations();
        Ok(r)
    }

    /// Claims the block of a page.
    fn claim(&mut self, lpn: Lpn, at: Option<PhysicalAddress>, r: &mut Recovery) -> Result<()> {
        let Some(at) = at else {
            self.note_lost(lpn, "it was lost before the map was saved".to_owned(), r);
            return Ok(());
        };
        match self.device.claim(OwnedBlock { owner: lpn.0, at })? {
            Claimed::At(at) => {
                r.pages += 1;
                self.map.set_moved(lpn, at);
            }
            Claimed::Lost(why) => self.note_lost(lpn, why, r),
        }
        Ok(())
    }

    fn note_lost(&mut self, lpn: Lpn, why: String, r: &mut Recovery) {
        self.map.note_lost(lpn, why.clone());
        r.lost.push(LostPage { lpn: lpn.0, why });
    }

    fn shut_down(&mut self, sink: &mut Sink) -> Result<()> {
        self.writable()?;
        self.flush_all(sink)?;
        let halted = self.device.halt(sink);
        self.take_migrations();
        halted
    }
}

impl<D: NamelessDevice> Quiesce for Nameless<D> {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.shut_down(sink).map_err(|e| self.refuse_after(e))
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.recover_from_media(sink, CrashKind::Process).map(|_| ())
    }
}

impl<D: NamelessDevice> Durable for Nameless<D> {
    /// Blank NAND needs no format: it has no checkpoint and no block.
    fn format(&mut self, _: &mut Sink) -> Result<()> {
        if !self.config.scans() {
            let why = "does not survive a crash or a power loss; a volume needs \"scan\"";
            return Err(Error::param("recovery", "none", why));
        }
        Ok(())
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        self.recover_from_media(sink, crash)
    }

    /// The map is durable at a flush. Its parts refer to old or new blocks as a whole.
    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: self.page_bytes,
            ..WriteGuarantee::default()
        }
    }

    fn keeps_discards(&self) -> bool {
        self.config.scans()
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.run_check(sink, scope, found)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let page = u64::from(self.page_bytes);
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            // A lost page is not reported as a hole: a copy by extents must read it and get the error.
            let held = self.is_written(Lpn::of_u64(byte / page));
            ((byte / page + 1) * page, held.then_some(MediumKind::Nand))
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.health.refusal().map(str::to_owned).or_else(|| self.device.refuses())
    }

    fn refuse(&mut self, why: String) {
        self.device.refuse(why.clone());
        self.health.refuse(why);
    }
}
