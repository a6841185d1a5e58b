//! Durability interface of the cache: format, recovery, guarantees, checks.

use super::BLOCK_BYTES;
use super::config::Mode;
use super::directory::PINNED;
use super::in_flight::{DAMAGED, EVICT};
use super::layer::Cache;
use super::layout::RECORDS_AT;
use super::policy::EvictionPolicy;
use crate::Token;
use crate::planted::CacheBug;
use crate::record::{Record, RecordEnd};
use frit_core::planted::is;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Error, Extent, Finding, MediumKind,
    Precondition, Preconditioning, Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Severity, Sink,
    WriteGuarantee,
};
use frit_media::Store;
use frit_media::checksum::digest;

impl<S: Sink, P: Store, D: Store> Quiesce<S> for Cache<S::Tok, P, D> {
    fn halt(&mut self, sink: &mut S) -> Result<()> {
        self.writable()?;
        self.shut_down(sink)
    }

    fn boot(&mut self, sink: &mut S) -> Result<()> {
        self.recover_blocks(sink, CrashKind::Process).map(|_| ())
    }
}

impl<S: Sink, P: Store, D: Store> Durable<S> for Cache<S::Tok, P, D> {
    fn format(&mut self, sink: &mut S) -> Result<()> {
        self.write_head(sink)
    }

    fn recover(&mut self, sink: &mut S, stop: CrashKind) -> Result<Recovery> {
        self.recover_blocks(sink, stop)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        if self.config.bypasses() {
            // The guarantee of the bare disk, whose cache is volatile.
            return WriteGuarantee {
                durable_at: DurabilityPoint::OnFlush,
                atomic_bytes: SECTOR_BYTES as u32,
            };
        }
        // Over files, a write-through block can reach the disk in part before the PCM is synced.
        let torn = self.config.mode == Mode::WriteThrough && self.space.volatile();
        let atomic_bytes = if torn { SECTOR_BYTES as u32 } else { BLOCK_BYTES as u32 };
        WriteGuarantee { atomic_bytes, ..WriteGuarantee::default() }
    }

    fn check(
        &mut self,
        sink: &mut S,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut checked = CheckCounts::default();
        if let Some(missing) = self.health.missing.clone() {
            let repaired = scope.repair && scope.older;
            if repaired {
                self.accept_missing(sink)?;
            }
            found(Finding {
                kind: "missing-records",
                severity: Severity::Major,
                lpn: None,
                medium: MediumKind::Pcm,
                at: RECORDS_AT,
                what: missing.what,
                repaired,
            });
        }
        let mut blocks: Vec<(u32, u32)> = self.dir.iter().collect();
        blocks.sort_unstable();
        for (lbn, slot) in blocks {
            checked.entries += 1;
            checked.records += 1;
            let verdict = self.space.record_state(slot)?;
            let own = verdict.block.filter(|r| r.lbn == lbn && r.valid == self.dir.valid(slot));
            if let Some(record) = own.filter(|_| !verdict.agreed) {
                let repaired = scope.repair && self.rewrite_record(sink, slot, &record)?;
                found(Finding {
                    kind: "bad-copy",
                    severity: Severity::Minor,
                    lpn: Some(lbn),
                    medium: MediumKind::Pcm,
                    at: self.space.layout.data(slot),
                    what: format!("a copy of the record of slot {slot} is damaged; the other is intact"),
                    repaired,
                });
            }
            let bad = if own.is_none() {
                Some(("bad-descriptor", format!("the record of slot {slot} is not that of block {lbn}")))
            } else if scope.data {
                checked.pages_read += 1;
                checked.bytes_verified += u64::from(self.dir.valid(slot).count_ones()) * SECTOR_BYTES;
                match self.load(lbn, slot) {
                    Ok(()) => None,
                    Err(Error::Corrupt { what, .. }) => Some(("bad-data", what)),
                    Err(e) => return Err(e),
                }
            } else {
                None
            };
            let Some((kind, what)) = bad else { continue };
            let repaired = scope.repair && self.drop_damaged(sink, lbn, slot, scope.older)?;
            found(Finding {
                kind,
                severity: Severity::Major,
                lpn: Some(lbn),
                medium: MediumKind::Pcm,
                at: self.space.layout.data(slot),
                what,
                repaired,
            });
        }
        Ok(checked)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let mut pos = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let end = pos + sectors * SECTOR_BYTES;
        let mut last: Option<Extent> = None;
        while pos < end {
            let block = (pos / BLOCK_BYTES) as u32;
            let bucket = self.dir.bucket(self.dir.bucket_of(block));
            // A bucket without cached blocks is one extent.
            let step = if bucket.count == 0 {
                BLOCK_BYTES * u64::from(super::directory::BUCKET_BLOCKS)
            } else {
                BLOCK_BYTES
            };
            let next = end.min((pos / step + 1) * step);
            let place = if self.dir.get(block).is_some() { MediumKind::Pcm } else { MediumKind::Disk };
            let n = (next - pos) / SECTOR_BYTES;
            last = match last {
                Some(e) if e.place == Some(place) => Some(Extent { sectors: e.sectors + n, ..e }),
                other => {
                    if let Some(e) = other {
                        each(e);
                    }
                    Some(Extent { sectors: n, place: Some(place) })
                }
            };
            pos = next;
        }
        if let Some(e) = last {
            each(e);
        }
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.health.refusal.clone()
    }

