//! A recorded run as an order of durability: the dependencies of each command, the bytes that it
//! wrote, the fences that make these bytes certain, and the commands that each acknowledgement
//! waited for.
//!
//! Only commands with a lasting effect are nodes; a read passes on its own dependencies. Edges are
//! the recorded `after`, the order within a NAND block, and the order of writes to one cache line
//! of PCM. A read of NAND is executed in the order of its block too, so what waits for it also waits
//! for the programs before it. A read out of a buffer in DRAM is no such command. A copyback reads
//! pages of another block than it programs, and waits for the programs before it in both. The
//! recorder's own order between fences and writes on a line is not used, because a fence is not a write.

use crate::block::access_log::{AccessRecords, CopiedPage, LoggedAccessKind};
use crate::block::command_set::CommandSet;
use crate::block::target::MediumShape;
use frit_core::{Cause, Cmd, MediumKind, Op};
use frit_engine::Recording;
use std::collections::HashMap;

/// Lasting effect of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A programmed NAND page.
    Program,
    /// An erased NAND block.
    Erase,
    /// Bytes in PCM, certain after a fence; sectors of a disk, puts and deletes of objects, certain
    /// after a flush.
    Write,
    /// A fence or flush, which makes earlier writes certain.
    Fence,
}

/// Bytes that a node wrote, as a range of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrittenRange {
    /// Number of the medium.
    pub medium: u8,
    /// Address in the store.
    pub at: u64,
    /// Position of the first byte in the log.
    pub from: u32,
    /// Length in bytes.
    pub len: u32,
}

/// A command with a lasting effect.
#[derive(Clone, Debug)]
pub struct CommandNode {
    /// Effect of the command.
    pub effect: Effect,
    /// Cause of the command.
    pub cause: Cause,
    /// Unit that executes the command.
    pub unit: u16,
    /// Number of the medium of the unit.
    pub medium: u8,
    /// Address of the command.
    pub addr: u64,
    /// Bytes that a cut does not tear.
    pub word_bytes: u64,
    /// Bytes that it wrote, in order.
    pub pieces: Vec<WrittenRange>,
    /// Nodes that must be complete before it, directly or indirectly.
    pub before: CommandSet,
    /// Fences that make it certain (PCM and disk writes).
    pub fenced_by: CommandSet,
}

/// A recorded run.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Nodes, in the order in which the commands were issued.
    pub nodes: Vec<CommandNode>,
    /// For each node, the nodes that depend on it.
    pub needed_by: Vec<CommandSet>,
    /// For each request, the nodes that its acknowledgement waited for.
    pub acks: Vec<CommandSet>,
    /// Bytes of all pieces.
    pub bytes: Vec<u8>,
    /// Pieces written before the first command; they are certain.
    pub early: Vec<WrittenRange>,
}

/// Address of a command: of NAND the page, without the mode of its block.
fn address_of(cmd: &Cmd) -> u64 {
    match cmd.op.medium() {
        MediumKind::Nand => cmd.nand_page().into(),
        _ => cmd.addr,
    }
}

fn effect(op: Op) -> Option<Effect> {
    match op {
        Op::NandProgram | Op::NandCopyback => Some(Effect::Program),
        Op::NandErase => Some(Effect::Erase),
        Op::PcmWrite
        | Op::PcmWriteClean
        | Op::PcmRefresh
        | Op::DiskWrite
        | Op::ObjectPut
        | Op::ObjectDelete => Some(Effect::Write),
        Op::PcmFence | Op::DiskFlush | Op::ObjectFlush => Some(Effect::Fence),
        Op::NandRead
        | Op::NandRegisterRead
        | Op::PcmRead
        | Op::DramRead
        | Op::DramWrite
        | Op::DiskRead
        | Op::ObjectGet
        | Op::ObjectList => None,
    }
}

