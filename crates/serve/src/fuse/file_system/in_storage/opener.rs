//! The opener of a command file, and who may give instructions through it.
//!
//! A program can be made to write what somebody else chooses: a set-user-ID program prints its arguments to
//! the descriptor that it inherits, and a backup copies a file whose name is `.isp`. So an instruction needs
//! more than a write: the opener has begun instructions by a request that no such program sends, the writer is
//! the opener unless the opener has shared the file, and the instruction has only the rights that the opener
//! had when it opened the file and that each author of its bytes has now. docs/design/security.md gives the
//! reasons.

use super::views::MountLimits;
use crate::fuse::file_system::requester::{Credentials, Sender};
use frit_fs::{Error, Result};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// Number of different authors of the bytes of one instruction, at most. A shell and its children have the
/// same rights, and count once.
const AUTHORS_MAX: usize = 8;

/// Process that has opened command files. Its number alone could belong to a later process.
#[derive(Debug)]
pub(super) struct OpenerProcess {
    number: u32,
    /// Readable when the process has ended.
    descriptor: OwnedFd,
}

impl OpenerProcess {
    fn is_running(&self) -> bool {
        let mut polled = [PollFd::new(&self.descriptor, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    }
}

/// Processes that have command files open.
#[derive(Debug, Default)]
pub(super) struct OpenerProcesses(Mutex<HashMap<u32, Weak<OpenerProcess>>>);

impl OpenerProcesses {
    /// Returns the process of a sender, which waits for the answer.
    ///
    /// # Errors
    /// This process has too many open files.
    pub(super) fn of(&self, sender: &Sender) -> Result<Arc<OpenerProcess>> {
        let mut all = self.0.lock();
        let known = all.get(&sender.process).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.is_running()) {
            return Ok(known);
        }
        all.retain(|_, process| process.strong_count() > 0);
        let number = i32::try_from(sender.process).ok().and_then(Pid::from_raw).ok_or(Error::NotPermitted)?;
        let os = |error: rustix::io::Errno| Error::Os {
            what: "cannot watch the process",
            path: format!("/proc/{}", sender.process).into(),
            error: error.into(),
        };
        let descriptor = pidfd_open(number, PidfdFlags::empty()).map_err(os)?;
        let process = Arc::new(OpenerProcess { number: sender.process, descriptor });
        all.insert(sender.process, Arc::downgrade(&process));
        Ok(process)
    }
}

/// Processes that may give instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Begun {
    /// None: the file was opened.
    No,
    /// The opener.
    Own,
    /// All that have the descriptor.
    Shared,
}

/// The opener of a command file, with the rights that it had then.
#[derive(Debug)]
pub(super) struct Opener {
    rights: Credentials,
    process: Arc<OpenerProcess>,
    begun: Mutex<Begun>,
    authors: Mutex<Authors>,
}

/// Authors of the instruction that is not complete.
#[derive(Default, Debug)]
struct Authors {
    /// Those that do not have the rights of the opener.
    others: Vec<Credentials>,
    /// Limits of the mounts of all authors.
    limits: MountLimits,
    /// The same of those who began instructions.
    limits_of_opener: MountLimits,
}

impl Opener {
    pub(super) fn new(sender: Sender, process: Arc<OpenerProcess>) -> Opener {
        let begun = Mutex::new(Begun::No);
        Opener { rights: sender.rights, process, begun, authors: Mutex::default() }
    }

    /// User ID of the opener.
    pub(super) fn uid(&self) -> u32 {
        self.rights.caller.uid
    }

    fn is_process_of(&self, sender: &Sender) -> bool {
        sender.process == self.process.number && self.process.is_running()
    }

    /// Lets the opener give instructions, and if `shared` all others that have the descriptor. `limits` are those of
    /// the mount through which the file was opened.
    ///
    /// # Errors
    /// The sender neither is the opener nor has its rights, with which it could open the file itself.
    pub(super) fn begin(&self, sender: &Sender, shared: bool, limits: &MountLimits) -> Result<()> {
        if !self.is_process_of(sender) && !self.rights.are_known_to_equal(&sender.rights) {
            return Err(Error::NotPermitted);
        }
        let mut authors = self.authors.lock();
        authors.limits_of_opener.add(limits);
        authors.limits.add(limits);
        drop(authors);
        *self.begun.lock() = if shared { Begun::Shared } else { Begun::Own };
        Ok(())
    }

    /// Executes `write` for a sender, with the opener and the authors of the instructions, and with the limits of the
    /// mounts of all of them: for the sender, `limits`. `has_rest` tells if the channel has an instruction that is not
    /// complete.
    ///
    /// # Errors
    /// The sender may give no instructions, or the instruction has too many authors.
    pub(super) fn write<T>(
        &self,
        (sender, limits): (&Sender, &MountLimits),
        has_rest: impl Fn() -> bool,
        write: impl FnOnce(Vec<Credentials>, MountLimits) -> T,
    ) -> Result<T> {
        let may_write = match *self.begun.lock() {
            Begun::No => false,
            Begun::Own => self.is_process_of(sender),
            Begun::Shared => true,
        };
        if !may_write {
            return Err(Error::NotPermitted);
        }
        // Held until the bytes are written, so that bytes and authors belong together.
        let mut authors = self.authors.lock();
        if !has_rest() {
            authors.others.clear();
            authors.limits = authors.limits_of_opener.clone();
        }
        if sender.rights != self.rights && !authors.others.contains(&sender.rights) {
            if authors.others.len() >= AUTHORS_MAX {
                return Err(Error::NotPermitted);
            }
            authors.others.push(sender.rights.clone());
        }
        authors.limits.add(limits);
        let all = std::iter::once(&self.rights).chain(&authors.others).cloned().collect();
        Ok(write(all, authors.limits.clone()))
    }
}
