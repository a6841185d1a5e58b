//! Files of instructions, found with the rights that all authors of an instruction have.

use super::contents::{EngineContents, MountedDestination};
use super::views::MountLimits;
use crate::fuse::file_system::killpriv::KillprivCache;
use crate::fuse::file_system::requester::{self, Credentials};
use frit_fs::{
    Attr, Caller, Error, FileContents, InStorage, Ino, Paths, REGISTER_QUERIES, RegisterSet, RegisterStatus,
};
use frit_fuse::Kernel;
use frit_isp::{
    Answer, Command, Destination, Instruction, Outcome, ResolveError, Resolver, Source, Target, Ticket,
};
use parking_lot::Mutex;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};

/// Finds the files of the instructions of one write.
pub(super) struct CallerFiles<F> {
    pub(super) files: Arc<F>,
    /// Directory of the command file.
    pub(super) directory: Ino,
    /// Authors of the instructions, the opener of the command file first; permissions are checked here, of each.
    pub(super) authors: Arc<[Credentials]>,
    /// Limits of the mounts of the authors.
    pub(super) limits: MountLimits,
    /// Thread that wrote the instructions.
    pub(super) thread: u32,
    pub(super) killpriv: Arc<KillprivCache>,
    /// The kernel has data and sizes of files that it has not written.
    pub(super) writeback: bool,
    /// Kernel whose cache has to drop what the engine changes.
    pub(super) kernel: Arc<OnceLock<Kernel>>,
    /// Contents that the last instruction reads.
    pub(super) reads: Mutex<Option<Arc<dyn FileContents>>>,
}

/// Returns the error of an instruction whose file cannot be opened.
pub fn resolve_error(error: Error) -> ResolveError {
    match error {
        Error::NotFound | Error::Stale | Error::NameTooLong => ResolveError::NotFound,
        Error::NotDirectory => ResolveError::NotDirectory,
        Error::Access | Error::NotPermitted => ResolveError::Denied,
        error @ Error::Placed { .. } => ResolveError::Refused(error.to_string()),
        Error::IsDirectory | Error::Invalid(_) => ResolveError::NotFile,
        Error::Covered => ResolveError::Invalid(
            "something else is mounted on the file or on a directory of its path, and no instruction leads through \
             another mount; give it in the mounted directory, if that is of a file system of frit"
                .into(),
        ),
        Error::Unsupported(_) => ResolveError::Invalid(
            "a symbolic link in the path leads out of the directory of the command file, or to an absolute path; name \
             the file itself, in the command file of a directory above both"
                .into(),
        ),
        error @ Error::TooManyLinks => ResolveError::Invalid(error.to_string()),
        error => ResolveError::Other(error.to_string()),
    }
}

impl<F: InStorage> CallerFiles<F> {
    /// Opens a file that each author finds, and may open.
    fn open(&self, target: &Target, writes: bool) -> Result<Arc<dyn FileContents>, ResolveError> {
        let mut opened: Option<Arc<dyn FileContents>> = None;
        for author in &*self.authors {
            let contents = self.open_as(&author.caller, target, writes)?;
            if opened.as_ref().is_some_and(|first| first.ino() != contents.ino()) {
                return Err(ResolveError::Other(
                    "another program renames it; give the instruction again".into(),
                ));
            }
            opened.get_or_insert(contents);
        }
        opened.ok_or(ResolveError::Denied)
    }

    fn open_as(
        &self,
        caller: &Caller,
        target: &Target,
        writes: bool,
    ) -> Result<Arc<dyn FileContents>, ResolveError> {
        let attr = match target {
            Target::Name(path) => {
                let path = path.as_os_str().as_bytes();
                let found = match writes {
                    true => {
                        self.files.resolve_target_below(caller, self.directory, path, &self.limits.covered)
                    }
                    false => self.files.resolve_below(caller, self.directory, path, &self.limits.covered),
                };
                found.map_err(resolve_error)?
            }
            Target::Inode(number) => self.named_here(caller, Ino(*number), writes)?,
            Target::Extents(_) => return Err(ResolveError::NotFile),
        };
        Arc::clone(&self.files).open_contents(caller, attr.ino, writes).map_err(resolve_error)
    }

