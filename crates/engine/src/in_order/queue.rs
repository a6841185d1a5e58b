//! The queue of a unit.

use super::tokens::Tok;
use frit_core::{Cause, Cmd, Nanos, Op, UnitId};

/// A command that waits at a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueuedCommand {
    pub(super) cmd: Cmd,
    pub(super) tok: Tok,
    /// Time from which it waits only for its unit, if that was known when it was emitted.
    pub(super) ready: Option<Nanos>,
}

/// Commands in order of emission: a ring that grows. Unlike `VecDeque`, its operations are inlined
/// into the engine's loop.
#[derive(Clone, Debug)]
pub(super) struct CommandQueue {
    slots: Box<[QueuedCommand]>,
    first: usize,
    len: usize,
}

/// Initial capacity, a power of two.
const SLOTS: usize = 8;

const VACANT: QueuedCommand = QueuedCommand {
    cmd: Cmd { addr: 0, len: 0, hazard: 0, unit: UnitId(0), op: Op::NandRead, cause: Cause::Host },
    tok: Tok(0),
    ready: None,
};

impl CommandQueue {
    pub(super) fn new() -> CommandQueue {
        CommandQueue { slots: vec![VACANT; SLOTS].into_boxed_slice(), first: 0, len: 0 }
    }

    #[inline]
    fn place(&self, at: usize) -> usize {
        (self.first + at) & (self.slots.len() - 1)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The oldest command.
    #[inline]
    pub(super) fn front(&self) -> Option<&QueuedCommand> {
        (self.len > 0).then(|| &self.slots[self.place(0)])
    }

    #[inline]
    pub(super) fn pop(&mut self) {
        if self.len > 0 {
            self.first = self.place(1);
            self.len -= 1;
        }
    }

    #[inline]
    pub(super) fn push(&mut self, command: QueuedCommand) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.slots[place] = command;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![VACANT; 2 * self.slots.len()];
        slots.iter_mut().zip(self.iter()).for_each(|(slot, entry)| *slot = entry);
        self.slots = slots.into_boxed_slice();
        self.first = 0;
    }

    /// Iterates over the commands, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = QueuedCommand> + '_ {
        (0..self.len).map(|at| self.slots[self.place(at)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_order_while_it_grows() {
        let (mut q, mut next, mut expected) = (CommandQueue::new(), 0u64, 0);
        for round in 0..50 {
            for _ in 0..round % 9 + 3 {
                next += 1;
                q.push(QueuedCommand { tok: Tok(next), ..VACANT });
            }
            for _ in 0..round % 7 {
                expected += 1;
                assert_eq!(q.front().map(|f| f.tok), Some(Tok(expected)));
                q.pop();
            }
            assert!(q.iter().map(|f| f.tok.0).eq(expected + 1..=next));
        }
        while q.len() > 0 {
            q.pop();
        }
        assert_eq!(q.front(), None);
        q.pop();
        assert_eq!(q.len(), 0);
    }
}
