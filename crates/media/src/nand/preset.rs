//! Preconditioning: sets the state of a used device without the commands that would lead to it.

use super::{BAD, ERASE_FAILED, Nand, NandBlock, Spare};
use frit_core::{BlockId, Error, MediumKind, Ppn, Result, WriteData};

impl Nand {
    /// Sets the number of programmed pages and of erases of a block, without commands and without
    /// bytes. If the store holds bytes, use [`Nand::preset_page`] for the pages.
    ///
    /// A bad block stays bad; `programmed` is limited to the number of pages in a block.
    pub fn preset(&mut self, block: BlockId, programmed: u32, erases: u32) {
        let next = programmed.min(self.config.geometry.pages_per_block) as u16;
        let state = &mut self.state[block.idx()];
        *state = NandBlock { next, flags: state.flags, erases };
        self.states_dirty |= self.save_state(block).is_err();
    }

    /// Programs the next page of a block without a command.
    ///
    /// # Errors
    /// `Rule` as for a program, or an error of the store.
    pub fn preset_page(&mut self, ppn: Ppn, data: WriteData<'_>, spare: Spare) -> Result<()> {
        let g = self.config.geometry;
        let rule = |what| Error::Rule { medium: MediumKind::Nand, at: u64::from(ppn.0), what };
        if ppn.0 >= self.pages || data.len() != g.page_bytes {
            return Err(rule("a preset must cover a whole page within the device"));
        }
        let block = g.block_of(ppn);
        if self.state[block.idx()].flags & (BAD | ERASE_FAILED) != 0
            || self.next_page(block) != g.page_in_block(ppn)
        {
            return Err(rule("a preset page is not the next page of a good block"));
        }
        if self.stores_bytes() {
            let bytes =
                data.bytes().ok_or_else(|| rule("a preset without bytes on a device that holds bytes"))?;
            self.write_page(ppn, bytes, spare)?;
        }
        self.state[block.idx()].next += 1;
        Ok(())
    }
}
