//! The file system on byte-addressable memory gives the answers of the model.

use frit_fs::{Allocate, Bodies, Files, Format, Fs, Mapped, Open, Pool, check, check_pool};
use frit_torture::fs::compare::Tree;
use frit_torture::fs::differential::smallest;
use frit_torture::fs::every::{base, every};
use frit_torture::fs::{Act, Divergence, Op, Rules, Who, replay, run};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a medium that no sequence fills.
const LARGE: u64 = 16 << 20;
/// Bytes of the smallest medium, which long sequences fill: 50 blocks.
const SMALL: u64 = 256 << 10;

fn fresh(bytes: u64) -> Fs<Mapped> {
    let inodes = (bytes == SMALL).then_some(64);
    Fs::format(Mapped::anonymous(bytes).unwrap(), Format { inodes, ..Format::default() }).unwrap()
}

/// As a mount asks: the kernel has checked permissions, and most of what is refused, before it asks.
fn mounted() -> Rules {
    Rules { errors: false, leave_out: |op| matches!(op.who, Who::Alice | Who::Bob), ..Rules::default() }
}

/// Says with how few operations the two part.
fn complain(bytes: u64, rules: &Rules, found: &Divergence) {
    let again = || -> Box<dyn Files> { Box::new(fresh(bytes)) };
    panic!("{} operations, of which these are needed:\n{}", found.ops.len(), smallest(found, &again, rules));
}

/// Closed, nothing is wrong on the medium; opened again, it holds the same.
fn close_and_open(fs: Fs<Mapped>, seed: u64) {
    let before = Tree::of(&fs).unwrap();
    let medium = fs.close().unwrap();
    let report = check(&medium).unwrap();
    assert!(report.is_clean() && report.closed, "seed {seed}: {report:?}");
    let after = Tree::of(&Fs::open(medium, Open::default()).unwrap()).unwrap();
    assert_eq!(before.difference(&after), None, "seed {seed}");
}

fn sequences(bytes: u64, rules: &Rules, seeds: u64, count: usize) {
    for seed in 0..seeds {
        let fs = fresh(bytes);
        if let Err(found) = run(seed, count, &fs, rules) {
            complain(bytes, rules, &found);
        }
        close_and_open(fs, seed);
    }
}

#[test]
fn sequences_of_a_mount_are_as_the_model_has_them() {
    sequences(LARGE, &mounted(), 120, 600);
}

/// Long sequences on a small medium, of which some must fill it.
fn until_full(rules: &Rules) {
    let (seeds, count) = (60, 2000);
    let is_full = |seed: &u64| run(*seed, count, &fresh(SMALL), rules).is_err();
    let full = (0..seeds).filter(is_full).count();
    assert!(full >= 5, "space ran out in {full} sequences only");
    sequences(SMALL, &Rules { limited: true, ..*rules }, seeds, count);
}

#[test]
fn so_they_are_where_space_runs_out_but_for_zeroed_ranges() {
    fn leave_out(op: &Op) -> bool {
        let zero = matches!(op.act, Act::Allocate { how: Allocate::Zero | Allocate::ZeroKeep, .. });
        zero || (mounted().leave_out)(op)
    }
    until_full(&Rules { leave_out, ..mounted() });
}

#[test]
fn so_they_are_where_space_runs_out() {
    until_full(&mounted());
}

/// Each operation alone, and after some others, which differ from one to the next.
fn every_after_others(rules: &Rules) {
    let all = every();
    for (i, op) in all.iter().enumerate() {
        let before = |n: usize| all[(i * 7919 + n * 104_729) % all.len()].clone();
        for some in [vec![op.clone()], vec![before(1), op.clone()], vec![before(2), before(3), op.clone()]] {
            let ops: Vec<Op> = base().into_iter().chain(some).collect();
            if let Err(found) = replay(&ops, &fresh(LARGE), rules) {
                complain(LARGE, rules, &found);
            }
        }
    }
}

#[test]
fn every_operation_of_a_mount_is_as_the_model_has_it() {
    every_after_others(&Rules { trees: 0, times: 1, ..mounted() });
}

#[test]
fn every_operation_of_all_users_is_as_the_model_has_it() {
    every_after_others(&Rules { trees: 0, times: 1, ..Rules::default() });
}

#[test]
fn sequences_of_all_users_are_as_the_model_has_them() {
    sequences(LARGE, &Rules::default(), 200, 600);
}

/// Contents in a pool on tmpfs, where that is.
fn with_pool() -> (tempfile::TempDir, Arc<Pool>, Fs<Mapped>) {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let pool = Arc::new(Pool::make(dir.path(), None).unwrap());
    let bodies = Some(Arc::clone(&pool) as Arc<dyn Bodies>);
    let format = Format { bodies, ..Format::default() };
    (dir, pool, Fs::format(Mapped::anonymous(LARGE).unwrap(), format).unwrap())
}

/// What a pool has otherwise: where bytes lie, how large a file can be, and ranges that would take all of tmpfs.
fn of_pool() -> Rules {
    Rules { pieces: false, limits: false, ..Rules::default() }
}

#[test]
fn sequences_over_a_pool_are_as_the_model_has_them() {
    for seed in 0..40 {
        let (_dir, pool, fs) = with_pool();
        if let Err(found) = run(seed, 600, &fs, &of_pool()) {
            panic!("seed {seed}: {found}");
        }
        let before = Tree::of(&fs).unwrap();
        let medium = fs.close().unwrap();
        let report = check_pool(&medium, &*pool).unwrap();
        assert!(report.is_clean() && report.closed && report.strays == 0, "seed {seed}: {report:?}");
        let open = Open { bodies: Some(pool), ..Open::default() };
        let after = Tree::of(&Fs::open(medium, open).unwrap()).unwrap();
        assert_eq!(before.difference(&after), None, "seed {seed}");
    }
}
