//! Renamed directories, whose new names the kernel does not have yet.
//!
//! The kernel gives a directory its new name after the answer to its request, and holds the locks of both parent
//! directories until then. A notification that needs these locks tells when it is done. Until then, a path of the
//! kernel and the same path in the file system can lead to different directories.

use frit_fs::{Caller, FileSystem, Ino, InodeType, NAME_MAX, RenameMode};
use frit_fuse::Kernel;
use parking_lot::{Mutex, MutexGuard};
use std::ffi::OsStr;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Interval of looking whether the kernel has the new names.
const RETRY: Duration = Duration::from_micros(200);

/// A rename of a directory: its number, and the directories of the old and the new name.
#[derive(Clone, Copy, Debug)]
struct Renamed {
    number: u64,
    parents: [Ino; 2],
}

/// Renames of directories that the kernel may not have done yet.
#[derive(Debug, Default)]
struct InProgress {
    all: Vec<Renamed>,
    next: u64,
}

/// The directories that are renamed at the moment.
#[derive(Debug)]
pub(in crate::fuse::file_system) struct DirectoryRenames {
    in_progress: Arc<Mutex<InProgress>>,
    /// Held when one begins, and while there must be none.
    gate: Mutex<()>,
    answered: Sender<Renamed>,
}

impl DirectoryRenames {
    /// Starts the thread that waits for the kernel, which ends when this value is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(kernel: Arc<OnceLock<Kernel>>) -> io::Result<DirectoryRenames> {
        let (answered, next) = channel();
        let in_progress = Arc::<Mutex<InProgress>>::default();
        let of_thread = Arc::clone(&in_progress);
        let body = move || wait_for_kernel(&next, &kernel, &of_thread);
        std::thread::Builder::new().name("renames".into()).spawn(body)?;
        Ok(DirectoryRenames { in_progress, gate: Mutex::default(), answered })
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
        let is_directory = |(dir, name): (Ino, &[u8])| {
            files.lookup(&Caller::ROOT, dir, name).is_ok_and(|found| found.kind == InodeType::Directory)
        };
        if !(is_directory(from) || mode == RenameMode::Exchange && is_directory(to)) {
            return rename_and_answer();
        }
        let begun = self.begin([from.0, to.0]);
        rename_and_answer();
        // The thread lives as long as this value.
        let _ = self.answered.send(begun);
    }

    fn begin(&self, parents: [Ino; 2]) -> Renamed {
        // The kernel holds the locks of these directories, so it has done all that needed one of them.
        let is_elsewhere = |other: &Renamed| !parents.iter().any(|ino| other.parents.contains(ino));
        self.in_progress.lock().all.retain(is_elsewhere);
        let gate = self.gate.lock();
        let mut in_progress = self.in_progress.lock();
        let begun = Renamed { number: in_progress.next, parents };
        in_progress.next += 1;
        in_progress.all.push(begun);
        drop(in_progress);
        // Whoever waits for a pause is next, however many are renamed.
        MutexGuard::unlock_fair(gate);
        begun
    }

    /// Waits until no directory is renamed, and lets none begin as long as the result is held. Returns `None` if
    /// that lasts longer than until `end`.
    pub(super) fn pause(&self, end: Instant) -> Option<MutexGuard<'_, ()>> {
        let gate = self.gate.try_lock_until(end)?;
        while !self.in_progress.lock().all.is_empty() {
            if Instant::now() >= end {
                return None;
            }
            std::thread::sleep(RETRY);
        }
        Some(gate)
    }
}

/// Waits for the kernel to have renamed directories. This must not be done by a thread that answers requests, for
/// which the kernel waits with these locks.
fn wait_for_kernel(answered: &Receiver<Renamed>, kernel: &OnceLock<Kernel>, in_progress: &Mutex<InProgress>) {
    // Longer than a name can be: there is no entry that could be dropped.
    let no_name = "-".repeat(NAME_MAX + 1);
    while let Ok(Renamed { number, parents }) = answered.recv() {
        if !in_progress.lock().all.iter().any(|other| other.number == number) {
            continue;
        }
        if let Some(kernel) = kernel.get() {
            for directory in parents {
                let _ = kernel.inval_entry(directory.0, OsStr::new(&no_name));
            }
        }
        in_progress.lock().all.retain(|other| other.number != number);
    }
}