    /// Finds an inode by its number among the names of the directory. A number alone would avoid the
    /// permissions of the directories on the path, and show files whose names the caller may not list.
    fn named_here(&self, caller: &Caller, wanted: Ino, writes: bool) -> Result<Attr, ResolveError> {
        self.files.check_listing(caller, self.directory).map_err(resolve_error)?;
        if self.limits.covered.contains(&wanted) {
            return Err(resolve_error(Error::Covered));
        }
        let mut name = None;
        let listed = self.files.read_dir(self.directory, 2, &mut |entry| {
            if entry.ino == wanted {
                name = Some(entry.name.to_vec());
            }
            name.is_none()
        });
        match name {
            Some(name) if writes => {
                let found =
                    self.files.resolve_target_below(caller, self.directory, &name, &self.limits.covered);
                found.map_err(resolve_error)
            }
            Some(name) => self.files.lookup(caller, self.directory, &name).map_err(resolve_error),
            None => Err(listed.err().map_or(ResolveError::NotFound, resolve_error)),
        }
    }
}

impl<F: InStorage + 'static> Resolver for CallerFiles<F> {
    fn source(&self, target: &Target) -> Result<Arc<dyn Source>, ResolveError> {
        let contents = self.open(target, false)?;
        *self.reads.lock() = Some(Arc::clone(&contents));
        Ok(Arc::new(EngineContents::new(contents)))
    }

    fn destination(&self, target: &Target) -> Result<Arc<dyn Destination>, ResolveError> {
        if self.writeback {
            return Err(ResolveError::Invalid(
                "a mount with --writeback allows no copy, because the kernel has sizes and contents of files that \
                 it has not written yet; mount without --writeback, or unmount and use frit isp run --image"
                    .into(),
            ));
        }
        if self.limits.is_read_only {
            return Err(ResolveError::Refused(
                "the mount is read-only for an author of the instruction; a copy needs a mount on which each of them \
                 can write"
                    .into(),
            ));
        }
        let contents = self.open(target, true)?;
        if self.reads.lock().as_ref().is_some_and(|reads| reads.ino() == contents.ino()) {
            return Err(ResolveError::Invalid(
                "the file is the one that the instruction reads; name another".into(),
            ));
        }
        Ok(Arc::new(MountedDestination {
            contents,
            files: Arc::clone(&self.files),
            killpriv: Arc::clone(&self.killpriv),
            authors: Arc::clone(&self.authors),
            bytes_max: requester::file_bytes_max(self.thread),
            kernel: Arc::clone(&self.kernel),
        }))
    }

    fn started(&self, instruction: &Instruction, ticket: &Ticket) {
        let Some(contents) = self.reads.lock().take() else { return };
        let set = registers_of(instruction, contents.ino());
        let held = self.files.start_registers(&set);
        let (files, done) = (Arc::clone(&self.files), ticket.clone());
        ticket.on_complete(move || {
            if let Some(outcome) = done.try_wait() {
                files.finish_registers(held, &with_results(set, &outcome));
            }
        });
    }
}

/// Returns the registers of an instruction that begins.
fn registers_of(instruction: &Instruction, ino: Ino) -> RegisterSet {
    let queries = match &instruction.command {
        Command::Words(words) => words.words.iter().take(REGISTER_QUERIES).cloned().collect(),
        _ => Vec::new(),
    };
    RegisterSet {
        command: instruction.command.code(),
        ino: ino.0,
        offset: instruction.range.offset,
        len: instruction.range.length.unwrap_or(u64::MAX),
        queries,
        ..RegisterSet::default()
    }
}

fn with_results(mut set: RegisterSet, outcome: &Outcome) -> RegisterSet {
    set.status = if outcome.result.is_ok() { RegisterStatus::Complete } else { RegisterStatus::Failed };
    set.error = outcome.status() as u64;
    set.scanned = outcome.work.bytes_scanned;
    set.time_ns = outcome.work.wall_ns;
    set.firsts = [u64::MAX; REGISTER_QUERIES];
    if let Ok(Answer::Words(answer)) = &outcome.result {
        for (i, word) in answer.words.iter().take(REGISTER_QUERIES).enumerate() {
            set.counts[i] = word.count;
            set.firsts[i] = word.positions.first().copied().unwrap_or(u64::MAX);
        }
    }
    set
}
