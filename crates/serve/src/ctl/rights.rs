//! Who may do what, by the credentials that the kernel vouches for.

use super::wire::{Do, Refusal, Refused};
use std::io;
use std::os::unix::net::UnixStream;

/// A process at the other end of the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Its effective user.
    pub uid: u32,
    /// Its process.
    pub pid: i32,
}

impl Caller {
    /// Whoever connected (`SO_PEERCRED`: as of the moment of connecting).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn of(stream: &UnixStream) -> io::Result<Caller> {
        let cred = rustix::net::sockopt::socket_peercred(stream)?;
        Ok(Caller { uid: cred.uid.as_raw(), pid: cred.pid.as_raw_nonzero().get() })
    }
}

/// What the server allows: everything to its own user and to root; to others nothing, or to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// The user that the server runs as.
    pub owner: u32,
    /// Others may `get` and `stat`.
    pub read_all: bool,
}

impl Rights {
    /// Of a server that runs as the user of this process.
    #[must_use]
    pub fn own(read_all: bool) -> Rights {
        Rights { owner: rustix::process::geteuid().as_raw(), read_all }
    }

    /// Whether the caller may do this.
    ///
    /// # Errors
    /// What would be needed.
    pub fn check(self, caller: Caller, what: &Do) -> Result<(), Refused> {
        let changes = matches!(what, Do::Set { .. });
        if caller.uid == 0 || caller.uid == self.owner || (self.read_all && !changes) {
            return Ok(());
        }
        let may = if changes { "change parameters" } else { "look into it" };
        let hint = if changes { "" } else { ", or everybody when it is served with --ctl-read-all" };
        let (owner, uid) = (self.owner, caller.uid);
        let what = format!("user {uid} may not {may}: only user {owner}, who serves it, and root{hint}");
        Err(Refused::new(Refusal::Denied, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_change_anything() {
        let set = Do::Set { changes: vec![] };
        let looks = [Do::Get { key: None }, Do::Stat {}];
        for read_all in [false, true] {
            let rights = Rights { owner: 1000, read_all };
            for uid in [0, 1000] {
                assert!(rights.check(Caller { uid, pid: 1 }, &set).is_ok());
                assert!(looks.iter().all(|l| rights.check(Caller { uid, pid: 1 }, l).is_ok()));
            }
            let other = Caller { uid: 1001, pid: 1 };
            assert_eq!(rights.check(other, &set).unwrap_err().kind, Refusal::Denied);
            assert!(looks.iter().all(|l| rights.check(other, l).is_ok() == read_all));
        }
    }
}
