//! Controllers of NAND chips: the queues of a chip replace those of its units.
//!
//! The model is that of MQSim (Tavakkol et al., FAST 2018), from its source
//! (`TSU_OutofOrder.cpp`, `TSU_Base.cpp`, `NVM_PHY_ONFI_NVDDR2.cpp`): a chip that executes a command takes
//! no other one, reads precede programs and these erases, and pages that are ready in a chip leave it
//! before its channel takes new commands. A command executes pages of several planes of a die together if
//! they have the same offset in their blocks, wherever they are in the queue. So the pages of a block can
//! be programmed in another order than that of emission, and a read does not wait for the program of its
//! page: a controller has its data.

use super::state::{CmdId, NONE, NodeToken, PendingEvent, Queues, Stage};
use crate::sched::ChipDispatch;
use frit_core::{Cause, Cmd, Nanos, Op, UnitId};
use frit_media::{Hardware, NandLayout, NandPlace};
use std::collections::{BTreeSet, VecDeque};

/// The queues of a chip, in order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChipQueue {
    MappingReads,
    Reads,
    BackgroundReads,
    Programs,
    BackgroundPrograms,
    Erases,
}

const QUEUES: usize = 6;

impl ChipQueue {
    fn of(op: Op, cause: Cause) -> ChipQueue {
        match (op, cause.is_background()) {
            (Op::NandErase, _) => ChipQueue::Erases,
            (op, _) if op.is_read() && cause == Cause::Meta => ChipQueue::MappingReads,
            (op, background) if op.is_read() => {
                if background {
                    ChipQueue::BackgroundReads
                } else {
                    ChipQueue::Reads
                }
            }
            (_, true) => ChipQueue::BackgroundPrograms,
            (_, false) => ChipQueue::Programs,
        }
    }
}

/// Returns `true` for commands that copy pages of a victim.
fn copies(cmd: &Cmd) -> bool {
    let queue = ChipQueue::of(cmd.op, cmd.cause);
    // A read of the page register never enters a queue.
    cmd.op != Op::NandRegisterRead
        && matches!(queue, ChipQueue::BackgroundReads | ChipQueue::BackgroundPrograms)
}

#[derive(Clone, Default, Debug)]
struct Chip {
    /// Commands that are executed or whose data wait for the channel.
    working: u32,
    /// Reads and programs of garbage collection that are not done, also programs that wait for their reads.
    copying: u32,
    queues: [VecDeque<u32>; QUEUES],
    /// First commands of groups for further dies, whose transfers follow the current one.
    transfers: VecDeque<u32>,
}

impl Chip {
    /// Queues whose commands are next if garbage collection precedes the host. Until the pages of a victim are
    /// copied, commands of the host only join those of garbage collection, as in MQSim
    /// (`TSU_OutofOrder.cpp`).
    fn background_first(&self) -> Option<[ChipQueue; 2]> {
        let source = |q: ChipQueue| !self.queues[q as usize].is_empty();
        let collects = source(ChipQueue::BackgroundReads);
        Some(match () {
            () if source(ChipQueue::MappingReads) && collects => {
                [ChipQueue::MappingReads, ChipQueue::BackgroundReads]
            }
            () if source(ChipQueue::MappingReads) => [ChipQueue::MappingReads, ChipQueue::Reads],
            () if collects => [ChipQueue::BackgroundReads, ChipQueue::Reads],
            () if source(ChipQueue::BackgroundPrograms) => {
                [ChipQueue::BackgroundPrograms, ChipQueue::Programs]
            }
            () if source(ChipQueue::Erases) => [ChipQueue::Erases; 2],
            () if self.copying > 0 => return None,
            () if source(ChipQueue::Reads) => [ChipQueue::Reads; 2],
            () if source(ChipQueue::Programs) => [ChipQueue::Programs; 2],
            () => return None,
        })
    }
}

#[derive(Clone, Default, Debug)]
struct ChipChannel {
    busy: bool,
    chips: Vec<Chip>,
    /// Chip that is examined next.
    turn: usize,
    /// Reads whose cells are done, in that order.
    data_out: VecDeque<u32>,
}

