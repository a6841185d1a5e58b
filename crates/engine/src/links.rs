//! Times of the requests from layers to the layers and media below them.

use crate::latency::LatencyHistogram;
use frit_core::Tag;
use frit_core::{LinkRequest, Nanos, Op, TrafficKind, UnitId};
use frit_media::Hardware;
use strum::EnumCount;

/// Tags from here to [`TAGS_END`] belong to requests between layers, and not to the driver.
const TAGS: Tag = 1 << 30;
const TAGS_END: Tag = 2 << 30;

/// Returns `true` if a watched token is the start or the end of a request between layers.
#[inline]
pub(crate) fn is_link_tag(tag: Tag) -> bool {
    (TAGS..TAGS_END).contains(&tag)
}

/// Distributions by kind of request. A kind that does not occur takes no memory.
#[derive(Clone, Default, Debug)]
pub struct TimesByKind([Option<Box<LatencyHistogram>>; TrafficKind::COUNT]);

impl TimesByKind {
    /// Distribution of a kind; `None` if it did not occur.
    #[must_use]
    pub fn of(&self, kind: TrafficKind) -> Option<&LatencyHistogram> {
        self.0[kind as usize].as_deref()
    }

    #[inline]
    fn record(&mut self, kind: TrafficKind, time: Nanos) {
        self.0[kind as usize].get_or_insert_default().record(time);
    }
}

/// A request whose start or end is not known yet.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    request: LinkRequest,
    start: Option<Nanos>,
    end: Option<Nanos>,
}

/// Tags under which an engine watches the tokens of a request whose times it does not know.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LinkTags {
    pub(crate) start: Option<Tag>,
    pub(crate) end: Option<Tag>,
}

/// Times of requests between layers, from the start of a request (when what it waits for is done) to
/// its acknowledgement, and of commands of media, from the time at which a command waits only for its
/// unit to its end.
#[derive(Clone, Debug)]
pub struct LinkTimes {
    layers: Vec<TimesByKind>,
    devices: Vec<TimesByKind>,
    /// Device of each unit.
    device_of: Vec<usize>,
    open: Vec<OpenRequest>,
    free: Vec<u32>,
}

impl LinkTimes {
    pub(crate) fn new(hardware: &Hardware) -> LinkTimes {
        let units = (0..hardware.units()).map(|u| UnitId(u as u16));
        LinkTimes {
            layers: Vec::new(),
            devices: vec![TimesByKind::default(); hardware.devices().len()],
            device_of: units.map(|u| hardware.device_of(u)).collect(),
            open: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Removes all times. Requests that are not done are not recorded when they are.
    pub(crate) fn reset(&mut self) {
        self.layers.clear();
        self.devices.fill(TimesByKind::default());
        // Their tokens are still watched, so their slots are not given to other requests.
        for open in &mut self.open {
            open.request.layer = u16::MAX;
        }
    }

    /// Times of the requests to a layer, by its number.
    #[must_use]
    pub fn layer(&self, number: usize) -> Option<&TimesByKind> {
        self.layers.get(number)
    }

    /// Times of the commands of the device of a unit.
    #[must_use]
    pub fn device(&self, unit: UnitId) -> Option<&TimesByKind> {
        self.devices.get(*self.device_of.get(unit.idx())?)
    }

    /// Records a command of a medium.
    #[inline]
    pub(crate) fn command(&mut self, op: Op, unit: UnitId, time: Nanos) {
        let kind = if op.is_read() {
            TrafficKind::Read
        } else if op.is_write() {
            TrafficKind::Write
        } else if op.is_fence() {
            TrafficKind::Flush
        } else {
            return;
        };
        self.devices[self.device_of[unit.idx()]].record(kind, time);
    }

    /// Records a request with the times that are known. Returns the tags for the others.
    #[inline]
    pub(crate) fn request(
        &mut self,
        request: LinkRequest,
        start: Option<Nanos>,
        end: Option<Nanos>,
    ) -> LinkTags {
        if let (Some(start), Some(end)) = (start, end) {
            self.record(request, end.since(start));
            return LinkTags::default();
        }
        let open = OpenRequest { request, start, end };
        let index = match self.free.pop() {
            Some(index) => {
                self.open[index as usize] = open;
                index
            }
            None => {
                self.open.push(open);
                self.open.len() as u32 - 1
            }
        };
        let tag = |unknown: bool, which| unknown.then_some(TAGS | index << 1 | which);
        LinkTags { start: tag(start.is_none(), 0), end: tag(end.is_none(), 1) }
    }

    /// Takes the time of a watched token.
    #[inline]
    pub(crate) fn resolved(&mut self, tag: Tag, at: Nanos) {
        let index = (tag & (TAGS - 1)) >> 1;
        let open = &mut self.open[index as usize];
        *(if tag & 1 == 0 { &mut open.start } else { &mut open.end }) = Some(at);
        if let OpenRequest { request, start: Some(start), end: Some(end) } = *open {
            self.free.push(index);
            self.record(request, end.since(start));
        }
    }

    #[inline]
    fn record(&mut self, request: LinkRequest, time: Nanos) {
        let layer = usize::from(request.layer);
        if request.layer == u16::MAX {
            return;
        }
        if self.layers.len() <= layer {
            self.layers.resize_with(layer + 1, TimesByKind::default);
        }
        self.layers[layer].record(request.kind, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> LinkTimes {
        LinkTimes::new(&Hardware::new())
    }

    const READ: LinkRequest = LinkRequest { layer: 2, kind: TrafficKind::Read };

    #[test]
    fn a_request_is_recorded_when_both_of_its_times_are_known() {
        let mut t = times();
        let known = t.request(READ, Some(Nanos(5)), Some(Nanos(9)));
        assert!(known.start.is_none() && known.end.is_none());
        let tags = t.request(READ, None, None);
        t.resolved(tags.start.unwrap(), Nanos(10));
        assert_eq!(t.layer(2).unwrap().of(TrafficKind::Read).unwrap().count(), 1);
        // The slot is free only when both are known.
        let other = t.request(READ, Some(Nanos(1)), None);
        assert_ne!(other.end, tags.end);
        t.resolved(tags.end.unwrap(), Nanos(30));
        t.resolved(other.end.unwrap(), Nanos(3));
        let read = t.layer(2).unwrap().of(TrafficKind::Read).unwrap().summary();
        assert_eq!((read.count, read.max_ns, read.mean_ns), (3, Nanos(20), 26.0 / 3.0));
        assert!(t.layer(2).unwrap().of(TrafficKind::Write).is_none() && t.layer(3).is_none());
        let again = t.request(READ, Some(Nanos(1)), None).end.unwrap();
        assert!(is_link_tag(again) && [tags.end, other.end].contains(&Some(again)));
    }

    #[test]
    fn requests_from_before_a_reset_are_not_recorded() {
        let mut t = times();
        let tags = t.request(READ, Some(Nanos(1)), None);
        t.reset();
        t.resolved(tags.end.unwrap(), Nanos(8));
        assert!(t.layer(2).is_none());
        t.request(READ, Some(Nanos(1)), Some(Nanos(2)));
        assert_eq!(t.layer(2).unwrap().of(TrafficKind::Read).unwrap().count(), 1);
    }
}
