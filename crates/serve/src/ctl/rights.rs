//! Access rights, based on credentials reported by the kernel.

use super::wire::{ControlOperation, RefusalKind, Refused};
use std::io;
use std::os::unix::net::UnixStream;

/// The process at the other end of the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerCredentials {
    /// Effective user ID.
    pub uid: u32,
    /// Process ID.
    pub pid: i32,
}

impl PeerCredentials {
    /// Returns the process that connected (`SO_PEERCRED`: its credentials at the time of
    /// connecting).
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn of(stream: &UnixStream) -> io::Result<PeerCredentials> {
        let cred = rustix::net::sockopt::socket_peercred(stream)?;
        Ok(PeerCredentials { uid: cred.uid.as_raw(), pid: cred.pid.as_raw_nonzero().get() })
    }
}

/// Access rights of a server: its own user and root may do everything, other users nothing, or only
/// read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// User that the server runs as.
    pub owner: u32,
    /// Other users may use `get` and `stat`.
    pub read_all: bool,
}

impl Rights {
    /// Returns the access rights of a server that runs as the user of this process.
    #[must_use]
    pub fn of_this_process(read_all: bool) -> Rights {
        Rights { owner: rustix::process::geteuid().as_raw(), read_all }
    }

    /// Checks that the caller may send a request.
    ///
    /// # Errors
    /// A refusal that names the users who may.
    pub fn check(self, caller: PeerCredentials, what: &ControlOperation) -> Result<(), Refused> {
        let changes = what.changes();
        if caller.uid == 0 || caller.uid == self.owner || (self.read_all && !changes) {
            return Ok(());
        }
        let may = if changes { "change parameters" } else { "read its state" };
        let hint = if changes { "" } else { ", or all users with --ctl-read-all" };
        let (owner, uid) = (self.owner, caller.uid);
        let what = format!("user {uid} may not {may}; only user {owner}, who serves it, and root may{hint}");
        Err(Refused::new(RefusalKind::Denied, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_change_anything() {
        let set = ControlOperation::Set { changes: vec![] };
        let looks = [ControlOperation::Get { key: None }, ControlOperation::Stat {}];
        for read_all in [false, true] {
            let rights = Rights { owner: 1000, read_all };
            for uid in [0, 1000] {
                assert!(rights.check(PeerCredentials { uid, pid: 1 }, &set).is_ok());
                assert!(looks.iter().all(|l| rights.check(PeerCredentials { uid, pid: 1 }, l).is_ok()));
            }
            let other = PeerCredentials { uid: 1001, pid: 1 };
            assert_eq!(rights.check(other, &set).unwrap_err().kind, RefusalKind::Denied);
            assert!(looks.iter().all(|l| rights.check(other, l).is_ok() == read_all));
        }
    }
}
