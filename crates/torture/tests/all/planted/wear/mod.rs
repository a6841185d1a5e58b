//! Wear leveling of PCM under power cuts at every command, under crashes and power losses over
//! files, and with damaged registers. Planted bugs prove that the tests find such bugs.

mod cuts;
mod device;
mod files;
mod oracle;

use device::TestDevice;
use frit_core::planted::{self, Find, Found, PlantedBug};
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

/// A method on a device with a seed.
type Tried = (usize, usize, u64);

/// Tries a method with the bug and without it. Returns what finds the bug.
fn finds(bug: WearBug, devices: &[TestDevice], (device, method, seed): Tried) -> Option<Find> {
    let case = format!("{device} {method} {seed}");
    let (device, (name, hunt)) = (&devices[device], HUNTS[method]);
    planted::set(Some(bug.id()));
    let found = guarded(hunt, device, seed);
    planted::set(None);
    let violation = found.err()?;
    // A violation that also occurs without the bug does not count.
    assert!(hunt(device, seed).is_ok(), "{device:?} {name} {seed}");
    println!("| {:<26} | {name:<10} | {device:?}, seed {seed} | {violation:.100}", bug.name());
    Some(Find { case, found_by: name.into(), searched: 0 })
}

fn find(bug: WearBug, recorded: Option<&Find>) -> Option<Find> {
    let devices = rigs();
    let numbers = |case: &str| -> Option<Tried> {
        let [device, method, seed] = case.split(' ').map(|word| word.parse().ok()).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        Some((device? as usize, method? as usize, seed?))
    };
    if let Some(known) = recorded
        && let Some(tried) =
            numbers(&known.case).filter(|tried| tried.0 < devices.len() && tried.1 < HUNTS.len())
        && finds(bug, &devices, tried).is_some()
    {
        return Some(known.clone());
    }
    let mut searched = 0;
    for seed in 1..=ROUNDS {
        for device in 0..devices.len() {
            // Only the exchange of two stripes has intermediate steps.
            if bug == WearBug::SwapNotNoted && !devices[device].exchanges() {
                continue;
            }
            for method in 0..HUNTS.len() {
                searched += 1;
                if let Some(found) = finds(bug, &devices, (device, method, seed)) {
                    return Some(Find { searched, ..found });
                }
            }
        }
    }
    None
}

#[test]
fn planted_bugs_of_wear_leveling_are_found() {
    planted::silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/planted/wear/found.csv"));
    let mut missed = Vec::new();
    for bug in WearBug::iter() {
        match find(bug, found.recorded(bug.name())) {
            Some(find) => found.note(bug.name(), find),
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
    found.finish();
}
