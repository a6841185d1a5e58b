//! A plain model of a layer's contents, under random requests, restarts and power losses.

use super::LosesPower;
use crate::composed::{Composed, Composer};
use frit_core::{
    BlockLayer, CheckScope, CrashKind, Durable, Error, Hints, Quiesce, ReadTarget, Sector, Severity, Sink,
    WriteData,
};
use proptest::prelude::*;

const SECTOR: usize = 512;

/// A request, or an interruption.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Write {
        at: u64,
        sectors: u64,
    },
    Zero {
        at: u64,
        sectors: u64,
    },
    Flush,
    /// The layer is built again without a shutdown.
    Restart,
    /// A power loss keeps each unflushed sector with this chance in 256.
    PowerLoss(u8),
    HaltAndBoot,
}

/// Draws steps on a layer of this many sectors in chunks of `chunk` sectors.
pub(crate) fn step(sectors: u64, chunk: u64) -> impl Strategy<Value = Step> {
    let range = (0..sectors, 1..3 * chunk).prop_map(move |(at, n)| (at, n.min(sectors - at)));
    let chunks = (0..sectors / chunk, 1..4u64)
        .prop_map(move |(c, n)| (c * chunk, (n * chunk).min(sectors - c * chunk)));
    prop_oneof![
        8 => range.clone().prop_map(|(at, sectors)| Step::Write { at, sectors }),
        3 => chunks.clone().prop_map(|(at, sectors)| Step::Write { at, sectors }),
        2 => range.prop_map(|(at, sectors)| Step::Zero { at, sectors }),
        4 => chunks.prop_map(|(at, sectors)| Step::Zero { at, sectors }),
        4 => Just(Step::Flush),
        1 => Just(Step::Restart),
        2 => any::<u8>().prop_map(Step::PowerLoss),
        1 => Just(Step::HaltAndBoot),
    ]
}

/// Versions that each sector may have: the last one first certain, then those since the last flush.
struct Shadow {
    versions: Vec<Vec<u32>>,
    next: u32,
}

/// Fills a sector with its number and version. Half of it repeats, and half does not.
fn contents(sector: usize, version: u32) -> [u8; SECTOR] {
    let mut b = [0; SECTOR];
    if version == 0 {
        return b;
    }
    let mut x = (sector as u64) << 32 | u64::from(version);
    for (i, word) in b.chunks_exact_mut(8).enumerate() {
        if i % 2 == 1 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        word.copy_from_slice(&x.to_le_bytes());
    }
    b
}

impl Shadow {
    fn change(&mut self, at: u64, sectors: u64, version: u32, failed: bool) {
        for of in &mut self.versions[at as usize..(at + sectors) as usize] {
            let now = of.last().copied();
            of.push(version);
            // A request that failed may have changed its sectors or not.
            of.extend(now.filter(|_| failed));
        }
    }

    fn flushed(&mut self) {
        for of in &mut self.versions {
            let now = of[of.len() - 1];
            // After a failed request the contents are not known.
            if !(of.len() > 2 && of[..of.len() - 1].contains(&now)) {
                *of = vec![now];
            }
        }
    }
}

/// Performs steps on a layer over `devices`, which `make` builds, and compares it with a model.
pub(crate) fn exercise<C: Composer>(
    devices: &impl LosesPower,
    make: impl Fn() -> Composed<C>,
    steps: &[Step],
    seed: u64,
) {
    let mut layer = make();
    layer.format(&mut Sink::untimed()).unwrap();
    let sectors = layer.info().sectors;
    let mut shadow = Shadow { versions: vec![vec![0]; sectors as usize], next: 1 };
    let mut random = seed | 1;
    for (i, &step) in steps.iter().enumerate() {
        let sink = &mut Sink::untimed();
        match step {
            Step::Write { at, sectors } => {
                let version = shadow.next;
                shadow.next += 1;
                let data: Vec<u8> = (at..at + sectors).flat_map(|s| contents(s as usize, version)).collect();
                let done = layer.write(sink, Sector(at), WriteData::Bytes(&data), Hints::NONE);
                assert!(matches!(done, Ok(()) | Err(Error::NoSpace { .. })), "step {i}: {done:?}");
                shadow.change(at, sectors, version, done.is_err());
            }
            Step::Zero { at, sectors } => {
                layer.discard(sink, Sector(at), sectors).unwrap();
                shadow.change(at, sectors, 0, false);
            }
            Step::Flush => {
                layer.flush(sink).unwrap();
                shadow.flushed();
            }
            Step::HaltAndBoot => {
                layer.halt(sink).unwrap();
                layer = make();
                layer.boot(sink).unwrap();
                shadow.flushed();
            }
            Step::Restart | Step::PowerLoss(_) => {
                if let Step::PowerLoss(chance) = step {
                    devices.lose_power(&mut || {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        (random >> 20) as u8 <= chance
                    });
                }
                layer = make();
                let recovery = layer.recover(sink, CrashKind::PowerLoss).unwrap();
                assert!(!recovery.lost_any(), "step {i}: {recovery:?}");
                let found = compare(&mut layer, &shadow, &format!("step {i}, {step:?}"), true);
                shadow.versions = found.into_iter().map(|v| vec![v]).collect();
            }
        }
        if i % 8 == 7 || i + 1 == steps.len() {
            compare(&mut layer, &shadow, &format!("step {i}, {step:?}"), false);
        }
    }
}

/// Reads everything. Returns the version of each sector. After an interruption each sector may have
/// any version since the last flush, otherwise the last one.
fn compare<C: Composer>(layer: &mut Composed<C>, shadow: &Shadow, when: &str, interrupted: bool) -> Vec<u32> {
    let mut all = vec![0x77; shadow.versions.len() * SECTOR];
    let sink = &mut Sink::untimed();
    layer.read(sink, Sector(0), ReadTarget::Bytes(&mut all), Hints::NONE).unwrap();
    let scope = CheckScope { data: true, ..CheckScope::default() };
    let checked = layer.check(sink, scope, &mut |f| {
        assert!(f.severity == Severity::Minor, "{when}: {f:?}");
    });
    checked.unwrap();
    let versions = shadow.versions.iter().zip(all.chunks_exact(SECTOR)).enumerate();
    versions
        .map(|(s, (of, b))| {
            let unsure = interrupted || of[..of.len() - 1].contains(&of[of.len() - 1]);
            let allowed = if unsure { &of[..] } else { &of[of.len() - 1..] };
            let found = allowed.iter().rev().find(|&&v| b == contents(s, v));
            *found.unwrap_or_else(|| panic!("{when}: sector {s} is none of {allowed:?}: {:x?}", &b[..16]))
        })
        .collect()
}
