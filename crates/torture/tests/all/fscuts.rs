//! Power cuts of the file system: each operation alone, pairs of operations, and random sequences.

use frit_torture::fs::apply::ProgramSession;
use frit_torture::fs::crash::{CutReport, Density, FsCuts};
use frit_torture::fs::every::{base, every};
use frit_torture::fs::op::Path;
use frit_torture::fs::op_generator::OpGenerator;
use frit_torture::fs::{Act, FsOp, ModelFs, parse};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Instant;

/// Paths of the base tree.
const THERE: [&str; 8] = ["a", "b", "a/d", "a/f", "a/e", "s", "b/h", "b/p"];

/// Returns the operations that change the tree.
fn changing() -> Vec<FsOp> {
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

fn conclude(what: &str, begun: Instant, found: &CutReport) {
    println!(
        "{what}: {} images, {} of cut recoveries, {} violations, {:.1} s",
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
    let mut found = CutReport::default();
    let cuts = FsCuts { density: Density::FINE, ..FsCuts::default() };
    for op in changing() {
        found.add(cuts.run(&base(), &[op]));
    }
    conclude("every operation alone", begun, &found);
}

/// Contents external to the medium: names, attributes, and the content file of each inode.
#[test]
fn a_pool_in_every_operation_and_in_pairs() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    let pool = FsCuts { pool: true, ..FsCuts::default() };
    let ops = changing();
    for op in &ops {
        found.add(FsCuts { density: Density::FINE, ..pool }.run(&base(), std::slice::from_ref(op)));
    }
    let mut rng = SmallRng::seed_from_u64(number("SEED", 1) as u64);
    for _ in 0..number("POOL_PAIRS", 300) {
        let pair = [ops[rng.random_range(0..ops.len())].clone(), ops[rng.random_range(0..ops.len())].clone()];
        found.add(pool.run(&base(), &pair));
    }
    conclude("a pool in every operation and in pairs", begun, &found);
}

#[test]
fn drawn_sequences() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    let there: Vec<Path> = THERE.into_iter().map(Path::new).collect();
    let first = number("SEED", 0) as u64 * 1_000_000;
    for seed in first..first + number("SEQUENCES", 60) as u64 {
        let mut drawer = OpGenerator::new(seed);
        let ops: Vec<FsOp> = (0..12).map(|_| drawer.draw(&there)).collect();
        found.add(FsCuts { seed, ..FsCuts::default() }.run(&base(), &ops));
    }
    conclude("drawn sequences", begun, &found);
}

#[test]
fn contents_with_checksums() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    let summed = FsCuts { sums: true, ..FsCuts::default() };
    let of_contents: Vec<FsOp> = changing().into_iter().filter(|op| is_of_contents(&op.act)).collect();
    for op in &of_contents {
        found.add(FsCuts { density: Density::FINE, ..summed }.run(&base(), std::slice::from_ref(op)));
    }
    let ops = changing();
    let mut rng = SmallRng::seed_from_u64(number("SEED", 1) as u64);
    for _ in 0..number("PAIRS", 600) / 3 {
        let first = ops[rng.random_range(0..ops.len())].clone();
        let second = of_contents[rng.random_range(0..of_contents.len())].clone();
        found.add(summed.run(&base(), &[first, second]));
    }
    conclude("contents with checksums", begun, &found);
}

/// Operations that need no free block, on a full file system.
const ON_FULL: [&[&str]; 9] = [
    &["root write x 90000 100 9", "root write x 110000 100 8"],
    &["root write x 81920 4096 9", "root write x 126976 4096 8"],
    &["root write x 86016 4096 9", "root write x 94208 3 9"],
    &["root allocate y punch 90112 4096", "root write a/e 0 4096 3", "root allocate y punch 102400 8192"],
    &["root allocate y punch 84000 20000", "root write all 0 5000 9"],
    &["root allocate y punch 86016 8192", "root create file n 600 0", "root write n 0 4096 3"],
    &["root allocate y punch 90112 4096", "root truncate y 0", "root append a/e 8192 4"],
    &["root allocate y zero 90112 4096", "root allocate x punch 90112 8192"],
    &["root unlink all", "root write a/e 0 9000 3"],
];

#[test]
fn a_full_file_system() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    for sums in [false, true] {
        let cuts = FsCuts { sums, ..FsCuts::default() };
        let full = cuts.full().unwrap();
        for lines in ON_FULL {
            let ops: Vec<FsOp> = lines.iter().map(|line| line.parse().unwrap()).collect();
            found.add(cuts.run(&full, &ops));
        }
    }
    conclude("a full file system", begun, &found);
}

/// More open files lose their names than the list of orphans can hold.
#[test]
fn more_orphans_than_are_listed() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    let cuts = FsCuts { density: Density::FINE, orphans: Some(4), ..FsCuts::default() };
    let opens = "root open #0 b/p\nroot open #1 a/e\nroot open #2 b/g";
    let before = [base(), parse(opens).unwrap()].concat();
    let unlinked = "root unlink b/p\nroot unlink a/e\nroot unlink b/g";
    for then in [
        "root create file n 640 0\nroot unlink n",
        "root close #2\nroot close #1",
        "root truncate a/f 0\nroot create file m 600 0",
    ] {
        found.add(cuts.run(&before, &parse(&format!("{unlinked}\n{then}")).unwrap()));
    }
    conclude("more orphans than are listed", begun, &found);
}

fn is_of_contents(act: &Act) -> bool {
    matches!(
        act,
        Act::Write { .. } | Act::Append { .. } | Act::Truncate { .. } | Act::Allocate { .. } | Act::Gather(_)
    )
}

#[test]
fn pairs_of_operations() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    let ops = changing();
    let mut rng = SmallRng::seed_from_u64(number("SEED", 1) as u64);
    for _ in 0..number("PAIRS", 600) {
        let pair = [ops[rng.random_range(0..ops.len())].clone(), ops[rng.random_range(0..ops.len())].clone()];
        found.add(FsCuts::default().run(&base(), &pair));
    }
    conclude("pairs", begun, &found);
}

/// Returns the operations that succeed on the base tree.
fn succeeding() -> Vec<FsOp> {
    let succeeds = |op: &FsOp| {
        let model = ModelFs::new();
        let mut session = ProgramSession::new(&model);
        for op in base() {
            let _ = session.apply(&op);
        }
        session.apply(op).is_ok()
    };
    changing().into_iter().filter(succeeds).collect()
}

#[test]
#[ignore = "a quarter of an hour: the pairs of all operations that succeed on the base tree, or PAIRS of them"]
fn every_pair_of_operations() {
    let begun = Instant::now();
    let ops = succeeding();
    let pairs = ops.len() * ops.len();
    let wanted = number("PAIRS", pairs).clamp(1, pairs);
    // The pairs are spread evenly over all of them.
    let pair = |i: usize| i * pairs / wanted;
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut found = CutReport::default();
    std::thread::scope(|scope| {
        let part = |worker: usize| {
            let ops = &ops;
            scope.spawn(move || {
                let mut found = CutReport::default();
                for i in (worker..wanted).step_by(workers).map(pair) {
                    let cut = [ops[i / ops.len()].clone(), ops[i % ops.len()].clone()];
                    found.add(FsCuts { seed: i as u64, ..FsCuts::default() }.run(&base(), &cut));
                }
                found
            })
        };
        let parts: Vec<_> = (0..workers).map(part).collect();
        for part in parts {
            found.add(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    conclude(&format!("{wanted} of {pairs} pairs of {} operations", ops.len()), begun, &found);
}
