//! Kinds of damage.

use super::test_volume::{Files, TestVolume};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::HashMap;

/// Size of a page of a file, in bytes.
const PAGE: usize = 4096;

/// A kind of damage to a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum DamageKind {
    /// One bit flips.
    Bit,
    /// One byte changes.
    Byte,
    /// A sector or a page reads as zeros.
    Zeros(usize),
    /// A sector or a page holds random bytes.
    Garbage(usize),
    /// Two pages are exchanged.
    Swapped,
    /// A page has its contents of an earlier time.
    OlderPage,
    /// One bit flips in both copies of this many records.
    BothCopies(usize),
    /// The file is truncated.
    Cut,
    /// The whole file has its contents of an earlier time.
    OlderFile,
}

/// All kinds.
pub(crate) const DAMAGE_KINDS: [DamageKind; 12] = [
    DamageKind::Bit,
    DamageKind::Byte,
    DamageKind::Zeros(512),
    DamageKind::Zeros(PAGE),
    DamageKind::Garbage(512),
    DamageKind::Garbage(PAGE),
    DamageKind::Swapped,
    DamageKind::OlderPage,
    DamageKind::BothCopies(1),
    DamageKind::BothCopies(3),
    DamageKind::Cut,
    DamageKind::OlderFile,
];

/// Damage that was applied.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    pub harm: DamageKind,
    pub file: String,
    /// Offsets of the damage.
    pub at: Vec<usize>,
    /// `true` if both copies of a record were changed.
    pub both_copies: bool,
}

/// Draws an offset for damage: metadata and data are hit equally often.
fn place(len: usize, rng: &mut SmallRng) -> usize {
    match rng.random_range(0..6u8) {
        0 => rng.random_range(0..512.min(len)),
        1 => rng.random_range(0..len.min(32 << 10)),
        2 => rng.random_range(len - len.min(16 << 10)..len),
        _ => rng.random_range(0..len),
    }
}

/// Returns pairs of offsets that hold the two copies of a record: 24 equal bytes that contain a
/// number.
fn pairs(bytes: &[u8]) -> Vec<[usize; 2]> {
    let mut first: HashMap<&[u8], usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (i, record) in bytes.chunks_exact(32).enumerate() {
        let sequence = u64::from_le_bytes(record[8..16].try_into().unwrap());
        let plain = record[4] != 0 && record[5..8] == [0; 3] && (1..1 << 32).contains(&sequence);
        let there = record[24..28] == [0; 4] && record[28..] != [0; 4] && record[16..24] != [0; 8];
        if !plain || !there {
            continue;
        }
        if let Some(other) = first.insert(&record[..24], i * 32) {
            pairs.push([other, i * 32]);
        }
    }
    pairs
}

/// Damages the files of a volume; `None` if this kind of damage is not possible.
pub(crate) fn strike(subject: &TestVolume, harm: DamageKind, rng: &mut SmallRng) -> Option<(Files, Damage)> {
    let mut files = subject.files.clone();
    // A disk has no checksums of its own, so damage of its data cannot be detected here.
    let media: Vec<&String> = files
        .keys()
        .filter(|n| n.ends_with(".medium") && (harm == DamageKind::Cut || *n != "disk.medium"))
        .collect();
    let of_volume = !matches!(harm, DamageKind::BothCopies(_)) && rng.random_bool(0.06);
    let file =
        if of_volume { "frit.volume".to_owned() } else { media[rng.random_range(0..media.len())].clone() };
    let bytes = files.get_mut(&file)?;
    let mut at = vec![place(bytes.len(), rng)];
    match harm {
        DamageKind::Bit => bytes[at[0]] ^= 1 << rng.random_range(0..8),
        DamageKind::Byte => bytes[at[0]] ^= rng.random_range(1..=255u8),
        DamageKind::Zeros(n) | DamageKind::Garbage(n) => {
            at[0] = at[0] / n * n;
            let end = (at[0] + n).min(bytes.len());
            match harm {
                DamageKind::Zeros(_) => bytes[at[0]..end].fill(0),
                _ => rng.fill(&mut bytes[at[0]..end]),
            }
        }
        DamageKind::Swapped => {
            let pages = bytes.len() / PAGE;
            let (a, b) = (at[0] / PAGE % pages, rng.random_range(0..pages));
            at = vec![a * PAGE, b * PAGE];
            for i in 0..PAGE {
                bytes.swap(a * PAGE + i, b * PAGE + i);
            }
        }
        DamageKind::OlderPage => {
            let older = subject.earlier.get(&file)?;
            let changed: Vec<usize> = (0..bytes.len() / PAGE)
                .map(|p| p * PAGE)
                .filter(|&p| bytes[p..p + PAGE] != older[p..p + PAGE])
                .collect();
            at = vec![*changed.get(rng.random_range(0..changed.len().max(1)))?];
            bytes[at[0]..at[0] + PAGE].copy_from_slice(&older[at[0]..at[0] + PAGE]);
        }
        DamageKind::BothCopies(n) => {
            let pairs = pairs(bytes);
            at = (0..n)
                .filter_map(|_| pairs.get(rng.random_range(0..pairs.len().max(1))))
                .flatten()
                .copied()
                .collect();
            at.sort_unstable();
            at.dedup();
            at.iter().for_each(|&record| bytes[record + 8 + record % 11] ^= 4);
        }
        DamageKind::Cut => bytes.truncate(at[0]),
        DamageKind::OlderFile => bytes.clone_from(subject.earlier.get(&file)?),
    }
    let (now, was) = (&files[&file], &subject.files[&file]);
    let hit = |at: usize| now.get(at..at + 32) != Some(&was[at..at + 32]);
    let both_copies = match &*file {
        "pcm.medium" => pairs(was).into_iter().any(|[a, b]| hit(a) && hit(b)),
        "nand.medium" if subject.kind.is_ssc() => subject.kind.both_copies_in_nand(now, was),
        _ => false,
    };
    (now != was).then_some((files, Damage { harm, file, at, both_copies }))
}
