//! Commands on program units: devices that program several pages with one command.
//!
//! A mapping unit that is smaller than the physical page of the device is a page here
//! ([`NandGeometry::program_pages`](super::NandGeometry::program_pages)): it is read alone, and has a
//! record of its own in the spare area. All pages of a physical page are programmed together.

use super::Nand;
use super::ops::{Transfer, rule};
use super::page::{ExpectedPage, Spare};
use crate::Store;
use crate::checksum::digest;
use crate::stripe::div_fast;
use frit_core::{Cause, Error, Op, Ppn, ReadTarget, Result, Sink, Tok, WriteData};

impl Nand {
    /// Programs the next program unit of a block. `first` is its first page, `data` covers all its
    /// pages, and `spares` has one element for each page. The command transfers `transfer`.
    ///
    /// # Errors
    /// The errors of [`Nand::program`]. After `ProgramFailed` the whole unit is used up.
    #[allow(clippy::too_many_arguments)]
    pub fn program_unit(
        &mut self,
        sink: &mut Sink,
        first: Ppn,
        data: WriteData<'_>,
        spares: &[Spare],
        transfer: Transfer,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let block = self.programmable(first, spares.len())?;
        let g = self.config.geometry;
        if data.len() != g.page_bytes * g.program_pages {
            return Err(rule(first.0, "a program must cover a whole program unit"));
        }
        if self.stores_bytes() && data.bytes().is_none() {
            return Err(rule(first.0, "a program without bytes on a device that holds bytes"));
        }
        let tok = self.emit_program(sink, Op::NandProgram, first, block, spares, transfer, cause, after)?;
        if let (true, Some(bytes)) = (self.stores_bytes(), data.bytes()) {
            let pages = bytes.chunks_exact(g.page_bytes as usize);
            for (i, (bytes, &spare)) in pages.zip(spares).enumerate() {
                self.write_page(first.plus(i as u32), bytes, spare)?;
            }
        }
        Ok(tok)
    }

    /// Emits a command that programs the next program unit, and marks the unit as failed if the
    /// program fails.
    #[allow(clippy::too_many_arguments)]
    fn emit_program(
        &mut self,
        sink: &mut Sink,
        op: Op,
        first: Ppn,
        block: u32,
        spares: &[Spare],
        transfer: Transfer,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let fails = self.program_fails(first, block);
        let pages = (first.0, spares.len() as u32);
        let tok = self.emit_part(sink, op, pages, transfer, block, cause, after);
        self.state[block as usize].next += spares.len() as u16;
        if !fails {
            return Ok(tok);
        }
        self.write_failed_records(first, spares)?;
        Err(Error::ProgramFailed { ppn: first.0 })
    }

    /// Marks all pages of a program unit as failed.
    fn write_failed_records(&mut self, first: Ppn, spares: &[Spare]) -> Result<()> {
        if !self.stores_bytes() {
            return Ok(());
        }
        for (i, &spare) in spares.iter().enumerate() {
            self.write_failed_record(first.plus(i as u32), spare)?;
        }
        Ok(())
    }

    /// Reads pages of one program unit with one command, which transfers `pages` pages. The bytes
    /// are taken with [`Nand::copy_out`].
    ///
    /// # Errors
    /// `Rule` if `ppn` is not programmed, or the unit has fewer pages.
    pub fn read_unit(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        pages: u32,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let block = self.readable(ppn)?;
        if pages == 0 || pages > self.config.geometry.program_pages {
            return Err(rule(ppn.0, "a read reaches past the end of its program unit"));
        }
        Ok(self.emit_pages(sink, Op::NandRead, ppn.0, pages, block, cause, after))
    }

    /// Reads part of a page: the command transfers `bytes`. They are taken with [`Nand::copy_out`].
    ///
    /// # Errors
    /// `Rule` if the page is not programmed.
    pub fn read_part(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        bytes: u32,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let block = self.readable(ppn)?;
        Ok(self.emit_part(sink, Op::NandRead, (ppn.0, 1), Transfer::Bytes(bytes), block, cause, after))
    }

    /// Reads a program unit with one read of the cells and two transfers: first `pages` pages, from
    /// `ppn` on or others that the caller needs, then the rest. Returns a token for the end of each.
    /// The cause of the second transfer is `rest`.
    ///
    /// # Errors
    /// `Rule` if `ppn` is not programmed, or if there is no rest.
    pub fn read_unit_in_parts(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        pages: u32,
        (cause, rest): (Cause, Cause),
        after: Tok,
    ) -> Result<(Tok, Tok)> {
        let all = self.config.geometry.program_pages;
        if pages >= all {
            return Err(rule(ppn.0, "a read of a whole program unit has no rest"));
        }
        let first = self.read_unit(sink, ppn, pages, cause, after)?;
        let block = self.readable(ppn)?;
        let rest = self.emit_pages(sink, Op::NandRegisterRead, ppn.0, all - pages, block, rest, first);
        Ok((first, rest))
    }

    /// Copies bytes of a page, from `offset` on, that a command of [`Nand::read_unit`] reads. The
    /// page is checked as by [`Nand::read_expected`].
    ///
    /// # Errors
    /// `Corrupt`, with the page, if it is damaged or another page.
    pub fn copy_out(
        &mut self,
        ppn: Ppn,
        offset: u32,
        mut into: ReadTarget<'_>,
        expect: Option<ExpectedPage>,
    ) -> Result<()> {
        match into.bytes() {
            Some(into) if self.stores_bytes() => self.read_checked(ppn, offset as usize, into, expect),
            Some(into) => {
                into.fill(0);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Moves a program unit within its unit of the device, without a transfer over the bus. All its
    /// pages are checked before, as by [`Nand::copyback`].
    ///
    /// # Errors
    /// The errors of [`Nand::copyback`].
    #[allow(clippy::too_many_arguments)]
    pub fn copyback_unit(
        &mut self,
        sink: &mut Sink,
        from: Ppn,
        to: Ppn,
        spares: &[Spare],
        expect: &[ExpectedPage],
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let source = self.readable(from)?;
        let block = self.programmable(to, spares.len())?;
        if div_fast(source, self.blocks_per_unit) != div_fast(block, self.blocks_per_unit) {
            return Err(rule(to.0, "a copyback cannot leave its unit"));
        }
        let len = self.config.geometry.page_bytes as usize;
        let mut unit = vec![0; if self.stores_bytes() { len * spares.len() } else { 0 }];
        for (i, (page, &expect)) in unit.chunks_exact_mut(len).zip(expect).enumerate() {
            self.read_checked(from.plus(i as u32), 0, page, Some(expect))?;
        }
        let tok =
            self.emit_program(sink, Op::NandCopyback, to, block, spares, Transfer::Pages, cause, after)?;
        for (i, (bytes, &spare)) in unit.chunks_exact(len).zip(spares).enumerate() {
            let at = to.plus(i as u32);
            self.store.write(self.data_at(at), bytes)?;
            self.write_record(at, digest(bytes), spare)?;
        }
        Ok(tok)
    }
}