/// Place of a unit: its channel among those of the engine, and its place in its device.
#[derive(Clone, Copy, Debug)]
struct UnitPlace {
    channel: u16,
    layout: u8,
    place: NandPlace,
}

/// What ends in a chip at the current time.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// A page that was programmed, or a block that was erased.
    Page(u32),
    /// The work of a chip, after all its pages.
    Chip { channel: u16, chip: u16, pages: u32 },
}

/// The chips of all NAND devices.
#[derive(Clone, Debug)]
pub(super) struct ChipControllers {
    dispatch: ChipDispatch,
    layouts: Vec<NandLayout>,
    /// Place of each unit; `None` for units of other media.
    places: Vec<Option<UnitPlace>>,
    channels: Vec<ChipChannel>,
    /// Channels that may start something. As in MQSim, they are examined in the order of their numbers.
    listed: BTreeSet<u16>,
    ending: VecDeque<Ending>,
}

impl ChipControllers {
    fn new(hardware: &Hardware, dispatch: ChipDispatch) -> ChipControllers {
        let mut all = ChipControllers {
            dispatch,
            layouts: Vec::new(),
            places: vec![None; hardware.units()],
            channels: vec![ChipChannel::default(); hardware.channels()],
            listed: BTreeSet::new(),
            ending: VecDeque::new(),
        };
        let mut first = 0;
        for device in hardware.devices() {
            let units = device.unit_channel.len();
            if let Some(layout) = device.nand {
                for unit in 0..units {
                    let id = UnitId((first + unit) as u16);
                    let channel = hardware.channel_of(id) as u16;
                    let place = layout.place(unit as u16);
                    all.places[id.idx()] =
                        Some(UnitPlace { channel, layout: all.layouts.len() as u8, place });
                    let chips = &mut all.channels[usize::from(channel)].chips;
                    chips.resize_with(usize::from(layout.chips), Chip::default);
                }
                all.layouts.push(layout);
            }
            first += units;
        }
        all
    }

    fn place(&self, unit: UnitId) -> Option<UnitPlace> {
        self.places[unit.idx()]
    }

    /// Returns `true` if a channel may start something.
    pub(super) fn can_start(&self) -> bool {
        !self.listed.is_empty() || !self.ending.is_empty()
    }

    fn list(&mut self, number: u16) {
        if !self.channels[usize::from(number)].busy {
            self.listed.insert(number);
        }
    }

    /// Takes the next commands of a channel: a chip and groups of equal commands, a group for a die.
    fn next_groups(&mut self, number: u16, queues: &Queues) -> Option<(usize, Vec<Vec<u32>>)> {
        let channel = &mut self.channels[usize::from(number)];
        for _ in 0..channel.chips.len() {
            let turn = channel.turn;
            channel.turn = (turn + 1) % channel.chips.len();
            let chip = &mut channel.chips[turn];
            if chip.working > 0 {
                continue;
            }
            let source = |q: ChipQueue| !chip.queues[q as usize].is_empty();
            let sources = match () {
                () if self.dispatch.gc_first => match chip.background_first() {
                    Some(sources) => sources,
                    None => continue,
                },
                () if source(ChipQueue::MappingReads) => [ChipQueue::MappingReads, ChipQueue::Reads],
                () if source(ChipQueue::Reads) => [ChipQueue::Reads, ChipQueue::BackgroundReads],
                () if source(ChipQueue::Programs) => [ChipQueue::Programs, ChipQueue::BackgroundPrograms],
                () if source(ChipQueue::BackgroundReads) => [ChipQueue::BackgroundReads; 2],
                () if source(ChipQueue::BackgroundPrograms) => [ChipQueue::BackgroundPrograms; 2],
                () if source(ChipQueue::Erases) => [ChipQueue::Erases; 2],
                () => continue,
            };
            let groups = groups(chip, sources, queues, &self.layouts, &self.places, self.dispatch);
            return Some((turn, groups));
        }
        None
    }
}