impl Graph {
    /// Creates the graph of a recording and of the accesses to its stores.
    #[must_use]
    pub fn new(recording: &Recording, log: AccessRecords, media: &[MediumShape]) -> Graph {
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
            needed_by: vec![CommandSet::new(count); count],
            acks: Vec::new(),
            bytes: Vec::new(),
            early: Vec::new(),
        };
        let waits = g.link(recording, &node_of, &sources_of(&log.copied, media), media);
        g.acks = recording
            .requests
            .iter()
            .map(|ops| {
                let mut set = CommandSet::new(count);
                for &op in ops {
                    set.add_all(&waits[op as usize]);
                    if let Some(n) = node_of[op as usize] {
                        set.add(n);
                    }
                }
                set
            })
            .collect();
        g.fence(media);
        g.place(recording, log, &node_of, media);
        g
    }

    /// Creates the nodes with their dependencies. Returns the dependencies of each command.
    fn link(
        &mut self,
        recording: &Recording,
        node_of: &[Option<usize>],
        sources: &HashMap<u32, Vec<u32>>,
        media: &[MediumShape],
    ) -> Vec<CommandSet> {
        let count = self.needed_by.len();
        let mut waits: Vec<CommandSet> = Vec::with_capacity(node_of.len());
        let mut last_in_block: HashMap<(u16, u32), usize> = HashMap::new();
        let mut last_on_line: HashMap<(u16, u64), usize> = HashMap::new();
        for (i, op) in recording.ops.iter().enumerate() {
            let mut before = CommandSet::new(count);
            for &a in &op.after {
                before.add_all(&waits[a as usize]);
                if let Some(n) = node_of[a as usize] {
                    before.add(n);
                }
            }
            let read = match op.cmd.op {
                Op::NandRead => std::slice::from_ref(&op.cmd.hazard),
                _ => sources.get(&(i as u32)).map_or(&[][..], Vec::as_slice),
            };
            for block in read {
                if let Some(&n) = last_in_block.get(&(op.cmd.unit.0, *block)) {
                    before.add(n);
                    before.add_all(&self.nodes[n].before);
                }
            }
            if let (Some(n), Some(effect)) = (node_of[i], effect(op.cmd.op)) {
                let cmd = &op.cmd;
                let mut earlier = Vec::new();
                match effect {
                    Effect::Program | Effect::Erase => {
                        earlier.extend(last_in_block.insert((cmd.unit.0, cmd.hazard), n));
                    }
                    // Any connection can execute the requests to a slot.
                    Effect::Write if cmd.op.medium() == MediumKind::Object => {
                        let unit = fence_domain(media, cmd.unit.0);
                        earlier.extend(last_in_block.insert((unit, cmd.hazard), n));
                    }
                    Effect::Write => {
                        let line = granularity_of(media, cmd.unit.0).0;
                        for l in cmd.addr / line..(cmd.addr + u64::from(cmd.len)).div_ceil(line) {
                            earlier.extend(last_on_line.insert((cmd.unit.0, l), n));
                        }
                    }
                    Effect::Fence => {}
                }
                // The set of each node is transitively closed, so one union adds all indirect
                // dependencies.
                for e in earlier {
                    before.add(e);
                    let all = self.nodes[e].before.clone();
                    before.add_all(&all);
                }
                for b in before.iter() {
                    self.needed_by[b].add(n);
                }
                self.nodes.push(CommandNode {
                    effect,
                    cause: cmd.cause,
                    unit: cmd.unit.0,
                    medium: medium_of(media, cmd.unit.0).unwrap_or(0) as u8,
                    addr: address_of(cmd),
                    word_bytes: granularity_of(media, cmd.unit.0).1,
                    pieces: Vec::new(),
                    before: before.clone(),
                    fenced_by: CommandSet::new(count),
                });
            }
            waits.push(before);
        }
        waits
    }

    /// Assigns fences to the writes that they make certain: writes on the same channel, or to the same
    /// object store, that the fence waits for.
    fn fence(&mut self, media: &[MediumShape]) {
        let domains: Vec<u16> = self.nodes.iter().map(|n| fence_domain(media, n.unit)).collect();
        for f in 0..self.nodes.len() {
            if self.nodes[f].effect != Effect::Fence {
                continue;
            }
            let (before, unit) = (self.nodes[f].before.clone(), domains[f]);
            for w in before.iter() {
                if self.nodes[w].effect == Effect::Write && domains[w] == unit {
                    self.nodes[w].fenced_by.add(f);
                }
            }
        }
    }

    /// Assigns each written byte to its command.
    fn place(
        &mut self,
        recording: &Recording,
        log: AccessRecords,
        node_of: &[Option<usize>],
        media: &[MediumShape],
    ) {
        for access in &log.accesses {
            let LoggedAccessKind::Write { at, from, len } = access.kind else { continue };
            let piece = WrittenRange { medium: access.medium, at, from, len };
            let shape = &media[access.medium as usize];
            let mut rest = vec![piece];
            // A PCM write is one command for each contiguous range on a channel. Its bytes are
            // assigned by address.
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
            // Bytes outside these ranges belong to the last command, or to the last node of this
            // medium, or to the last node of any medium.
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

    /// Assigns the part of a write within a node's range to the node. Returns the remaining parts.
    fn claim(&mut self, node: usize, p: WrittenRange, addr: u64, len: u32) -> Vec<WrittenRange> {
        let (from, to) = (p.at.max(addr), (p.at + u64::from(p.len)).min(addr + u64::from(len)));
        if from >= to {
            return vec![p];
        }
        let part = |a: u64, b: u64| WrittenRange {
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

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns `true` if the graph has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns a node together with its dependencies.
    #[must_use]
    pub fn closure(&self, node: usize) -> CommandSet {
        let mut s = self.nodes[node].before.clone();
        s.add(node);
        s
    }

    /// Returns the nodes of a set together with their dependencies.
    #[must_use]
    pub fn closure_of(&self, nodes: &CommandSet) -> CommandSet {
        let mut s = nodes.clone();
        for n in nodes.iter() {
            s.add_all(&self.nodes[n].before);
        }
        s
    }

    /// Returns `true` if the set is down-closed, so that a power cut can leave exactly these nodes
    /// complete.
    #[must_use]
    pub fn is_closed(&self, set: &CommandSet) -> bool {
        set.iter().all(|n| self.nodes[n].before.within(set))
    }

    /// Returns the incomplete nodes whose dependencies are complete. A cut can tear these.
    #[must_use]
    pub fn frontier(&self, set: &CommandSet) -> Vec<usize> {
        (0..self.len()).filter(|&n| !set.has(n) && self.nodes[n].before.within(set)).collect()
    }

    /// Returns `true` if the effect of a node certainly persists.
    #[inline]
    #[must_use]
    pub fn is_certain(&self, node: usize, set: &CommandSet) -> bool {
        let n = &self.nodes[node];
        set.has(node) && (n.effect != Effect::Write || n.fenced_by.meets(set))
    }

    /// Returns the acknowledged requests.
    #[must_use]
    pub fn acknowledged(&self, set: &CommandSet) -> CommandSet {
        let mut all = CommandSet::new(self.acks.len());
        for r in (0..self.acks.len()).filter(|&r| self.is_acknowledged(r, set)) {
            all.add(r);
        }
        all
    }

    /// Returns `true` if a request is acknowledged.
    #[inline]
    #[must_use]
    pub fn is_acknowledged(&self, request: usize, set: &CommandSet) -> bool {
        self.acks[request].within(set)
    }
}

/// Returns the blocks that each copyback reads.
fn sources_of(copied: &[CopiedPage], media: &[MediumShape]) -> HashMap<u32, Vec<u32>> {
    let mut sources: HashMap<u32, Vec<u32>> = HashMap::new();
    for page in copied {
        let Some(nand) = media.get(page.medium as usize).and_then(|m| m.nand) else { continue };
        let blocks = sources.entry(page.command).or_default();
        blocks.push((page.at / nand.page_bytes / nand.pages_per_block) as u32);
        blocks.dedup();
    }
    sources
}

/// Returns the bytes of a line, whose writes are ordered, and of a word, which a cut does not tear,
/// for a unit.
fn granularity_of(media: &[MediumShape], unit: u16) -> (u64, u64) {
    medium_of(media, unit).map_or((8, 8), |i| (media[i].line_bytes, media[i].word_bytes))
}

/// Returns the unit that stands for all units whose writes one fence makes certain: the unit itself, or
/// the first connection of its object store.
fn fence_domain(media: &[MediumShape], unit: u16) -> u16 {
    let store = medium_of(media, unit).map(|i| &media[i]).filter(|m| m.kind == MediumKind::Object);
    store.map_or(unit, |m| m.units.start)
}

/// Returns the number of the medium that has a unit.
fn medium_of(media: &[MediumShape], unit: u16) -> Option<usize> {
    media.iter().position(|m| m.units.contains(&unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::access_log::AccessLog;
    use crate::block::medium::{SharedMedium, TortureMedium};
    use crate::block::nand_layout::NandLayout;
    use crate::block::recording_sink::{recorded, recording_sink, start_recording};
    use frit_core::{Sink, UnitId};
    use std::sync::Arc;

    fn shape(units: std::ops::Range<u16>) -> MediumShape {
        MediumShape {
            of_top: true,
            name: "pcm".into(),
            kind: MediumKind::Pcm,
            nand: None,
            line_bytes: 64,
            word_bytes: 8,
            data_bytes: 1 << 20,
            verified: true,
            units,
        }
    }

    fn cmd(op: Op, addr: u64, len: u32, unit: u16) -> Cmd {
        Cmd { addr, len, hazard: (addr / 64) as u32, unit: UnitId(unit), op, cause: Cause::Meta }
    }

    #[test]
    fn fences_make_certain_what_they_wait_for_and_reads_hand_on() {
        let access_log = Arc::new(AccessLog::default());
        let mut t = recording_sink(access_log.clone(), None, 0..0);
        start_recording(&mut t);
        t.begin();
        let a = t.emit(cmd(Op::PcmWrite, 0, 64, 0), Sink::start(&t));
        access_log.write(0, 0, &[1; 64]);
        let r = t.emit(cmd(Op::PcmRead, 0, 64, 0), a);
        let b = t.emit(cmd(Op::PcmWrite, 64, 32, 0), r);
        access_log.write(0, 70, &[2; 20]);
        let other = t.emit(cmd(Op::PcmWrite, 512, 8, 1), Sink::start(&t));
        access_log.write(0, 512, &[3; 8]);
        let both = t.join(b, other);
        let f = t.emit(cmd(Op::PcmFence, 0, 0, 0), both);
        t.ack(f);
        t.end();
        let g = Graph::new(&recorded(t), access_log.take(), &[shape(0..2)]);
        assert_eq!(g.len(), 4);
        assert!(g.nodes[1].before.has(0), "through the read");
        assert_eq!(g.nodes[1].pieces, [WrittenRange { medium: 0, at: 70, from: 64, len: 20 }]);
        let all = CommandSet::below(4, 4);
        assert!(g.is_certain(0, &all) && g.is_certain(1, &all));
        assert!(!g.is_certain(2, &all), "a fence of another channel");
        assert!(!g.is_certain(0, &CommandSet::below(4, 3)) && g.is_acknowledged(0, &all));
        assert_eq!(g.frontier(&CommandSet::new(4)), [0, 2]);
        assert!(g.is_closed(&CommandSet::below(4, 1)) && g.closure(3) == all);
    }

    #[test]
    fn what_waits_for_a_read_of_nand_waits_for_the_programs_of_its_block() {
        let mut t = recording_sink(Arc::new(AccessLog::default()), None, 0..0);
        start_recording(&mut t);
        let start = Sink::start(&t);
        let of_block = |op, hazard, unit| Cmd { hazard, ..cmd(op, 0, 4096, unit) };
        let first = t.emit(of_block(Op::NandErase, 3, 0), start);
        t.emit(of_block(Op::NandProgram, 3, 0), first);
        t.emit(of_block(Op::NandProgram, 4, 0), start);
        let read = t.emit(of_block(Op::NandRead, 3, 0), start);
        let rest = t.emit(of_block(Op::NandRegisterRead, 3, 0), read);
        let buffer = t.emit(of_block(Op::DramRead, 3, 0), start);
        t.emit(of_block(Op::NandProgram, 3, 0), start);
        t.emit(of_block(Op::NandProgram, 7, 1), rest);
        t.emit(of_block(Op::NandProgram, 8, 1), buffer);
        let g = Graph::new(&recorded(t), AccessRecords::default(), &[shape(0..2)]);
        let before = |n: usize| g.nodes[n].before.iter().collect::<Vec<_>>();
        assert_eq!(before(4), [0, 1], "the erase and the program of the block, and nothing after the read");
        assert!(before(5).is_empty(), "a read out of a buffer in DRAM");
    }

    #[test]
    fn a_copyback_waits_for_the_programs_of_the_block_that_it_reads() {
        const LAYOUT: NandLayout =
            NandLayout { page_bytes: 512, pages_per_block: 2, pages: 8, program_pages: 1, record_copies: 1 };
        let access_log = Arc::new(AccessLog::default());
        let medium = SharedMedium::new(TortureMedium::new(0, Some(LAYOUT)));
        medium.lock().access_log = Some(access_log.clone());
        let mut t = recording_sink(access_log.clone(), None, 0..0);
        start_recording(&mut t);
        let start = Sink::start(&t);
        let of_block = |op, hazard| Cmd { hazard, ..cmd(op, 0, 512, 0) };
        let read = |page: u64| medium.open(8192).read(page * 512, &mut [0; 512]).unwrap();
        t.emit(of_block(Op::NandProgram, 0), start);
        t.emit(of_block(Op::NandProgram, 1), start);
        t.emit(of_block(Op::NandProgram, 2), start);
        read(2);
        t.emit(of_block(Op::NandProgram, 2), start);
        // The page of block 2 is read for another reason.
        read(4);
        read(1);
        let copied = t.emit(of_block(Op::NandCopyback, 3), start);
        t.emit(of_block(Op::NandErase, 5), copied);
        let shape = MediumShape { nand: Some(LAYOUT), ..shape(0..1) };
        let g = Graph::new(&recorded(t), access_log.take(), &[shape]);
        let before = |n: usize| g.nodes[n].before.iter().collect::<Vec<_>>();
        assert_eq!(before(4), [0], "the program of its source, and no other");
        assert_eq!(before(5), [0, 4]);
    }

    #[test]
    fn a_write_over_two_channels_is_shared_by_address() {
        let access_log = Arc::new(AccessLog::default());
        let mut t = recording_sink(access_log.clone(), None, 0..0);
        start_recording(&mut t);
        let s = Sink::start(&t);
        t.emit(cmd(Op::PcmWrite, 448, 64, 0), s);
        t.emit(cmd(Op::PcmWrite, 512, 64, 1), s);
        access_log.write(0, 500, &[7; 40]);
        let g = Graph::new(&recorded(t), access_log.take(), &[shape(0..2)]);
        let of = |n: usize| g.nodes[n].pieces.iter().map(|p| (p.at, p.len)).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![(500, 12)], vec![(512, 28)]));
        assert!(g.early.is_empty());
    }
}
