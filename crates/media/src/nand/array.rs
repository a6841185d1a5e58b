//! Several NAND devices as one: the units of the devices in turn, with one numbering of units,
//! blocks and pages.
//!
//! Unit `u` of an array of `n` equal devices is unit `u / n` of device `u % n`, so consecutive units
//! are on different devices. If devices have different numbers of units, those with more continue
//! alone. Blocks are numbered consecutively within a unit of the array, and pages within a block, as
//! in one device.

use super::ops::Transfer;
use super::{ExpectedPage, Nand, NandGeometry, PageState, PlaneOps, Spare};
use crate::planted::Bug;
use crate::stripe::div_fast;
use frit_core::planted::is_planted;
use frit_core::visible::MediumView;
use frit_core::{
    BlockId, Cause, Error, MediumKind, PAGE_NONE, Ppn, ReadTarget, Result, Sink, Tok, UnitId, WriteData,
};

/// Location of a unit of an array.
#[derive(Clone, Copy, Debug)]
struct UnitPlace {
    /// Index of the device.
    device: u32,
    /// Unit of the device.
    unit: u32,
}

/// One NAND device, or several with pages and blocks of equal size.
///
/// A command for a page goes to the device of its unit. The errors of an array have the page and
/// block numbers of the array, and their texts name the device.
#[derive(Debug)]
pub struct NandArray {
    first: Nand,
    /// The other devices: none in most stacks.
    others: Vec<Nand>,
    /// Location of each unit. Empty for one device, whose numbers are those of the array.
    places: Vec<UnitPlace>,
    geometry: NandGeometry,
}

impl From<Nand> for NandArray {
    fn from(device: Nand) -> NandArray {
        let geometry = *device.geometry();
        NandArray { first: device, others: Vec::new(), places: Vec::new(), geometry }
    }
}

impl NandGeometry {
    /// Returns the first value in which a device cannot be in an array with this one: its key, the
    /// value of this geometry, and that of the other.
    #[must_use]
    pub fn array_mismatch(&self, other: &NandGeometry) -> Option<(&'static str, u32, u32)> {
        [
            ("page_bytes", self.page_bytes, other.page_bytes),
            ("pages_per_block", self.pages_per_block, other.pages_per_block),
            ("program_pages", self.program_pages, other.program_pages),
            ("blocks with one bit a cell", self.slc.blocks, other.slc.blocks),
            ("pages of a block with one bit a cell", self.slc.pages, other.slc.pages),
            ("blocks that change their mode", self.slc.dynamic.into(), other.slc.dynamic.into()),
            ("blocks_per_plane", self.blocks_per_unit(), other.blocks_per_unit()),
        ]
        .into_iter()
        .find(|(_, mine, others)| mine != others)
    }
}

/// Returns the locations of the units of devices with these numbers of units.
fn places(units: &[u32]) -> Vec<UnitPlace> {
    let rounds = 0..units.iter().copied().max().unwrap_or(0);
    let place = |unit, (device, _): (usize, &u32)| UnitPlace { device: device as u32, unit };
    rounds
        .flat_map(|u| units.iter().enumerate().filter(move |(_, n)| u < **n).map(move |d| place(u, d)))
        .collect()
}

/// Returns the geometry of an array: a channel for each unit, with the blocks and pages of the
/// devices.
fn joined(first: &NandGeometry, units: u32, spare_bytes: u32) -> NandGeometry {
    NandGeometry {
        channels: units,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: first.blocks_per_unit(),
        spare_bytes,
        plane_ops: PlaneOps::Single,
        ..*first
    }
}

/// Gives an error of an erase the block number of the array.
fn of_block(error: Error, block: BlockId) -> Error {
    match error {
        Error::EraseFailed { .. } => Error::EraseFailed { block: block.0 },
        Error::Rule { medium, what, .. } => Error::Rule { medium, at: u64::from(block.0), what },
        other => other,
    }
}

