//! An engine that records a run: all commands, their order of durability, and the commands that each
//! acknowledgement waits for.

use frit_core::{Cmd, Completion, Engine, Nanos, Sink, Tag, Tok, UnitId, UnitState};
use std::collections::HashMap;

/// A dependency that a token represents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dependency {
    /// A command, by index into [`Recording::ops`].
    Op(u32),
    /// Join of two tokens.
    Join(u32, u32),
}

/// A recorded command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCommand {
    /// The command.
    pub cmd: Cmd,
    /// Commands that must be durable before it, by index, ascending and without duplicates.
    pub after: Vec<u32>,
    /// The last command before it that modifies the same hazard on the same unit (the previous page
    /// in its block, or the erase of the block). The engine keeps their order without an edge.
    pub follows: Option<u32>,
    /// Index of the request in which it was emitted; `None` for background work before the first
    /// request.
    pub request: Option<u32>,
}

/// The recording of a run, in order of emission.
#[derive(Clone, Default, Debug)]
pub struct Recording {
    /// All commands. The index of a command in this list identifies it everywhere in this module.
    pub ops: Vec<RecordedCommand>,
    /// For each request, the commands that its acknowledgement waits for, ascending.
    pub requests: Vec<Vec<u32>>,
}

impl Recording {
    /// Returns `true` if a power loss can leave exactly these commands durable: for each of them,
    /// all commands that it waits for and the one that it follows are durable too.
    #[must_use]
    pub fn is_valid_cut(&self, done: impl Fn(u32) -> bool) -> bool {
        self.ops
            .iter()
            .enumerate()
            .all(|(i, op)| !done(i as u32) || op.after.iter().chain(&op.follows).all(|&a| done(a)))
    }

    /// Returns `true` if a request is acknowledged when exactly these commands are durable.
    #[must_use]
    pub fn is_acknowledged(&self, request: usize, done: impl Fn(u32) -> bool) -> bool {
        self.requests[request].iter().all(|&op| done(op))
    }
}

/// Records all commands and passes them to the sink below. The number of a token is that of its entry in
/// the table of dependencies, plus one.
#[derive(Debug)]
pub struct Recorder {
    below: Sink,
    recording: Recording,
    entries: Vec<Entry>,
    open: bool,
    /// Last modifying command, by unit and hazard.
    last_modifier: HashMap<(UnitId, u32), u32>,
    /// Worklist of entries; kept to reuse its memory.
    worklist: Vec<u32>,
    /// For each entry, the number of the last walk that visited it.
    visits: Vec<u32>,
    visit: u32,
}

/// What is behind a token.
#[derive(Clone, Copy, Debug)]
struct Entry {
    dependency: Dependency,
    /// Token of the sink below.
    below: Tok,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new(Sink::untimed())
    }
}

impl Recorder {
    /// Creates a recorder above `below`.
    #[must_use]
    pub fn new(below: Sink) -> Recorder {
        Recorder {
            below,
            recording: Recording::default(),
            entries: Vec::new(),
            open: false,
            last_modifier: HashMap::new(),
            worklist: Vec::new(),
            visits: Vec::new(),
            visit: 0,
        }
    }

    /// Ends the open request of a sink over a recorder, and returns the recording and the sink below;
    /// `None` if the engine of the sink is another one.
    #[must_use]
    pub fn finish(mut sink: Sink) -> Option<(Recording, Sink)> {
        sink.end();
        let recorder: Recorder = sink.into_engine()?;
        Some(recorder.into_parts())
    }

    /// Returns the recording without the open request, and the sink below.
    #[must_use]
    pub fn into_parts(self) -> (Recording, Sink) {
        (self.recording, self.below)
    }

