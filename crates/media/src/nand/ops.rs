//! NAND commands.

use super::page::{ExpectedPage, PageState, SPARE_RECORD_BYTES, Spare, corrupt, data_crc};
use super::{BAD, ERASE_FAILED, Nand, NandBlock, ONE_BIT};
use crate::Store;
use crate::checksum::digest;
use crate::planted::Bug;
use crate::stripe::div_fast;
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Cmd, Error, MediumKind, Op, Ppn, ReadTarget, Result, Sink, Tok, WriteData};

/// Largest number of bytes of a page that are prefetched: the processor itself prefetches only within
/// 4 KiB of addresses that are accessed in order.
const FETCH_BYTES_MAX: usize = 4096;

#[cold]
pub(super) fn rule(at: u32, what: &'static str) -> Error {
    Error::Rule { medium: MediumKind::Nand, at: u64::from(at), what }
}

/// Bytes that a command transfers over the channel. A command counts as one for whole pages in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// The pages of the command.
    Pages,
    /// A part of them.
    Bytes(u32),
}

/// A program of a page: its number, its block, and its spare area.
#[derive(Clone, Copy, Debug)]
struct PageProgram {
    ppn: Ppn,
    block: u32,
    spare: Spare,
}

impl Nand {
    /// Counts a command and emits it into the sink. The bytes are moved in the store after this, so
    /// that all store accesses between two commands belong to the first of them.
    #[inline]
    fn emit_one(&mut self, sink: &mut Sink, op: Op, ppn: u32, block: u32, why: Cause, after: Tok) -> Tok {
        let pages = u32::from(op as u8 != Op::NandErase as u8);
        self.emit_pages(sink, op, ppn, pages, block, why, after)
    }

