//! Writing blocks back: sorted, and what adjoins in one write.

use super::BLOCK_BYTES;
use super::directory::{BucketBlocks, PINNED};
use super::flying::DAMAGED;
use super::layer::Cache;
use super::policy::{Victim, WriteCache};
use super::space::{FRAGMENT, runs};
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Error, Op, Result, Sink, SlowAccess, Source};
use frit_media::Store;
use frit_media::disk::ORDER_BYTES;

/// What goes to the disk in one write.
#[derive(Clone, Copy, Debug)]
struct Run<T> {
    /// First byte on the disk, and bytes.
    at: u64,
    len: u32,
    /// When all of it was read from PCM.
    read: T,
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Writes the dirty ones of these blocks to the disk, in their order. All of them fly then; those that
    /// leave have left the policy. Damaged ones are set aside.
    pub(super) fn write_out<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        blocks: &[Victim],
        leave: bool,
    ) -> Result<()> {
        // A request that needs room may have written some of them itself: they are made certain first.
        if !is(Bug::DestagedEarly) {
            self.commit(sink)?;
        }
        if self.left.on() {
            return self.leave_out(sink, blocks, leave);
        }
        let mut run: Option<Run<T>> = None;
        for i in 0..blocks.len() {
            let v = blocks[i];
            if !self.may_fly(v.lbn) {
                self.stay(v, leave);
                continue;
            }
            if self.dir.flags(v.slot) & PINNED != 0 {
                // On its way already, to stay: it leaves as well then.
                self.leaves_too(v.slot);
                continue;
            }
            if !self.dir.dirty(v.slot) {
                self.stats.dropped += u64::from(leave);
                self.take_off(v, leave);
                continue;
            }
            let valid = self.dir.valid(v.slot);
            let Some(read) = self.fetch_out(sink, v, leave)? else { continue };
            for (first, n) in runs(valid) {
                let at = u64::from(v.lbn) * BLOCK_BYTES + u64::from(first * FRAGMENT);
                let len = n * FRAGMENT;
                run = match run {
                    Some(r) if r.at + u64::from(r.len) == at && !at.is_multiple_of(ORDER_BYTES) => {
                        Some(Run { len: r.len + len, read: sink.join(r.read, read), ..r })
                    }
                    other => {
                        self.write_run(sink, other, (blocks, i), leave)?;
                        Some(Run { at, len, read })
                    }
                };
                if P::HOLDS {
                    let from = (first * FRAGMENT) as usize;
                    self.run.extend_from_slice(&self.block[from..from + len as usize]);
                }
            }
            self.take_off(v, leave);
            *(if leave { &mut self.stats.destaged } else { &mut self.stats.cleaned }) += 1;
        }
        self.write_run(sink, run, (blocks, blocks.len()), leave)
    }

    /// Reads a block that goes to the disk into the block buffer; none when it is damaged and set aside.
    fn fetch_out<S: Sink<Tok = T>>(&mut self, sink: &mut S, v: Victim, leave: bool) -> Result<Option<T>> {
        // A machine that stops leaves the disk with any sectors of what it was given: PCM has to have all of it.
        if self.space.may_be_lost(v.slot)? && !is(Bug::DestagedEarly) {
            self.sync_slots(sink)?;
        }
        let valid = self.dir.valid(v.slot);
        match self.fetch(sink, v.lbn, v.slot, valid, Cause::Destage) {
            Ok(read) => Ok(Some(read)),
            Err(Error::Corrupt { .. }) => {
                self.stats.set_aside += 1;
                if !leave {
                    self.policy.remove(v.slot, v.lbn);
                }
                self.set_aside(v.slot);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// A victim that may not leave now goes back to its policy.
    fn stay(&mut self, v: Victim, left: bool) {
        if left {
            let access = self.access(v.lbn, true);
            self.policy.insert(v.slot, &access);
        }
    }

    /// As [`Cache::write_out`], with the writes left to others.
    fn leave_out<S: Sink<Tok = T>>(&mut self, sink: &mut S, blocks: &[Victim], leave: bool) -> Result<()> {
        let mut puts: Vec<SlowAccess> = Vec::new();
        let mut written = Vec::new();
        let start = sink.start();
        for &v in blocks {
            if !self.may_fly(v.lbn) {
                self.stay(v, leave);
                continue;
            }
            if self.dir.flags(v.slot) & PINNED != 0 {
                self.leaves_too(v.slot);
                continue;
            }
            if !self.dir.dirty(v.slot) {
                self.stats.dropped += u64::from(leave);
                self.take_off(v, leave);
                continue;
            }
            if self.fetch_out(sink, v, leave)?.is_none() {
                continue;
            }
            for (first, n) in runs(self.dir.valid(v.slot)) {
                let at = u64::from(v.lbn) * BLOCK_BYTES + u64::from(first * FRAGMENT);
                let (from, to) = ((first * FRAGMENT) as usize, ((first + n) * FRAGMENT) as usize);
                let bytes = &self.block[from..to];
                match puts.last_mut() {
                    Some(SlowAccess::Put { at: begin, data }) if *begin + data.len() as u64 == at => {
                        data.extend_from_slice(bytes);
                    }
                    _ => puts.push(SlowAccess::Put { at, data: bytes.to_vec() }),
                }
            }
            self.pin(v.slot, leave);
            written.push(v);
            *(if leave { &mut self.stats.destaged } else { &mut self.stats.cleaned }) += 1;
        }
        for put in &puts {
            let SlowAccess::Put { at, data } = put else { continue };
            self.stats.destage_writes += 1;
            self.disk.note(sink, Op::DiskWrite, *at, data.len() as u64, Cause::Destage, start)?;
        }
        if !written.is_empty() {
            self.leave_writes(puts, written);
        }
        Ok(())
    }

    /// Writes a run. When the disk fails, the blocks from `upto` on have not flown: they go back to the
    /// policy, as those do that fly.
    fn write_run<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        run: Option<Run<T>>,
        (blocks, upto): (&[Victim], usize),
        leave: bool,
    ) -> Result<()> {
        let Some(run) = run else { return Ok(()) };
        let data = if P::HOLDS { Source::Bytes(&self.run) } else { Source::Len(run.len) };
        debug_assert_eq!(data.len(), run.len);
        // What is not certain yet has no business on the disk: of a request that never was, parts would show.
        let after = if is(Bug::DestagedEarly) { run.read } else { sink.join(run.read, self.space.fenced()) };
        let done = self.disk.write(sink, run.at, data, Cause::Destage, after);
        self.run.clear();
        self.stats.destage_writes += 1;
        match self.of_disk(done) {
            Ok(done) => {
                self.flies_until(sink, done);
                Ok(())
            }
            Err(e) => {
                for v in blocks.iter().skip(upto) {
                    self.stay(*v, leave);
                }
                Err(e)
            }
        }
    }

    /// Writes the dirty blocks of the next bucket back, which stay; false when there are none.
    pub(super) fn clean<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<bool> {
        let mut blocks = BucketBlocks::default();
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        for _ in 0..self.dir.active() {
            let Some(bucket) = self.dir.next_active(self.clean_hand) else { break };
            self.clean_hand = (bucket + 1) % self.dir.buckets();
            if self.dir.bucket(bucket).dirty == 0 {
                continue;
            }
            self.dir.blocks_of(bucket, &mut blocks);
            let free = |slot: u32| self.dir.dirty(slot) && self.dir.flags(slot) & (PINNED | DAMAGED) == 0;
            chosen.extend(
                blocks.iter().filter(|(_, slot)| free(*slot)).map(|(lbn, slot)| Victim { lbn, slot }),
            );
            if !chosen.is_empty() {
                break;
            }
        }
        let any = !chosen.is_empty();
        let out = self.write_out(sink, &chosen, false);
        self.chosen = chosen;
        out?;
        if self.many_fly() && !self.left.busy() {
            self.land_or_leave(sink)?;
        }
        Ok(any)
    }
}