    /// The recording so far, without the open request.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    fn entry(&mut self, dependency: Dependency, below: Tok) -> Tok {
        self.entries.push(Entry { dependency, below });
        Tok::new(self.entries.len() as u64)
    }

    /// Returns a token that depends on what `after` does, and has another time in the sink below.
    fn timed(&mut self, after: Tok, below: Tok) -> Tok {
        if below == self.below_of(after) {
            return after;
        }
        self.entry(Dependency::Join(after.number() as u32, 0), below)
    }

    fn below_of(&self, tok: Tok) -> Tok {
        match tok.number() {
            0 => Tok::DONE,
            entry => self.entries[entry as usize - 1].below,
        }
    }

    /// Collects the commands that a token depends on, sorted and without duplicates.
    fn ops_below(&mut self, entry: u32, into: &mut Vec<u32>) {
        self.visit += 1;
        self.visits.resize(self.entries.len(), 0);
        self.worklist.clear();
        self.worklist.push(entry);
        while let Some(e) = self.worklist.pop() {
            if e == 0 {
                continue;
            }
            // Layers join tokens that share parts again and again: each part is visited once, as the
            // number of paths to it grows exponentially.
            let visit = &mut self.visits[e as usize - 1];
            if std::mem::replace(visit, self.visit) == self.visit {
                continue;
            }
            match self.entries[e as usize - 1].dependency {
                Dependency::Op(op) => into.push(op),
                Dependency::Join(a, b) => self.worklist.extend([a, b]),
            }
        }
        into.sort_unstable();
    }
}

