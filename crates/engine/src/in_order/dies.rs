//! Dies whose planes execute multi-plane commands.
//!
//! A die executes one command at a time. Commands of the same operation to the same page offset of
//! different planes that are ready when the die starts are executed as one multi-plane command:
//! the transfers in follow each other, the cells of all planes work together once, and the
//! transfers out follow each other (ONFI 5.1, section 5.32: multi-plane operations).

use super::unit::Stage;
use super::{InOrder, Tokens, Unit};
use frit_core::Tok;
use frit_core::{Nanos, Op, UnitId};
use frit_media::{Hardware, NandLayout};

/// "None" among the dies.
pub(super) const NO_DIE: u16 = u16::MAX;

/// A die with planes that are units.
#[derive(Clone, Debug)]
pub(super) struct Die {
    planes: Vec<UnitId>,
    layout: NandLayout,
    /// Time from which the die is free, if it executes nothing.
    free: Nanos,
    /// Plane whose command starts next, as far as is known.
    next: Option<UnitId>,
    /// Planes of the command that is executed.
    members: Vec<UnitId>,
    /// Number of members whose current transfer is not granted yet.
    transfers: usize,
    /// End of the last transfer, or of the work of the cells.
    done: Nanos,
}

impl Die {
    /// Returns the time until which the die works, as far as is known; `None` if it is idle.
    pub(super) fn busy_until(&self, now: Nanos) -> Option<Nanos> {
        match self.members.is_empty() {
            true => (self.free > now).then_some(self.free),
            false => Some(self.done.max(now)),
        }
    }
}

/// Returns the dies, and for each unit the number of its die.
pub(super) fn dies(hardware: &Hardware) -> (Vec<Die>, Vec<u16>) {
    let (mut dies, mut of_unit) = (Vec::<Die>::new(), vec![NO_DIE; hardware.units()]);
    let mut first_unit = 0;
    for device in hardware.devices() {
        let units = device.unit_channel.len();
        if let Some(layout) = device.nand.filter(|l| l.multi_plane) {
            let first_die = dies.len();
            let count = usize::from(layout.all_dies());
            for die in 0..count {
                let planes = (die..units).step_by(count);
                let planes: Vec<UnitId> = planes.map(|u| UnitId((first_unit + u) as u16)).collect();
                planes.iter().for_each(|u| of_unit[u.idx()] = (first_die + die) as u16);
                dies.push(Die {
                    planes,
                    layout,
                    free: Nanos::ZERO,
                    next: None,
                    members: Vec::new(),
                    transfers: 0,
                    done: Nanos::ZERO,
                });
            }
        }
        first_unit += units;
    }
    (dies, of_unit)
}

/// The oldest command of a plane, if it waits for nothing but a time.
fn ready(units: &[Unit], tokens: &Tokens, plane: UnitId) -> Option<(Nanos, Tok, Op, u64)> {
    let c = units[plane.idx()].queue.front()?;
    Some((c.ready.or_else(|| tokens.ready_at(c.tok))?, c.tok, c.cmd.op, c.cmd.addr))
}

impl InOrder {
    /// Determines when a die that executes nothing starts its next command.
    pub(super) fn plan_die(&mut self, number: u16) {
        let die = &mut self.dies[usize::from(number)];
        if !die.members.is_empty() {
            return;
        }
        let commands = die.planes.iter().filter_map(|&plane| {
            let (at, tok, ..) = ready(&self.units, &self.tokens, plane)?;
            Some((at.max(die.free), tok, plane))
        });
        let first = commands.min();
        if let Some(plane) = die.next.take() {
            self.units[plane.idx()].stage = Stage::Idle;
            self.asks.clear(plane.idx());
        }
        if let Some((at, tok, plane)) = first {
            die.next = Some(plane);
            self.units[plane.idx()].stage = Stage::Start;
            self.asks.set(plane.idx(), at, tok.number());
        }
    }

    /// Starts the command of a plane, together with those of other planes that can join it.
    pub(super) fn start_die(&mut self, number: u16, leader: UnitId, at: Nanos) {
        let die = &mut self.dies[usize::from(number)];
        die.next = None;
        self.units[leader.idx()].stage = Stage::Idle;
        self.asks.clear(leader.idx());
        let Some((_, _, op, addr)) = ready(&self.units, &self.tokens, leader) else { return };
        let offset = |addr: u64| die.layout.offset(addr);
        let mut transfers_in = false;
        for &plane in &die.planes {
            let Some((ready, tok, its_op, its_addr)) = ready(&self.units, &self.tokens, plane) else {
                continue;
            };
            if ready > at || its_op != op || offset(its_addr) != offset(addr) {
                continue;
            }
            let unit = &mut self.units[plane.idx()];
            let Some(command) = unit.queue.front() else { continue };
            let model = &mut self.models[usize::from(unit.device)];
            unit.phases = model.phases(&command.cmd, at);
            if !die.members.is_empty() {
                unit.phases = model.further_plane(&command.cmd, unit.phases);
            }
            (unit.ready, unit.start) = (ready, at);
            die.members.push(plane);
            if unit.phases.bus_in > Nanos::ZERO {
                transfers_in = true;
                unit.stage = Stage::In;
                self.asks.set(plane.idx(), at, tok.number());
            }
        }
        die.done = at;
        die.transfers = die.members.len();
        if !transfers_in {
            self.start_cells(number);
        }
    }

    /// Counts a transfer of a plane that ends at `at`. After the last one the cells work, or the die
    /// is free.
    pub(super) fn end_transfer(&mut self, number: u16, plane: UnitId, at: Nanos) {
        self.asks.clear(plane.idx());
        let die = &mut self.dies[usize::from(number)];
        die.done = die.done.max(at);
        die.transfers -= 1;
        let last = die.transfers == 0;
        if self.units[plane.idx()].stage == Stage::In {
            self.units[plane.idx()].stage = Stage::Array;
            if last {
                self.start_cells(number);
            }
        } else {
            self.end(plane, at);
            if last {
                self.free_die(number);
            }
        }
    }

    /// Starts the cells of all members when the last transfer in has ended.
    fn start_cells(&mut self, number: u16) {
        let die = &mut self.dies[usize::from(number)];
        let cells = die.members.iter().map(|p| self.units[p.idx()].phases.array).max().unwrap_or_default();
        die.done += cells;
        let done = die.done;
        die.transfers = die.members.len();
        for i in 0..self.dies[usize::from(number)].members.len() {
            let plane = self.dies[usize::from(number)].members[i];
            let unit = &mut self.units[plane.idx()];
            if unit.phases.bus_out > Nanos::ZERO {
                unit.stage = Stage::Out;
                let tok = unit.running();
                self.asks.set(plane.idx(), done, tok.number());
            } else {
                self.dies[usize::from(number)].transfers -= 1;
                self.end(plane, done);
            }
        }
        if self.dies[usize::from(number)].transfers == 0 {
            self.free_die(number);
        }
    }

    fn free_die(&mut self, number: u16) {
        let die = &mut self.dies[usize::from(number)];
        die.free = die.done;
        die.members.clear();
        self.plan_die(number);
    }
}