    fn refuse(&mut self, why: String) {
        self.health.refusal.get_or_insert(why);
    }
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Rewrites all copies of a record.
    fn rewrite_record<S: Sink<Tok = T>>(&mut self, sink: &mut S, slot: u32, record: &Record) -> Result<bool> {
        let start = sink.start();
        self.space.put_record(sink, slot, record, start)?;
        self.space.fence(sink);
        Ok(true)
    }

    /// Removes a damaged block from the cache, so that reads return the disk's version. A clean
    /// block is removed at once, a dirty one only if `older` permits an older version.
    fn drop_damaged<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lbn: u32,
        slot: u32,
        older: bool,
    ) -> Result<bool> {
        let flags = self.dir.flags(slot);
        let older = older || is(CacheBug::RepairDiscards);
        if self.dir.dirty(slot) && !older || flags & PINNED != 0 && flags & DAMAGED == 0 {
            return Ok(false);
        }
        if flags & (EVICT | DAMAGED) == 0 {
            self.policy.remove(slot, lbn);
        }
        self.dir.remove(lbn);
        let start = sink.start();
        let done = self.space.end_record(sink, slot, RecordEnd::Evicted, start)?;
        let done = self.space.settle(sink, done);
        self.give_back(slot, done, false);
        Ok(true)
    }
}

impl<T: Token, P: Store, D: Store> Preconditioning for Cache<T, P, D> {
    /// Brings the cache into a stationary state. `Fill` changes nothing: the disk counts as filled.
    /// `Steady` fills the cache up to its threshold with dirty blocks at random addresses.
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        let Precondition::Steady { seed } = how else { return Ok(()) };
        if !self.dir.is_empty() || self.space.seq > 0 {
            return Err(Error::param("precondition", "steady", "the volume is not new"));
        }
        let slots = (f64::from(self.dir.capacity()) * self.config.threshold) as u32;
        let blocks = u64::from(self.dir.disk_blocks());
        let zeros = digest(&[0; BLOCK_BYTES as usize]);
        let mut state = seed;
        // At most half of the disk, so that random choices find uncached blocks soon.
        let most = slots.min(self.dir.disk_blocks() / 2);
        while self.dir.len() < most {
            // SplitMix64 (Steele et al., OOPSLA 2014).
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let lbn = ((u128::from(z ^ (z >> 31)) * u128::from(blocks)) >> 64) as u32;
            if self.dir.get(lbn).is_some() {
                continue;
            }
            let Some(slot) = self.dir.alloc() else { break };
            self.space.seq += 1;
            if P::HOLDS {
                let record = Record { lbn, valid: 0xFF, seq: self.space.seq, digest: zeros };
                for place in self.space.layout.places(slot) {
                    self.space.pcm.preset(self.space.layout.record(place), &record.bytes(place))?;
                }
            }
            self.dir.insert(lbn, slot, 0xFF, true);
            self.tick();
            let access = self.access(lbn, true);
            self.policy.insert(slot, &access);
            self.dir.touch(lbn, self.clock);
        }
        Ok(())
    }
}
