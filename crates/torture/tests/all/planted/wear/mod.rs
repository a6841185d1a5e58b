//! Wear leveling of PCM under power cuts at every command, under crashes and power losses over
//! files, and with damaged registers. Planted bugs prove that the tests find such bugs.

mod cuts;
mod device;
mod files;
mod oracle;

use device::TestDevice;
use frit_core::planted::{self, Found};
use frit_wear::LevelerKind;
use frit_wear::planted::WearBug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use strum::IntoEnumIterator;

/// A method to find violations. `Err` describes the violation.
type Hunt = fn(&TestDevice, u64) -> Result<usize, String>;

const HUNTS: [(&str, Hunt); 3] =
    [("power cuts", cuts::power), ("files", files::stops), ("damage", cuts::damage)];

fn rigs() -> Vec<TestDevice> {
    LevelerKind::iter()
        .flat_map(|kind| [64, 256].map(|interleave| TestDevice::new(kind, interleave)))
        .collect()
}

/// Runs a method and reports a panic as a violation.
fn guarded(hunt: Hunt, device: &TestDevice, seed: u64) -> Result<usize, String> {
    catch_unwind(AssertUnwindSafe(|| hunt(device, seed))).unwrap_or_else(|_| Err("panicked".into()))
}

#[test]
fn what_was_acknowledged_is_there_after_any_stop() {
    for device in rigs() {
        for (name, hunt) in HUNTS {
            let mut images = 0;
            for seed in 1..4 {
                images +=
                    hunt(&device, seed).unwrap_or_else(|v| panic!("{device:?}, {name}, seed {seed}: {v}"));
            }
            println!("{device:?}, {name}: {images} images");
            // Without leveling there are no registers to damage.
            assert!(images > 100 || device.is_plain(), "{device:?} {name}: {images}");
        }
    }
}

/// Number of rounds over all rigs after which a bug counts as missed.
const ROUNDS: u64 = 12;

#[test]
fn planted_bugs_of_wear_leveling_are_found() {
    planted::silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/planted/wear/found.csv"));
    let rigs = rigs();
    for bug in WearBug::iter() {
        // Only the exchange of two stripes has intermediate steps.
        let devices = rigs.iter().filter(|r| bug != WearBug::SwapNotNoted || r.exchanges());
        let devices: Vec<_> = devices.collect();
        let tried = (1..=ROUNDS).flat_map(|seed| {
            devices.iter().flat_map(move |device| {
                let name = move |method| format!("{} {method} {seed}", device.name());
                HUNTS.map(|(method, hunt)| (name(method), (*device, method, hunt, seed)))
            })
        });
        found.search(bug, tried, |&(device, method, hunt, seed)| {
            guarded(hunt, device, seed).is_err().then_some(method)
        });
    }
    found.finish();
}
