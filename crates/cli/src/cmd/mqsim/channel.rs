//! Times of MQSim's channels and of its PCIe link, which are constants of its source.

/// Cycles of MQSim's `ONFI_Channel_NVDDR2.h`, in ns: its default arguments, which no file changes.
mod ns {
    pub(super) const CS: u64 = 20;
    pub(super) const WC: u64 = 25;
    pub(super) const WB: u64 = 100;
    pub(super) const RR: u64 = 20;
    pub(super) const ADL: u64 = 70;
    pub(super) const WPST: u64 = 6;
    pub(super) const WPSTH: u64 = 15;
}

/// Command and address cycles of a read of one plane, in ns (`ReadCommandTime`).
pub(super) const READ_COMMAND: u64 = ns::CS + 6 * ns::WC + ns::WB + ns::RR;
/// Command and address cycles of a program of one plane (`ProgramCommandTime`).
pub(super) const PROGRAM_COMMAND: u64 = ns::CS + 6 * ns::WC + ns::ADL + ns::WPST + ns::WPSTH + ns::WB;
/// Command and address cycles of an erase of one plane (`EraseCommandTime`).
pub(super) const ERASE_COMMAND: u64 = ns::CS + 4 * ns::WC + ns::WB;
/// Time from the end of a read of the cells until the chip is ready (`Flash_Chip.h`).
pub(super) const READ_READY: u64 = 20;

/// Payload of a PCIe packet, in bytes (`PCIe_Link.h`).
const PAYLOAD: u64 = 128;
/// Headers of a PCIe packet: 20 of the transaction, 6 of the data link, 2 of the physical layer.
const HEADERS: u64 = 28;

/// Time of a byte on a channel, in ps. MQSim cuts the time of a transfer to whole ns before it
/// multiplies (`SSD_Device.cpp`): 333 MT/s is 3 ns, and more than 1000 MT/s take no time.
/// A stack needs 1 ps.
pub(super) fn byte_ps(mega_transfers: u64, width: u64) -> u64 {
    ((1000 / mega_transfers) * 1000 / width).max(1)
}

/// A PCIe link of MQSim.
pub(super) struct Link {
    pub(super) lanes: u64,
    /// Bandwidth of a lane in GB/s, which is bytes a ns.
    pub(super) lane_gb_per_s: f64,
}

impl Link {
    /// Rate of data in packets with full payload, in MB/s.
    pub(super) fn mb_per_s(&self) -> u64 {
        let share = PAYLOAD as f64 / (PAYLOAD + HEADERS) as f64;
        ((self.lanes as f64 * self.lane_gb_per_s * 1000.0 * share).round() as u64).clamp(1, 1_000_000)
    }

    /// Time of a packet with this payload, in ns.
    fn packet_ns(&self, payload: u64) -> u64 {
        ((payload + HEADERS).div_ceil(self.lanes) as f64 / self.lane_gb_per_s) as u64
    }

    /// Time of the packets of a command beside its data: the doorbell, the request for the queue
    /// entry, the entry of 64 bytes, and the completion of 16 bytes.
    pub(super) fn command_ns(&self) -> u64 {
        [2, 4, 64, 16].into_iter().map(|payload| self.packet_ns(payload)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_source() {
        assert_eq!((READ_COMMAND, PROGRAM_COMMAND, ERASE_COMMAND), (290, 361, 220));
        assert_eq!(
            [byte_ps(333, 1), byte_ps(333, 2), byte_ps(800, 1), byte_ps(1200, 1)],
            [3000, 1500, 1000, 1]
        );
        let link = Link { lanes: 4, lane_gb_per_s: 0.1 };
        // 400 MB/s × 128 / 156; 8, 8, 23 and 11 bytes a lane, at 10 ns.
        assert_eq!((link.mb_per_s(), link.command_ns()), (328, 500));
    }
}
