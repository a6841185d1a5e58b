//! Wear leveling below a layer: keys of the layer's table.

use frit_layer::wear::WearKeys;

/// Parameters that do nothing, given others.
pub(super) fn idle(wear: &WearKeys) -> Vec<(&'static str, &'static str)> {
    let mut idle = Vec::new();
    let leveler = &wear.wear_leveling[..];
    if leveler == "none" {
        idle.push(("wear_interval", "nothing levels wear"));
    }
    if leveler != "sfc" {
        idle.push(("wear_cubes", "only `wear_leveling` = sfc has cubes"));
    }
    if !["start-gap", "randomized-start-gap", "security-refresh"].contains(&leveler) {
        idle.push(("wear_region", "only start-gap, randomized-start-gap and security-refresh have regions"));
    }
    idle
}
