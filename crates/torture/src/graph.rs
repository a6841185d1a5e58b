//! What a recorded run did, as an order of durability: which command needs which, what each wrote, which
//! fences make it certain, and what each acknowledgement waited for.
//!
//! Only commands that leave something behind are nodes: reads hand on what they waited for. Edges are the
//! recorded `after`, the order within a NAND block, and the order of writes to one cache line of PCM. Not taken over
//! is the recorder's own order of fences on a line: a fence is no write.

use crate::set::Set;
use crate::subject::MediumShape;
use crate::tap::{AccessKind, Log};
use frit_core::{Cause, Op};
use frit_engine::Recording;
use std::collections::HashMap;

/// What a node leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A NAND page.
    Program,
    /// An erased NAND block.
    Erase,
    /// Bytes in PCM, certain once fenced; sectors of a disk, certain once flushed.
    Write,
    /// Certainty.
    Fence,
}

/// Bytes that a node wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The medium.
    pub medium: u8,
    /// Address in its store.
    pub at: u64,
    /// First byte in the log.
    pub from: u32,
    /// Length in bytes.
    pub len: u32,
}

/// A command that leaves something behind.
#[derive(Clone, Debug)]
pub struct Node {
    /// What.
    pub effect: Effect,
    /// Why the command was given.
    pub cause: Cause,
    /// The unit.
    pub unit: u16,
    /// Its address, as in the command.
    pub addr: u64,
    /// What of it a cut leaves whole, in bytes.
    pub word_bytes: u64,
    /// What it wrote, in order.
    pub pieces: Vec<Piece>,
    /// Nodes that have to be done before it.
    pub before: Set,
    /// Fences that make it certain (PCM writes).
    pub fenced_by: Set,
}

/// A recorded run.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The nodes, in the order in which they were given.
    pub nodes: Vec<Node>,
    /// For each node, those that need it.
    pub needed_by: Vec<Set>,
    /// For each request, what its acknowledgement waited for.
    pub acks: Vec<Set>,
    /// The bytes of all pieces.
    pub bytes: Vec<u8>,
    /// What was written before the first command: certain.
    pub early: Vec<Piece>,
}

fn effect(op: Op) -> Option<Effect> {
    match op {
        Op::NandProgram | Op::NandCopyback => Some(Effect::Program),
        Op::NandErase => Some(Effect::Erase),
        Op::PcmWrite | Op::PcmWriteClean | Op::PcmRefresh | Op::DiskWrite => Some(Effect::Write),
        Op::PcmFence | Op::DiskFlush => Some(Effect::Fence),
        Op::NandRead | Op::PcmRead | Op::DramRead | Op::DramWrite | Op::DiskRead => None,
    }
}

impl Graph {
    /// From a recording and what its stores saw.
    #[must_use]
    pub fn new(recording: &Recording, log: Log, media: &[MediumShape]) -> Graph {
        let mut node_of = vec![None; recording.ops.len()];
        let mut count = 0;
        for (i, op) in recording.ops.iter().enumerate() {
            if effect(op.cmd.op).is_some() {
                node_of[i] = Some(count);
                count += 1;
            }
        }
        let mut g = Graph {
            nodes: Vec::with_capacity(count),
            needed_by: vec![Set::new(count); count],
            acks: Vec::new(),
            bytes: Vec::new(),
            early: Vec::new(),
        };
        let waits = g.link(recording, &node_of, count, media);
        g.acks = recording
            .requests
            .iter()
            .map(|ops| {
                let mut set = Set::new(count);
                for &op in ops {
                    set.add_all(&waits[op as usize]);
                    if let Some(n) = node_of[op as usize] {
                        set.add(n);
                    }
                }
                set
            })
            .collect();
        g.fence();
        g.place(recording, log, &node_of, media);
        g
    }

