//! Repair of the bitmap and of the counters.

use super::RepairRound;
use crate::counters::Counters;
use crate::medium::Medium;
use crate::space::line;

impl<M: Medium> RepairRound<'_, M> {
    /// Writes both if they differ from the contents found. `before` is the counters, if their
    /// checksum matched.
    pub(super) fn repair_space(&mut self, before: Option<Counters>, highest: u64) {
        let (mut used, mut written) = (0, 0);
        for (number, bits) in self.blocks.lines().enumerate() {
            let number = number as u64;
            used += bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            if line::read(self.medium, &self.geometry, self.salt, number).as_ref() != Some(bits) {
                line::write(self.medium, &self.geometry, self.salt, number, bits);
                written += 1;
            }
        }
        if written > 0 {
            let lines = self.geometry.lines;
            self.log.add_message(format_args!(
                "{written} of {lines} lines of the bitmap were written anew: {used} blocks are used"
            ));
        }
        let inodes = self.inodes.seen.iter().filter(|seen| seen.kind.is_some()).count() as u64;
        let old = before.unwrap_or_default();
        let created = old.created.max(u64::from(self.generation) + 1);
        let counters = Counters { blocks: used, inodes, highest, created, ..old };
        if before != Some(counters) {
            self.log.add_message(format_args!(
                "the ledger was written anew: {used} blocks and {inodes} inodes in use, the highest {highest}"
            ));
            counters.write(self.medium, &self.geometry, self.salt);
        }
    }
}
