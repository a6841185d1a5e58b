//! Replies delayed by a modelled device. One thread per client sends each when it is due.

use super::output::Output;
use super::stream::ClientStream;
use crate::pace::wait_until;
use crate::resource_limits::{Grant, Share};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Number of bytes of delayed replies allowed in any case. More need memory of the shared budget;
/// without it the session reads no more requests until some replies were sent.
const QUEUED_BASE: usize = 256 << 10;
/// Maximum number of bytes of delayed replies with memory of the budget.
const QUEUED_MAX: usize = 40 << 20;

/// Time before a due time at which the thread stops sleeping and starts polling. Replies that
/// become due earlier are then no longer considered.
const POLL_BEFORE_DUE: Duration = Duration::from_micros(100);

/// Delayed replies of a client, ordered by due time.
pub(super) struct ReplyQueue {
    queue: Mutex<DelayedReplies>,
    changed: Condvar,
}

struct DelayedReplies {
    grant: Grant,
    /// Due time, sequence number, bytes.
    replies: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>,
    bytes: usize,
    number: u64,
    /// No more replies follow.
    ended: bool,
    /// The client no longer accepts replies.
    broken: bool,
}

impl DelayedReplies {
    /// Takes memory for `more` bytes. Returns `false` if earlier replies must be sent first.
    fn reserve(&mut self, more: usize) -> bool {
        let whole = self.bytes + more;
        // An empty queue takes a reply of any length, since otherwise it would wait for ever.
        self.replies.is_empty() || whole <= QUEUED_MAX && self.grant.resize(whole.saturating_sub(QUEUED_BASE))
    }
}

impl ReplyQueue {
    /// Creates an empty queue whose replies take memory from a share of the budget.
    pub(super) fn new(share: &Share) -> ReplyQueue {
        let (replies, grant) = (BinaryHeap::new(), Grant::none(share));
        let queue = DelayedReplies { grant, replies, bytes: 0, number: 0, ended: false, broken: false };
        ReplyQueue { queue: Mutex::new(queue), changed: Condvar::new() }
    }

    /// Queues the replies of an output, and waits while too many are queued. Returns `false` if the
    /// client has disconnected.
    pub(super) fn put(&self, out: &Output) -> bool {
        let now = Instant::now();
        let mut queue = self.queue.lock();
        while !queue.broken && !queue.reserve(out.len()) {
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

    /// Ends the queue. The sending thread ends after it has sent all replies.
    pub(super) fn end(&self) {
        self.queue.lock().ended = true;
        self.changed.notify_all();
    }

    /// Sends replies when they are due, until the queue has ended. `replied` is called with the due
    /// time of each.
    pub(super) fn send(&self, stream: &ClientStream, replied: &dyn Fn(Instant)) {
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
                let held = queue.bytes.saturating_sub(QUEUED_BASE).min(queue.grant.bytes());
                queue.grant.resize(held);
                // The lock is released while replies are sent, so that the session can queue more.
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
                    match due.checked_sub(POLL_BEFORE_DUE).filter(|t| *t > now) {
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