impl NandArray {
    /// Returns `true` if the stores keep the bytes that are written.
    #[inline]
    #[must_use]
    pub fn stores_bytes(&self) -> bool {
        self.first.stores_bytes()
    }

    /// Joins devices.
    ///
    /// # Errors
    /// No device, devices with different sizes of pages, blocks or units, or more pages than can be
    /// numbered.
    pub fn new(devices: Vec<Nand>) -> Result<NandArray> {
        let mut devices = devices.into_iter();
        let Some(first) = devices.next() else { return Err(Error::param("nand", "", "is needed")) };
        let others: Vec<Nand> = devices.collect();
        if others.is_empty() {
            return Ok(first.into());
        }
        for other in &others {
            if let Some((key, all, one)) = first.geometry().array_mismatch(other.geometry()) {
                let (name, with) = (&other.config.name, &first.config.name);
                let why = format!("NAND '{name}' is in an array with '{with}', which has {all}");
                return Err(Error::param(key, one, why));
            }
        }
        let all = || std::iter::once(&first).chain(&others).map(Nand::geometry);
        let units: Vec<u32> = all().map(NandGeometry::units).collect();
        let spare_bytes = all().map(|g| g.spare_bytes).min().unwrap_or(0);
        let pages: u64 = all().map(|g| u64::from(g.pages())).sum();
        if pages >= u64::from(PAGE_NONE) {
            let why = format!("have {pages} pages; at most {} can be numbered", PAGE_NONE - 1);
            return Err(Error::param("nand", format!("{} devices", units.len()), why));
        }
        let geometry = joined(first.geometry(), units.iter().sum(), spare_bytes);
        let mut places = places(&units);
        if is_planted(Bug::ArrayRotatedAtOpen) && first.state.iter().any(|b| b.next > 0) {
            places.rotate_left(1);
        }
        Ok(NandArray { first, others, places, geometry })
    }

