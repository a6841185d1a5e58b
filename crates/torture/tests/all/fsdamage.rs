//! Damage to a file system's medium: single bits, misplaced and stale metadata, random bytes.

use crate::common::short_or_long;
use frit_fs::{AnyMedium, Geometry, Mapped, Medium};
use frit_torture::fs::damage::{DamageJudge, DamageVerdict, PopulatedImage, checksums, exercise, populate};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval, in flipped bits, at which the image is also read by name and repaired.
const DEEPLY: usize = 16;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Counts of verdicts, and descriptions of failures.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<(&'static str, &'static str), u64>,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&mut self, what: &'static str, how: &'static str) {
        *self.counts.entry((what, how)).or_default() += 1;
    }

    /// Runs one examination. A panic counts as a failure.
    fn look<T>(&mut self, what: &str, look: impl FnOnce() -> Result<T, String>) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("panics".to_string())) {
            Ok(seen) => Some(seen),
            Err(error) => {
                self.wrong.push(format!("{what}: {error}"));
                None
            }
        }
    }

    fn conclude(&self, name: &str, begun: Instant) {
        println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
        for ((what, how), count) in &self.counts {
            println!("| {what} | {how} | {count} |");
        }
        let first = self.wrong.iter().take(6).cloned().collect::<Vec<_>>().join("\n---\n");
        assert!(self.wrong.is_empty(), "{} wrong:\n{first}", self.wrong.len());
    }
}

fn start() -> (PopulatedImage, DamageJudge, Geometry) {
    let made = populate().unwrap();
    let judge = DamageJudge::new(&made).unwrap();
    let geometry = Geometry::divide(made.image.len() as u64, Some(32)).unwrap();
    (made, judge, geometry)
}

#[test]
fn every_bit_of_metadata() {
    let begun = Instant::now();
    let (made, judge, _) = start();
    let mut tally = Tally::default();
    let mut image = made.image.clone();
    let mut flips = 0;
    for (what, range) in &made.metadata {
        // Blocks hold most of the bits, so fewer of their bits are flipped.
        let step = number(
            "STEP",
            if range.end - range.start == 4096 { short_or_long(97, 31) } else { short_or_long(11, 5) },
        ) as u64;
        for bit in (range.start * 8..range.end * 8).filter(|bit| bit % step == (bit / 512) % step) {
            let (at, mask) = ((bit / 8) as usize, 1 << (bit % 8));
            image[at] ^= mask;
            flips += 1;
            let place = format!("bit {} of byte {at:#x} ({what})", bit % 8);
            match tally.look(&place, || judge.check(&image)) {
                Some(DamageVerdict::Reported) => tally.count(what, "reported"),
                Some(DamageVerdict::Harmless) => tally.count(what, "harmless"),
                Some(DamageVerdict::Unnoticed) => tally.wrong.push(format!("{place}: unnoticed")),
                None => {}
            }
            if flips % DEEPLY == 0 {
                tally.look(&place, || judge.read(&image));
                tally.look(&place, || judge.repair(&image));
                tally.count(what, "read and repaired");
            }
            image[at] ^= mask;
        }
    }
    tally.conclude("every bit", begun);
}

/// Replaces bytes by another version and examines the image.
fn replace(
    tally: &mut Tally,
    judge: &DamageJudge,
    what: &'static str,
    (image, at): (&[u8], u64),
    with: &[u8],
) -> Option<DamageVerdict> {
    let at = at as usize;
    if image[at..at + with.len()] == *with {
        return None;
    }
    let mut image = image.to_vec();
    image[at..at + with.len()].copy_from_slice(with);
    let place = format!("{what} at {at:#x}");
    let verdict = tally.look(&place, || judge.check(&image))?;
    tally.look(&place, || {
        exercise_image(&image);
        Ok(())
    });
    tally.count(
        what,
        match verdict {
            DamageVerdict::Reported => "reported",
            DamageVerdict::Harmless => "harmless",
            DamageVerdict::Unnoticed => "unnoticed",
        },
    );
    Some(verdict)
}

fn exercise_image(image: &[u8]) {
    let medium: AnyMedium = Arc::new(Mapped::anonymous(image.len() as u64).unwrap());
    medium.write_data(0, image);
    let begun = Instant::now();
    exercise(&medium);
    assert!(begun.elapsed() < Duration::from_secs(5), "takes {:?}", begun.elapsed());
    let report = frit_fs::check(&medium);
    assert!(report.as_ref().map_or(true, frit_fs::Report::is_clean), "after a repair: {report:#?}");
}

