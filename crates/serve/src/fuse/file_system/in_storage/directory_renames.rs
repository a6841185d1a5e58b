//! Renamed directories, whose new names the kernel may not have yet.
//!
//! The kernel gives a directory its new name after the answer to its request. Until then, a path of the kernel and
//! the same path in the file system can lead to different directories. It holds the locks of both parent directories
//! meanwhile, so a notification that needs these locks tells when it is done, and so does the next request that needs
//! one of them.

use frit_fs::{Caller, FileSystem, Ino, InodeType, NAME_MAX, RenameMode};
use frit_fuse::Kernel;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

/// Number of renames that are remembered. If there were more while a path was resolved, nothing is known of it.
const REMEMBERED: usize = 4096;

/// A name in a directory.
pub(super) type Name = (Ino, Vec<u8>);

/// A rename of one directory, or of two that are exchanged.
#[derive(Debug)]
pub(super) struct Renamed {
    number: u64,
    names: [Name; 2],
    moved: Vec<Ino>,
}

impl Renamed {
    fn has_parent(&self, parents: [Ino; 2]) -> bool {
        self.names.iter().any(|(parent, _)| parents.contains(parent))
    }
}

#[derive(Debug, Default)]
struct Renames {
    /// Those that the kernel may not have done.
    in_progress: Vec<Arc<Renamed>>,
    /// The last ones, done or not, by their numbers.
    last: VecDeque<Arc<Renamed>>,
    next: u64,
}

/// A moment, with the renames that the kernel may not have done then.
#[derive(Debug)]
pub(super) struct Moment {
    next: u64,
    in_progress: Vec<Arc<Renamed>>,
}

/// The directories that are renamed.
#[derive(Debug)]
pub(in crate::fuse::file_system) struct DirectoryRenames {
    renames: Arc<Mutex<Renames>>,
    answered: Sender<Arc<Renamed>>,
}

impl DirectoryRenames {
    /// Starts the thread that waits for the kernel, which ends when this value is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(kernel: Arc<OnceLock<Kernel>>) -> io::Result<DirectoryRenames> {
        let (answered, next) = channel();
        let renames = Arc::<Mutex<Renames>>::default();
        let of_thread = Arc::clone(&renames);
        let body = move || wait_for_kernel(&next, &kernel, &of_thread);
        std::thread::Builder::new().name("renames".into()).spawn(body)?;
        Ok(DirectoryRenames { renames, answered })
    }

    /// Executes a rename, and answers it.
    pub(in crate::fuse::file_system) fn during<F: FileSystem>(
        &self,
        files: &F,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
        rename_and_answer: impl FnOnce(),
    ) {
        let directory = |(dir, name): (Ino, &[u8])| {
            let found = files.lookup(&Caller::ROOT, dir, name).ok();
            found.filter(|found| found.kind == InodeType::Directory).map(|found| found.ino)
        };
        let mut moved: Vec<_> = directory(from).into_iter().collect();
        if mode == RenameMode::Exchange {
            moved.extend(directory(to));
        }
        if moved.is_empty() {
            return rename_and_answer();
        }
        let begun = self.begin([(from.0, from.1.into()), (to.0, to.1.into())], moved);
        rename_and_answer();
        // The thread lives as long as this value.
        let _ = self.answered.send(begun);
    }

    fn begin(&self, names: [Name; 2], moved: Vec<Ino>) -> Arc<Renamed> {
        let parents = [names[0].0, names[1].0];
        let mut renames = self.renames.lock();
        // The kernel holds the locks of these directories, so it has done all that needed one of them.
        renames.in_progress.retain(|other| !other.has_parent(parents));
        let begun = Arc::new(Renamed { number: renames.next, names, moved });
        renames.next += 1;
        renames.in_progress.push(Arc::clone(&begun));
        if renames.last.len() >= REMEMBERED {
            renames.last.pop_front();
        }
        renames.last.push_back(Arc::clone(&begun));
        begun
    }

    /// Returns the present moment.
    pub(super) fn now(&self) -> Moment {
        let renames = self.renames.lock();
        Moment { next: renames.next, in_progress: renames.in_progress.clone() }
    }

    /// Returns the directories that have got or lost one of these names since a moment, or may have. `None` if they
    /// are no longer known.
    pub(super) fn moved_since(&self, moment: &Moment, is_name: impl Fn(&Name) -> bool) -> Option<Vec<Ino>> {
        let renames = self.renames.lock();
        let later = renames.next - moment.next;
        let later = usize::try_from(later).ok().filter(|later| *later <= renames.last.len())?;
        let of_them = |renamed: &&Arc<Renamed>| renamed.names.iter().any(&is_name);
        let all = moment.in_progress.iter().chain(renames.last.iter().rev().take(later));
        Some(all.filter(of_them).flat_map(|renamed| renamed.moved.iter().copied()).collect())
    }
}

/// Waits for the kernel to have renamed directories. This must not be done by a thread that answers requests, for
/// which the kernel waits with these locks.
fn wait_for_kernel(answered: &Receiver<Arc<Renamed>>, kernel: &OnceLock<Kernel>, renames: &Mutex<Renames>) {
    // Longer than a name can be: there is no entry that could be dropped.
    let no_name = "-".repeat(NAME_MAX + 1);
    while let Ok(renamed) = answered.recv() {
        let is_it = |other: &Arc<Renamed>| other.number == renamed.number;
        if !renames.lock().in_progress.iter().any(is_it) {
            continue;
        }
        if let Some(kernel) = kernel.get() {
            for (directory, _) in &renamed.names {
                let _ = kernel.inval_entry(directory.0, OsStr::new(&no_name));
            }
        }
        renames.lock().in_progress.retain(|other| !is_it(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(dir: u64, name: &str) -> Name {
        (Ino(dir), name.into())
    }

    #[test]
    fn a_path_is_in_doubt_while_one_of_its_names_moves() {
        let renames = DirectoryRenames::start(Arc::default()).unwrap();
        let moved =
            |moment: &Moment, names: &[Name]| renames.moved_since(moment, |name| names.contains(name));
        let path = [name(1, "a"), name(7, "x")];
        let before = renames.now();
        let first = renames.begin([name(1, "a"), name(1, "b")], vec![Ino(7)]);
        let during = renames.now();
        for moment in [&before, &during] {
            assert_eq!(moved(moment, &path), Some(vec![Ino(7)]));
            assert_eq!(moved(moment, &[name(2, "a"), name(1, "c")]), Some(Vec::new()), "other names");
        }
        // Nothing tells that the kernel has done it, until it sends another one with the same lock.
        renames.begin([name(1, "c"), name(3, "d")], vec![Ino(8), Ino(9)]);
        let after = renames.now();
        assert_eq!((moved(&after, &path), moved(&during, &path)), (Some(vec![]), Some(vec![Ino(7)])));
        assert_eq!(moved(&after, &[name(3, "d")]), Some(vec![Ino(8), Ino(9)]));
        // Without a kernel, the thread finds at once that it is done.
        let second = Arc::clone(&renames.renames.lock().in_progress[0]);
        renames.answered.send(first).unwrap();
        renames.answered.send(second).unwrap();
        while !renames.renames.lock().in_progress.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(moved(&renames.now(), &[name(3, "d")]), Some(Vec::new()));
        for _ in 0..=REMEMBERED {
            renames.begin([name(4, "e"), name(4, "f")], vec![Ino(10)]);
        }
        assert_eq!(moved(&after, &path), None, "there were too many");
    }
}
