//! Bugs planted on purpose: the tests of layers, media, wear leveling and the file system find each
//! of them, and find nothing without them.
//!
//! A planted bug affects the thread that plants it. These tests therefore use one thread each.

mod fs_cuts;
mod fs_damage;
mod image_file;
mod layers;
mod wear;

use std::sync::atomic::{AtomicUsize, Ordering};

/// Works on items in one thread for each processor. Each thread has a state of its own.
fn on_all_processors<T: Sync, S: Default>(items: &[T], work: impl Fn(&T, &mut S) + Sync) {
    let next = AtomicUsize::new(0);
    let one_after_another = || {
        let mut state = S::default();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item, &mut state);
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(one_after_another);
        }
    });
}
