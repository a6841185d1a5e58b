//! Tokens of the in-order engine: completion times that are known or pending, and what waits for
//! them. The number of a token is that of a command or a join, in order of emission.

use frit_core::{Nanos, Tag, Tok, UnitId};
use std::collections::HashMap;

/// A slot that waits for a token: twice the number of the slot, plus the index of the wait; 0 is
/// the end of a list.
type Link = u64;

const NO_TAG: Tag = Tag::MAX - 1;

/// Initial number of slots of the window.
const WINDOW_MIN: usize = 1 << 8;

/// Size from which a window with few pending slots is not doubled: its pending slots move to a
/// table instead.
const WINDOW_SPARSE: usize = 1 << 18;

/// Kind of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The completion time is known. It can be in the future.
    Known,
    /// A command of a unit.
    Command,
    /// A join of two tokens.
    Join,
    /// A delay after one token. The second link of the slot holds its duration in nanoseconds.
    Delay,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Completion time if it is known. Otherwise the latest known time of what the slot waits for,
    /// and at least the time of its emission.
    time: Nanos,
    /// First link of the slots that wait for this one.
    waiters: Link,
    /// The next link in each list that contains this slot.
    next_waiter: [Link; 2],
    /// Tag of the watch, or [`NO_TAG`].
    tag: Tag,
    unit: UnitId,
    kind: Kind,
    /// Number of unknown times that the slot waits for, at most two.
    waits: u8,
}

const VACANT: Slot = Slot {
    time: Nanos::ZERO,
    waiters: 0,
    next_waiter: [0; 2],
    tag: NO_TAG,
    unit: UnitId(0),
    kind: Kind::Known,
    waits: 0,
};

/// What the engine has to do because a completion time became known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consequence {
    /// A command of this unit waits for nothing any longer.
    Ready(UnitId, Tok),
    /// A watched token is done at this time.
    Watched(Tag, Nanos),
}

/// The tokens that are not done yet, in a window over the numbers of all tokens.
///
/// The window begins with the oldest slot that is not done: an older token is done. A slot that
/// stays pending while very many younger ones complete (a write-back that a disk defers) moves to a
/// table, so that the window stays small.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    slots: Vec<Slot>,
    mask: u64,
    oldest: u64,
    next: u64,
    /// Slots that are older than the window and were not done when it moved past them.
    stragglers: HashMap<u64, Slot>,
    /// Worklist of slots whose time became known; kept to reuse its memory.
    worklist: Vec<(u64, Nanos)>,
}

impl Tokens {
    pub(super) fn new() -> Tokens {
        Tokens {
            slots: vec![VACANT; WINDOW_MIN],
            mask: WINDOW_MIN as u64 - 1,
            oldest: 1,
            next: 1,
            stragglers: HashMap::new(),
            worklist: Vec::new(),
        }
    }

    /// Adds a command that is emitted at `now` and waits for `after`. Also returns the time from
    /// which it waits only for its unit, if that is known.
    #[inline]
    pub(super) fn command(&mut self, now: Nanos, unit: UnitId, after: Tok) -> (Tok, Option<Nanos>) {
        let id = self.next_id(now);
        let mut slot = Slot { time: now, kind: Kind::Command, unit, ..VACANT };
        if let Some(before) = self.slot_mut(after.number()) {
            if before.kind == Kind::Known {
                slot.time = now.max(before.time);
            } else {
                slot.next_waiter[0] = std::mem::replace(&mut before.waiters, id << 1);
                slot.waits = 1;
            }
        }
        self.slots[(id & self.mask) as usize] = slot;
        (Tok::new(id), (slot.waits == 0).then_some(slot.time))
    }

    /// Returns a token that is done when both are done.
    #[inline]
    pub(super) fn join(&mut self, now: Nanos, a: Tok, b: Tok) -> Tok {
        match (self.done_at(a), self.done_at(b)) {
            (Some(x), Some(y)) if x >= y => a,
            (Some(_), Some(_)) => b,
            (None, Some(y)) if y <= now => a,
            (Some(x), None) if x <= now => b,
            _ if a == b => a,
            _ => {
                let id = self.add(now, Slot { time: now, kind: Kind::Join, ..VACANT });
                self.wait_for(id, 0, a);
                self.wait_for(id, 1, b);
                Tok::new(id)
            }
        }
    }

