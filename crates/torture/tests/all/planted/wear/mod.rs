//! Wear leveling of PCM under power cuts at every command, under crashes and power losses over
//! files, and with damaged registers. Planted bugs prove that the tests find such bugs.

mod cuts;
mod device;
mod files;
mod oracle;

use device::TestDevice;
use frit_core::planted::{self, PlantedBug};
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

fn find(bug: WearBug) -> Option<String> {
    for seed in 1..=ROUNDS {
        // Only the exchange of two stripes has intermediate steps.
        for device in rigs().into_iter().filter(|r| bug != WearBug::SwapNotNoted || r.exchanges()) {
            for (name, hunt) in HUNTS {
                planted::set(Some(bug.id()));
                let found = guarded(hunt, &device, seed);
                planted::set(None);
                if let Err(v) = found {
                    // A violation that also occurs without the bug does not count.
                    assert!(hunt(&device, seed).is_ok(), "{device:?} {name} {seed}");
                    return Some(format!("{name:<10} | {device:?}, seed {seed} | {v:.100}"));
                }
            }
        }
    }
    None
}

#[test]
fn planted_bugs_of_wear_leveling_are_found() {
    planted::silence_panics();
    let mut missed = Vec::new();
    for bug in WearBug::iter() {
        let name = bug.name();
        match find(bug) {
            Some(how) => println!("| {name:<26} | {how}"),
            None => missed.push(name),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
