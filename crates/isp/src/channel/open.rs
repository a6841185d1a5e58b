//! Numbers of open command files of users.

use crate::engine::User;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// Number of open command files of a user, at most: as many files as a process may usually have open (getrlimit(2)).
pub(super) const CHANNELS_MAX: usize = 1024;

/// Open command files of an engine, by users.
#[derive(Default, Debug)]
pub(crate) struct Channels(Mutex<HashMap<User, usize>>);

impl Channels {
    /// Counts one more, unless the user has too many.
    pub(super) fn open(self: &Arc<Self>, user: User) -> Option<Opened> {
        let mut open = self.0.lock();
        let number = open.entry(user).or_default();
        if *number >= CHANNELS_MAX {
            return None;
        }
        *number += 1;
        Some(Opened { all: Arc::clone(self), user })
    }
}

/// An open command file, which counts until this value is dropped.
pub(super) struct Opened {
    all: Arc<Channels>,
    user: User,
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut open = self.all.0.lock();
        if let Some(number) = open.get_mut(&self.user) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.user);
            }
        }
    }
}
