//! Gates: tokens that another engine opens.

use super::state::{NO_CMD, NodeToken, PendingEvent, Queues, Stage};
use frit_core::Nanos;

/// A token that is done when the owner of the engine says so: a command of a disk waits behind it
/// for the media that another engine simulates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gate(u32);

impl Gate {
    /// Returns the gate of a node that waits for one more token than it has links.
    pub(super) fn of(id: u32) -> Gate {
        Gate(id)
    }
}

impl Queues {
    pub(super) fn add_gate(&mut self) -> (Gate, NodeToken) {
        let id = self.node(NO_CMD, Stage::Join);
        self.nodes[id as usize].waits = 1;
        (Gate(id), NodeToken { id, generation: self.nodes[id as usize].generation })
    }

    pub(super) fn open_gate(&mut self, gate: Gate, at: Nanos) {
        if at <= self.now {
            self.pass_gate(gate);
        } else {
            self.at(at, PendingEvent::Gate(gate));
        }
    }

    pub(super) fn pass_gate(&mut self, gate: Gate) {
        self.nodes[gate.0 as usize].waits -= 1;
        self.wake(gate.0);
    }
}