    /// Geometry of the array. That of several devices has a channel for each unit; the devices have
    /// the real numbers of channels, chips, dies and planes.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &NandGeometry {
        &self.geometry
    }

    /// The devices.
    pub fn devices(&self) -> impl Iterator<Item = &Nand> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The devices, for fault injection.
    pub fn devices_mut(&mut self) -> impl Iterator<Item = &mut Nand> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// Geometry, counts and wear of each device.
    pub fn views(&self) -> impl Iterator<Item = MediumView> {
        self.devices().map(Nand::view)
    }

    /// Returns the stack-wide id of a unit.
    #[inline]
    #[must_use]
    pub fn unit_id(&self, unit: u32) -> UnitId {
        match self.places.get(unit as usize) {
            Some(place) => self.device(place.device).unit_id(place.unit),
            None => self.first.unit_id(unit),
        }
    }

    /// Returns the name of a unit for messages.
    #[must_use]
    pub fn unit_name(&self, unit: u32) -> String {
        match self.places.get(unit as usize) {
            Some(p) => format!("unit {} of NAND '{}'", p.unit, self.device(p.device).config.name),
            None => format!("NAND unit {unit}"),
        }
    }

    /// Returns the text that names the device of a page, with a leading space. It is empty if there
    /// is one device only.
    #[must_use]
    pub fn page_place(&self, ppn: Ppn) -> String {
        if self.others.is_empty() {
            return String::new();
        }
        let (device, local) = self.place(ppn);
        format!(" (page {} of NAND '{}')", local.0, self.device(device).config.name)
    }

    #[inline]
    fn device(&self, index: u32) -> &Nand {
        if index == 0 { &self.first } else { &self.others[index as usize - 1] }
    }

    #[inline]
    fn device_mut(&mut self, index: u32) -> &mut Nand {
        if index == 0 { &mut self.first } else { &mut self.others[index as usize - 1] }
    }

    /// Returns the device of a block of several devices, and its number there.
    #[inline]
    fn place_of_block(&self, block: u32) -> (u32, BlockId) {
        let per_unit = self.geometry.blocks_per_plane;
        let unit = div_fast(block, per_unit);
        match self.places.get(unit as usize) {
            Some(p) => (p.device, BlockId(p.unit * per_unit + (block - unit * per_unit))),
            // No device has this block, and the first one refuses it.
            None => (0, BlockId(u32::MAX)),
        }
    }

    /// Returns the device of a page of several devices, and its number there.
    #[inline]
    fn place(&self, ppn: Ppn) -> (u32, Ppn) {
        let per_block = self.geometry.pages_per_block;
        let block = div_fast(ppn.0, per_block);
        match self.place_of_block(block) {
            (0, BlockId(u32::MAX)) => (0, Ppn(u32::MAX)),
            (device, local) => (device, Ppn(local.0 * per_block + (ppn.0 - block * per_block))),
        }
    }

    /// Returns the device of a page, and the number of the page there.
    #[inline]
    fn of_page(&self, ppn: Ppn) -> (&Nand, Ppn) {
        if self.others.is_empty() {
            return (&self.first, ppn);
        }
        let (device, local) = self.place(ppn);
        (self.device(device), local)
    }

    /// Returns the device of a block, and the number of the block there.
    #[inline]
    fn of_block(&self, block: BlockId) -> (&Nand, BlockId) {
        let (device, local) = self.block_at(block);
        (self.device(device), local)
    }

    /// Returns the index of the device of a block, and the number of the block there.
    #[inline]
    fn block_at(&self, block: BlockId) -> (u32, BlockId) {
        if self.others.is_empty() { (0, block) } else { self.place_of_block(block.0) }
    }

    /// Executes a command for a page on its device. An error gets the page number of the array.
    #[inline]
    fn on_page<R>(&mut self, ppn: Ppn, run: impl FnOnce(&mut Nand, Ppn) -> Result<R>) -> Result<R> {
        let (device, local) = if self.others.is_empty() { (0, ppn) } else { self.place(ppn) };
        match run(self.device_mut(device), local) {
            Err(e) if !self.others.is_empty() => Err(self.renumber(e, ppn, device, local)),
            done => done,
        }
    }

    /// Gives an error of a device the page numbers of the array, and the name of the device. `ppn`
    /// is a page of the command, and `local` the same page on the device.
    #[cold]
    fn renumber(&self, error: Error, ppn: Ppn, device: u32, local: Ppn) -> Error {
        // All pages of a command are in one unit, so they are moved by the same distance.
        let page = |at: u32| ppn.0.wrapping_add(at.wrapping_sub(local.0));
        match error {
            Error::Rule { medium, at, what } => Error::Rule { medium, at: u64::from(page(at as u32)), what },
            Error::ProgramFailed { ppn } => Error::ProgramFailed { ppn: page(ppn) },
            Error::Corrupt { medium, at, what } => {
                let name = &self.device(device).config.name;
                let what = format!("{what} (page {at} of NAND '{name}')");
                Error::Corrupt { medium, at: u64::from(page(at as u32)), what }
            }
            other => other,
        }
    }

    /// Returns the next page that can be programmed in a block, which is also the number of
    /// programmed pages.
    #[inline]
    #[must_use]
    pub fn next_page(&self, b: BlockId) -> u32 {
        let (device, b) = self.of_block(b);
        device.next_page(b)
    }

    /// Number of erases of a block.
    #[inline]
    #[must_use]
    pub fn erases(&self, b: BlockId) -> u32 {
        let (device, b) = self.of_block(b);
        device.erases(b)
    }

    /// Returns `true` if a block is used with one bit a cell.
    #[inline]
    #[must_use]
    pub fn is_one_bit(&self, b: BlockId) -> bool {
        let (device, b) = self.of_block(b);
        device.is_one_bit(b)
    }

    /// Returns `true` if a block is marked bad. Its pages can still be read.
    #[inline]
    #[must_use]
    pub fn is_bad(&self, b: BlockId) -> bool {
        let (device, b) = self.of_block(b);
        device.is_bad(b)
    }

    /// Prefetches the record and the contents of a page; see [`Nand::prefetch`].
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        let (device, ppn) = self.of_page(ppn);
        device.prefetch(ppn);
    }

    /// Reads a page; see [`Nand::read`].
    ///
    /// # Errors
    /// The errors of [`Nand::read`].
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

    /// Reads a page and checks its identity; see [`Nand::read_expected`].
    ///
    /// # Errors
    /// The errors of [`Nand::read_expected`].
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn read_expected(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        offset: u32,
        into: ReadTarget<'_>,
        expect: Option<ExpectedPage>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.on_page(ppn, |nand, ppn| nand.read_expected(sink, ppn, offset, into, expect, cause, after))
    }

    /// Returns the spare area of a page; see [`Nand::spare`].
    ///
    /// # Errors
    /// The errors of [`Nand::spare`].
    pub fn spare(&self, ppn: Ppn) -> Result<Option<Spare>> {
        if self.others.is_empty() {
            return self.first.spare(ppn);
        }
        let (device, local) = self.place(ppn);
        self.device(device).spare(local).map_err(|e| self.renumber(e, ppn, device, local))
    }

    /// Returns the state of a page; see [`Nand::page_state`].
    ///
    /// # Errors
    /// The errors of [`Nand::page_state`].
    pub fn page_state(&self, ppn: Ppn) -> Result<PageState> {
        let (device, local) = self.of_page(ppn);
        device.page_state(local)
    }

    /// Programs a page; see [`Nand::program`].
    ///
    /// # Errors
    /// The errors of [`Nand::program`].
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
        self.on_page(ppn, |nand, ppn| nand.program(sink, ppn, data, spare, cause, after))
    }

    /// Programs a program unit; see [`Nand::program_unit`].
    ///
    /// # Errors
    /// The errors of [`Nand::program_unit`].
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
        self.on_page(first, |nand, first| {
            nand.program_unit(sink, first, data, spares, transfer, cause, after)
        })
    }

    /// Reads part of a page; see [`Nand::read_part`].
    ///
    /// # Errors
    /// The errors of [`Nand::read_part`].
    pub fn read_part(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        bytes: u32,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.on_page(ppn, |nand, ppn| nand.read_part(sink, ppn, bytes, cause, after))
    }

    /// Reads pages of one program unit; see [`Nand::read_unit`].
    ///
    /// # Errors
    /// The errors of [`Nand::read_unit`].
    pub fn read_unit(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        pages: u32,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        self.on_page(ppn, |nand, ppn| nand.read_unit(sink, ppn, pages, cause, after))
    }

    /// Reads a program unit with two transfers; see [`Nand::read_unit_in_parts`].
    ///
    /// # Errors
    /// The errors of [`Nand::read_unit_in_parts`].
    pub fn read_unit_in_parts(
        &mut self,
        sink: &mut Sink,
        ppn: Ppn,
        pages: u32,
        causes: (Cause, Cause),
        after: Tok,
    ) -> Result<(Tok, Tok)> {
        self.on_page(ppn, |nand, ppn| nand.read_unit_in_parts(sink, ppn, pages, causes, after))
    }

    /// Copies bytes of a page that is being read; see [`Nand::copy_out`].
    ///
    /// # Errors
    /// The errors of [`Nand::copy_out`].
    pub fn copy_out(
        &mut self,
        ppn: Ppn,
        offset: u32,
        into: ReadTarget<'_>,
        expect: Option<ExpectedPage>,
    ) -> Result<()> {
        self.on_page(ppn, |nand, ppn| nand.copy_out(ppn, offset, into, expect))
    }

    /// Moves a program unit within its unit of the device; see [`Nand::copyback_unit`].
    ///
    /// # Errors
    /// The errors of [`Nand::copyback_unit`].
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
        let distance = self.distance(from, to)?;
        self.on_page(to, |nand, to| {
            let from = Ppn(to.0.wrapping_add(distance));
            nand.copyback_unit(sink, from, to, spares, expect, cause, after)
        })
    }

    /// Programs the next page of a block with padding; see [`Nand::pad`].
    ///
    /// # Errors
    /// The errors of [`Nand::pad`].
    pub fn pad(&mut self, sink: &mut Sink, ppn: Ppn, cause: Cause, after: Tok) -> Result<Tok> {
        self.on_page(ppn, |nand, ppn| nand.pad(sink, ppn, cause, after))
    }

    /// Moves a page within its unit over the bus; see [`Nand::relocate`].
    ///
    /// # Errors
    /// The errors of [`Nand::relocate`], and `Rule` for pages of two units of several devices.
    #[inline]
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
        let distance = self.distance(from, to)?;
        self.on_page(to, |nand, to| {
            nand.relocate(sink, Ppn(to.0.wrapping_add(distance)), to, spare, expect, cause, after)
        })
    }

    /// Moves a page within its unit, without a transfer over the bus; see [`Nand::copyback`].
    ///
    /// # Errors
    /// The errors of [`Nand::copyback`].
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
        let distance = self.distance(from, to)?;
        self.on_page(to, |nand, to| {
            nand.copyback(sink, Ppn(to.0.wrapping_add(distance)), to, spare, expect, cause, after)
        })
    }

    /// Returns the distance from page `to` to page `from`, modulo the range of page numbers. Both are
    /// in one unit, so it is the same on their device.
    #[inline]
    fn distance(&self, from: Ppn, to: Ppn) -> Result<u32> {
        if !self.others.is_empty() {
            let pages = self.geometry.blocks_per_plane * self.geometry.pages_per_block;
            if div_fast(from.0, pages) != div_fast(to.0, pages) {
                let what = "a page of an array cannot be moved out of its unit";
                return Err(Error::Rule { medium: MediumKind::Nand, at: u64::from(to.0), what });
            }
        }
        Ok(from.0.wrapping_sub(to.0))
    }

    /// Erases a block; see [`Nand::erase`].
    ///
    /// # Errors
    /// The errors of [`Nand::erase`].
    #[inline]
    pub fn erase(&mut self, sink: &mut Sink, block: BlockId, cause: Cause, after: Tok) -> Result<Tok> {
        let (device, local) = self.block_at(block);
        self.device_mut(device).erase(sink, local, cause, after).map_err(|e| of_block(e, block))
    }

    /// Erases a block and sets its mode; see [`Nand::erase_as`].
    ///
    /// # Errors
    /// The errors of [`Nand::erase_as`].
    pub fn erase_as(
        &mut self,
        sink: &mut Sink,
        block: BlockId,
        one_bit: bool,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let (device, local) = self.block_at(block);
        let erased = self.device_mut(device).erase_as(sink, local, one_bit, cause, after);
        erased.map_err(|e| of_block(e, block))
    }

    /// Marks a block bad permanently; see [`Nand::retire`].
    pub fn retire(&mut self, block: BlockId) {
        let (device, local) = self.block_at(block);
        self.device_mut(device).retire(local);
    }

    /// Sets the state of a block without commands; see [`Nand::preset`].
    pub fn preset(&mut self, block: BlockId, programmed: u32, erases: u32) {
        let (device, local) = self.block_at(block);
        self.device_mut(device).preset(local, programmed, erases);
    }

    /// Programs the next page of a block without a command; see [`Nand::preset_page`].
    ///
    /// # Errors
    /// The errors of [`Nand::preset_page`].
    pub fn preset_page(&mut self, ppn: Ppn, data: WriteData<'_>, spare: Spare) -> Result<()> {
        self.on_page(ppn, |nand, ppn| nand.preset_page(ppn, data, spare))
    }

    /// Makes all programmed pages of all devices durable.
    ///
    /// # Errors
    /// The first error of a store. The other devices are synced regardless.
    pub fn sync(&mut self) -> Result<()> {
        let first = self.first.sync();
        if is_planted(Bug::ArraySyncsFirst) {
            return first;
        }
        self.others.iter_mut().map(Nand::sync).fold(first, Result::and)
    }
}