    /// Makes the nodes with all that they need; returns for each command what it waited for.
    fn link(
        &mut self,
        recording: &Recording,
        node_of: &[Option<usize>],
        count: usize,
        media: &[MediumShape],
    ) -> Vec<Set> {
        let mut waits: Vec<Set> = Vec::with_capacity(node_of.len());
        let mut last_in_block: HashMap<(u16, u32), usize> = HashMap::new();
        let mut last_on_line: HashMap<(u16, u64), usize> = HashMap::new();
        for (i, op) in recording.ops.iter().enumerate() {
            let mut before = Set::new(count);
            for &a in &op.after {
                before.add_all(&waits[a as usize]);
                if let Some(n) = node_of[a as usize] {
                    before.add(n);
                }
            }
            if let (Some(n), Some(effect)) = (node_of[i], effect(op.cmd.op)) {
                let cmd = &op.cmd;
                let mut earlier = Vec::new();
                match effect {
                    Effect::Program | Effect::Erase => {
                        earlier.extend(last_in_block.insert((cmd.unit.0, cmd.hazard), n));
                    }
                    Effect::Write => {
                        let line = grain_of(media, cmd.unit.0).0;
                        for l in cmd.addr / line..(cmd.addr + u64::from(cmd.len)).div_ceil(line) {
                            earlier.extend(last_on_line.insert((cmd.unit.0, l), n));
                        }
                    }
                    Effect::Fence => {}
                }
                for e in earlier {
                    before.add(e);
                    let all = self.nodes[e].before.clone();
                    before.add_all(&all);
                }
                for b in before.iter() {
                    self.needed_by[b].add(n);
                }
                self.nodes.push(Node {
                    effect,
                    cause: cmd.cause,
                    unit: cmd.unit.0,
                    addr: cmd.addr,
                    word_bytes: grain_of(media, cmd.unit.0).1,
                    pieces: Vec::new(),
                    before: before.clone(),
                    fenced_by: Set::new(count),
                });
            }
            waits.push(before);
        }
        waits
    }

    /// Which fences make which writes certain: those on the same channel that wait for them.
    fn fence(&mut self) {
        for f in 0..self.nodes.len() {
            if self.nodes[f].effect != Effect::Fence {
                continue;
            }
            let (before, unit) = (self.nodes[f].before.clone(), self.nodes[f].unit);
            for w in before.iter() {
                if self.nodes[w].effect == Effect::Write && self.nodes[w].unit == unit {
                    self.nodes[w].fenced_by.add(f);
                }
            }
        }
    }

    /// Gives each byte that was written to the command that it belongs to.
    fn place(&mut self, recording: &Recording, log: Log, node_of: &[Option<usize>], media: &[MediumShape]) {
        for access in &log.accesses {
            let AccessKind::Write { at, from, len } = access.kind else { continue };
            let piece = Piece { medium: access.medium, at, from, len };
            let shape = &media[access.medium as usize];
            let mut rest = vec![piece];
            // One write of PCM is a command for each stretch on one channel: by address.
            let mut i = access.commands as usize;
            while shape.nand.is_none() && !rest.is_empty() && i > 0 {
                i -= 1;
                let cmd = &recording.ops[i].cmd;
                let mine = shape.units.contains(&cmd.unit.0) && effect(cmd.op) == Some(Effect::Write);
                let Some(n) = node_of[i].filter(|_| mine) else { break };
                rest = rest.into_iter().flat_map(|p| self.claim(n, p, cmd.addr, cmd.len)).collect();
            }
            let upto = access.commands as usize;
            let own = |n: &usize| shape.units.contains(&self.nodes[*n].unit);
            let near = node_of[..upto].iter().rev().take(1).flatten().copied().next();
            let owner = near
                .or_else(|| node_of[..upto].iter().rev().flatten().copied().find(own))
                .or_else(|| node_of[..upto].iter().rev().flatten().copied().next());
            match owner {
                Some(n) => self.nodes[n].pieces.extend(rest),
                None => self.early.extend(rest),
            }
        }
        self.bytes = log.bytes;
    }

