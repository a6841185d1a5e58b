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
/// read the state. Physical addresses are a right of their own: the layer grants it to the callers
/// that its parameter `raw_access` names, and to no others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// User that the server runs as.
    pub owner: u32,
    /// Other users may use `get` and `stat`.
    pub read_all: bool,
    /// The layer names callers that may use physical addresses, so other users may connect.
    pub raw_callers: bool,
}

impl Rights {
    /// Returns the access rights of a server that runs as the user of this process.
    #[must_use]
    pub fn of_this_process(read_all: bool) -> Rights {
        Rights { owner: rustix::process::geteuid().as_raw(), read_all, raw_callers: false }
    }

    /// Returns `true` if users other than the owner and root may connect.
    #[must_use]
    pub fn admits_others(self) -> bool {
        self.read_all || self.raw_callers
    }

    /// Returns `true` if the caller is the user that the server runs as, or root.
    #[must_use]
    pub fn is_owner(self, caller: PeerCredentials) -> bool {
        caller.uid == 0 || caller.uid == self.owner
    }

    /// Checks that the caller may send a request.
    ///
    /// # Errors
    /// A refusal that names the users who may.
    pub fn check(self, caller: PeerCredentials, what: &ControlOperation) -> Result<(), Refused> {
        use ControlOperation::{Cache, Get, Hint, Isp, Nameless, Peek, Poke, Set, Stat, Zoned};
        let (may, hint) = match what {
            // The layer checks the name of the caller.
            Peek { raw: Some(_), .. } | Poke { raw: Some(_), .. } => return Ok(()),
            Set { .. } => ("change parameters", ""),
            Hint { .. } if what.changes() => ("change its hints", ""),
            Peek { .. } | Isp { .. } => ("read its bytes", ""),
            Poke { .. } => ("write its bytes", ""),
            Cache { .. } => ("give commands to its cache", ""),
            Nameless { .. } => ("give commands to its nameless-write device", ""),
            Zoned { command } if !command.is_report() => ("give commands to its zones", ""),
            Get { .. } | Stat {} | Hint { .. } | Zoned { .. } if self.read_all => return Ok(()),
            Get { .. } | Stat {} | Hint { .. } | Zoned { .. } => {
                ("read its state", ", or all users with --ctl-read-all")
            }
        };
        if self.is_owner(caller) {
            return Ok(());
        }
        let (owner, uid) = (self.owner, caller.uid);
        let what = format!("user {uid} may not {may}; only user {owner}, who serves it, and root may{hint}");
        Err(Refused::new(RefusalKind::Denied, what))
    }
}

/// Returns the names under which `raw_access` may name a user: `uid:NUMBER`, and the user name in
/// `/etc/passwd`.
#[must_use]
pub fn raw_names(uid: u32) -> Vec<String> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.into_iter().chain([format!("uid:{uid}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_client::ZonedOperation;

    #[test]
    fn a_user_has_a_number_and_mostly_a_name() {
        assert_eq!(raw_names(0), ["root", "uid:0"]);
        assert_eq!(raw_names(4_000_000_000), ["uid:4000000000"]);
    }

    #[test]
    fn only_the_owner_and_root_change_anything() {
        let set = ControlOperation::Set { changes: vec![] };
        let bytes = [
            ControlOperation::Peek { at: 0, len: 1, raw: None },
            ControlOperation::Poke { at: 0, data: "00".into(), raw: None },
            ControlOperation::Isp { command: serde_json::json!({"words": ["a"]}) },
            ControlOperation::Zoned { command: ZonedOperation::Read { at: 0, sectors: 1 } },
            ControlOperation::Zoned { command: ZonedOperation::Reset { zone: 0 } },
        ];
        let raw = ControlOperation::Peek { at: 0, len: 1, raw: Some(super::super::wire::RawMedium::Pcm) };
        let zoned = |command| ControlOperation::Zoned { command };
        let looks = [
            ControlOperation::Get { key: None },
            ControlOperation::Stat {},
            zoned(ZonedOperation::Info {}),
            zoned(ZonedOperation::Report { first: 0, most: 1 }),
        ];
        for read_all in [false, true] {
            let rights = Rights { owner: 1000, read_all, raw_callers: false };
            for uid in [0, 1000] {
                assert!(rights.check(PeerCredentials { uid, pid: 1 }, &set).is_ok());
                assert!(looks.iter().all(|l| rights.check(PeerCredentials { uid, pid: 1 }, l).is_ok()));
            }
            let other = PeerCredentials { uid: 1001, pid: 1 };
            assert_eq!(rights.check(other, &set).unwrap_err().kind, RefusalKind::Denied);
            assert!(looks.iter().all(|l| rights.check(other, l).is_ok() == read_all));
            assert!(bytes.iter().all(|b| rights.check(other, b).is_err()));
            assert!(rights.check(other, &raw).is_ok(), "the layer decides");
            let owner = PeerCredentials { uid: 1000, pid: 1 };
            assert!(bytes.iter().all(|b| rights.check(owner, b).is_ok()));
        }
    }
}
