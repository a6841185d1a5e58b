//! Location and encoding of the registers.
//!
//! ```text
//! 0                data: physical stripes
//! A                header (a line), state (a line)
//! A + 2 lines      for each region a ring: a line for each of its physical stripes
//!    behind it     with `over_files`, as many rings again: numbers as of the last flush
//! ```
//!
//! A number is stored in the first 8 bytes of line `number % lines` of its ring. Each move writes
//! one line of the ring, and all lines of one of as many stripes. Therefore no line of a ring wears
//! more than the mean of the data (except for rounding), even if nothing else is written.

use crate::numbers::RegionId;
use crate::{Leveler, Levelers, Shape, WearConfig};
use frit_core::Result;
use frit_core::convert::{bounded_u32, size_in_memory, to_usize};

/// Size of a register, in bytes.
pub(super) const WORD_BYTES: u32 = 8;
/// Size of the header, and of the state field, in bytes.
pub(super) const HEADER_BYTES: u64 = 64;

/// Mask of a number: 48 bits, which last nine years at one move a microsecond.
const NUMBER: u64 = u64::MAX >> 16;
/// Number in a line that never held one.
const NEVER_WRITTEN: u64 = NUMBER;

/// Size of a read of registers, in bytes.
const CHUNK: u64 = 64 << 10;

/// Contents of a ring.
#[derive(Clone, Debug)]
pub(super) struct RingScan {
    /// The largest number; 0 if the ring has none.
    pub(super) newest: u64,
    /// Damaged lines. One matters only where the next number would be: there it could hide a newer
    /// number.
    pub(super) damaged: Vec<u32>,
}

/// Kind of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RegisterRing {
    /// Current number of the region.
    Current,
    /// Number of the region as of the last flush.
    Synced,
}

/// Layout of the registers in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegisterArea {
    at: u64,
    line: u64,
    /// Number of lines in a ring.
    pub(super) lines: u32,
    regions: u32,
    rings: u32,
}

fn rings(config: &WearConfig) -> u32 {
    if config.over_files { 2 } else { 1 }
}

impl RegisterArea {
    fn line_bytes(line: u32) -> u64 {
        u64::from(line).max(HEADER_BYTES)
    }

    /// Bytes of registers for each stripe, and bytes needed once.
    pub(super) fn cost(config: &WearConfig, line: u32) -> (u64, u64) {
        let line = RegisterArea::line_bytes(line);
        (line * u64::from(rings(config)), 2 * line)
    }