    /// Returns a token that is done `by` after `after`, which counts from `now` if it is done before.
    pub(super) fn delay(&mut self, now: Nanos, after: Tok, by: Nanos) -> Tok {
        let known = self.done_at(after).map(|at| at.max(now) + by);
        let slot = match known {
            Some(time) => Slot { time, kind: Kind::Known, ..VACANT },
            None => Slot { time: now, kind: Kind::Delay, next_waiter: [0, by.0], ..VACANT },
        };
        let id = self.add(now, slot);
        if known.is_none() {
            self.wait_for(id, 0, after);
        }
        Tok::new(id)
    }

    /// Returns the completion time of a token if it is known; zero if the token was done long ago.
    #[inline]
    pub(super) fn done_at(&self, tok: Tok) -> Option<Nanos> {
        match self.slot(tok.number()) {
            None => Some(Nanos::ZERO),
            Some(s) if s.kind == Kind::Known => Some(s.time),
            Some(_) => None,
        }
    }

    /// Returns the time from which a command waits only for its unit, if it is known.
    #[inline]
    pub(super) fn ready_at(&self, command: Tok) -> Option<Nanos> {
        let slot = self.slot(command.number())?;
        (slot.waits == 0).then_some(slot.time)
    }

    /// Requests that the time of a pending token is reported under `tag`.
    pub(super) fn watch(&mut self, now: Nanos, tok: Tok, tag: Tag) {
        let mut id = tok.number();
        // A slot has one tag, so a second watch gets a join of its own.
        if self.slot(id).is_some_and(|s| s.tag != NO_TAG) {
            id = self.add(now, Slot { time: now, kind: Kind::Join, ..VACANT });
            self.wait_for(id, 0, tok);
        }
        if let Some(slot) = self.slot_mut(id) {
            slot.tag = tag;
        }
    }

    /// Makes the completion time of a command known, with everything that follows from it.
    #[inline]
    pub(super) fn resolve(&mut self, tok: Tok, at: Nanos, mut each: impl FnMut(Consequence)) {
        let mut known = Some((tok.number(), at));
        while let Some((id, at)) = known {
            self.resolve_one(id, at, &mut each);
            known = self.worklist.pop();
        }
    }

    #[inline]
    fn resolve_one(&mut self, id: u64, at: Nanos, each: &mut impl FnMut(Consequence)) {
        let Some(slot) = self.slot_mut(id) else { return };
        slot.time = at;
        slot.kind = Kind::Known;
        let (mut link, tag) = (slot.waiters, slot.tag);
        if tag != NO_TAG {
            each(Consequence::Watched(tag, at));
        }
        while link != 0 {
            let waiter = link >> 1;
            let Some(slot) = self.slot_mut(waiter) else { return };
            link = slot.next_waiter[(link & 1) as usize];
            slot.time = slot.time.max(at);
            slot.waits -= 1;
            if slot.waits == 0 {
                let (kind, time, unit, by) = (slot.kind, slot.time, slot.unit, Nanos(slot.next_waiter[1]));
                match kind {
                    Kind::Join => self.worklist.push((waiter, time)),
                    Kind::Delay => self.worklist.push((waiter, time + by)),
                    _ => each(Consequence::Ready(unit, Tok::new(waiter))),
                }
            }
        }
    }

    #[inline]
    fn slot(&self, id: u64) -> Option<&Slot> {
        if id >= self.oldest {
            return Some(&self.slots[(id & self.mask) as usize]);
        }
        if self.stragglers.is_empty() { None } else { self.stragglers.get(&id) }
    }

    #[inline]
    fn slot_mut(&mut self, id: u64) -> Option<&mut Slot> {
        if id >= self.oldest {
            return Some(&mut self.slots[(id & self.mask) as usize]);
        }
        if self.stragglers.is_empty() { None } else { self.stragglers.get_mut(&id) }
    }

    #[inline]
    fn wait_for(&mut self, id: u64, wait: u64, tok: Tok) {
        let Some(slot) = self.slot_mut(tok.number()) else { return };
        let (known, time) = (slot.kind == Kind::Known, slot.time);
        let next = if known { 0 } else { std::mem::replace(&mut slot.waiters, id << 1 | wait) };
        let Some(slot) = self.slot_mut(id) else { return };
        if known {
            slot.time = slot.time.max(time);
        } else {
            slot.next_waiter[wait as usize] = next;
            slot.waits += 1;
        }
    }

    #[inline]
    fn next_id(&mut self, now: Nanos) -> u64 {
        if self.next - self.oldest > self.mask {
            self.make_room(now);
        }
        self.next += 1;
        self.next - 1
    }

