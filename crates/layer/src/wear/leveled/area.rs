//! Where registers lie, and what a register looks like.
//!
//! ```text
//! 0                data: physical stripes
//! A                head (a line), state (a line)
//! A + 2 lines      for each region a ring: a line for each of its physical stripes
//!    behind it     with `over_files`, as many rings again: numbers as of the last flush
//! ```
//!
//! A number goes to the line `number % lines` of its ring, in its first 8 bytes. Each move writes one line of the
//! ring and all lines of one of as many stripes: so no line of a ring wears more than the mean of the data, but
//! for rounding, however little else is written.

use super::super::{Leveler, Levelers, Shape, WearConfig};

/// Bytes of a register.
pub(super) const WORD_BYTES: u32 = 8;
/// Bytes of the head, and of the state's place.
pub(super) const HEAD_BYTES: u64 = 64;

/// Numbers have 48 bits: at one move a microsecond they last nine years.
const NUMBER: u64 = u64::MAX >> 16;
/// What a line holds that never held a number.
const NEVER: u64 = NUMBER;

/// Which of a region's rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ring {
    /// Its number now.
    Current,
    /// Its number as of the last flush.
    Synced,
}

/// Where registers lie in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    at: u64,
    line: u64,
    /// Lines of a ring.
    pub(super) lines: u32,
    regions: u32,
    rings: u32,
}

fn rings(config: &WearConfig) -> u32 {
    if config.over_files { 2 } else { 1 }
}

impl Area {
    fn line_bytes(line: u32) -> u64 {
        u64::from(line.max(HEAD_BYTES as u32))
    }

    /// Bytes of registers for each stripe, and those that are needed once.
    pub(super) fn cost(config: &WearConfig, line: u32) -> (u64, u64) {
        let line = Area::line_bytes(line);
        (line * u64::from(rings(config)), 2 * line)
    }

    pub(super) fn new(config: &WearConfig, shape: &Shape, leveler: &Levelers, line: u32) -> Area {
        Area {
            at: u64::from(shape.stripes()) * u64::from(shape.stripe_bytes),
            line: Area::line_bytes(line),
            lines: leveler.region_stripes(),
            regions: leveler.regions(),
            rings: rings(config),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.line * (2 + u64::from(self.regions) * u64::from(self.lines) * u64::from(self.rings))
    }

    pub(super) fn head_at(&self) -> u64 {
        self.at
    }

    pub(super) fn state_at(&self) -> u64 {
        self.at + self.line
    }

    /// The address of a line of a ring.
    pub(super) fn line_at(&self, ring: Ring, region: u32, line: u32) -> u64 {
        let which = u64::from(region) + if ring == Ring::Synced { u64::from(self.regions) } else { 0 };
        self.at + self.line * (2 + which * u64::from(self.lines) + u64::from(line))
    }

    /// The line of a ring that a number goes to.
    pub(super) fn line_of(&self, number: u64) -> u32 {
        (number % u64::from(self.lines)) as u32
    }

    /// Bytes from one line to the next.
    pub(super) fn stride(&self) -> u64 {
        self.line
    }

    /// A number of 48 bits, and a check of 16 over it and its place: a register in the wrong place does not check
    /// out.
    fn word(number: u64, ring: Ring, region: u32, line: u32) -> u64 {
        let mut b = [0; 17];
        b[..8].copy_from_slice(&(number & NUMBER).to_le_bytes());
        b[8..12].copy_from_slice(&region.to_le_bytes());
        b[12..16].copy_from_slice(&line.to_le_bytes());
        b[16] = ring as u8;
        number & NUMBER | u64::from(crc32c::crc32c(&b) >> 16) << 48
    }

    /// A number as it goes to its line.
    pub(super) fn encode(&self, number: u64, ring: Ring, region: u32) -> [u8; WORD_BYTES as usize] {
        Area::word(number, ring, region, self.line_of(number)).to_le_bytes()
    }

    /// What a line holds that never held a number. Zeros are damage.
    pub(super) fn never(ring: Ring, region: u32, line: u32) -> [u8; WORD_BYTES as usize] {
        Area::word(NEVER, ring, region, line).to_le_bytes()
    }

    /// What a line says: damage, never written, or a number.
    pub(super) fn decode(&self, word: u64, ring: Ring, region: u32, line: u32) -> Option<Option<u64>> {
        let number = word & NUMBER;
        if Area::word(number, ring, region, line) != word {
            return None;
        }
        match number {
            NEVER => Some(None),
            n => (self.line_of(n) == line).then_some(Some(n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_check_themselves_and_their_place() {
        let area = Area { at: 4096, line: 64, lines: 9, regions: 3, rings: 2 };
        let word = u64::from_le_bytes(area.encode(31, Ring::Current, 2));
        let line = area.line_of(31);
        assert_eq!(line, 4);
        assert_eq!(area.decode(word, Ring::Current, 2, line), Some(Some(31)));
        assert_eq!(area.decode(word, Ring::Synced, 2, line), None);
        assert_eq!(area.decode(word, Ring::Current, 1, line), None);
        assert_eq!(area.decode(word, Ring::Current, 2, line + 1), None);
        assert_eq!(area.decode(0, Ring::Current, 0, 0), None, "zeros are damage");
        let never = u64::from_le_bytes(Area::never(Ring::Synced, 1, 7));
        assert_eq!(area.decode(never, Ring::Synced, 1, 7), Some(None));
        for bit in 0..64 {
            assert_eq!(area.decode(word ^ 1 << bit, Ring::Current, 2, line), None, "bit {bit}");
        }
        // Rings do not overlap, and lie within the area.
        let mut all: Vec<u64> = vec![area.head_at(), area.state_at()];
        for ring in [Ring::Current, Ring::Synced] {
            all.extend(
                (0..3).flat_map(|r| (0..9).map(move |l| (r, l))).map(|(r, l)| area.line_at(ring, r, l)),
            );
        }
        all.sort_unstable();
        assert!(all.windows(2).all(|w| w[1] - w[0] == 64));
        assert_eq!((all[0], all[all.len() - 1] + 64), (4096, 4096 + area.bytes()));
    }
}
