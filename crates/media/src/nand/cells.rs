//! Latencies by type of page, and suspension of programs and erases: the timing of NAND that stores
//! several bits in a cell.

use super::NandGeometry;
use crate::timing::{NandTiming, Phases};
use frit_core::{Cmd, Nanos, Op};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::IntoStaticStr;

/// Number of bits that a cell stores, which is the number of types of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CellKind {
    /// One bit.
    Slc = 1,
    /// Two bits: LSB and MSB pages.
    Mlc = 2,
    /// Three bits: LSB, CSB and MSB pages.
    Tlc = 3,
    /// Four bits.
    Qlc = 4,
}

/// Rule for the type of a page from its index in the block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PageOrder {
    /// The order of Yaakobi et al. (ICNC 2012), which MQSim and FEMU use for TLC: word lines are
    /// programmed in a staggered order, so that six LSB and two CSB pages come first.
    #[default]
    Staggered,
    /// Consecutive pages share a word line.
    WordLine,
}

impl CellKind {
    /// Number of types of pages.
    #[must_use]
    pub fn types(self) -> usize {
        self as usize
    }

    /// Returns the type of a page from its index in the block: 0 is LSB.
    #[must_use]
    pub fn page_type(self, order: PageOrder, page: u32) -> usize {
        let types = self.types() as u32;
        let index = match (self, order) {
            (CellKind::Tlc | CellKind::Qlc, PageOrder::Staggered) => match page {
                0..=5 => 0,
                6..=7 => 1,
                _ => ((page - 8) >> 1) % types,
            },
            _ => page % types,
        };
        index as usize
    }
}

/// Operations that a read suspends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SuspendOps {
    /// None.
    #[default]
    None,
    /// Erases.
    Erase,
    /// Programs and erases.
    ProgramErase,
}

/// Times of the suspension of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SuspendTimes {
    /// Time from the suspension until the unit can start the read.
    pub suspend: Nanos,
    /// Smallest remaining time of the cells at which the operation is suspended.
    pub min_remaining: Nanos,
}

/// Rules by which reads suspend programs and erases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NandSuspend {
    /// Suspension of programs, if they are suspended.
    pub program: Option<SuspendTimes>,
    /// Suspension of erases.
    pub erase: SuspendTimes,
    /// Time of the cells that each resumption adds to the operation.
    pub resume: Nanos,
    /// Maximum number of suspensions of one operation.
    pub max_suspends: u32,
    /// Maximum number of reads that are executed in the suspensions of one operation.
    pub max_reads: u32,
}

impl NandSuspend {
    /// Returns the times of the suspension of an operation; `None` if it is not suspended.
    #[inline]
    #[must_use]
    pub fn times(&self, op: Op) -> Option<SuspendTimes> {
        match op {
            Op::NandProgram => self.program,
            Op::NandErase => Some(self.erase),
            _ => None,
        }
    }
}

/// Latencies of the cells for one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageTimes {
    /// tR of the page.
    pub read: Nanos,
    /// tPROG of the page.
    pub program: Nanos,
}

/// Latencies by type of page, rules of suspension, and latencies of blocks with one bit a cell, of a
/// NAND device that has one of these.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NandCells {
    /// Latencies of each page of a block, by index; empty if all pages are equal.
    pages: Arc<[PageTimes]>,
    /// Rules of suspension, if reads suspend other operations.
    pub suspend: Option<NandSuspend>,
    /// Latencies of blocks with one bit a cell, whose commands have [`Cmd::ONE_BIT`].
    slc: Option<PageTimes>,
}

impl NandCells {
    /// Creates the timing of a device whose pages are equal.
    #[must_use]
    pub fn suspending(suspend: NandSuspend) -> NandCells {
        NandCells { suspend: Some(suspend), ..NandCells::default() }
    }

    /// Creates the timing of a device with a type for each page of a block. `times` has the latencies
    /// of each type, LSB first.
    ///
    /// # Panics
    /// If `times` does not have one entry for each type.
    #[must_use]
    pub fn typed(
        kind: CellKind,
        order: PageOrder,
        times: &[PageTimes],
        pages_per_block: u32,
        suspend: Option<NandSuspend>,
    ) -> NandCells {
        assert_eq!(times.len(), kind.types(), "one latency for each type of page");
        // The table costs a load where the rule would cost several divisions for each command.
        let pages = (0..pages_per_block).map(|page| times[kind.page_type(order, page)]).collect();
        NandCells { pages, suspend, slc: None }
    }

    /// Returns the timing for a device whose pages are divided into mapping units, and whose blocks
    /// with one bit a cell have the latencies `slc`.
    #[must_use]
    pub(super) fn on(self, geometry: &NandGeometry, slc: Option<PageTimes>) -> NandCells {
        // Commands have numbers of mapping units; all of one page have the type of the page.
        let parts = geometry.program_pages as usize;
        let pages = self.pages.iter().flat_map(|&times| std::iter::repeat_n(times, parts)).collect();
        NandCells { pages, slc, ..self }
    }

    /// Returns the latencies of the page of a command; `None` if it has those of the device.
    #[inline]
    fn times(&self, cmd: &Cmd) -> Option<PageTimes> {
        if let Some(times) = self.slc.filter(|_| cmd.is_one_bit()) {
            return Some(times);
        }
        (!self.pages.is_empty()).then(|| self.pages[cmd.nand_page() as usize % self.pages.len()])
    }

    /// Returns the phases of a command, given those of a device whose pages are equal.
    ///
    /// A command has the type of its first page. A copyback names its target only, so its read has
    /// the latency of the target as well.
    #[inline]
    #[must_use]
    pub fn phases(&self, timing: &NandTiming, cmd: &Cmd) -> Phases {
        let phases = timing.phases(cmd);
        let Some(page) = self.times(cmd) else { return phases };
        let array = match cmd.op {
            Op::NandRead => page.read,
            Op::NandProgram => page.program,
            Op::NandCopyback => page.read + page.program,
            _ => phases.array,
        };
        Phases { array, ..phases }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(kind: CellKind, order: PageOrder, pages: u32) -> Vec<usize> {
        (0..pages).map(|page| kind.page_type(order, page)).collect()
    }

    #[test]
    fn types_of_pages_are_those_of_the_published_orders() {
        // MQSim, Flash_Chip.h, Get_command_execution_latency: six LSB pages, two CSB pages, then
        // pairs of LSB, CSB and MSB pages.
        let tlc = types(CellKind::Tlc, PageOrder::Staggered, 20);
        assert_eq!(tlc, [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        assert_eq!(types(CellKind::Mlc, PageOrder::Staggered, 5), [0, 1, 0, 1, 0]);
        // FEMU, hw/femu/nand: the same beginning, then pairs of four types.
        let qlc = types(CellKind::Qlc, PageOrder::Staggered, 18);
        assert_eq!(qlc, [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 0, 0]);
        assert_eq!(types(CellKind::Tlc, PageOrder::WordLine, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(types(CellKind::Qlc, PageOrder::WordLine, 5), [0, 1, 2, 3, 0]);
        assert_eq!(types(CellKind::Slc, PageOrder::Staggered, 9), [0; 9]);
    }
}