/// Takes the first command of a chip and those that are executed with it, and such groups for the
/// other dies if they work beside each other.
fn groups(
    chip: &mut Chip,
    sources: [ChipQueue; 2],
    queues: &Queues,
    layouts: &[NandLayout],
    places: &[Option<UnitPlace>],
    dispatch: ChipDispatch,
) -> Vec<Vec<u32>> {
    let key = |id: u32| {
        let cmd = queues.cmd(CmdId(id));
        let at = places[cmd.unit.idx()];
        at.map(|at| {
            let layout = layouts[usize::from(at.layout)];
            (layout, at.place, cmd.op, layout.offset(cmd.addr))
        })
    };
    let Some((layout, first, ..)) = chip.queues[sources[0] as usize].front().and_then(|&id| key(id)) else {
        return Vec::new();
    };
    let dies = if dispatch.interleave_dies { layout.dies } else { 1 };
    let mut all = Vec::new();
    for die in (0..dies).map(|i| (first.die + i) % layout.dies) {
        let mut group: Vec<u32> = Vec::new();
        // Planes of the group, and what its commands have in common.
        let (mut planes, mut common) = (Vec::<u16>::new(), None);
        for source in sources {
            chip.queues[source as usize].retain(|&id| {
                let Some((layout, place, op, offset)) = key(id) else { return true };
                let joins = match common {
                    None => true,
                    Some(common) => layout.multi_plane && common == (op, offset),
                };
                if place.die != die || !joins || planes.contains(&place.plane) {
                    return true;
                }
                planes.push(place.plane);
                common = Some((op, offset));
                group.push(id);
                false
            });
        }
        if !group.is_empty() {
            all.push(group);
        }
    }
    all
}

impl Queues {
    /// Gives the chips of NAND devices queues of their own.
    pub(super) fn use_chips(&mut self, hardware: &Hardware, dispatch: ChipDispatch) {
        self.chips = Some(Box::new(ChipControllers::new(hardware, dispatch)));
        self.suspensions = Vec::new();
    }

    /// Returns `true` if the unit belongs to a chip with queues.
    #[inline]
    pub(super) fn is_chip(&self, unit: UnitId) -> bool {
        self.chips.as_ref().is_some_and(|c| c.place(unit).is_some())
    }

    /// Adds a command of a chip.
    pub(super) fn add_to_chip(&mut self, id: u32, after: NodeToken) -> NodeToken {
        self.emitted += 1;
        let node = &mut self.nodes[id as usize];
        node.order.seq = self.emitted;
        let (unit, generation) = (node.cmd.unit, node.generation);
        // A read of the page register finds its read here.
        self.units[unit.idx()].queue.tail = id;
        let copies = copies(&self.nodes[id as usize].cmd);
        if copies && let Some(chip) = self.chip_of(unit) {
            chip.copying += 1;
        }
        self.wait_for(id, 0, after);
        self.wake(id);
        NodeToken { id, generation }
    }

    fn chip_of(&mut self, unit: UnitId) -> Option<&mut Chip> {
        let chips = self.chips.as_mut()?;
        let at = chips.place(unit)?;
        chips.channels[usize::from(at.channel)].chips.get_mut(usize::from(at.place.chip))
    }

    /// Moves a command that waits for nothing into a queue of its chip.
    pub(super) fn release_to_chip(&mut self, id: u32) {
        let now = self.now;
        let node = &mut self.nodes[id as usize];
        (node.stage, node.ready) = (Stage::Sent, now);
        let cmd = node.cmd;
        let Some(chips) = &mut self.chips else { return };
        let Some(at) = chips.place(cmd.unit) else { return };
        let chip = &mut chips.channels[usize::from(at.channel)].chips[usize::from(at.place.chip)];
        let queue = ChipQueue::of(cmd.op, cmd.cause);
        let waiting = &mut chip.queues[queue as usize];
        // Reads are in the order in which they are ready. A program that waited for the read of the old page
        // is at its place in the order of emission.
        let place = match queue {
            ChipQueue::Programs | ChipQueue::BackgroundPrograms => {
                let nodes = &self.nodes;
                let seq = |id: u32| nodes[id as usize].order.seq;
                waiting.len() - waiting.iter().rev().take_while(|&&w| seq(w) > seq(id)).count()
            }
            _ => waiting.len(),
        };
        waiting.insert(place, id);
        chips.list(at.channel);
    }