    /// Counts and emits a command that transfers several pages.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn emit_pages(
        &mut self,
        sink: &mut Sink,
        op: Op,
        ppn: u32,
        pages: u32,
        block: u32,
        why: Cause,
        after: Tok,
    ) -> Tok {
        self.emit_part(sink, op, (ppn, pages), Transfer::Pages, block, why, after)
    }

    /// Counts a command to pages, from the first one on, and emits it with the bytes that it transfers.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn emit_part(
        &mut self,
        sink: &mut Sink,
        op: Op,
        (ppn, pages): (u32, u32),
        transfer: Transfer,
        block: u32,
        why: Cause,
        after: Tok,
    ) -> Tok {
        let all = pages * self.config.geometry.page_bytes;
        self.counts.add(op, why, all);
        let len = match transfer {
            Transfer::Pages => all,
            Transfer::Bytes(bytes) => bytes.min(all),
        };
        let unit = self.unit_id(div_fast(block, self.blocks_per_unit));
        let mode = if self.is_one_bit(BlockId(block)) { Cmd::ONE_BIT } else { 0 };
        let addr = u64::from(ppn) | mode;
        sink.emit(Cmd { addr, len, hazard: block, unit, op, cause: why }, after)
    }

    /// Returns the block of a page that is to be read.
    #[inline]
    pub(super) fn readable(&self, ppn: Ppn) -> Result<u32> {
        if ppn.0 >= self.pages {
            return Err(rule(ppn.0, "the page lies outside the device"));
        }
        let per_block = self.config.geometry.pages_per_block;
        let block = div_fast(ppn.0, per_block);
        if ppn.0 - block * per_block >= u32::from(self.state[block as usize].next) {
            return Err(rule(ppn.0, "a page was read that is erased"));
        }
        Ok(block)
    }

    /// Returns the block of the first page of a program of `pages` pages.
    #[inline]
    pub(super) fn programmable(&self, ppn: Ppn, pages: usize) -> Result<u32> {
        if pages != self.config.geometry.program_pages as usize {
            return Err(rule(ppn.0, "a program has another number of pages than a program unit"));
        }
        if ppn.0 >= self.pages {
            return Err(rule(ppn.0, "the page lies outside the device"));
        }
        let per_block = self.config.geometry.pages_per_block;
        let block = div_fast(ppn.0, per_block);
        let (state, page) = (&self.state[block as usize], ppn.0 - block * per_block);
        if u32::from(state.next) != page || state.flags & (BAD | ERASE_FAILED) != 0 {
            return Err(rule(ppn.0, program_rule(state, page)));
        }
        if page + pages as u32 > self.pages_in(BlockId(block)) {
            return Err(rule(ppn.0, "a page was programmed past the end of a block with one bit a cell"));
        }
        Ok(block)
    }

    /// Returns `true` if the program of a page fails.
    #[inline]
    pub(super) fn program_fails(&self, ppn: Ppn, block: u32) -> bool {
        self.injects && self.config.faults.program_fails(ppn.0, self.state[block as usize].erases)
    }

    /// Prefetches the record and the contents of a page that will be read soon. The processor's own
    /// prefetching begins only after the first accesses to a page, when the digest already waits.
    /// Emits no command.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        if self.stores_bytes() && ppn.0 < self.pages {
            self.store.prefetch(self.config.geometry.record_at(ppn, 0), SPARE_RECORD_BYTES);
            let bytes = (self.config.geometry.page_bytes as usize).min(FETCH_BYTES_MAX);
            self.store.prefetch(self.data_at(ppn), bytes);
        }
    }

    /// Reads a page and returns its bytes from `offset` on. The command costs a read of the whole
    /// page.
    ///
    /// # Errors
    /// `Rule` for a page that is not programmed; `Corrupt`, with the page, if the bytes differ from
    /// those that were programmed (checked if the store holds bytes and the caller asks for them).
    #[inline]
    pub fn read(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        offset: u32,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.read_expected(sink, ppn, offset, into, None, cause, after)
    }

    /// Reads a page like [`Nand::read`], and checks that it is the expected version of the expected
    /// logical page. A misplaced or stale page is well-formed, so that only this check detects it.
    ///
    /// # Errors
    /// The errors of [`Nand::read`], and `Corrupt` for another page.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn read_expected(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        offset: u32,
        mut into: ReadTarget<'_>,
        expect: Option<ExpectedPage>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let block = self.readable(ppn)?;
        if u64::from(offset) + u64::from(into.len()) > u64::from(self.config.geometry.page_bytes) {
            return Err(rule(ppn.0, "a read reaches past the end of its page"));
        }
        let tok = self.emit_one(sink, Op::NandRead, ppn.0, block, cause, after);
        if let Some(into) = into.bytes() {
            if self.stores_bytes() {
                self.read_checked(ppn, offset as usize, into, expect)?;
            } else {
                into.fill(0);
            }
        }
        Ok(tok)
    }

    /// Reads the bytes of a page from `offset` on, and checks the checksum and the identity of the
    /// page.
    pub(super) fn read_checked(
        &mut self,
        ppn: Ppn,
        offset: usize,
        into: &mut [u8],
        expect: Option<ExpectedPage>,
    ) -> Result<()> {
        let (spare, crc) = self.check_identity(ppn, expect)?;
        let (at, len) = (self.data_at(ppn), self.config.geometry.page_bytes as usize);
        let sum = if let Some(page) = self.store.slice(at, len) {
            // The digest is computed first: it waits for the memory, and the copy then finds the
            // bytes in the processor's cache.
            let sum = digest(page);
            self.store.read(at + offset as u64, into)?;
            sum
        } else if into.len() == len {
            self.store.read(at, into)?;
            digest(into)
        } else {
            self.store.read(at, &mut self.page)?;
            into.copy_from_slice(&self.page[offset..offset + into.len()]);
            digest(&self.page)
        };
        check_data_crc(ppn, data_crc(sum, spare), crc)
    }

    /// Returns the spare area of a page and the checksum of its data, after a check that it is the
    /// expected page.
    #[inline]
    fn check_identity(&self, ppn: Ppn, expect: Option<ExpectedPage>) -> Result<(Spare, u32)> {
        let (spare, crc) = self.read_record_of(ppn, expect)?.page(ppn)?;
        match expect.filter(|e| !e.is(spare)) {
            Some(e) => Err(wrong_page_error(ppn, e, spare)),
            None => Ok((spare, crc)),
        }
    }

    /// Returns the spare area of a page; `None` if the page is erased or the store holds no bytes.
    /// Emits no command: where the time of the access matters, the caller must emit the read of the
    /// page.
    ///
    /// # Errors
    /// `Corrupt` for a damaged spare area, or one of a page whose program failed.
    pub fn spare(&self, ppn: Ppn) -> Result<Option<Spare>> {
        if !self.stores_bytes() || ppn.0 >= self.pages {
            return Ok(None);
        }
        match self.read_record(ppn)? {
            super::page::PageRecord::Erased => Ok(None),
            other => other.page(ppn).map(|(spare, _)| Some(spare)),
        }
    }

    /// Returns the state of a page as its record tells. Emits no command, as [`Nand::spare`].
    ///
    /// # Errors
    /// An error of the store.
    pub fn page_state(&self, ppn: Ppn) -> Result<PageState> {
        if !self.stores_bytes() || ppn.0 >= self.pages {
            return Ok(PageState::Erased);
        }
        Ok(match self.read_record(ppn)? {
            super::page::PageRecord::Erased => PageState::Erased,
            super::page::PageRecord::Page(spare, _) => PageState::Programmed(spare),
            super::page::PageRecord::Failed => PageState::Failed,
            super::page::PageRecord::Damaged => PageState::Damaged,
        })
    }

    /// Programs a page, which must be the next of its block.
    ///
    /// # Errors
    /// `Rule` if the page is not the next, the block is bad or not erased, or `data` is not a whole
    /// page (or has no bytes although the store holds bytes); `ProgramFailed` if a fault makes the
    /// program fail: the command was executed and the page is used up.
    #[inline]
    pub fn program(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        data: WriteData<'_>,
        spare: Spare,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let block = self.programmable(ppn, 1)?;
        if data.len() != self.config.geometry.page_bytes {
            return Err(rule(ppn.0, "a program must cover a whole page"));
        }
        if self.stores_bytes() && data.bytes().is_none() {
            return Err(rule(ppn.0, "a program without bytes on a device that holds bytes"));
        }
        let tok =
            self.program_next(sink, Op::NandProgram, PageProgram { ppn, block, spare }, cause, after)?;
        if let (true, Some(bytes)) = (self.stores_bytes(), data.bytes()) {
            self.write_page(ppn, bytes, spare)?;
        }
        Ok(tok)
    }

    /// Emits a command that programs the next page of a block. The page is used up even if the
    /// program fails.
    #[inline]
    fn program_next(
        &mut self,
        sink: &mut Sink,
        op: Op,
        page: PageProgram,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let PageProgram { ppn, block, spare } = page;
        let fails = self.program_fails(ppn, block);
        let tok = self.emit_one(sink, op, ppn.0, block, cause, after);
        self.state[block as usize].next += 1;
        if fails { self.fail(ppn, spare) } else { Ok(tok) }
    }

    /// Writes the data first, then the record that makes it a valid page.
    pub(super) fn write_page(&mut self, ppn: Ppn, bytes: &[u8], spare: Spare) -> Result<()> {
        let sum = self.store.write_digested(self.data_at(ppn), bytes)?;
        self.write_record(ppn, sum, spare)
    }

    /// Returns the digest of a page's data, after a check that the page is undamaged and the
    /// expected one. If the store cannot copy by itself, the page stays in `self.page`, so that the
    /// bytes that are written are the bytes that were checked.
    fn verified_digest(&mut self, ppn: Ppn, expect: Option<ExpectedPage>) -> Result<u64> {
        let (spare, crc) = self.check_identity(ppn, expect)?;
        let (at, len) = (self.data_at(ppn), self.config.geometry.page_bytes as usize);
        let sum = match self.store.slice(at, len).filter(|_| self.store.copies()) {
            Some(page) => digest(page),
            None => {
                self.store.read(at, &mut self.page)?;
                digest(&self.page)
            }
        };
        check_data_crc(ppn, data_crc(sum, spare), crc)?;
        Ok(sum)
    }

    /// Copies the data of a page that was just checked to another page: data first, then the
    /// record.
    fn copy_page(&mut self, from: Ppn, to: Ppn, sum: u64, spare: Spare) -> Result<()> {
        let (from, at) = (self.data_at(from), self.data_at(to));
        let len = self.config.geometry.page_bytes as usize;
        match self.store.copy(from, at, len) {
            Some(copied) => copied?,
            None => self.store.write(at, &self.page)?,
        }
        self.write_record(to, sum, spare)
    }

    /// Moves a page over the bus: a read, then a program that waits for it. The bytes are checked
    /// as by [`Nand::read_expected`], and copied once.
    ///
    /// # Errors
    /// The errors of [`Nand::read_expected`] (in which case nothing was programmed) and of
    /// [`Nand::program`].
    #[allow(clippy::too_many_arguments)]
    pub fn relocate(
        &mut self,
        sink: &mut Sink,
        from: Ppn,
        to: Ppn,
        spare: Spare,
        expect: Option<ExpectedPage>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let source = self.readable(from)?;
        let block = self.programmable(to, 1)?;
        let read = self.emit_one(sink, Op::NandRead, from.0, source, cause, after);
        let sum = if self.stores_bytes() { self.verified_digest(from, expect)? } else { 0 };
        let tok =
            self.program_next(sink, Op::NandProgram, PageProgram { ppn: to, block, spare }, cause, read)?;
        if self.stores_bytes() {
            self.copy_page(from, to, sum, spare)?;
        }
        Ok(tok)
    }

    #[cold]
    fn fail<T>(&mut self, ppn: Ppn, spare: Spare) -> Result<T> {
        if self.stores_bytes() {
            self.write_failed_record(ppn, spare)?;
        }
        Err(Error::ProgramFailed { ppn: ppn.0 })
    }

    /// Erases a block, which keeps its mode, and adds to its wear.
    ///
    /// # Errors
    /// The errors of [`Nand::erase_as`].
    #[inline]
    pub fn erase(&mut self, sink: &mut Sink, block: BlockId, cause: Cause, after: Tok) -> Result<Tok> {
        let one_bit = self.state.get(block.idx()).is_some_and(|b| b.flags & ONE_BIT != 0);
        self.erase_as(sink, block, one_bit, cause, after)
    }

    /// Erases a block, sets its mode, and adds to its wear.
    ///
    /// # Errors
    /// `Rule` for a bad block; `EraseFailed` if a fault or wear-out makes the erase fail: the
    /// command was executed, the pages keep their contents, and the block cannot be programmed
    /// until an erase succeeds.
    #[inline]
    pub fn erase_as(
        &mut self,
        sink: &mut Sink,
        block: BlockId,
        one_bit: bool,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let Some(&NandBlock { flags, erases, .. }) = self.state.get(block.idx()) else {
            return Err(rule(block.0, "the block lies outside the device"));
        };
        if flags & BAD != 0 {
            return Err(rule(block.0, "a bad block was erased"));
        }
        if one_bit && !self.config.geometry.slc.dynamic {
            return Err(rule(block.0, "a block was erased for a mode that its device does not change"));
        }
        let erases = erases.saturating_add(1);
        self.note_one_bit_cycle(block);
        let worn = self.worn_cycles(block, erases);
        let (faults, endurance) = (&self.config.faults, self.config.endurance);
        let fails = (self.injects && faults.erase_fails(block.0, erases))
            || (worn > endurance && faults.wears_out(block.0, worn, endurance));
        let first = self.config.geometry.ppn(block, 0);
        let tok = self.emit_one(sink, Op::NandErase, first.0, block.0, cause, after);
        let state = &mut self.state[block.idx()];
        state.erases = erases;
        if fails {
            state.flags |= ERASE_FAILED;
            self.save_state(block)?;
            return Err(Error::EraseFailed { block: block.0 });
        }
        *state = NandBlock { next: 0, flags: if one_bit { ONE_BIT } else { 0 }, erases };
        if self.stores_bytes() {
            // Records before the state: after a crash in between the block is erased, and only this
            // erase is missing in its state.
            self.erase_records(block)?;
            self.save_state(block)?;
        }
        Ok(tok)
    }

    /// Counts the end of a use with one bit a cell, if the block had this mode.
    fn note_one_bit_cycle(&mut self, block: BlockId) {
        if self.is_one_bit(block)
            && let Some(cycles) = self.slc_erases.get_mut(block.idx())
        {
            *cycles = cycles.saturating_add(1).min(super::layout::SLC_ERASES_MAX);
        }
    }

    /// Wear of a block after `erases` erases, in cycles with all bits: one with one bit a cell counts as
    /// the ratio of both endurances (the linear damage rule of Palmgren and Miner).
    fn worn_cycles(&self, block: BlockId, erases: u32) -> u32 {
        let (one_bit, Some(mode)) = (self.slc_erases(block), self.config.slc) else { return erases };
        let counted =
            u64::from(one_bit) * u64::from(self.config.endurance) / u64::from(mode.endurance.max(1));
        (erases - one_bit.min(erases)).saturating_add(counted.min(u64::from(u32::MAX)) as u32)
    }

    /// Programs the next program unit of a block with padding, to skip one in which a program may have
    /// been interrupted by a power loss. The contents of the unit, and whether the program
    /// succeeds, do not matter: its spare area marks it as invalid.
    ///
    /// # Errors
    /// `Rule` as for a program, or an error of the store.
    pub fn pad(&mut self, sink: &mut Sink, ppn: Ppn, cause: Cause, after: Tok) -> Result<Tok> {
        let pages = self.config.geometry.program_pages;
        let block = self.programmable(ppn, pages as usize)?;
        let tok = self.emit_pages(sink, Op::NandProgram, ppn.0, pages, block, cause, after);
        self.state[block as usize].next += pages as u16;
        if self.stores_bytes() {
            for page in 0..pages {
                self.write_failed_record(ppn.plus(page), Spare { lpn: u32::MAX, seq: 0 })?;
            }
        }
        Ok(tok)
    }

    /// Moves a page within its unit, without a transfer over the bus. `spare` is written with it.
    /// The data and the identity of the page are checked before the move, so that damaged data does
    /// not get a new, valid checksum.
    ///
    /// # Errors
    /// `Rule` as for a read and a program, and for pages of two units; `Corrupt` and
    /// `ProgramFailed` as for those.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn copyback(
        &mut self,
        sink: &mut Sink,
        from: Ppn,
        to: Ppn,
        spare: Spare,
        expect: Option<ExpectedPage>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let source = self.readable(from)?;
        let block = self.programmable(to, 1)?;
        if div_fast(source, self.blocks_per_unit) != div_fast(block, self.blocks_per_unit) {
            return Err(rule(to.0, "a copyback cannot leave its unit"));
        }
        let sum = if self.stores_bytes() { self.verified_digest(from, expect)? } else { 0 };
        let tok =
            self.program_next(sink, Op::NandCopyback, PageProgram { ppn: to, block, spare }, cause, after)?;
        if self.stores_bytes() {
            self.copy_page(from, to, sum, spare)?;
        }
        Ok(tok)
    }

    /// Marks a block bad permanently. Its pages can still be read.
    pub fn retire(&mut self, block: BlockId) {
        self.state[block.idx()].flags |= BAD;
        // If the store refuses the mark now, the next sync writes it or reports the error.
        self.states_dirty |= self.save_state(block).is_err();
    }
}

#[cold]
fn program_rule(state: &NandBlock, page: u32) -> &'static str {
    if state.flags & BAD != 0 {
        "a page was programmed in a bad block"
    } else if state.flags & ERASE_FAILED != 0 {
        "a page was programmed in a block whose erase failed"
    } else if page < u32::from(state.next) {
        "a page was programmed twice without an erase"
    } else {
        "a page was programmed out of order in its block"
    }
}

#[cold]
fn wrong_page_error(ppn: Ppn, expected: ExpectedPage, found: Spare) -> Error {
    let ExpectedPage { lpn, tag } = expected;
    let what = format!(
        "it holds logical page {}, version {}, but should hold page {lpn}, version {tag} (modulo 65536)",
        found.lpn, found.seq
    );
    corrupt(ppn, what)
}

#[inline]
fn check_data_crc(ppn: Ppn, found: u32, written: u32) -> Result<()> {
    if found == written || is_planted(Bug::NandDataUnchecked) {
        Ok(())
    } else {
        Err(damaged(ppn, found, written))
    }
}

#[cold]
fn damaged(ppn: Ppn, found: u32, written: u32) -> Error {
    corrupt(ppn, format!("CRC32C over data, LPN and sequence number is {found:08x}, expected {written:08x}"))
}