    fn add(&mut self, now: Nanos, slot: Slot) -> u64 {
        let id = self.next_id(now);
        self.slots[(id & self.mask) as usize] = slot;
        id
    }

    fn is_done(slot: &Slot, now: Nanos) -> bool {
        slot.kind == Kind::Known && slot.time <= now
    }

    /// Moves the start of the window past slots that are done. If the window stays full, doubles it,
    /// or moves its pending slots away if they are few.
    #[cold]
    fn make_room(&mut self, now: Nanos) {
        while self.oldest < self.next && Self::is_done(&self.slots[(self.oldest & self.mask) as usize], now) {
            self.oldest += 1;
        }
        let len = self.slots.len();
        if ((self.next - self.oldest) as usize) < len / 2 {
            return;
        }
        let pending = self.slots.iter().filter(|s| !Self::is_done(s, now)).count();
        if len >= WINDOW_SPARSE && pending < len / 8 {
            self.stragglers.retain(|_, s| !Self::is_done(s, now));
            for id in self.oldest..self.next {
                let slot = self.slots[(id & self.mask) as usize];
                if !Self::is_done(&slot, now) {
                    self.stragglers.insert(id, slot);
                }
            }
            self.oldest = self.next;
            return;
        }
        let mask = 2 * len as u64 - 1;
        let mut slots = vec![VACANT; 2 * len];
        for id in self.oldest..self.next {
            slots[(id & mask) as usize] = self.slots[(id & self.mask) as usize];
        }
        (self.slots, self.mask) = (slots, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(tokens: &mut Tokens, tok: Tok, at: u64) -> Vec<Consequence> {
        let mut all = Vec::new();
        tokens.resolve(tok, Nanos(at), |c| all.push(c));
        all
    }

    #[test]
    fn commands_and_joins_follow_what_they_wait_for() {
        let (mut t, now) = (Tokens::new(), Nanos(5));
        let a = t.command(now, UnitId(0), Tok::default()).0;
        let b = t.command(now, UnitId(1), Tok::default()).0;
        let both = t.join(now, a, b);
        let c = t.command(now, UnitId(2), both).0;
        t.watch(now, both, 7);
        assert_eq!((t.ready_at(a), t.ready_at(c)), (Some(Nanos(5)), None));
        assert_eq!(resolve(&mut t, a, 30), []);
        assert_eq!(t.done_at(both), None);
        let follows = resolve(&mut t, b, 20);
        assert_eq!(follows, [Consequence::Watched(7, Nanos(30)), Consequence::Ready(UnitId(2), c)]);
        assert_eq!((t.done_at(both), t.ready_at(c)), (Some(Nanos(30)), Some(Nanos(30))));
        // Known times need no further tokens: the later one stands for both.
        assert_eq!(t.join(now, a, b), a);
        assert_eq!(t.join(Nanos(30), a, c), c);
    }

    #[test]
    fn a_window_keeps_its_size_beside_a_command_that_never_ends() {
        let mut t = Tokens::new();
        let stuck = t.command(Nanos::ZERO, UnitId(0), Tok::default()).0;
        let waits = t.command(Nanos::ZERO, UnitId(1), stuck).0;
        for i in 1..4 * WINDOW_SPARSE as u64 {
            let now = Nanos(i);
            let tok = t.command(now, UnitId(2), Tok::default()).0;
            resolve(&mut t, tok, i);
            assert_eq!(t.done_at(stuck), None);
        }
        assert_eq!((t.slots.len(), t.stragglers.len()), (WINDOW_SPARSE, 2));
        let end = 1 << 40;
        assert_eq!(resolve(&mut t, stuck, end), [Consequence::Ready(UnitId(1), waits)]);
        assert_eq!((t.done_at(stuck), t.ready_at(waits)), (Some(Nanos(end)), Some(Nanos(end))));
    }

    #[test]
    fn a_window_of_pending_commands_grows() {
        let mut t = Tokens::new();
        let all: Vec<Tok> = (0..10_000).map(|i| t.command(Nanos(i), UnitId(0), Tok::default()).0).collect();
        assert!(t.slots.len() <= 1 << 15);
        assert!(all.iter().all(|&tok| t.done_at(tok).is_none()));
        for (i, &tok) in all.iter().enumerate() {
            resolve(&mut t, tok, i as u64);
        }
        assert!(all.iter().enumerate().all(|(i, &tok)| t.done_at(tok) == Some(Nanos(i as u64))));
    }
}
