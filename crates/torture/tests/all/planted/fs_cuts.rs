//! Bugs planted in the file system. Power cuts of a few operations must find each bug, and find
//! nothing without it. `fs_cuts.csv` has the operations and the cuts that do. If they do not any more, others are
//! tried; with `RECORD=1`, all are.

use super::on_all_processors;
use frit_core::planted::{Found, silence_panics};
use frit_fs::planted::Bug;
use frit_torture::fs::FsOp;
use frit_torture::fs::crash::{CutReport, Density, FsCuts};
use frit_torture::fs::every::base;
use std::panic::{AssertUnwindSafe, catch_unwind};
use strum::{IntoEnumIterator, IntoStaticStr};

/// Number of seeds of cuts that are tried with each sequence.
const SEEDS: u64 = 8;

/// Sequences of operations on the base tree. Together they reveal the general bugs.
const HUNTS: [&[&str]; 17] = [
    &["root create file n 640 0"],
    &["root write a/e 100 5000 11"],
    &["root truncate a/f 100", "root truncate a/f 3000"],
    &["root create dir n*200 755 0", "root create file n*200/x 600 0", "root unlink n*200/x"],
    &["root create file n*200 600 0", "root unlink n*200", "root create file m*200 600 0"],
    &["root open #0 a/f", "root unlink a/f", "root unlink b/h"],
    &["root open #0 a/e", "root unlink a/e", "root close #0"],
    &["root link a/f n"],
    &["root rename a/d n replace", "root rename a/e b/n replace"],
    &["root set-xattr a/f user.x 100 5 any"],
    &["root unlink a/f", "root unlink b/h", "root create dir x 755 0", "root create file x/y 600 0"],
    &["root gather b/g"],
    &["root write b/g 100 4096 8", "root append b/g 10 9"],
    &["root truncate b/g 4096", "root append b/g 4096 3"],
    &["root create dir x 755 0", "root append b/p 4096 64", "root truncate b/h 0"],
    &["root rmdir a/d", "root create dir x 755 0"],
    &["root open #0 a/d/.isp", "root rmdir a/d", "root create dir a/d 700 0"],
];

/// Sequences for bugs of a pool, which holds contents external to the medium.
const POOL: [&[&str]; 3] = [
    &["root unlink b/p", "root create file n 640 0"],
    &["root open #0 b/p", "root unlink b/p", "root close #0"],
    &["root write a/e 100 5000 11", "root rename a/e b/p replace", "root create file n 600 0"],
];

/// Sequences on a file system without a free block.
const FULL: [&[&str]; 2] = [
    &["root write x 90000 100 9", "root write x 110000 100 8"],
    &["root allocate y punch 90112 4096", "root write a/e 0 4096 3", "root allocate y punch 102400 8192"],
];

/// Sequences with more open files without names than the list of orphans can hold.
const ORPHANS: [&[&str]; 1] =
    [&["root unlink b/p", "root unlink a/e", "root unlink b/g", "root create file n 600 0"]];

/// Sequences with instructions in the registers.
const REGISTERS: [&[&str]; 1] = [&["root rmdir a/d", "root create dir x 755 0"]];

/// Configuration of the file system, and the tree before a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
enum HuntConfig {
    Plain,
    Sums,
    Pool,
    Full,
    Orphans,
    Registers,
}

/// Returns the general sequences with their configurations.
fn hunts(sums: bool) -> impl Iterator<Item = (&'static [&'static str], HuntConfig)> {
    let kind = if sums { HuntConfig::Sums } else { HuntConfig::Plain };
    HUNTS.iter().map(move |ops| (*ops, kind)).chain(POOL.iter().map(|ops| (*ops, HuntConfig::Pool)))
}

/// Returns the sequences that may reveal a bug.
fn hunts_of(bug: Bug) -> Box<dyn Iterator<Item = (&'static [&'static str], HuntConfig)>> {
    match bug {
        Bug::AroundNotZeroed => Box::new(special().filter(|hunt| hunt.1 == HuntConfig::Full)),
        Bug::MoreOrphansNotNoted | Bug::MoreOrphansForgotten => {
            Box::new(special().filter(|hunt| hunt.1 == HuntConfig::Orphans))
        }
        Bug::RegistersClearedEarly | Bug::RegistersTornReported => {
            Box::new(special().filter(|hunt| hunt.1 == HuntConfig::Registers))
        }
        Bug::SumClearedLate | Bug::SumBeforeBytes | Bug::SumOfOtherStays => Box::new(hunts(true)),
        Bug::NamesNotCounted => Box::new(hunts(false).take(1)),
        _ => Box::new(hunts(false)),
    }
}

/// Returns the sequences that only a few bugs need.
fn special() -> impl Iterator<Item = (&'static [&'static str], HuntConfig)> {
    let full = FULL.iter().map(|ops| (*ops, HuntConfig::Full));
    full.chain(ORPHANS.iter().map(|ops| (*ops, HuntConfig::Orphans)))
        .chain(REGISTERS.iter().map(|ops| (*ops, HuntConfig::Registers)))
}

fn hunt(ops: &[&str], kind: HuntConfig, seed: u64) -> Result<CutReport, ()> {
    let ops: Vec<FsOp> = ops.iter().map(|line| line.parse().unwrap()).collect();
    let (sums, pool) = (kind == HuntConfig::Sums, kind == HuntConfig::Pool);
    let orphans = (kind == HuntConfig::Orphans).then_some(4);
    let registers = kind == HuntConfig::Registers;
    let density = Density::COARSE;
    let cuts =
        FsCuts { density, seed, nested_one_in: 4, sums, pool, orphans, registers, ..FsCuts::default() };
    // A planted bug may make the file system panic, which counts as found.
    catch_unwind(AssertUnwindSafe(|| cuts.run(&before(&cuts, kind), &ops))).map_err(|_| ())
}

fn before(cuts: &FsCuts, kind: HuntConfig) -> Vec<FsOp> {
    match kind {
        HuntConfig::Full => cuts.full().unwrap(),
        HuntConfig::Orphans => {
            let opens = "root open #0 b/p\nroot open #1 a/e\nroot open #2 b/g";
            [base(), frit_torture::fs::parse(opens).unwrap()].concat()
        }
        HuntConfig::Plain | HuntConfig::Sums | HuntConfig::Pool | HuntConfig::Registers => base(),
    }
}

/// Operations on a file system, and the seed of their cuts.
type Hunt = (&'static [&'static str], HuntConfig, u64);

fn finds(&(ops, kind, seed): &Hunt) -> Option<&'static str> {
    match hunt(ops, kind, seed) {
        Ok(found) => {
            let is_wrong = !found.violations.is_empty();
            assert!(is_wrong || found.images > 0, "{ops:?} leave no image");
            is_wrong.then_some("cuts")
        }
        Err(()) => Some("panic"),
    }
}

#[test]
fn every_planted_bug_of_the_file_system_is_found() {
    silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/planted/fs_cuts.csv"));
    let bugs: Vec<_> = Bug::iter().collect();
    on_all_processors(&bugs, |bug, (): &mut ()| {
        let hunts = (0..SEEDS).flat_map(|seed| {
            hunts_of(*bug).map(move |(ops, kind)| {
                (format!("{} {seed}: {}", <&str>::from(kind), ops.join("; ")), (ops, kind, seed))
            })
        });
        found.search(*bug, hunts, finds);
    });
    found.finish();
}
