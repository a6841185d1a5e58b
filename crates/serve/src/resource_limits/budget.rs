//! A memory budget that all connections of a server share, with a part for the user who runs the server and for root,
//! and a part for each other user.

use super::Peer;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Part of a budget that only the owners may use, as its divisor.
const RESERVED: usize = 4;

/// Limit on the memory that the connections of a server hold together, in addition to the small
/// buffers of each.
///
/// No connection waits for the budget: a connection whose request is refused continues in pieces
/// that fit its own buffers. Hence connections that hold memory cannot block one another.
///
/// Still they must not take all of it by requests that they send by half, since some requests cannot be executed in
/// pieces. The user who runs the server and root may use the whole budget, and all others three quarters of
/// it. Of these, a user may take more only while all that the user would have is at most what is free then (dynamic
/// thresholds, as for the memory of instructions): one user has at most half, two have a third each.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    /// User who runs the server.
    owner: u32,
    state: Mutex<BudgetState>,
}

#[derive(Default, Debug)]
struct BudgetState {
    used: usize,
    /// Bytes of each user or machine other than the owners, and their sum.
    others: HashMap<Peer, usize>,
    used_by_others: usize,
}

impl Budget {
    /// Creates a budget of `bytes_max` bytes, none of them granted, of a server that a user runs.
    pub(crate) fn new(bytes_max: usize, owner: u32) -> Arc<Budget> {
        Arc::new(Budget { bytes_max, owner, state: Mutex::default() })
    }

    /// Returns the share of a peer.
    pub(crate) fn share(self: &Arc<Self>, peer: Peer) -> Share {
        let is_owner = peer.is_user_or_root(self.owner);
        Share { budget: Arc::clone(self), peer: peer.without_process(), is_owner }
    }

    /// Returns the number of bytes granted at present.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.state.lock().used
    }
}

/// What a peer may use of a budget.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    peer: Peer,
    is_owner: bool,
}

impl Share {
    /// Takes bytes. Returns `false`, and takes none, if the share does not have them.
    fn reserve(&self, bytes: usize) -> bool {
        let mut state = self.budget.state.lock();
        if bytes > self.budget.bytes_max - state.used {
            return false;
        }
        if !self.is_owner {
            let most = self.budget.bytes_max - self.budget.bytes_max / RESERVED;
            let had = state.others.get(&self.peer).copied().unwrap_or(0);
            // Both are at most `bytes_max`.
            let used_by_others = state.used_by_others + bytes;
            if had + bytes > most.saturating_sub(used_by_others) {
                return false;
            }
            state.others.insert(self.peer, had + bytes);
            state.used_by_others = used_by_others;
        }
        state.used += bytes;
        true
    }

    fn give_back(&self, bytes: usize) {
        let mut state = self.budget.state.lock();
        state.used -= bytes;
        if self.is_owner {
            return;
        }
        state.used_by_others -= bytes;
        if let Some(had) = state.others.get_mut(&self.peer) {
            *had -= bytes;
            if *had == 0 {
                state.others.remove(&self.peer);
            }
        }
    }
}

/// A part of a budget that is in use. Dropping it returns its bytes.
#[derive(Debug)]
pub(crate) struct Grant {
    share: Share,
    bytes: usize,
}

impl Grant {
    /// Returns a grant of no bytes.
    pub(crate) fn none(share: &Share) -> Grant {
        Grant { share: share.clone(), bytes: 0 }
    }

    /// Returns a grant of `bytes` bytes, or `None` if the share does not have them.
    pub(crate) fn of(share: &Share, bytes: usize) -> Option<Grant> {
        let mut grant = Grant::none(share);
        grant.resize(bytes).then_some(grant)
    }

    /// Returns another grant of the same share, or `None` if the share does not have `bytes`
    /// bytes.
    pub(crate) fn like(&self, bytes: usize) -> Option<Grant> {
        Grant::of(&self.share, bytes)
    }

    /// Returns the number of bytes granted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the grant to `bytes` bytes. Returns `false`, and changes nothing, if the share does
    /// not have them. A grant can always become smaller.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes && !self.share.reserve(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.share.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: u32 = 1000;

    #[test]
    fn grants_never_exceed_the_budget_and_return_what_they_had() {
        let budget = Budget::new(100, OWNER);
        let share = budget.share(Peer::Process(OWNER, 7));
        let mut a = Grant::of(&share, 60).unwrap();
        assert!(Grant::of(&share, 41).is_none());
        assert!(!a.resize(101) && a.bytes() == 60, "a refusal changes nothing");
        let b = Grant::of(&share, 40).unwrap();
        assert_eq!(budget.used(), 100);
        assert!(!a.resize(61) && a.resize(10));
        assert_eq!(budget.used(), 50);
        drop((a, b));
        assert_eq!(budget.used(), 0);
        assert!(Grant::of(&share, usize::MAX).is_none());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (budget, share) = (Arc::clone(&budget), share.clone());
                std::thread::spawn(move || {
                    for n in 0..2000 {
                        let grant = Grant::of(&share, n % 90);
                        assert!(budget.used() <= 100, "{grant:?}");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn others_leave_memory_for_one_more_and_the_owners_have_theirs() {
        let budget = Budget::new(400, OWNER);
        let [one, same, two, owner] =
            [Peer::User(2001), Peer::Process(2001, 9), Peer::Unknown, Peer::User(OWNER)]
                .map(|p| budget.share(p));
        let mut first = Grant::of(&one, 150).unwrap();
        assert!(!first.resize(151), "half of three quarters");
        assert!(Grant::of(&same, 1).is_none(), "its processes share it");
        let second = Grant::of(&two, 75).unwrap();
        assert!(Grant::of(&two, 1).is_none() && Grant::of(&budget.share(Peer::User(2003)), 37).is_some());
        let (third, root) = (Grant::of(&owner, 150).unwrap(), budget.share(Peer::User(0)));
        assert!(Grant::of(&root, 26).is_none() && Grant::of(&root, 25).is_some());
        drop((first, third));
        assert!(Grant::of(&owner, 326).is_none() && Grant::of(&owner, 325).is_some());
        drop(second);
        let state = budget.state.lock();
        assert_eq!((state.used, state.used_by_others, state.others.len()), (0, 0, 0));
    }
}
