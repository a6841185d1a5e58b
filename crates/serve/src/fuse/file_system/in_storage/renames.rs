//! Renames, which the file system does before the kernel.
//!
//! The kernel gives a file or directory its new name after the answer to its request. Until then, a path of the kernel
//! and the same path in the file system can lead to different inodes; and a path that the kernel has told may have
//! changed before it is found. So whoever finds paths of the kernel asks here which of their names were renamed
//! meanwhile.
//!
//! The kernel has done a rename when its thread asks for the next one, or has ended. Else it is asked: it holds the
//! locks of both parent directories meanwhile, and a notification needs them.

use frit_fs::{Ino, NAME_MAX, Result};
use frit_fuse::Kernel;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Number of renames that are remembered while paths are found. If there were more, nothing is known of them.
const REMEMBERED: usize = 1 << 16;
/// Number of renames of different threads from which on those of ended threads are looked for.
const SWEEP_FROM: usize = 64;
/// Number of threads that ask the kernel. Somebody can hold the lock of a directory for as long as they like.
const ASKING_MAX: usize = 32;

/// Name in a directory, as a number. Names that have the same one by chance cost another attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct NameNumber(u64);

#[derive(Clone, Copy, Debug)]
struct Renamed {
    number: u64,
    /// Thread that has asked for it. 0: it is not visible here.
    thread: u32,
    names: [NameNumber; 2],
    parents: [Ino; 2],
}

impl Renamed {
    /// A thread waits for the answer to one rename at a time. Those of threads that are not visible differ by number.
    fn key(&self) -> (u32, u64) {
        (self.thread, if self.thread == 0 { self.number } else { 0 })
    }
}

#[derive(Debug)]
struct State {
    /// Those that the kernel may not have done.
    in_progress: HashMap<(u32, u64), Renamed>,
    /// The last ones, by their numbers, while paths are found.
    last: VecDeque<Renamed>,
    next: u64,
    /// Number of those who find paths.
    finders: usize,
    sweep_from: usize,
    asking: usize,
}

impl State {
    fn is_in_progress(&self, renamed: &Renamed) -> bool {
        self.in_progress.get(&renamed.key()).is_some_and(|other| other.number == renamed.number)
    }

    fn remove(&mut self, renamed: &Renamed) {
        if self.is_in_progress(renamed) {
            self.in_progress.remove(&renamed.key());
        }
    }

    /// Removes the renames of threads that have ended.
    fn sweep(&mut self) {
        let is_there = |thread: u32| thread == 0 || Path::new(&format!("/proc/{thread}")).exists();
        self.in_progress.retain(|_, renamed| is_there(renamed.thread));
        self.sweep_from = (2 * self.in_progress.len()).max(SWEEP_FROM);
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The kernel has done a rename.
    done: Condvar,
    kernel: Arc<OnceLock<Kernel>>,
}

/// Renames in a file system.
#[derive(Debug)]
pub(in crate::fuse::file_system) struct Renames {
    shared: Arc<Shared>,
    numbers: RandomState,
}

impl Renames {
    pub(super) fn new(kernel: Arc<OnceLock<Kernel>>) -> Renames {
        let state = State {
            in_progress: HashMap::new(),
            last: VecDeque::new(),
            next: 0,
            finders: 0,
            sweep_from: SWEEP_FROM,
            asking: 0,
        };
        let shared = Shared { state: Mutex::new(state), done: Condvar::new(), kernel };
        Renames { shared: Arc::new(shared), numbers: RandomState::new() }
    }

    /// Executes a rename that a thread has asked for, and answers it.
    pub(in crate::fuse::file_system) fn during(
        &self,
        thread: u32,
        names: [(Ino, &[u8]); 2],
        rename: impl FnOnce() -> Result<()>,
        answer: impl FnOnce(Result<()>),
    ) {
        let begun = self.begin(thread, names);
        let result = rename();
        let is_done = result.is_ok();
        if !is_done {
            self.cancel(&begun);
        }
        answer(result);
        if is_done && thread == 0 {
            self.ask_kernel(&begun);
        }
    }