impl Engine for Recorder {
    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        self.below.unit(unit)
    }

    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        let mut edges = Vec::new();
        self.ops_below(after.number() as u32, &mut edges);
        let request = match (self.recording.requests.len(), self.open) {
            (n, true) => Some(n as u32),
            (0, false) => None,
            (n, false) => Some(n as u32 - 1),
        };
        let op = self.recording.ops.len() as u32;
        // A read modifies nothing, so no later command has to follow it.
        let follows = match cmd.op.is_read() {
            true => self.last_modifier.get(&(cmd.unit, cmd.hazard)).copied(),
            false => self.last_modifier.insert((cmd.unit, cmd.hazard), op),
        };
        self.recording.ops.push(RecordedCommand { cmd, after: edges, follows, request });
        let below = self.below.emit(cmd, self.below_of(after));
        self.entry(Dependency::Op(op), below)
    }

    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        if b == Tok::DONE || a == b {
            return a;
        }
        if a == Tok::DONE {
            return b;
        }
        let below = self.below.join(self.below_of(a), self.below_of(b));
        self.entry(Dependency::Join(a.number() as u32, b.number() as u32), below)
    }

    fn delay(&mut self, after: Tok, by: Nanos) -> Tok {
        let below = self.below.delay(self.below_of(after), by);
        self.timed(after, below)
    }

    fn add_server(&mut self) -> u16 {
        self.below.add_server()
    }

    fn serve(&mut self, server: u16, after: Tok, by: Nanos) -> Tok {
        let below = self.below.serve(server, self.below_of(after), by);
        self.timed(after, below)
    }

    fn is_done(&self, tok: Tok) -> bool {
        self.below.is_done(self.below_of(tok))
    }

    fn add_pool(&mut self, limit: u64) -> u16 {
        self.below.add_pool(limit)
    }

    fn acquire(&mut self, pool: u16, amount: u64, after: Tok, instead: Tok) -> Tok {
        let below = self.below.acquire(pool, amount, self.below_of(after), self.below_of(instead));
        self.timed(after, below)
    }

    fn release(&mut self, pool: u16, amount: u64, after: Tok) {
        self.below.release(pool, amount, self.below_of(after));
    }

    fn begin(&mut self) {
        debug_assert!(!self.open, "a request begins before the end of the one before");
        self.open = true;
        self.below.begin();
    }

    /// Commands until the next request are background work.
    fn end(&mut self, ack: Tok) -> Tok {
        if std::mem::take(&mut self.open) {
            let mut acks = Vec::new();
            self.ops_below(ack.number() as u32, &mut acks);
            self.recording.requests.push(acks);
        }
        self.below.ack(self.below_of(ack));
        let below = self.below.end();
        self.timed(Tok::DONE, below)
    }

    fn time_or_watch(&mut self, tok: Tok, tag: Tag) -> Option<Nanos> {
        self.below.time_or_watch(self.below_of(tok), tag)
    }

    fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
        self.below.next_done(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Cause, Op};

    fn cmd(addr: u64) -> Cmd {
        Cmd { addr, len: 2048, hazard: addr as u32, unit: UnitId(0), op: Op::NandProgram, cause: Cause::Host }
    }

    #[test]
    fn joins_become_edges_and_acks_are_sets() {
        let mut r = Sink::new(Recorder::default());
        let before = r.emit(cmd(0), r.start());
        r.begin();
        let a = r.emit(cmd(1), before);
        let b = r.emit(cmd(2), r.start());
        let ab = r.join(a, b);
        let again = r.join(ab, a);
        let c = r.emit(cmd(3), again);
        r.ack(c);
        r.ack(b);
        r.ack(b);
        r.end();
        r.emit(cmd(4), c);
        r.begin();
        r.ack(ab);
        let (rec, _) = Recorder::finish(r).unwrap();
        let edges: Vec<&[u32]> = rec.ops.iter().map(|o| o.after.as_slice()).collect();
        assert_eq!(edges, [&[] as &[u32], &[0], &[], &[1, 2], &[3]]);
        assert_eq!(rec.requests, [vec![2, 3], vec![1, 2]]);
        let of: Vec<Option<u32>> = rec.ops.iter().map(|o| o.request).collect();
        assert_eq!(of, [None, Some(0), Some(0), Some(0), Some(0)]);
    }

    #[test]
    fn tokens_that_share_parts_are_walked_once() {
        let mut r = Sink::new(Recorder::default());
        let (mut a, mut b) = (r.emit(cmd(0), r.start()), r.emit(cmd(1), r.start()));
        // 2^100 paths to each of the two commands.
        for _ in 0..100 {
            (a, b) = (r.join(a, b), r.join(b, a));
        }
        let both = r.join(a, b);
        r.emit(cmd(2), both);
        r.emit(cmd(3), a);
        let (rec, _) = Recorder::finish(r).unwrap();
        assert_eq!(rec.ops[2].after, [0, 1]);
        assert_eq!(rec.ops[3].after, [0, 1]);
    }

    #[test]
    fn a_cut_keeps_what_each_command_waits_for() {
        let mut r = Sink::new(Recorder::default());
        let a = r.emit(cmd(0), r.start());
        let b = r.emit(cmd(1), a);
        r.begin();
        let c = r.emit(cmd(2), r.start());
        let t = r.join(b, c);
        r.ack(t);
        let (rec, _) = Recorder::finish(r).unwrap();
        assert!(rec.ops.iter().all(|o| o.follows.is_none()));
        for (set, closed, acked) in [
            (0b000, true, false),
            (0b001, true, false),
            (0b010, false, false),
            (0b101, true, false),
            (0b110, false, true),
            (0b111, true, true),
        ] {
            let done = |i: u32| set >> i & 1 == 1;
            assert_eq!(rec.is_valid_cut(done), closed, "{set:b}");
            assert_eq!(rec.is_acknowledged(0, done), acked, "{set:b}");
        }
    }

    #[test]
    fn pages_of_a_block_are_durable_in_order_without_edges() {
        let mut r = Sink::new(Recorder::default());
        for (addr, op) in
            [(0, Op::NandProgram), (9, Op::NandProgram), (1, Op::NandProgram), (0, Op::NandErase)]
        {
            let hazard = u32::from(addr == 9);
            r.emit(Cmd { op, hazard, ..cmd(addr) }, r.start());
        }
        let (rec, _) = Recorder::finish(r).unwrap();
        let follows: Vec<Option<u32>> = rec.ops.iter().map(|o| o.follows).collect();
        assert_eq!(follows, [None, None, Some(0), Some(2)]);
        assert!(rec.is_valid_cut(|i| i < 3));
        assert!(rec.is_valid_cut(|i| i == 1));
        assert!(!rec.is_valid_cut(|i| i == 2));
        assert!(!rec.is_valid_cut(|i| i != 2));
    }
}