#[test]
fn well_formed_and_misplaced() {
    let begun = Instant::now();
    let (made, judge, g) = start();
    let mut tally = Tally::default();
    let piece = |at: u64, len: u64| &made.image[at as usize..(at + len) as usize];
    let highest = u64::from_le_bytes(piece(g.ledger_at + 16, 8).try_into().unwrap());
    for to in 1..=highest {
        for from in (1..=highest).filter(|from| *from != to) {
            let at = g.inodes_at + (to - 1) * 256;
            let with = piece(g.inodes_at + (from - 1) * 256, 256);
            let verdict = replace(&mut tally, &judge, "an inode over another", (&made.image, at), with);
            assert_ne!(verdict, Some(DamageVerdict::Unnoticed), "inode {from} over {to}");
        }
    }
    for to in &made.blocks {
        for from in made.blocks.iter().filter(|from| *from != to) {
            let with = piece(from * 4096, 4096);
            let verdict = replace(&mut tally, &judge, "a block over another", (&made.image, to * 4096), with);
            assert_ne!(verdict, Some(DamageVerdict::Unnoticed), "block {from} over {to}");
        }
        for (line, other) in (0..16).flat_map(|line| [(line, (line + 1) % 16), (line, (line + 7) % 16)]) {
            let at = to * 4096 + line * 256;
            let with = piece(to * 4096 + other * 256, 256);
            let verdict = replace(&mut tally, &judge, "a line over another", (&made.image, at), with);
            assert_ne!(verdict, Some(DamageVerdict::Unnoticed), "line {other} over {line} of block {to}");
        }
    }
    tally.conclude("misplaced", begun);
}

#[test]
fn well_formed_and_stale() {
    let begun = Instant::now();
    let (made, judge, g) = start();
    let mut tally = Tally::default();
    for old in made.history.iter().rev().skip(1) {
        let piece = |at: u64, len: u64| &old[at as usize..(at + len) as usize];
        let mut one = |what, at, len| replace(&mut tally, &judge, what, (&made.image, at), piece(at, len));
        for ino in 0..g.inodes {
            one("an older inode", g.inodes_at + ino * 256, 256);
        }
        for block in &made.blocks {
            one("an older block", block * 4096, 4096);
        }
        let space = [one("an older ledger", g.ledger_at, 64), one("an older bitmap", g.bitmap_at, 512)];
        assert!(!space.contains(&Some(DamageVerdict::Unnoticed)), "{space:?}");
    }
    tally.conclude("stale", begun);
    // An old block may be known only to its own metadata. The judge has verified that this affects
    // one inode or one name.
    let blocks = tally.counts.get(&("an older block", "reported"));
    assert!(blocks.is_some_and(|n| *n > 100), "{:?}", tally.counts);
}

/// Values for lengths and positions in corrupted images.
const HOSTILE: [u64; 10] =
    [0, 1, 0xFF, 1 << 23, 1 << 40, (1 << 48) - 1, 1 << 52, 1 << 63, u64::MAX - 1, u64::MAX];

#[test]
fn bytes_at_random() {
    let begun = Instant::now();
    let (made, _, g) = start();
    let mut tally = Tally::default();
    for seed in 0..number("MUTATIONS", 3000) as u64 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut image = made.image.clone();
        for _ in 0..rng.random_range(1..24) {
            let (_, range) = &made.metadata[rng.random_range(0..made.metadata.len())];
            let anywhere = rng.random_bool(0.2);
            let at =
                if anywhere { rng.random_range(0..BYTES) } else { rng.random_range(range.clone()) } as usize;
            if rng.random_bool(0.5) {
                image[at] = rng.random();
            } else {
                let value = match rng.random_range(0..3) {
                    0 => rng.random_range(0..160),
                    _ => HOSTILE[rng.random_range(0..HOSTILE.len())],
                };
                image[at / 8 * 8..at / 8 * 8 + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        if rng.random_bool(0.7) {
            seal_all(&mut image, &made, &g);
        }
        tally.look(&format!("mutation {seed}"), || {
            exercise_image(&image);
            Ok(())
        });
        tally.count("mutations", "done");
    }
    tally.conclude("random", begun);
}

/// Size of the medium in bytes.
const BYTES: u64 = 512 << 10;

/// Updates the checksums of everything that was changed.
fn seal_all(image: &mut [u8], made: &PopulatedImage, g: &Geometry) {
    checksums::superblock(image);
    checksums::ledger(image, g);
    (0..g.lines).for_each(|line| checksums::bitmap(image, g, line));
    for ino in 1..=g.inodes {
        let at = (g.inodes_at + (ino - 1) * 256) as usize;
        if image[at..at + 256] != made.image[at..at + 256] {
            checksums::inode(image, g, ino);
        }
    }
}
