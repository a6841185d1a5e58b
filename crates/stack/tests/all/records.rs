//! Recordings: what a sink receives, and a sink that fails.

use frit_core::{Hints, Nanos, ReadTarget, Sector, Sink, StackDevice, StackView, TrafficKind, WriteData};
use frit_stack::record::{ReceivedRequest, RequestSink};
use frit_stack::{Bytes, Stack};
use std::sync::{Arc, Mutex};

const STACK: &str = "[media.hdd]\nprofile = \"st3500320as-2008\"\nbytes = \"1M\"\n\
                     [rec]\nkind = \"record\"\ndevice = \"hdd\"\nfile = \"x.csv\"\nlimit = 6\n";

/// Takes some requests, and refuses those after them, as a full disk does.
struct Room {
    most: usize,
    taken: Mutex<Vec<ReceivedRequest>>,
}

impl RequestSink for Room {
    fn record(&self, request: &ReceivedRequest) -> bool {
        let mut taken = self.taken.lock().unwrap();
        let has_room = taken.len() < self.most;
        if has_room {
            taken.push(*request);
        }
        has_room
    }
}

/// One request of each kind.
fn requests(layer: &mut dyn StackDevice) {
    let (mut sink, mut sector) = (Sink::untimed(), [0; 512]);
    layer.write(&mut sink, Sector(8), WriteData::Bytes(&[7; 4096]), Hints::NONE).unwrap();
    layer.read(&mut sink, Sector(9), ReadTarget::Bytes(&mut sector), Hints::NONE).unwrap();
    assert_eq!(sector, [7; 512]);
    layer.discard(&mut sink, Sector(8), 2).unwrap();
    layer.flush(&mut sink).unwrap();
}

fn metrics(layer: &dyn StackDevice) -> [f64; 2] {
    let mut view = StackView::default();
    layer.visible(&mut view);
    ["recorded_requests", "unrecorded_requests"].map(|name| view.metric(name).unwrap())
}

#[test]
fn a_sink_receives_the_requests_until_the_limit_or_a_failure() {
    for (most, recorded) in [(100, 6), (5, 5)] {
        let mut built = Stack::parse("t", STACK, &[]).unwrap().build(&Bytes::Memory).unwrap();
        let layer = &mut *built.layer;
        let [port] = &built.records[..] else { panic!("{:?}", built.records) };
        assert_eq!(port.file(), "x.csv");
        // Without a sink, requests are neither recorded nor missed.
        requests(layer);
        assert_eq!(metrics(layer), [0.0, 0.0]);
        let room = Arc::new(Room { most, taken: Mutex::default() });
        port.attach(Arc::<Room>::clone(&room));
        requests(layer);
        requests(layer);
        assert_eq!(metrics(layer), [f64::from(recorded), f64::from(8 - recorded)]);
        let request = |kind, at, len| ReceivedRequest { now: Nanos::ZERO, kind, at, len };
        let expected = [
            request(TrafficKind::Write, 4096, 4096),
            request(TrafficKind::Read, 9 * 512, 512),
            request(TrafficKind::Zero, 4096, 1024),
            request(TrafficKind::Flush, 0, 0),
        ];
        let taken = room.taken.lock().unwrap();
        assert_eq!(taken[..4], expected);
        assert_eq!(taken.len(), recorded as usize);
    }
}
