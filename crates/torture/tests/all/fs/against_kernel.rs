//! The model gives the same answers, trees and changes of times as the kernel.

use super::kernel::Kernel;
use super::user;
use crate::common::short_or_long;
use frit_fs::{Allocate, FileSystem};
use frit_torture::fs::differential::minimize;
use frit_torture::fs::every::{base, every};
use frit_torture::fs::{Act, Divergence, FsOp, Rules, User, replay, run};
use std::path::{Path, PathBuf};

/// Returns directories of the kernel's file systems to compare with: one on a disk, one in memory.
/// Returns none without root, since the test acts for several users.
fn places() -> Vec<(PathBuf, Rules)> {
    if !user::is_root() {
        println!("skipped: only the superuser can act for several users");
        return Vec::new();
    }
    // The umask is that of the process. Its other tests create files only in private directories.
    rustix::process::umask(rustix::fs::Mode::empty());
    let rules = Rules {
        age: false,
        pieces: false,
        limits: false,
        command_files: false,
        times: 0,
        leave_out,
        ..Rules::default()
    };
    let mut all = vec![(std::env::temp_dir(), rules)];
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        all.push((memory.to_path_buf(), Rules { leave_out: leave_out_of_memory, ..rules }));
    }
    all
}

/// Returns `true` for operations that the kernel cannot perform in the same way.
fn leave_out(op: &FsOp) -> bool {
    match &op.act {
        // The permissions of this caller count as checked, which has no equivalent in a process.
        _ if op.who == User::Trusted => true,
        // `fs.protected_hardlinks` is a rule of the kernel above all file systems.
        Act::Link { .. } => op.who != User::Root,
        _ => false,
    }
}

/// Returns `true` also for ranges of zeros, which tmpfs does not support.
fn leave_out_of_memory(op: &FsOp) -> bool {
    leave_out(op) || matches!(op.act, Act::Allocate { how: Allocate::Zero | Allocate::ZeroKeep, .. })
}

/// A directory of the kernel that is removed when dropped.
struct KernelDir {
    kernel: Kernel,
    _dir: tempfile::TempDir,
}

impl KernelDir {
    fn new(place: &Path) -> KernelDir {
        let dir = tempfile::tempdir_in(place).unwrap();
        KernelDir { kernel: Kernel::new(dir.path()), _dir: dir }
    }
}

/// Fails with the fewest operations that still diverge.
fn complain(place: &Path, rules: &Rules, found: &Divergence) {
    let fresh = || -> Box<dyn FileSystem> {
        let dir = tempfile::tempdir_in(place).unwrap();
        Box::new(Kernel::new(&dir.keep()))
    };
    panic!("{}:\n{}", place.display(), minimize(found, &fresh, rules));
}

#[test]
fn sequences_by_chance_are_as_the_kernel_has_them() {
    for (place, rules) in places() {
        for seed in 0..60 {
            let fresh = KernelDir::new(&place);
            if let Err(found) = run(seed, 400, &fresh.kernel, &rules) {
                complain(&place, &rules, &found);
            }
        }
    }
}

#[test]
fn every_operation_is_as_the_kernel_has_it() {
    let all = every();
    for (place, rules) in places() {
        // Each operation runs alone, and after a pseudo-random other one.
        for (i, op) in all.iter().enumerate().filter(|(_, op)| !(rules.leave_out)(op)) {
            let before = &all[(i * 7919 + 13) % all.len()];
            for some in [vec![op.clone()], vec![before.clone(), op.clone()]] {
                let ops: Vec<FsOp> = base().into_iter().chain(some).collect();
                let fresh = KernelDir::new(&place);
                if let Err(found) = replay(&ops, &fresh.kernel, &rules) {
                    complain(&place, &rules, &found);
                }
            }
        }
    }
}

#[test]
fn times_change_as_the_kernel_changes_them() {
    for (place, rules) in places() {
        // Times are compared only for the last operation, because each comparison waits for the
        // clock.
        let rules = Rules { times: base().len() + 1, ..rules };
        for op in every().iter().step_by(short_or_long(6, 1)).filter(|op| !(rules.leave_out)(op)) {
            let ops: Vec<FsOp> = base().into_iter().chain([op.clone()]).collect();
            let fresh = KernelDir::new(&place);
            if let Err(found) = replay(&ops, &fresh.kernel, &rules) {
                panic!("{}:\n{found}", place.display());
            }
        }
    }
}
