//! Tokens of the event engine: commands, joins, delays and jobs of servers that wait for each other.

use super::disk_queue::DiskJobState;
use super::hazard_links::HazardLinks;
use super::servers::Servers;
use super::state::{DependencyNode, NO_CMD, NONE, NodeToken, Queues, Stage};
use crate::links::is_link_tag;
use frit_core::Tag;
use frit_core::{Cmd, LinkRequest, Nanos, RequestScope};
use frit_media::Phases;
use std::cmp::Reverse;

impl Queues {
    pub(super) fn join(&mut self, a: NodeToken, b: NodeToken) -> NodeToken {
        if a == b || self.is_done(b) {
            return a;
        }
        if self.is_done(a) {
            return b;
        }
        let id = self.node(NO_CMD, Stage::Join);
        self.wait_for(id, 0, a);
        self.wait_for(id, 1, b);
        NodeToken { id, generation: self.nodes[id as usize].generation }
    }

    /// Returns a token that is done `by` after `after`, which counts from now if it is done already.
    pub(super) fn delay(&mut self, after: NodeToken, by: Nanos) -> NodeToken {
        let id = self.node(NO_CMD, Stage::Delay);
        self.nodes[id as usize].start = by;
        self.wait_for(id, 0, after);
        self.wake(id);
        NodeToken { id, generation: self.nodes[id as usize].generation }
    }

    /// Returns a token that is done when a server has worked `by` for a job that is ready after `after`.
    pub(super) fn serve(&mut self, server: u16, after: NodeToken, by: Nanos) -> NodeToken {
        self.special(Stage::Job, server, by.0, after)
    }

    /// Adds a node of a server or a pool, which is no command: it has its number and a value.
    pub(super) fn special(&mut self, stage: Stage, number: u16, value: u64, after: NodeToken) -> NodeToken {
        let tok = self.delay(after, Nanos(value));
        let node = &mut self.nodes[tok.id as usize];
        (node.stage, node.cmd.addr) = (stage, u64::from(number));
        tok
    }

    pub(super) fn servers_mut(&mut self) -> &mut Servers {
        &mut self.servers
    }

    /// Requests a report of `tag` when `tok` is done. Returns `false` if it is already done.
    pub(super) fn watch(&mut self, tok: NodeToken, tag: Tag) -> bool {
        if self.is_done(tok) {
            return false;
        }
        let mut id = tok.id;
        // A node has one tag, so a second watch gets a join of its own.
        if self.nodes[id as usize].tag.is_some() {
            id = self.node(NO_CMD, Stage::Join);
            self.wait_for(id, 0, tok);
        }
        self.nodes[id as usize].tag = Some(tag);
        true
    }

    /// Measures a request between layers, from its start to its acknowledgement.
    pub(super) fn measure(&mut self, scope: RequestScope, request: LinkRequest) {
        let (start_tok, ack_tok) = (NodeToken::from(scope.start), NodeToken::from(scope.ack));
        // No command of the request takes time.
        let empty = ack_tok == start_tok;
        let done = |tok| (empty || self.is_done(tok)).then_some(self.now);
        let (start, end) = (done(start_tok), done(ack_tok));
        let Some(links) = self.usage.links_mut() else { return };
        let tags = links.request(request, start, end);
        for (tok, tag) in [(start_tok, tags.start), (ack_tok, tags.end)] {
            if let Some(tag) = tag {
                self.watch(tok, tag);
            }
        }
    }

    pub(super) fn node(&mut self, cmd: Cmd, stage: Stage) -> u32 {
        let fresh = |generation| DependencyNode {
            cmd,
            generation,
            stage,
            waits: 0,
            disk_job: DiskJobState::default(),
            waiters: NONE,
            next_waiter: [NONE; 2],
            prev: NONE,
            next: NONE,
            sent_prev: NONE,
            sent_next: NONE,
            register_read: NONE,
            order: HazardLinks::default(),
            tag: None,
            phases: Phases::default(),
            ready: Nanos::ZERO,
            start: Nanos::ZERO,
        };
        if self.free == NONE {
            self.nodes.push(fresh(0));
            return self.nodes.len() as u32 - 1;
        }
        let id = self.free;
        let node = &mut self.nodes[id as usize];
        self.free = node.next;
        *node = fresh(node.generation);
        id
    }

    #[inline]
    pub(super) fn is_done(&self, tok: NodeToken) -> bool {
        self.nodes[tok.id as usize].generation != tok.generation
    }

    pub(super) fn wait_for(&mut self, id: u32, wait: usize, tok: NodeToken) {
        if self.is_done(tok) {
            return;
        }
        let first = &mut self.nodes[tok.id as usize].waiters;
        let next = std::mem::replace(first, id * 2 + wait as u32);
        let node = &mut self.nodes[id as usize];
        node.next_waiter[wait] = next;
        node.waits += 1;
    }

    #[inline]
    pub(super) fn wake(&mut self, id: u32) {
        if self.nodes[id as usize].waits == 0 {
            self.woken.push_back(id);
        }
    }

    /// Marks a node as done: frees it and wakes the nodes that wait for it, oldest first.
    pub(super) fn resolve(&mut self, id: u32) {
        let node = &mut self.nodes[id as usize];
        let mut newest = node.waiters;
        match node.tag {
            Some(tag) if is_link_tag(tag) => {
                if let Some(links) = self.usage.links_mut() {
                    links.resolved(tag, self.now);
                }
            }
            Some(tag) => self.reports.push(Reverse((self.now, tag))),
            None => {}
        }
        node.generation = node.generation.wrapping_add(1);
        node.stage = Stage::Free;
        node.next = self.free;
        self.free = id;
        // The list has the newest first: reverse it in place, then wake in order.
        let mut oldest = NONE;
        while newest != NONE {
            let slot = &mut self.nodes[newest as usize / 2].next_waiter[newest as usize % 2];
            let next = std::mem::replace(slot, oldest);
            oldest = newest;
            newest = next;
        }
        while oldest != NONE {
            let node = &mut self.nodes[oldest as usize / 2];
            let next = node.next_waiter[oldest as usize % 2];
            node.waits -= 1;
            self.wake(oldest / 2);
            oldest = next;
        }
    }
}
