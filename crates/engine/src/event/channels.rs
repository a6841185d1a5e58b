//! Channels of the event engine: requests for transfers, and their order.

use frit_core::Nanos;
use std::collections::VecDeque;

/// The channels, and the commands that wait for them.
#[derive(Clone, Debug)]
pub(super) struct Channels {
    channels: Vec<Channel>,
    /// Free channels with requests.
    free: Vec<u16>,
}

#[derive(Clone, Default, Debug)]
struct Channel {
    busy: bool,
    /// The channel is in the list of free channels with requests.
    listed: bool,
    waiting: VecDeque<ChannelRequest>,
}

/// A command that waits for its channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelRequest {
    pub(super) at: Nanos,
    /// Number of the command in order of emission.
    pub(super) number: u64,
    pub(super) id: u32,
}

impl Channels {
    pub(super) fn new(channels: usize) -> Channels {
        Channels { channels: vec![Channel::default(); channels], free: Vec::new() }
    }

    /// Number of channels.
    pub(super) fn len(&self) -> usize {
        self.channels.len()
    }

    /// Adds a request, in order of the requests and, at equal times, in order of emission.
    pub(super) fn request(&mut self, channel: u16, request: ChannelRequest) {
        let waiting = &mut self.channels[usize::from(channel)].waiting;
        let earlier = waiting.iter().rev().take_while(|w| (w.at, w.number) > (request.at, request.number));
        let place = waiting.len() - earlier.count();
        waiting.insert(place, request);
        self.list(channel);
    }

    /// Frees a channel at the end of a transfer.
    pub(super) fn release(&mut self, channel: u16) {
        self.channels[usize::from(channel)].busy = false;
        self.list(channel);
    }

    fn list(&mut self, number: u16) {
        let channel = &mut self.channels[usize::from(number)];
        if !(channel.busy || channel.listed || channel.waiting.is_empty()) {
            channel.listed = true;
            self.free.push(number);
        }
    }

    /// Returns `true` if a free channel has a request.
    pub(super) fn can_grant(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes the first request of a free channel, which is busy from now on. Called when all requests
    /// of the current time are known.
    pub(super) fn next_grant(&mut self) -> Option<u32> {
        let channel = &mut self.channels[usize::from(self.free.pop()?)];
        let request = channel.waiting.pop_front();
        channel.listed = false;
        channel.busy = request.is_some();
        request.map(|request| request.id)
    }
}
