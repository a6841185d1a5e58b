//! Replay of requests over a built stack: the service time of each request.

use crate::error::{Error, Result};
use frit_core::{Progress, ReadTarget, SECTOR_BYTES, Sink, StackDevice, WriteData};
use frit_engine::{Arrival, Driver, Host, InOrder, LoopMode, RequestTimes};
use frit_stack::BuiltStack;
use frit_trace::{ReqOp, Request};

/// Host that passes requests to a layer and keeps the service time of each.
struct TraceHost<'a> {
    layer: &'a mut dyn StackDevice,
    requests: &'a [Request],
    next: usize,
    service_ns: Vec<u64>,
}

impl Host for TraceHost<'_> {
    fn next(&mut self) -> frit_core::Result<Option<Arrival>> {
        let request = self.requests.get(self.next);
        self.next += usize::from(request.is_some());
        Ok(request.map(|r| Arrival { at: r.at, class: 0 }))
    }

    fn serve(&mut self, sink: &mut Sink) -> frit_core::Result<()> {
        let Some(r) = self.requests.get(self.next.wrapping_sub(1)) else { return Ok(()) };
        let bytes = u32::try_from(u64::from(r.sectors) * SECTOR_BYTES).unwrap_or(u32::MAX);
        match r.op {
            ReqOp::Read => self.layer.read(sink, r.sector, ReadTarget::Len(bytes), r.hints),
            _ => self.layer.write(sink, r.sector, WriteData::Len(bytes), r.hints),
        }
    }

    fn background(&mut self, sink: &mut Sink, budget: u32) -> frit_core::Result<Progress> {
        self.layer.step(sink, budget)
    }

    fn done(&mut self, _: u8, times: RequestTimes) {
        if let Some(time) = usize::try_from(times.index).ok().and_then(|i| self.service_ns.get_mut(i)) {
            *time = times.service().0;
        }
    }
}

/// Replays requests at their recorded times, with at most `depth` outstanding, and returns their service
/// times in nanoseconds, in order.
pub(crate) fn service_times(mut built: BuiltStack, requests: &[Request], depth: u32) -> Result<Vec<u64>> {
    let mut sink = Sink::new(InOrder::new(&built.hardware));
    let mode = LoopMode::Open { speed: 1.0, depth: Some(depth) };
    let service_ns = vec![0; requests.len()];
    let mut host = TraceHost { layer: &mut *built.layer, requests, next: 0, service_ns };
    let mut driver = Driver::new(mode)?;
    let done =
        driver.run(&mut sink, &mut host, None).and_then(|_| driver.finish(&mut sink, &mut host).map(|_| ()));
    if let Err(source) = done {
        let number = host.next;
        let at = requests.get(number.saturating_sub(1)).map_or_else(Default::default, |r| r.at);
        return Err(Error::Replay { number, at, source });
    }
    Ok(host.service_ns)
}
