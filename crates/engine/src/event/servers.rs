//! Servers of the event engine: links, which transfer one message at a time.

use frit_core::Nanos;

/// The servers, by number. Jobs become ready in the order of time, so a server needs no queue.
#[derive(Clone, Default, Debug)]
pub(super) struct Servers {
    /// Time from which each server is free.
    free: Vec<Nanos>,
}

impl Servers {
    /// Adds a server and returns its number.
    pub(super) fn add(&mut self) -> u16 {
        self.free.push(Nanos::ZERO);
        self.free.len() as u16 - 1
    }

    /// Serves a job that is ready now, and returns its end.
    pub(super) fn serve(&mut self, server: u64, now: Nanos, by: Nanos) -> Nanos {
        let free = &mut self.free[server as usize];
        *free = now.max(*free) + by;
        *free
    }
}