    fn begin(&self, thread: u32, names: [(Ino, &[u8]); 2]) -> Renamed {
        let (parents, names) = (names.map(|(parent, _)| parent), names.map(|name| self.number(name)));
        let mut state = self.shared.state.lock();
        let begun = Renamed { number: state.next, thread, names, parents };
        state.next += 1;
        state.in_progress.insert(begun.key(), begun);
        if state.in_progress.len() > state.sweep_from {
            state.sweep();
        }
        if state.finders > 0 {
            if state.last.len() >= REMEMBERED {
                state.last.pop_front();
            }
            state.last.push_back(begun);
        }
        begun
    }

    /// Forgets a rename that has failed, so that those without a permission disturb nobody.
    fn cancel(&self, begun: &Renamed) {
        let mut state = self.shared.state.lock();
        state.remove(begun);
        if let Ok(at) = state.last.binary_search_by_key(&begun.number, |renamed| renamed.number) {
            // Its place stays, by which the number of renames is known.
            state.last[at].names = [NameNumber(0); 2];
        }
    }

    /// Returns the number of a name.
    pub(super) fn number(&self, (directory, name): (Ino, &[u8])) -> NameNumber {
        // No name has number 0.
        NameNumber(self.numbers.hash_one((directory.0, name)).max(1))
    }

    /// Begins to find paths of the kernel.
    pub(super) fn find(&self) -> Finding<'_> {
        let mut state = self.shared.state.lock();
        state.finders += 1;
        let in_progress = state.in_progress.values().copied().collect();
        Finding { renames: self, next: state.next, in_progress }
    }

    /// Asks the kernel whether it has done a rename, in another thread: for a thread that answers requests, the kernel
    /// waits with these locks.
    fn ask_kernel(&self, renamed: &Renamed) {
        let mut state = self.shared.state.lock();
        if !state.is_in_progress(renamed) || state.asking >= ASKING_MAX {
            return;
        }
        let (shared, renamed) = (Arc::clone(&self.shared), *renamed);
        let ask = move || {
            // Longer than a name can be: there is no entry that could be dropped.
            let no_name = "-".repeat(NAME_MAX + 1);
            if let Some(kernel) = shared.kernel.get() {
                for directory in renamed.parents {
                    let _ = kernel.inval_entry(directory.0, OsStr::new(&no_name));
                }
            }
            let mut state = shared.state.lock();
            state.remove(&renamed);
            state.asking -= 1;
            shared.done.notify_all();
        };
        // Without a thread, it is asked at the next attempt.
        let is_asked = std::thread::Builder::new().name("renames".into()).spawn(ask).is_ok();
        state.asking += usize::from(is_asked);
    }
}

/// Paths of the kernel are found.
#[derive(Debug)]
pub(super) struct Finding<'r> {
    renames: &'r Renames,
    /// Number of the first rename that came later.
    next: u64,
    /// Those that the kernel may not have done when it began.
    in_progress: Vec<Renamed>,
}

impl Finding<'_> {
    /// Returns `true` if none of the names was renamed since it began. Else it waits until the kernel has done these
    /// renames, but not longer than `patience`.
    pub(super) fn is_undisturbed(&self, is_name: impl Fn(NameNumber) -> bool, patience: Duration) -> bool {
        let shared = &self.renames.shared;
        let state = shared.state.lock();
        let later = usize::try_from(state.next - self.next).unwrap_or(usize::MAX);
        if later > state.last.len() {
            return false;
        }
        let all = self.in_progress.iter().chain(state.last.iter().rev().take(later));
        let disturbing: Vec<_> =
            all.filter(|renamed| renamed.names.into_iter().any(&is_name)).copied().collect();
        drop(state);
        disturbing.iter().for_each(|renamed| self.renames.ask_kernel(renamed));
        let end = Instant::now() + patience;
        let mut state = shared.state.lock();
        while disturbing.iter().any(|renamed| state.is_in_progress(renamed)) {
            if shared.done.wait_until(&mut state, end).timed_out() {
                break;
            }
        }
        disturbing.is_empty()
    }
}