    /// Gives a free channel to a page that leaves its chip, or to commands for a chip. Returns `false`
    /// if no channel was examined.
    pub(super) fn start_chip(&mut self) -> bool {
        let Some(chips) = &mut self.chips else { return false };
        let Some(number) = chips.listed.pop_first() else { return false };
        let channel = &mut chips.channels[usize::from(number)];
        if let Some(id) = channel.data_out.pop_front() {
            channel.busy = true;
            self.transfer_out(number, id);
            return true;
        }
        // The controllers are taken out, because they read the commands of the queues.
        let Some(mut chips) = self.chips.take() else { return false };
        let next = chips.next_groups(number, self);
        if let Some((turn, groups)) = next {
            let channel = &mut chips.channels[usize::from(number)];
            channel.busy = true;
            let chip = &mut channel.chips[turn];
            chip.working = groups.iter().map(|g| g.len() as u32).sum();
            chip.transfers = groups.iter().map(|g| g[0]).collect();
            for group in groups {
                self.link_group(&group);
            }
            let first = chip.transfers.pop_front();
            self.chips = Some(chips);
            if let Some(first) = first {
                self.transfer_in(number, first);
            }
        } else {
            self.chips = Some(chips);
        }
        true
    }

    /// Links the commands of a group, and computes their phases.
    fn link_group(&mut self, group: &[u32]) {
        for (i, &id) in group.iter().enumerate() {
            self.start_at(id, self.now);
            let node = &mut self.nodes[id as usize];
            if i > 0 {
                let model = &self.models[usize::from(self.units[node.cmd.unit.idx()].device)];
                node.phases = model.further_plane(&node.cmd, node.phases);
            }
            node.sent_next = group.get(i + 1).copied().unwrap_or(NONE);
        }
    }

    /// Returns the commands of a group.
    fn group(&self, first: u32) -> Vec<u32> {
        let next = |&id: &u32| Some(self.nodes[id as usize].sent_next).filter(|&n| n != NONE);
        std::iter::successors(Some(first), next).collect()
    }

    /// Starts the transfers in of a group, which follow each other.
    fn transfer_in(&mut self, channel: u16, first: u32) {
        let mut end = self.now;
        for id in self.group(first) {
            let node = &mut self.nodes[id as usize];
            (node.stage, node.start) = (Stage::In, self.now);
            let (start, len) = (end, node.phases.bus_in);
            end += len;
            self.usage_mut().count_bus_phase(channel, start, len);
        }
        self.at(end, PendingEvent::Phase(CmdId(first)));
    }

    fn transfer_out(&mut self, channel: u16, id: u32) {
        let node = &mut self.nodes[id as usize];
        node.stage = Stage::Out;
        let (start, len) = (self.now, node.phases.bus_out);
        self.usage_mut().count_bus_phase(channel, start, len);
        self.at(start + len, PendingEvent::Phase(CmdId(id)));
    }

    /// Ends a phase of a group, or the transfer of a page out of its chip.
    pub(super) fn end_chip_phase(&mut self, id: CmdId) {
        let node = &self.nodes[id.0 as usize];
        let Some(at) = self.chips.as_ref().and_then(|c| c.place(node.cmd.unit)) else { return };
        match node.stage {
            Stage::In => {
                let group = self.group(id.0);
                let mut cells = Nanos::ZERO;
                for &id in &group {
                    let node = &mut self.nodes[id as usize];
                    node.stage = Stage::Array;
                    cells = cells.max(node.phases.array);
                }
                self.at(self.now + cells, PendingEvent::Phase(id));
                self.end_transfer_in(at);
            }
            Stage::Array => self.end_cells(id.0, at),
            _ => self.end_transfer_out(id.0, at),
        }
    }

