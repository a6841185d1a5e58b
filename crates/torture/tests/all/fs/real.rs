//! The file system on byte-addressable memory gives the same answers as the model.

use super::looked_up::LookedUp;
use frit_fs::{
    Allocate, AnyMedium, ContentStore, FileSystem, FormatOptions, Fs, FsOptions, Mapped, Pool, check,
    check_pool,
};
use frit_torture::fs::compare::Tree;
use frit_torture::fs::differential::minimize;
use frit_torture::fs::every::{base, every};
use frit_torture::fs::{Act, Divergence, FsOp, Rules, User, replay, run};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a medium that no sequence fills.
const LARGE: u64 = 16 << 20;
/// Bytes of a minimal medium, which long sequences fill: 50 blocks.
const SMALL: u64 = 256 << 10;

fn in_memory(bytes: u64) -> AnyMedium {
    Arc::new(Mapped::anonymous(bytes).unwrap())
}

fn fresh(bytes: u64) -> Fs<AnyMedium> {
    let inodes = (bytes == SMALL).then_some(64);
    Fs::format(in_memory(bytes), FormatOptions { inodes, ..FormatOptions::default() }).unwrap()
}

/// Returns the rules of a mount: the kernel checks permissions, and refuses most invalid
/// operations, before it calls the file system.
fn mounted() -> Rules {
    Rules { errors: false, leave_out: |op| matches!(op.who, User::Alice | User::Bob), ..Rules::default() }
}

/// Fails with the fewest operations that still diverge.
fn complain(bytes: u64, rules: &Rules, found: &Divergence) {
    let again = || -> Box<dyn FileSystem> { Box::new(fresh(bytes)) };
    panic!("{} operations, of which these are needed:\n{}", found.ops.len(), minimize(found, &again, rules));
}

/// Closes the file system, which must leave a clean medium, and opens it again, which must give the
/// same tree.
fn close_and_open(fs: Fs<AnyMedium>, seed: u64) {
    let before = Tree::of(&fs).unwrap();
    let medium = fs.close().unwrap();
    let report = check(&medium).unwrap();
    assert!(report.is_clean() && report.closed, "seed {seed}: {report:?}");
    let after = Tree::of(&Fs::open(medium, FsOptions::default()).unwrap()).unwrap();
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

/// Runs long sequences on a small medium. Some of them must fill it.
#[test]
fn sequences_with_inodes_that_are_looked_up_are_as_the_model_has_them() {
    for seed in 0..60 {
        let fs = LookedUp::new(fresh(LARGE));
        if let Err(found) = run(seed, 600, &fs, &mounted()) {
            let again = || -> Box<dyn FileSystem> { Box::new(LookedUp::new(fresh(LARGE))) };
            let few = minimize(&found, &again, &mounted());
            panic!("{} operations, of which these are needed:\n{few}", found.ops.len());
        }
        close_and_open(fs.into_inner(), seed);
    }
}

fn until_full(rules: &Rules) {
    let (seeds, count) = (60, 2000);
    let is_full = |seed: &u64| run(*seed, count, &fresh(SMALL), rules).is_err();
    let full = (0..seeds).filter(is_full).count();
    assert!(full >= 5, "space ran out in {full} sequences only");
    sequences(SMALL, &Rules { limited: true, ..*rules }, seeds, count);
}

#[test]
fn so_they_are_where_space_runs_out_but_for_zeroed_ranges() {
    fn leave_out(op: &FsOp) -> bool {
        let zero = matches!(op.act, Act::Allocate { how: Allocate::Zero | Allocate::ZeroKeep, .. });
        zero || (mounted().leave_out)(op)
    }
    until_full(&Rules { leave_out, ..mounted() });
}

#[test]
fn so_they_are_where_space_runs_out() {
    until_full(&mounted());
}

/// Runs each operation alone, and after some others that vary from one operation to the next.
fn every_after_others(rules: &Rules) {
    let all = every();
    for (i, op) in all.iter().enumerate() {
        let before = |n: usize| all[(i * 7919 + n * 104_729) % all.len()].clone();
        for some in [vec![op.clone()], vec![before(1), op.clone()], vec![before(2), before(3), op.clone()]] {
            let ops: Vec<FsOp> = base().into_iter().chain(some).collect();
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

/// Creates a file system with contents in a pool, on tmpfs if that exists.
fn with_pool() -> (tempfile::TempDir, Arc<Pool>, Fs<AnyMedium>) {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let pool = Arc::new(Pool::make(dir.path(), None).unwrap());
    let content_store = Some(Arc::clone(&pool) as Arc<dyn ContentStore>);
    let format = FormatOptions { content_store, ..FormatOptions::default() };
    (dir, pool, Fs::format(in_memory(LARGE), format).unwrap())
}

/// Returns the rules for a pool. Positions of bytes and the largest size of a file differ there,
/// and some ranges would fill all of tmpfs.
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
        let open = FsOptions { content_store: Some(pool), ..FsOptions::default() };
        let after = Tree::of(&Fs::open(medium, open).unwrap()).unwrap();
        assert_eq!(before.difference(&after), None, "seed {seed}");
    }
}