    /// Gives a node the part of a write that lies in its range; returns what is left.
    fn claim(&mut self, node: usize, p: Piece, addr: u64, len: u32) -> Vec<Piece> {
        let (from, to) = (p.at.max(addr), (p.at + u64::from(p.len)).min(addr + u64::from(len)));
        if from >= to {
            return vec![p];
        }
        let part = |a: u64, b: u64| Piece {
            at: a,
            from: p.from + (a - p.at) as u32,
            len: (b - a) as u32,
            medium: p.medium,
        };
        self.nodes[node].pieces.push(part(from, to));
        [(p.at, from), (to, p.at + u64::from(p.len))]
            .into_iter()
            .filter(|(a, b)| a < b)
            .map(|(a, b)| part(a, b))
            .collect()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing was left behind.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node with all that it needs.
    #[must_use]
    pub fn closure(&self, node: usize) -> Set {
        let mut s = self.nodes[node].before.clone();
        s.add(node);
        s
    }

    /// All nodes of a set with all that they need.
    #[must_use]
    pub fn closure_of(&self, nodes: &Set) -> Set {
        let mut s = nodes.clone();
        for n in nodes.iter() {
            s.add_all(&self.nodes[n].before);
        }
        s
    }

    /// Whether a power cut can leave exactly these done.
    #[must_use]
    pub fn is_closed(&self, set: &Set) -> bool {
        set.iter().all(|n| self.nodes[n].before.within(set))
    }

    /// Nodes that are not done though all that they need is: what a cut can tear.
    #[must_use]
    pub fn frontier(&self, set: &Set) -> Vec<usize> {
        (0..self.len()).filter(|&n| !set.has(n) && self.nodes[n].before.within(set)).collect()
    }

    /// Whether what a node left behind is there for certain.
    #[inline]
    #[must_use]
    pub fn is_certain(&self, node: usize, set: &Set) -> bool {
        let n = &self.nodes[node];
        set.has(node) && (n.effect != Effect::Write || n.fenced_by.meets(set))
    }

    /// The requests that are acknowledged.
    #[must_use]
    pub fn acknowledged(&self, set: &Set) -> Set {
        let mut all = Set::new(self.acks.len());
        for r in (0..self.acks.len()).filter(|&r| self.is_acknowledged(r, set)) {
            all.add(r);
        }
        all
    }

    /// Whether a request is acknowledged.
    #[inline]
    #[must_use]
    pub fn is_acknowledged(&self, request: usize, set: &Set) -> bool {
        self.acks[request].within(set)
    }
}

/// The bytes that are ordered among themselves, and those that are whole, on a unit.
fn grain_of(media: &[MediumShape], unit: u16) -> (u64, u64) {
    media.iter().find(|m| m.units.contains(&unit)).map_or((8, 8), |m| (m.line_bytes, m.word_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::Tap;
    use crate::tape::Tape;
    use frit_core::{Cmd, Sink, UnitId};
    use std::sync::Arc;

    fn shape(units: std::ops::Range<u16>) -> MediumShape {
        MediumShape {
            name: "pcm".into(),
            kind: frit_core::MediumKind::Pcm,
            nand: None,
            line_bytes: 64,
            word_bytes: 8,
            data_bytes: 1 << 20,
            units,
        }
    }

    fn cmd(op: Op, addr: u64, len: u32, unit: u16) -> Cmd {
        Cmd { addr, len, hazard: (addr / 64) as u32, unit: UnitId(unit), op, cause: Cause::Meta }
    }

    #[test]
    fn fences_make_certain_what_they_wait_for_and_reads_hand_on() {
        let tap = Arc::new(Tap::default());
        let mut t = Tape::new(tap.clone(), None, 0..0);
        t.roll();
        t.begin();
        let a = t.emit(cmd(Op::PcmWrite, 0, 64, 0), Sink::start(&t));
        tap.write(0, 0, &[1; 64]);
        let r = t.emit(cmd(Op::PcmRead, 0, 64, 0), a);
        let b = t.emit(cmd(Op::PcmWrite, 64, 32, 0), r);
        tap.write(0, 70, &[2; 20]);
        let other = t.emit(cmd(Op::PcmWrite, 512, 8, 1), Sink::start(&t));
        tap.write(0, 512, &[3; 8]);
        let both = t.join(b, other);
        let f = t.emit(cmd(Op::PcmFence, 0, 0, 0), both);
        t.ack(f);
        t.end();
        let g = Graph::new(&t.finish(), tap.take(), &[shape(0..2)]);
        assert_eq!(g.len(), 4);
        assert!(g.nodes[1].before.has(0), "through the read");
        assert_eq!(g.nodes[1].pieces, [Piece { medium: 0, at: 70, from: 64, len: 20 }]);
        let all = Set::below(4, 4);
        assert!(g.is_certain(0, &all) && g.is_certain(1, &all));
        assert!(!g.is_certain(2, &all), "a fence of another channel");
        assert!(!g.is_certain(0, &Set::below(4, 3)) && g.is_acknowledged(0, &all));
        assert_eq!(g.frontier(&Set::new(4)), [0, 2]);
        assert!(g.is_closed(&Set::below(4, 1)) && g.closure(3) == all);
    }

    #[test]
    fn a_write_over_two_channels_is_shared_by_address() {
        let tap = Arc::new(Tap::default());
        let mut t = Tape::new(tap.clone(), None, 0..0);
        t.roll();
        let s = Sink::start(&t);
        t.emit(cmd(Op::PcmWrite, 448, 64, 0), s);
        t.emit(cmd(Op::PcmWrite, 512, 64, 1), s);
        tap.write(0, 500, &[7; 40]);
        let g = Graph::new(&t.finish(), tap.take(), &[shape(0..2)]);
        let of = |n: usize| g.nodes[n].pieces.iter().map(|p| (p.at, p.len)).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![(500, 12)], vec![(512, 28)]));
        assert!(g.early.is_empty());
    }
}
