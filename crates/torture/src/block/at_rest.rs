//! Damage at rest: changes in a medium that is not in use.

use crate::block::medium::TortureMedium;
use crate::block::nand_layout::NandLayout;
use crate::block::self_describing::SECTOR;
use frit_core::split_mix::mix;
use frit_media::nand::SPARE_RECORD_BYTES;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::HashSet;

/// A kind of damage at rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtRestDamage {
    Bit,
    Byte,
    TwoBits,
    Zeros,
    Garbage,
    /// Two sectors are swapped.
    Swapped,
    /// A sector has the contents of some requests earlier.
    Older,
}

impl AtRestDamage {
    /// Draws a kind of damage.
    pub(crate) fn draw(rng: &mut SmallRng) -> AtRestDamage {
        match rng.random_range(0..12u8) {
            0..4 => AtRestDamage::Bit,
            4 | 5 => AtRestDamage::Byte,
            6 => AtRestDamage::TwoBits,
            7 => AtRestDamage::Zeros,
            8 | 9 => AtRestDamage::Swapped,
            10 => AtRestDamage::Older,
            _ => AtRestDamage::Garbage,
        }
    }

    /// Returns the range that it damages in a medium of `size` bytes, from `at` on.
    fn range(self, at: u64, size: u64) -> (u64, usize) {
        match self {
            AtRestDamage::Bit | AtRestDamage::Byte => (at, 1),
            AtRestDamage::TwoBits => (at, 8.min(size - at) as usize),
            AtRestDamage::Zeros | AtRestDamage::Garbage => (at, (SECTOR as u64).min(size - at) as usize),
            AtRestDamage::Swapped | AtRestDamage::Older => {
                let at = at / SECTOR as u64 * SECTOR as u64;
                (at, (SECTOR as u64).min(size - at) as usize)
            }
        }
    }

    /// Damages a medium. `earlier` holds its contents of some requests earlier.
    pub(crate) fn strike(self, m: &mut TortureMedium, earlier: &[u8], rng: &mut SmallRng) -> DamagedRange {
        let was = m.bytes().to_vec();
        let size = m.bytes().len() as u64;
        let (at, len) = self.range(place(m, size, rng), size);
        let range = at as usize..at as usize + len;
        let before = m.bytes()[range.clone()].to_vec();
        let bytes = match self {
            AtRestDamage::Older => earlier[range].to_vec(),
            AtRestDamage::Swapped => {
                let (other, there) = self.range(rng.random_range(0..size), size);
                let n = len.min(there);
                let there = m.bytes()[other as usize..other as usize + n].to_vec();
                m.poke(other, |b| b.copy_from_slice(&before[..n]), n);
                there
            }
            _ => {
                let mut bytes = before;
                damage(&mut bytes, self, rng.random());
                bytes
            }
        };
        m.poke(at, |b| b[..bytes.len()].copy_from_slice(&bytes), len);
        let both_copies = match m.nand {
            None => both_copies(&was, m.bytes()),
            Some(plan) => both_copies_in_nand(&plan, &was, m.bytes()),
        };
        DamagedRange { at, len, both_copies }
    }
}

/// Extent of a damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DamagedRange {
    /// Position of the first damaged byte, and number of bytes.
    pub(crate) at: u64,
    pub(crate) len: usize,
    /// The damage changed both copies of a record of a cache, of NTL or of a NAND page, or two NAND
    /// pages, one of which may be the mark without which the other is not known as complete.
    pub(crate) both_copies: bool,
}

/// Returns `true` if both copies of a record changed. Copies are equal in their first 24 bytes.
fn both_copies(was: &[u8], now: &[u8]) -> bool {
    const RECORD: usize = 32;
    let mut changed = HashSet::new();
    for (before, after) in was.chunks_exact(RECORD).zip(now.chunks_exact(RECORD)) {
        // Only bytes with the fields of a valid record count: most of a medium is not records.
        let plain = before[4] != 0 && before[5..8] == [0; 3] && before[8..16] != [0; 8];
        if plain && before != after && !changed.insert(&before[..24]) {
            return true;
        }
    }
    false
}

/// Returns `true` if both copies of the record of a page changed, or more than one page.
fn both_copies_in_nand(plan: &NandLayout, was: &[u8], now: &[u8]) -> bool {
    if plan.record_copies < 2 {
        return false;
    }
    let changed = |at: u64, len: usize| was[at as usize..][..len] != now[at as usize..][..len];
    let data = |page: &u64| changed(page * plan.page_bytes, plan.page_bytes as usize);
    let copies = |page: u64| {
        (0..plan.record_copies).all(|copy| changed(plan.record_at(page, copy), SPARE_RECORD_BYTES))
    };
    (0..plan.pages).any(copies) || (0..plan.pages).filter(data).count() > 1
}

/// Draws a position, equally often among data and among metadata.
fn place(m: &TortureMedium, size: u64, rng: &mut SmallRng) -> u64 {
    let range = match (m.nand, rng.random_range(0..4u8)) {
        (Some(p), 0) => 0..p.records_at(),
        (Some(p), 1 | 2) => p.records_at()..p.states_at(),
        (Some(p), _) => p.states_at()..size,
        (None, 0) => 0..512,
        (None, 1) => 512..(4096).min(size),
        (None, _) => 0..size,
    };
    rng.random_range(range)
}

fn damage(b: &mut [u8], what: AtRestDamage, seed: u64) {
    let flip = |b: &mut [u8], n: u64| {
        let bit = n as usize % (b.len() * 8);
        b[bit / 8] ^= 1 << (bit % 8);
    };
    match what {
        AtRestDamage::Bit => flip(b, seed),
        AtRestDamage::TwoBits => {
            flip(b, seed);
            flip(b, mix(seed));
        }
        AtRestDamage::Zeros => b.fill(0),
        AtRestDamage::Byte => b[0] ^= seed as u8 | 1,
        _ => b.iter_mut().enumerate().for_each(|(i, x)| *x = mix(seed ^ i as u64) as u8),
    }
}
