//! Being another user for one call.

use frit_fs::Caller;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Whether this process may become anyone.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a call as another user. Only this thread becomes that user, and it remains one that can come back.
pub(crate) fn as_user<T>(who: &Caller, call: impl FnOnce() -> T) -> T {
    if who.uid == 0 {
        return call();
    }
    let (root, none) = (Some(Uid::ROOT), None::<Uid>);
    let groups: Vec<Gid> = who.groups.iter().map(|&g| Gid::from_raw(g)).collect();
    set_thread_groups(&groups).unwrap();
    set_thread_res_gid(None::<Gid>, Gid::from_raw(who.gid), None::<Gid>).unwrap();
    set_thread_res_uid(none, Uid::from_raw(who.uid), none).unwrap();
    let answer = call();
    set_thread_res_uid(none, root, none).unwrap();
    set_thread_res_gid(None::<Gid>, Gid::ROOT, None::<Gid>).unwrap();
    set_thread_groups(&[]).unwrap();
    answer
}
