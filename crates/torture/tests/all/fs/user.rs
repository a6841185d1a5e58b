//! Calls with the IDs of another user.

use frit_fs::Caller;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Returns `true` if this process may change its user IDs.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a call as another user. Only this thread changes its IDs, and it keeps the saved ID of
/// root to change back.
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
