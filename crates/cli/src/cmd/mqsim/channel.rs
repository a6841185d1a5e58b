//! Times of MQSim's channels, which are constants of its source.

/// Cycles of MQSim's `ONFI_Channel_NVDDR2.h`, in ns: its default arguments, which no file changes.
mod ns {
    pub(super) const CS: u64 = 20;
    pub(super) const WC: u64 = 25;
    pub(super) const WB: u64 = 100;
    pub(super) const RR: u64 = 20;
    pub(super) const ADL: u64 = 70;
    pub(super) const WPST: u64 = 6;
    pub(super) const WPSTH: u64 = 15;
    pub(super) const CALS: u64 = 15;
    pub(super) const DBSY: u64 = 500;
}

/// Command and address cycles of a read of one plane, in ns (`ReadCommandTime`).
pub(super) const READ_COMMAND: u64 = ns::CS + 6 * ns::WC + ns::WB + ns::RR;
/// Command and address cycles of a program of one plane (`ProgramCommandTime`).
pub(super) const PROGRAM_COMMAND: u64 = ns::CS + 6 * ns::WC + ns::ADL + ns::WPST + ns::WPSTH + ns::WB;
/// Command and address cycles of an erase of one plane (`EraseCommandTime`).
pub(super) const ERASE_COMMAND: u64 = ns::CS + 4 * ns::WC + ns::WB;
/// The same of each further plane of a multi-plane command: its cycles, and the time in which the die is
/// busy before them.
pub(super) const READ_PLANE: u64 = 6 * ns::WC + ns::DBSY;
pub(super) const PROGRAM_PLANE: u64 = 5 * ns::WC + ns::ADL + ns::WPST + ns::CALS + ns::WB + ns::DBSY;
pub(super) const ERASE_PLANE: u64 = 4 * ns::WC + ns::WB + ns::DBSY;
/// Time from the end of a read of the cells until the chip is ready (`Flash_Chip.h`).
pub(super) const READ_READY: u64 = 20;

/// Time of a byte on a channel, in ps. MQSim cuts the time of a transfer to whole ns before it
/// multiplies (`SSD_Device.cpp`): 333 MT/s is 3 ns, and more than 1000 MT/s take no time.
/// A stack needs 1 ps.
pub(super) fn byte_ps(mega_transfers: u64, width: u64) -> u64 {
    ((1000 / mega_transfers) * 1000 / width).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_source() {
        assert_eq!((READ_COMMAND, PROGRAM_COMMAND, ERASE_COMMAND), (290, 361, 220));
        assert_eq!((READ_PLANE, PROGRAM_PLANE, ERASE_PLANE), (650, 816, 700));
        assert_eq!(
            [byte_ps(333, 1), byte_ps(333, 2), byte_ps(800, 1), byte_ps(1200, 1)],
            [3000, 1500, 1000, 1]
        );
    }
}