    /// Frees the channel after the transfers in of a chip, or starts those of its next die.
    fn end_transfer_in(&mut self, at: UnitPlace) {
        let Some(chips) = &mut self.chips else { return };
        let channel = &mut chips.channels[usize::from(at.channel)];
        match channel.chips[usize::from(at.place.chip)].transfers.pop_front() {
            Some(next) => self.transfer_in(at.channel, next),
            None => {
                channel.busy = false;
                chips.list(at.channel);
            }
        }
    }

    fn end_cells(&mut self, first: u32, at: UnitPlace) {
        let group = self.group(first);
        if self.nodes[first as usize].cmd.op == Op::NandRead {
            let Some(chips) = &mut self.chips else { return };
            chips.channels[usize::from(at.channel)].data_out.extend(group);
            return chips.list(at.channel);
        }
        // As in MQSim, each page is reported before the next one, and the chip is busy until all are.
        let Some(chips) = &mut self.chips else { return };
        let pages = group.len() as u32;
        chips.ending.extend(group.into_iter().map(Ending::Page));
        chips.ending.push_back(Ending::Chip { channel: at.channel, chip: at.place.chip, pages });
    }

    /// Reports the next page of a chip whose cells are done, or that the chip is idle. Returns `false` if there
    /// is none.
    pub(super) fn end_in_chips(&mut self) -> bool {
        let Some(chips) = &mut self.chips else { return false };
        match chips.ending.pop_front() {
            None => return false,
            Some(Ending::Page(id)) => self.end_command(id),
            Some(Ending::Chip { channel, chip, pages }) => {
                chips.channels[usize::from(channel)].chips[usize::from(chip)].working -= pages;
                chips.list(channel);
            }
        }
        true
    }

    fn end_transfer_out(&mut self, id: u32, at: UnitPlace) {
        let register = self.nodes[id as usize].register_read;
        if register != NONE {
            self.follow_in_chip(register, at);
        }
        if let Some(chips) = &mut self.chips {
            chips.channels[usize::from(at.channel)].busy = false;
        }
        self.end_in_chip(id, at);
    }

    /// Lets the read of the page register follow its read, before other pages of the channel.
    fn follow_in_chip(&mut self, id: u32, at: UnitPlace) {
        let now = self.now;
        self.start_at(id, now);
        let node = &mut self.nodes[id as usize];
        node.ready = now;
        // The other reads are counted in the queue of their unit.
        self.units[node.cmd.unit.idx()].queued += 1;
        let Some(chips) = &mut self.chips else { return };
        let channel = &mut chips.channels[usize::from(at.channel)];
        channel.data_out.push_front(id);
        channel.chips[usize::from(at.place.chip)].working += 1;
    }

    /// Ends a read. Its chip takes commands again when all of them have ended.
    fn end_in_chip(&mut self, id: u32, at: UnitPlace) {
        if let Some(chips) = &mut self.chips {
            chips.channels[usize::from(at.channel)].chips[usize::from(at.place.chip)].working -= 1;
            chips.list(at.channel);
        }
        self.end_command(id);
    }

    fn end_command(&mut self, id: u32) {
        let now = self.now;
        let node = &mut self.nodes[id as usize];
        node.stage = Stage::Finished;
        let (cmd, ready, start) = (node.cmd, node.ready, node.start);
        self.usage_mut().count_command(&cmd, ready, start, now);
        let unit = &mut self.units[cmd.unit.idx()];
        unit.queued -= 1;
        if unit.queued == 0 {
            unit.expected = now;
        }
        if unit.queue.tail == id {
            unit.queue.tail = NONE;
        }
        if copies(&cmd)
            && let Some(chip) = self.chip_of(cmd.unit)
        {
            chip.copying -= 1;
        }
        self.complete(CmdId(id));
    }
}
