//! Disks of the in-order engine. A drive chooses from its queue, so its commands run on an event
//! engine that has no other commands.

use crate::event::{Event, Gate};
use crate::sched::Fifo;
use crate::usage::DeviceUsage;
use frit_core::{Cmd, Engine, Nanos, Tag, Tok, UnitId, UnitState};
use frit_media::{Hardware, TimingModel};
use std::collections::HashMap;

/// The disks of a stack on an event engine.
#[derive(Clone, Debug)]
pub(super) struct Disks {
    engine: Event<Fifo>,
    /// Commands that wait for a command of another medium, or for another disk.
    gates: HashMap<Tok, Gate>,
    /// The commands that are not done, by the tag under which they are watched.
    commands: Vec<Tok>,
    free_tags: Vec<Tag>,
}

impl Disks {
    /// Returns `None` if no disk has a queue: a drive without a mechanism has none.
    pub(super) fn new(hardware: &Hardware) -> Option<Disks> {
        hardware.devices().iter().any(|d| matches!(d.model, TimingModel::Disk(_))).then(|| Disks {
            engine: Event::new(hardware, Fifo),
            gates: HashMap::new(),
            commands: Vec::new(),
            free_tags: Vec::new(),
        })
    }

    /// Adds a command that is ready at the given time, or for which [`Disks::release`] is called
    /// later.
    pub(super) fn emit(&mut self, cmd: Cmd, tok: Tok, now: Nanos, ready: Option<Nanos>) {
        self.engine.set_now(now);
        let mut after = Tok::DONE;
        if ready.is_none_or(|t| t > now) {
            let (gate, opened) = self.engine.add_gate();
            after = opened.into();
            match ready {
                Some(at) => self.engine.open_gate(gate, at),
                None => drop(self.gates.insert(tok, gate)),
            }
        }
        let command = self.engine.emit(cmd, after);
        let tag = self.free_tags.pop().unwrap_or_else(|| {
            self.commands.push(tok);
            self.commands.len() as Tag - 1
        });
        self.commands[tag as usize] = tok;
        let done = self.engine.time_or_watch(command, tag);
        debug_assert!(done.is_none(), "a command of a disk takes time");
    }

    /// Releases a command at the time at which all that it waits for is done.
    pub(super) fn release(&mut self, tok: Tok, at: Nanos) {
        if let Some(gate) = self.gates.remove(&tok) {
            self.engine.open_gate(gate, at);
        }
    }

    /// Time of the next event; zero if there is work to do at once.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.engine.next_event_time()
    }

    /// Processes the events until `limit`, up to the first command that is done, and returns it.
    pub(super) fn advance(&mut self, limit: Nanos) -> Option<Tok> {
        let done = self.engine.next_done(limit)?;
        self.free_tags.push(done.tag);
        Some(self.commands[done.tag as usize])
    }

    /// Exchanges the usage into which the disks count.
    pub(super) fn swap_usage(&mut self, usage: &mut Box<DeviceUsage>) {
        self.engine.swap_usage(usage);
    }

    pub(super) fn busy_until(&self, unit: UnitId, now: Nanos) -> Option<Nanos> {
        match self.engine.unit(unit) {
            UnitState::Idle => None,
            UnitState::BusyUntil(at) => Some(at.max(now)),
        }
    }
}
