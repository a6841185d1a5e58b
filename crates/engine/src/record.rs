//! A sink that records a run: all commands, their order of durability, and the commands that each
//! acknowledgement waits for.

use crate::driver::{Completion, Engine, Tag};
use frit_core::{Cmd, Nanos, RequestScope, Sink, UnitId, UnitState, UntimedSink};
use std::collections::HashMap;

/// A token of the recorder: an entry in its table of dependencies, and the token of the sink below.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RecorderToken<T> {
    /// 0 if the token is done; otherwise the number of the entry plus one.
    entry: u32,
    below: T,
}

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

/// Records all commands and passes them to the sink below.
#[derive(Clone, Debug)]
pub struct Recorder<S: Sink = UntimedSink> {
    below: S,
    recording: Recording,
    entries: Vec<Dependency>,
    scope: RequestScope<RecorderToken<S::Tok>>,
    open: bool,
    /// Last modifying command, by unit and hazard.
    last_modifier: HashMap<(UnitId, u32), u32>,
    /// Worklist of entries; kept to reuse its memory.
    worklist: Vec<u32>,
    /// For each entry, the number of the last walk that visited it.
    visits: Vec<u32>,
    visit: u32,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new(UntimedSink::new())
    }
}

impl<S: Sink> Recorder<S> {
    /// Creates a recorder above `below`.
    pub fn new(below: S) -> Recorder<S> {
        Recorder {
            below,
            recording: Recording::default(),
            entries: Vec::new(),
            scope: RequestScope::default(),
            open: false,
            last_modifier: HashMap::new(),
            worklist: Vec::new(),
            visits: Vec::new(),
            visit: 0,
        }
    }

    /// Begins a request.
    pub fn begin_request(&mut self) {
        self.end_request();
        self.scope = RequestScope::default();
        self.open = true;
    }

    /// Ends the open request. Commands until the next request are background work.
    pub fn end_request(&mut self) {
        if std::mem::take(&mut self.open) {
            let mut acks = Vec::new();
            self.ops_below(self.scope.ack.entry, &mut acks);
            self.recording.requests.push(acks);
        }
    }

    /// The recording so far, without the open request.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Ends the open request, and returns the recording and the sink below.
    pub fn finish(mut self) -> (Recording, S) {
        self.end_request();
        (self.recording, self.below)
    }

    fn entry(&mut self, entry: Dependency) -> u32 {
        self.entries.push(entry);
        self.entries.len() as u32
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
            match self.entries[e as usize - 1] {
                Dependency::Op(op) => into.push(op),
                Dependency::Join(a, b) => self.worklist.extend([a, b]),
            }
        }
        into.sort_unstable();
    }
}

impl<S: Sink> Sink for Recorder<S> {
    type Tok = RecorderToken<S::Tok>;

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn start(&self) -> Self::Tok {
        self.scope.start
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        self.below.unit(unit)
    }

    fn emit(&mut self, cmd: Cmd, after: Self::Tok) -> Self::Tok {
        let after = self.join(self.scope.start, after);
        let mut edges = Vec::new();
        self.ops_below(after.entry, &mut edges);
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
        RecorderToken { entry: self.entry(Dependency::Op(op)), below: self.below.emit(cmd, after.below) }
    }

    fn join(&mut self, a: Self::Tok, b: Self::Tok) -> Self::Tok {
        let entry = match (a.entry, b.entry) {
            (0, e) | (e, 0) => e,
            (x, y) if x == y => x,
            (x, y) => self.entry(Dependency::Join(x, y)),
        };
        RecorderToken { entry, below: self.below.join(a.below, b.below) }
    }

    fn delay(&mut self, after: Self::Tok, by: Nanos) -> Self::Tok {
        let after = self.join(self.scope.start, after);
        RecorderToken { below: self.below.delay(after.below, by), ..after }
    }

    fn add_server(&mut self) -> u16 {
        self.below.add_server()
    }

    fn serve(&mut self, server: u16, after: Self::Tok, by: Nanos) -> Self::Tok {
        let after = self.join(self.scope.start, after);
        RecorderToken { below: self.below.serve(server, after.below, by), ..after }
    }

    fn is_done(&self, tok: Self::Tok) -> bool {
        self.below.is_done(tok.below)
    }

