//! Reads of valid pages.

use super::Flash;
use frit_core::{Cause, Ppn, ReadTarget, Result, Sink, Tok};

impl Flash {
    /// Reads part of a valid page, whose version must match `tag`.
    #[inline]
    pub(crate) fn read(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        offset: u32,
        into: ReadTarget<'_>,
        tag: u16,
        cause: Cause,
    ) -> Result<Tok> {
        let expect = self.expected(ppn, || tag);
        let after = sink.start();
        self.nand.read_expected(sink, ppn, offset, into, expect, cause, after)
    }

    /// Reads valid pages of one program unit with one command; their bytes are taken with
    /// [`Flash::copy_out`]. The command waits for `after`.
    #[inline]
    pub(crate) fn read_unit(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        pages: u32,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let start = sink.start();
        let after = sink.join(start, after);
        self.nand.read_unit(sink, ppn, pages, cause, after)
    }

    /// Reads part of a valid page: the command transfers `bytes`, which are taken with
    /// [`Flash::copy_out`]. The command waits for `after`.
    pub(crate) fn read_part(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        bytes: u32,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let start = sink.start();
        let after = sink.join(start, after);
        self.nand.read_part(sink, ppn, bytes, cause, after)
    }

    /// Reads a program unit with two transfers: first `pages` pages, then the rest.
    pub(crate) fn read_unit_in_parts(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        pages: u32,
        causes: (Cause, Cause),
    ) -> Result<(Tok, Tok)> {
        let after = sink.start();
        self.nand.read_unit_in_parts(sink, ppn, pages, causes, after)
    }

    /// Copies bytes of a valid page out, whose version must match `tag`.
    #[inline]
    pub(crate) fn copy_out(&mut self, ppn: Ppn, offset: u32, into: ReadTarget<'_>, tag: u16) -> Result<()> {
        let expect = self.expected(ppn, || tag);
        self.nand.copy_out(ppn, offset, into, expect)
    }
}