    pub(super) fn new(config: &WearConfig, shape: &Shape, leveler: &Levelers, line: u32) -> RegisterArea {
        RegisterArea {
            at: u64::from(shape.stripes()) * u64::from(shape.stripe_bytes),
            line: RegisterArea::line_bytes(line),
            lines: leveler.region_stripes(),
            regions: leveler.regions(),
            rings: rings(config),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.line * (2 + u64::from(self.regions) * u64::from(self.lines) * u64::from(self.rings))
    }

    pub(super) fn header_at(&self) -> u64 {
        self.at
    }

    pub(super) fn state_at(&self) -> u64 {
        self.at + self.line
    }

    /// Address of a line of a ring.
    pub(super) fn line_at(&self, ring: RegisterRing, region: RegionId, line: u32) -> u64 {
        let which =
            u64::from(region) + if ring == RegisterRing::Synced { u64::from(self.regions) } else { 0 };
        self.at + self.line * (2 + which * u64::from(self.lines) + u64::from(line))
    }

    /// Line of a ring that stores a number.
    pub(super) fn line_of(&self, number: u64) -> u32 {
        bounded_u32(number % u64::from(self.lines))
    }

    /// Reads all lines of a ring.
    pub(super) fn scan(
        &self,
        ring: RegisterRing,
        region: RegionId,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<RingScan> {
        let lines_at_once = bounded_u32(CHUNK / self.line).clamp(1, self.lines);
        let mut chunk = vec![0; size_in_memory(u64::from(lines_at_once) * self.line)];
        let mut scan = RingScan { newest: 0, damaged: Vec::new() };
        for first in (0..self.lines).step_by(to_usize(lines_at_once)) {
            let lines = lines_at_once.min(self.lines - first);
            let part = &mut chunk[..size_in_memory(u64::from(lines) * self.line)];
            read(self.line_at(ring, region, first), part)?;
            for (line, bytes) in (first..).zip(part.chunks_exact(size_in_memory(self.line))) {
                let word = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
                match self.decode(word, ring, region, line) {
                    Some(number) => scan.newest = scan.newest.max(number.unwrap_or(0)),
                    None => scan.damaged.push(line),
                }
            }
        }
        Ok(scan)
    }

    /// Encodes a 48-bit number with a 16-bit check over the number and its position, so that a
    /// register in the wrong position fails the check.
    fn word(number: u64, ring: RegisterRing, region: RegionId, line: u32) -> u64 {
        let mut b = [0; 17];
        b[..8].copy_from_slice(&(number & NUMBER).to_le_bytes());
        b[8..12].copy_from_slice(&region.0.to_le_bytes());
        b[12..16].copy_from_slice(&line.to_le_bytes());
        b[16] = ring as u8;
        number & NUMBER | u64::from(frit_media::checksum::crc32c(&b) >> 16) << 48
    }

    /// Encodes a number for its line.
    pub(super) fn encode(
        &self,
        number: u64,
        ring: RegisterRing,
        region: RegionId,
    ) -> [u8; to_usize(WORD_BYTES)] {
        RegisterArea::word(number, ring, region, self.line_of(number)).to_le_bytes()
    }

    /// Encodes a line that never held a number. Zeros are damage instead.
    pub(super) fn never(ring: RegisterRing, region: RegionId, line: u32) -> [u8; to_usize(WORD_BYTES)] {
        RegisterArea::word(NEVER_WRITTEN, ring, region, line).to_le_bytes()
    }

    /// Decodes a line. `None`: damaged. `Some(None)`: never written. `Some(Some(n))`: the number n.
    pub(super) fn decode(
        &self,
        word: u64,
        ring: RegisterRing,
        region: RegionId,
        line: u32,
    ) -> Option<Option<u64>> {
        let number = word & NUMBER;
        if RegisterArea::word(number, ring, region, line) != word {
            return None;
        }
        match number {
            NEVER_WRITTEN => Some(None),
            n => (self.line_of(n) == line).then_some(Some(n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_check_themselves_and_their_place() {
        let area = RegisterArea { at: 4096, line: 64, lines: 9, regions: 3, rings: 2 };
        let word = u64::from_le_bytes(area.encode(31, RegisterRing::Current, RegionId(2)));
        let line = area.line_of(31);
        assert_eq!(line, 4);
        assert_eq!(area.decode(word, RegisterRing::Current, RegionId(2), line), Some(Some(31)));
        assert_eq!(area.decode(word, RegisterRing::Synced, RegionId(2), line), None);
        assert_eq!(area.decode(word, RegisterRing::Current, RegionId(1), line), None);
        assert_eq!(area.decode(word, RegisterRing::Current, RegionId(2), line + 1), None);
        assert_eq!(area.decode(0, RegisterRing::Current, RegionId(0), 0), None, "zeros are damage");
        let never = u64::from_le_bytes(RegisterArea::never(RegisterRing::Synced, RegionId(1), 7));
        assert_eq!(area.decode(never, RegisterRing::Synced, RegionId(1), 7), Some(None));
        for bit in 0..64 {
            assert_eq!(
                area.decode(word ^ 1 << bit, RegisterRing::Current, RegionId(2), line),
                None,
                "bit {bit}"
            );
        }
        // Rings do not overlap, and are inside the area.
        let mut all: Vec<u64> = vec![area.header_at(), area.state_at()];
        for ring in [RegisterRing::Current, RegisterRing::Synced] {
            all.extend(
                RegionId::first(3)
                    .flat_map(|r| (0..9).map(move |l| (r, l)))
                    .map(|(r, l)| area.line_at(ring, r, l)),
            );
        }
        all.sort_unstable();
        assert!(all.windows(2).all(|w| w[1] - w[0] == 64));
        assert_eq!((all[0], all[all.len() - 1] + 64), (4096, 4096 + area.bytes()));
    }
}