    fn add_pool(&mut self, limit: u64) -> u16 {
        self.below.add_pool(limit)
    }

    fn acquire(&mut self, pool: u16, amount: u64, after: Self::Tok, instead: Self::Tok) -> Self::Tok {
        let after = self.join(self.scope.start, after);
        RecorderToken { below: self.below.acquire(pool, amount, after.below, instead.below), ..after }
    }

    fn release(&mut self, pool: u16, amount: u64, after: Self::Tok) {
        self.below.release(pool, amount, after.below);
    }

    fn ack(&mut self, tok: Self::Tok) {
        self.scope.ack = self.join(self.scope.ack, tok);
    }

    fn scope(&mut self) -> &mut RequestScope<Self::Tok> {
        &mut self.scope
    }
}

/// Records a run of a driver. The token of an acknowledgement is that of the sink below.
impl<S: Engine> Engine for Recorder<S> {
    fn begin(&mut self) {
        self.begin_request();
        self.below.begin();
    }

    fn end(&mut self) -> Self::Tok {
        self.end_request();
        self.below.ack(self.scope.ack.below);
        RecorderToken { entry: 0, below: self.below.end() }
    }

    fn time_or_watch(&mut self, tok: Self::Tok, tag: Tag) -> Option<Nanos> {
        self.below.time_or_watch(tok.below, tag)
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
        let mut r = Recorder::default();
        let before = r.emit(cmd(0), r.start());
        r.begin_request();
        let a = r.emit(cmd(1), before);
        let b = r.emit(cmd(2), r.start());
        let ab = r.join(a, b);
        let again = r.join(ab, a);
        let c = r.emit(cmd(3), again);
        r.ack(c);
        r.ack(b);
        r.ack(b);
        r.end_request();
        r.emit(cmd(4), c);
        r.begin_request();
        r.ack(ab);
        let (rec, _) = r.finish();
        let edges: Vec<&[u32]> = rec.ops.iter().map(|o| o.after.as_slice()).collect();
        assert_eq!(edges, [&[] as &[u32], &[0], &[], &[1, 2], &[3]]);
        assert_eq!(rec.requests, [vec![2, 3], vec![1, 2]]);
        let of: Vec<Option<u32>> = rec.ops.iter().map(|o| o.request).collect();
        assert_eq!(of, [None, Some(0), Some(0), Some(0), Some(0)]);
    }

    #[test]
    fn tokens_that_share_parts_are_walked_once() {
        let mut r = Recorder::default();
        let (mut a, mut b) = (r.emit(cmd(0), r.start()), r.emit(cmd(1), r.start()));
        // 2^100 paths to each of the two commands.
        for _ in 0..100 {
            (a, b) = (r.join(a, b), r.join(b, a));
        }
        let both = r.join(a, b);
        r.emit(cmd(2), both);
        r.emit(cmd(3), a);
        let (rec, _) = r.finish();
        assert_eq!(rec.ops[2].after, [0, 1]);
        assert_eq!(rec.ops[3].after, [0, 1]);
    }

    #[test]
    fn a_cut_keeps_what_each_command_waits_for() {
        let mut r = Recorder::default();
        let a = r.emit(cmd(0), r.start());
        let b = r.emit(cmd(1), a);
        r.begin_request();
        let c = r.emit(cmd(2), r.start());
        let t = r.join(b, c);
        r.ack(t);
        let (rec, _) = r.finish();
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
        let mut r = Recorder::default();
        for (addr, op) in
            [(0, Op::NandProgram), (9, Op::NandProgram), (1, Op::NandProgram), (0, Op::NandErase)]
        {
            let hazard = u32::from(addr == 9);
            r.emit(Cmd { op, hazard, ..cmd(addr) }, r.start());
        }
        let (rec, _) = r.finish();
        let follows: Vec<Option<u32>> = rec.ops.iter().map(|o| o.follows).collect();
        assert_eq!(follows, [None, None, Some(0), Some(2)]);
        assert!(rec.is_valid_cut(|i| i < 3));
        assert!(rec.is_valid_cut(|i| i == 1));
        assert!(!rec.is_valid_cut(|i| i == 2));
        assert!(!rec.is_valid_cut(|i| i != 2));
    }
}
