//! Mirrors of devices with volatile caches.

mod model;
mod planted;
mod property;
mod sides;
mod times;

use crate::device::{Power, TestDevice};
use frit_compose::Composed;
use frit_compose::mirror::{Mirror, MirrorConfig};
use frit_core::visible::StackView;
use frit_core::{BlockDevice, BlockLayer, CheckScope, Durable, Finding, Nanos, Result, Sink};
use frit_media::Hardware;
use std::sync::{Arc, Mutex};

/// Bytes of a device: 15 regions of data and the metadata.
const DEVICE_BYTES: u64 = 64 << 10;
const IDENTITY: u64 = 42;

/// A mirror as a layer.
type Layer = Composed<Mirror>;

/// Devices of a mirror, which outlive it.
struct Bench {
    devices: Vec<TestDevice>,
    power: Arc<Mutex<Power>>,
    hardware: Hardware,
}

fn config() -> MirrorConfig {
    MirrorConfig { region: 4096, read_chunk: 1024, keep_marked: 2, ..MirrorConfig::default() }
}

impl Bench {
    /// Creates devices with these latencies, in nanoseconds.
    fn new(latencies: &[u64]) -> Bench {
        let (mut hardware, power) = (Hardware::new(), Arc::default());
        let device = |&ns: &u64| TestDevice::new(DEVICE_BYTES, Nanos(ns), &mut hardware, &power);
        Bench { devices: latencies.iter().map(device).collect(), power, hardware }
    }

    /// Builds a mirror over the devices, in the state that they have.
    fn build(&self, config: MirrorConfig) -> Layer {
        let boxed = |d: &TestDevice| Box::new(d.clone()) as Box<dyn BlockDevice>;
        Composed::new(Mirror::new(config, self.devices.iter().map(boxed).collect(), IDENTITY).unwrap())
    }
}

fn metric(layer: &Layer, name: &str) -> u64 {
    let mut view = StackView::default();
    layer.visible(&mut view);
    view.metric(name).unwrap() as u64
}

/// Checks a mirror with its data.
fn check(layer: &mut Layer, sink: &mut Sink, repair: bool) -> Result<Vec<Finding>> {
    let mut all = Vec::new();
    layer.check(sink, CheckScope { data: true, repair, older: false }, &mut |f| all.push(f))?;
    Ok(all)
}
