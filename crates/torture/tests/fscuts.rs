//! Power cuts of the file system: every operation alone, pairs of them, random sequences; and the bugs planted in it.

// Helpers of tests are tests, which clippy does not know.
#![allow(clippy::print_stdout)]

use frit_torture::fs::crash::{Cuts, Density, Found};
use frit_torture::fs::draw::Drawer;
use frit_torture::fs::every::{base, every};
use frit_torture::fs::op::Path;
use frit_torture::fs::{Act, Op};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Instant;

/// Paths of the base tree.
const THERE: [&str; 8] = ["a", "b", "a/d", "a/f", "a/e", "s", "b/h", "b/p"];

/// Operations that change something.
fn changing() -> Vec<Op> {
    every()
        .into_iter()
        .filter(|op| {
            !matches!(
                op.act,
                Act::Stat(_)
                    | Act::ReadLink(_)
                    | Act::Read { .. }
                    | Act::Seek { .. }
                    | Act::List(_)
                    | Act::Xattr { .. }
                    | Act::Xattrs(_)
            )
        })
        .collect()
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn conclude(what: &str, begun: Instant, found: &Found) {
    println!(
        "{what}: {} images, {} cut again in the start, {} violations, {:.1} s",
        found.images,
        found.nested,
        found.violations.len(),
        begun.elapsed().as_secs_f64()
    );
    for violation in found.violations.iter().take(8) {
        println!("---\n{violation}");
    }
    assert!(found.violations.is_empty(), "{} violations", found.violations.len());
}

#[test]
fn every_operation_alone() {
    let begun = Instant::now();
    let mut found = Found::default();
    let cuts = Cuts { density: Density::FINE, ..Cuts::default() };
    for op in changing() {
        found.add(cuts.run(&base(), &[op]));
    }
    conclude("every operation alone", begun, &found);
}

#[test]
fn drawn_sequences() {
    let begun = Instant::now();
    let mut found = Found::default();
    let there: Vec<Path> = THERE.into_iter().map(Path::new).collect();
    for seed in 0..number("SEQUENCES", 60) as u64 {
        let mut drawer = Drawer::new(seed);
        let ops: Vec<Op> = (0..12).map(|_| drawer.draw(&there)).collect();
        found.add(Cuts { seed, ..Cuts::default() }.run(&base(), &ops));
    }
    conclude("drawn sequences", begun, &found);
}

#[test]
fn pairs_of_operations() {
    let begun = Instant::now();
    let mut found = Found::default();
    let ops = changing();
    let mut rng = SmallRng::seed_from_u64(number("SEED", 1) as u64);
    for _ in 0..number("PAIRS", 600) {
        let pair = [ops[rng.random_range(0..ops.len())].clone(), ops[rng.random_range(0..ops.len())].clone()];
        found.add(Cuts::default().run(&base(), &pair));
    }
    conclude("pairs", begun, &found);
}
