//! Replies that wait for a modelled device: one thread a client sends each when it is due.

use super::output::Output;
use super::stream::Stream;
use crate::guard::{Budget, Grant};
use crate::pace::wait_until;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of replies that may wait in any case. More need memory of the server's budget; without it no more
/// requests are read from the client until some replies were sent.
const WAITING_BASE: usize = 256 << 10;
/// Bytes of replies that may wait with it.
const WAITING_MAX: usize = 40 << 20;

/// So close to a reply's moment it is waited for without sleep, and without looking for earlier ones.
const CLOSE: Duration = Duration::from_micros(100);

/// Replies by when they are due.
pub(super) struct Waiting {
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    grant: Grant,
    /// Due, order of arrival, bytes.
    replies: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>,
    bytes: usize,
    number: u64,
    /// No more will come.
    ended: bool,
    /// The client does not take them any more.
    broken: bool,
}

impl Queue {
    /// Takes memory for `more` bytes; returns `false` if they have to wait for others to be sent.
    fn take(&mut self, more: usize) -> bool {
        let whole = self.bytes + more;
        self.replies.is_empty()
            || whole <= WAITING_MAX && self.grant.resize(whole.saturating_sub(WAITING_BASE))
    }
}

impl Waiting {
    /// Returns an empty queue whose replies take memory of a budget.
    pub(super) fn new(budget: &Arc<Budget>) -> Waiting {
        let (replies, grant) = (BinaryHeap::new(), Grant::none(budget));
        let queue = Queue { grant, replies, bytes: 0, number: 0, ended: false, broken: false };
        Waiting { queue: Mutex::new(queue), changed: Condvar::new() }
    }

    /// Takes the replies of an output; waits while too many wait. False when the client is gone.
    pub(super) fn put(&self, out: &Output) -> bool {
        let now = Instant::now();
        let mut queue = self.queue.lock();
        while !queue.broken && !queue.take(out.len()) {
            self.changed.wait(&mut queue);
        }
        for (due, bytes) in out.timed() {
            queue.number += 1;
            queue.bytes += bytes.len();
            let number = queue.number;
            queue.replies.push(Reverse((due.unwrap_or(now), number, bytes.to_vec())));
        }
        self.changed.notify_all();
        !queue.broken
    }

    /// No more will come: the sender ends once all were sent.
    pub(super) fn end(&self) {
        self.queue.lock().ended = true;
        self.changed.notify_all();
    }

    /// Sends what is due, until the end; `replied` is told when each was due.
    pub(super) fn send(&self, stream: &Stream, replied: &dyn Fn(Instant)) {
        let mut bytes = Vec::new();
        let mut dues = Vec::new();
        let mut queue = self.queue.lock();
        loop {
            let now = Instant::now();
            while queue.replies.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
                if let Some(Reverse((due, _, reply))) = queue.replies.pop() {
                    dues.push(due);
                    queue.bytes -= reply.len();
                    bytes.extend_from_slice(&reply);
                }
            }
            if !bytes.is_empty() {
                let held = queue.bytes.saturating_sub(WAITING_BASE).min(queue.grant.bytes());
                queue.grant.resize(held);
                drop(queue);
                let sent = stream.write_all(&bytes);
                bytes.clear();
                dues.drain(..).for_each(replied);
                queue = self.queue.lock();
                queue.broken |= sent.is_err();
                self.changed.notify_all();
                continue;
            }
            match queue.replies.peek() {
                _ if queue.broken => return,
                Some(Reverse((due, ..))) => {
                    let due = *due;
                    match due.checked_sub(CLOSE).filter(|t| *t > now) {
                        Some(early) => drop(self.changed.wait_until(&mut queue, early)),
                        None => MutexGuard::unlocked(&mut queue, || wait_until(due)),
                    }
                }
                None if queue.ended => return,
                None => self.changed.wait(&mut queue),
            }
        }
    }
}