impl Drop for Finding<'_> {
    fn drop(&mut self) {
        let mut state = self.renames.shared.state.lock();
        state.finders -= 1;
        if state.finders == 0 {
            state.last.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_fs::Error;

    type Named<'a> = (Ino, &'a [u8]);

    fn name(dir: u64, name: &str) -> Named<'_> {
        (Ino(dir), name.as_bytes())
    }

    /// Returns `true` if no rename disturbs one who has found these names.
    fn finds(renames: &Renames, finding: &Finding<'_>, names: &[Named<'_>]) -> bool {
        let numbers: Vec<_> = names.iter().map(|name| renames.number(*name)).collect();
        finding.is_undisturbed(|number| numbers.contains(&number), Duration::ZERO)
    }

    fn rename(renames: &Renames, thread: u32, names: [Named<'_>; 2], is_allowed: bool) {
        let result = || if is_allowed { Ok(()) } else { Err(Error::Access) };
        renames.during(thread, names, result, |answer| assert_eq!(answer.is_ok(), is_allowed));
    }

    #[test]
    fn a_rename_disturbs_until_its_thread_asks_for_another_one() {
        let renames = Renames::new(Arc::default());
        let thread = std::process::id();
        let path = [name(1, "a"), name(7, "x")];
        let before = renames.find();
        rename(&renames, thread, [name(1, "a"), name(1, "b")], true);
        let meanwhile = renames.find();
        assert!(finds(&renames, &before, &[name(2, "a"), name(1, "c")]), "other names");
        rename(&renames, thread, [name(1, "c"), name(3, "d")], true);
        let later = renames.find();
        assert!(!finds(&renames, &before, &path) && !finds(&renames, &meanwhile, &path));
        assert!(finds(&renames, &later, &path) && !finds(&renames, &later, &[name(3, "d")]));
    }

    #[test]
    fn the_kernel_is_asked_for_a_rename_that_disturbs() {
        let renames = Renames::new(Arc::default());
        // Of threads that are not visible, it is asked for each.
        rename(&renames, 0, [name(1, "a"), name(1, "b")], true);
        rename(&renames, std::process::id(), [name(5, "y"), name(5, "z")], true);
        let asked = [renames.number(name(1, "b")), renames.number(name(5, "y"))];
        let is_name = |number| asked.contains(&number);
        // Without a kernel, a thread finds at once that it is done.
        renames.find().is_undisturbed(is_name, Duration::from_secs(60));
        assert!(renames.find().is_undisturbed(is_name, Duration::ZERO));
        assert!(renames.shared.state.lock().in_progress.is_empty());
    }

    #[test]
    fn a_rename_that_fails_disturbs_nobody() {
        let renames = Renames::new(Arc::default());
        let finding = renames.find();
        for thread in [0, std::process::id()] {
            rename(&renames, thread, [name(1, "a"), name(1, "b")], false);
        }
        assert!(finds(&renames, &finding, &[name(1, "a")]));
        assert!(finds(&renames, &renames.find(), &[name(1, "a")]));
    }

    #[test]
    fn too_many_renames_are_not_known() {
        let renames = Renames::new(Arc::default());
        let finding = renames.find();
        let thread = std::process::id();
        for _ in 0..REMEMBERED {
            rename(&renames, thread, [name(4, "e"), name(4, "f")], true);
        }
        assert!(finds(&renames, &finding, &[name(1, "a")]));
        rename(&renames, thread, [name(4, "e"), name(4, "f")], true);
        assert!(!finds(&renames, &finding, &[name(1, "a")]));
        drop(finding);
        assert!(renames.shared.state.lock().last.is_empty(), "nobody finds paths");
    }

    #[test]
    fn renames_of_threads_that_have_ended_are_forgotten() {
        let renames = Renames::new(Arc::default());
        // Numbers beyond those that a kernel gives.
        for thread in 0..3 * SWEEP_FROM as u32 {
            rename(&renames, u32::MAX - thread, [name(1, "a"), name(1, "b")], true);
        }
        assert!(renames.shared.state.lock().in_progress.len() <= SWEEP_FROM);
    }
}
