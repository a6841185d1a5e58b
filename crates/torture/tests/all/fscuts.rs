//! Power cuts of the file system: each operation alone, pairs of operations, and random sequences.

use crate::common::short_or_long;
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

/// Returns many cuts of each kind, all of them with `LONG=1`.
fn fine() -> Density {
    short_or_long(Density { subsets: 5, singles: 5, prefixes: 3 }, Density::FINE)
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
    let cuts = FsCuts { density: fine(), ..FsCuts::default() };
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
        found.add(FsCuts { density: fine(), ..pool }.run(&base(), std::slice::from_ref(op)));
    }
    let mut rng = SmallRng::seed_from_u64(number("SEED", 1) as u64);
    for _ in 0..number("POOL_PAIRS", short_or_long(50, 600)) {
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
    for seed in first..first + number("SEQUENCES", short_or_long(40, 120)) as u64 {
        let mut drawer = OpGenerator::new(seed);
        drawer.command_files = true;
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
        found.add(FsCuts { density: fine(), ..summed }.run(&base(), std::slice::from_ref(op)));
    }
    let ops = changing();
    let mut rng = SmallRng::seed_from_u64(number("SEED", 1) as u64);
    for _ in 0..number("PAIRS", short_or_long(120, 1200)) / 3 {
        let first = ops[rng.random_range(0..ops.len())].clone();
        let second = of_contents[rng.random_range(0..of_contents.len())].clone();
        found.add(summed.run(&base(), &[first, second]));
    }
    conclude("contents with checksums", begun, &found);
}

/// Operations that create, open, change, remove and replace command files, on the base tree. Directories
/// that are removed appear again, with other command files.
const ON_COMMANDS: [&str; 22] = [
    "root open #0 a/d/.isp",
    "root open #1 a/d/.isp",
    "root open #1 b/n/.isp",
    "root open #2 a/d",
    "root open #2 m/.isp",
    "root close #0",
    "root close #1",
    "root close #2",
    "root rmdir a/d",
    "root rmdir a/d",
    "root rmdir m",
    "root rmdir b/n",
    "root create dir a/d 755 0",
    "root create dir m 777 0",
    "root create dir b/n 755 0",
    "root rename m a/d replace",
    "root rename a/d b/n replace",
    "root rename b/n m exchange",
    "root chmod a/d/.isp 600",
    "root chown #0 1000 1000",
    "root truncate #1 5",
    "root sync",
];

/// Runs drawn sequences of operations on command files, some with instructions in progress, and some with
/// more open command files than the list of orphans can hold.
#[test]
fn command_files_come_and_go() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    let ops = parse(&ON_COMMANDS.join("\n")).unwrap();
    let first = number("SEED", 0) as u64 * 1_000_000;
    for seed in first..first + number("SEQUENCES", short_or_long(50, 240)) as u64 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let drawn: Vec<FsOp> = (0..10).map(|_| ops[rng.random_range(0..ops.len())].clone()).collect();
        let (registers, orphans) = (seed % 4 == 1, (seed % 3 == 2).then_some(4));
        found.add(FsCuts { seed, registers, orphans, ..FsCuts::default() }.run(&base(), &drawn));
    }
    conclude("command files", begun, &found);
}

/// Runs given operations on the base tree.
fn run_lines(found: &mut CutReport, cuts: FsCuts, lines: &[&str]) {
    found.add(cuts.run(&base(), &parse(&lines.join("\n")).unwrap()));
}

#[test]
fn a_start_frees_command_files_of_removed_directories() {
    let (begun, many) = (Instant::now(), FsCuts { density: fine(), ..FsCuts::default() });
    let mut found = CutReport::default();
    for last in ["root rmdir a/d", "root rename b/n a/d replace"] {
        let lines = ["root create dir b/n 700 0", "root open #0 a/d/.isp", last, "root chmod #0 600"];
        run_lines(&mut found, many, &lines);
    }
    // The directory is open as well, and the list of orphans may lack a word for the second one.
    let both =
        ["root open #0 a/d", "root open #1 a/d/.isp", "root rmdir a/d", "root close #1", "root close #0"];
    for orphans in [None, Some(4)] {
        run_lines(&mut found, FsCuts { orphans, ..many }, &both);
    }
    conclude("open command files", begun, &found);
}

#[test]
fn a_directory_and_its_command_file_come_and_go_as_one() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    for lines in [
        ["root create dir n 755 0", "root rmdir n"],
        ["root rmdir a/d", "root create dir a/d 700 0"],
        ["root create dir b/n 755 0", "root rename b/n a/d replace"],
        ["root create dir b/n 755 0", "root rename b/n a/d exchange"],
    ] {
        run_lines(&mut found, FsCuts { density: fine(), ..FsCuts::default() }, &lines);
        run_lines(&mut found, FsCuts { registers: true, ..FsCuts::default() }, &lines);
    }
    conclude("directories with command files", begun, &found);
}

/// Without command files, their name is one like others.
#[test]
fn a_file_system_without_command_files() {
    let begun = Instant::now();
    let mut found = CutReport::default();
    let without = FsCuts { command_files: false, ..FsCuts::default() };
    let named = |op: &FsOp| op.to_string().contains(".isp") || op.to_string().contains("dir");
    for op in changing().into_iter().filter(named) {
        found.add(without.run(&base(), &[op]));
    }
    conclude("without command files", begun, &found);
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
    let cuts = FsCuts { density: fine(), orphans: Some(4), ..FsCuts::default() };
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
    for _ in 0..number("PAIRS", short_or_long(120, 1200)) {
        let pair = [ops[rng.random_range(0..ops.len())].clone(), ops[rng.random_range(0..ops.len())].clone()];
        found.add(FsCuts::default().run(&base(), &pair));
    }
    conclude("pairs", begun, &found);
}

/// Returns the operations that succeed on the base tree.
fn succeeding() -> Vec<FsOp> {
    let succeeds = |op: &FsOp| {
        let model = ModelFs::with_command_files();
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
